r"""A random part of the pairs of a long list, whose weighted sum has the expected value of the sum over all pairs.

Of the pairs of ranks d < e with d < ``top``, those of a document with about m others are drawn, its partners. They come
in runs ``(d + i, e + i)``, so that the inner loops read contiguous arrays and a list takes :math:`O(m n)` time:

* Among the first ``top`` ranks a run has all pairs that are k ranks apart. m distances k are drawn, one from each of m
  equal strata of 1 to top - 1, and the weight is (top - 1) / m. With ``prefer_near`` half of them are drawn uniformly
  by log k instead, for weights that fall with the distance. The weight is 1 over the expected number of draws of k.
* A document below meets m of the first ``top`` ranks. m offsets o are drawn, one from each of m equal strata of 0 to
  top - 1; rank e meets rank (e + o) mod top. So each of the first ``top`` ranks meets m (n - top) / top of those below.
  The weight is top / m.

Strata have less variance than independent draws.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import allocating, kernel
from ltr_objectives.kernels.rng import mix, stream, uniform

OWN = np.uint64(0x9A27E25)  # separates these random numbers from those of the noise


@kernel
def leaves_out_pairs(n, top, partners):
    """Return True if ``partners`` leaves out pairs."""
    return partners < min(top, n - 1)


@allocating
def runs(n, top, partners, prefer_near, rng, q, draw):
    """Return the first ranks d and e, the length and the weight of each run, for one draw of query q."""
    key = mix(stream(rng.seed, rng.iteration, np.uint64(q)) + OWN + np.uint64(draw))
    size = partners + 2 * partners * ((n - 1) // top)
    ranks, weight = np.empty((3, size), np.int64), np.empty(size)
    found, by_log = 0, partners // 2 if prefer_near else 0
    flat = partners - by_log
    # among the first ranks: pairs that are k ranks apart
    for j in range(partners):
        u = uniform(key, np.uint64(j))
        if j < flat:
            k = min(1 + int((j + u) * (top - 1) / flat), top - 1)
        else:
            k = min(int(math.exp((j - flat + u) / by_log * math.log(top))), top - 1)
        ranks[0, found], ranks[1, found], ranks[2, found] = 0, k, top - k
        weight[found] = 1.0 / (flat / (top - 1) + by_log * math.log1p(1.0 / k) / math.log(top))
        found += 1
    # of each block of ``top`` ranks below: pairs at the offset o, in two runs, because ranks are counted modulo ``top``
    for j in range(partners if top < n else 0):
        o = min(int((j + uniform(key, np.uint64(partners + j))) * top / partners), top - 1)
        for a in range(top, n, top):
            length = min(top, n - a)
            for d, e, count in ((o, a, min(top - o, length)), (0, a + top - o, length - (top - o))):
                if count > 0:
                    ranks[0, found], ranks[1, found], ranks[2, found] = d, e, count
                    weight[found] = top / partners
                    found += 1
    return ranks[:, :found], weight[:found]

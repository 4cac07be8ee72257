r"""The weighted pairwise logistic loss of :mod:`ltr_objectives.kernels.pairs` for linear metrics, over all pairs.

The change of a linear metric when two documents trade places, scale (g_i - g_j) |w_i - w_j|, does not ask which of the
two ranks first. So the documents of a query stand in descending order of gain, as their labels do, and each meets
only those of lower gain: two fifths of the pairs of web search data have equal gains and are never looked at, and in
all others the first document is the better one, which saves the comparisons: 1.6 times as fast as rank order over all
pairs, and as fast where 30 ranks are looked at.

Where only pairs count whose upper rank is among the first, a document of those ranks also meets the better documents
of all other ranks, which ``beyond`` marks by 1.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rankings import ranking
from ltr_objectives.kernels.rng import LOGISTIC, stream
from ltr_objectives.kernels.sorting import scratch, sort_descending


@vector_kernel
def _below(i, start, g, E, w, lam, hes):
    """The pairs of i with the documents from ``start`` on, all of lower gain."""
    gi, Ei, wi = g[i], E[i], w[i]
    up, curve = 0.0, 0.0
    gb, Eb, wb, lamb, hesb = g[start:], E[start:], w[start:], lam[start:], hes[start:]
    for j in range(len(gb)):
        inverse = 1.0 / (Ei + Eb[j])
        x = (gi - gb[j]) * abs(wi - wb[j]) * (Eb[j] * inverse)
        h = x * (Ei * inverse)
        lamb[j] += x
        hesb[j] += h
        up += x
        curve += h
    lam[i] -= up
    hes[i] += curve
    return up


@vector_kernel
def _above(i, end, g, E, w, beyond, lam, hes):
    """The pairs of i with those documents before ``end``, all of higher gain, that ``beyond`` marks."""
    gi, Ei, wi = g[i], E[i], w[i]
    down, curve = 0.0, 0.0
    ga, Ea, wa, lama, hesa, mark = g[:end], E[:end], w[:end], lam[:end], hes[:end], beyond[:end]
    for j in range(len(ga)):
        inverse = 1.0 / (Ea[j] + Ei)
        x = (ga[j] - gi) * abs(wa[j] - wi) * (Ei * inverse) * mark[j]
        h = x * (Ea[j] * inverse)
        lama[j] -= x
        hesa[j] += h
        down += x
        curve += h
    lam[i] += down
    hes[i] += curve
    return down


@kernel
def _wide(i, start, sigma, g, s, w, beyond, end, lam, hes):
    """Both, with one exponential a pair: scores too far apart for exponentials of their own."""
    total = 0.0
    for j in range(len(g)):
        if end <= j < start or (j < end and beyond[j] == 0.0):
            continue
        hi, lo = min(i, j), max(i, j)
        gap = sigma * (s[hi] - s[lo])
        p = 1.0 / (1.0 + math.exp(min(gap, 700.0)))
        x = (g[hi] - g[lo]) * abs(w[hi] - w[lo]) * p
        h = x / (1.0 + math.exp(min(-gap, 700.0)))
        lam[hi] -= x
        lam[lo] += x
        hes[hi] += h
        hes[lo] += h
        total += x
    return total


@kernel
def _list(first_ranks, narrow, sigma, g, s, E, w, beyond, lam, hes, stop):
    """Add the pairs of one list in order of gain; return the sum of |lambda|."""
    n = len(g)
    total = 0.0
    same, lower = 0, 0  # the documents from ``same`` to before ``lower`` have the gain of i
    for i in range(n):
        if stop[0]:
            return total
        if i == lower:
            same = i
            while lower < n and g[lower] == g[i]:
                lower += 1
        if beyond[i] > 0.0:
            continue
        end = 0 if first_ranks >= n else same
        if not narrow:
            total += _wide(i, lower, sigma, g, s, w, beyond, end, lam, hes)
            continue
        total += _below(i, lower, g, E, w, lam, hes)
        if end > 0:
            total += _above(i, end, g, E, w, beyond, lam, hes)
    return total


@kernel
def _gain_order(by_label, gain, key, key2, order2, by_gain):
    """Copy the order by label where gains descend in it; find their own where a gain table does not grow."""
    ascents = 0
    for p in range(len(gain)):
        by_gain[p] = by_label[p]
        ascents += p > 0 and gain[by_label[p]] > gain[by_label[p - 1]]
    if ascents > 0:
        for p in range(len(gain)):
            key[p] = gain[by_gain[p]]
        sort_descending(key, by_gain, key2, order2, len(gain))


@kernel
def graded_gradients(first, last, ptr, scores, by_label, gain, w, scale, sigma, rows, head, lambda_norm, permutations,
                     noise, noise_scale, seed, iteration, grad, hess, stop):  # fmt: skip
    """Write gradient and Hessian of the queries ``first <= q < last``; only the first ``head`` ranks need an order."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    noisy, exp_, odds = np.empty(longest), np.empty(longest), np.empty(longest)
    by_gain, place = np.empty(longest, np.int64), np.empty(longest, np.int64)
    g, s, E = np.empty(longest), np.empty(longest), np.empty(longest)
    weight, beyond, lam, hes = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or scale[q] == 0.0:
            continue
        x = scores[a:b]
        narrow = relative_to_top(x, sigma, exp_)
        logistic = noise == LOGISTIC and relative_to_top(x, 1.0 / noise_scale, odds)
        _gain_order(by_label[a:b], gain[a:b], key, key2, order2, by_gain)
        for p in range(n):
            i = by_gain[p]
            place[i] = p
            g[p], s[p], E[p] = gain[a + i], x[i], exp_[i]
            lam[p], hes[p] = 0.0, 0.0
        stream_key = stream(seed, iteration, np.uint64(q))
        total = 0.0
        for r in range(permutations):
            if stop[0]:
                return
            ranking(x, min(n, head), noise, noise_scale, odds, logistic, stream_key, np.uint64(r) * np.uint64(2 * n),
                    noisy, key, order, key2, order2)  # fmt: skip
            for d in range(n):
                p = place[order[d]]
                weight[p] = w[d] * scale[q]
                beyond[p] = 0.0 if d < rows else 1.0
            total += _list(rows, narrow, sigma, g[:n], s, E, weight[:n], beyond, lam[:n], hes[:n], stop)
        factor = sigma / permutations
        if lambda_norm:
            total *= 2.0 * factor
            if total > 0.0:
                factor *= np.log2(1.0 + total) / total
        for p in range(n):
            i = a + by_gain[p]
            grad[i] = lam[p] * factor
            hess[i] = hes[p] * factor * sigma

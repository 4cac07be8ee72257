r"""The logistic pairs of :mod:`ltr_objectives.kernels.pairs` for linear metrics, over all pairs.

A swap changes a linear metric by scale |g_i - g_j| |w_i - w_j|, with w_i the discount at the rank of i, whichever
document ranks first. So the loop takes the documents of a query in descending order of gain, and pairs each with those
of lower gain. It skips the pairs of equal gains, two fifths of the pairs in web search data.

With a truncation, the loop takes only the documents among the first ranks. It pairs each of them with all documents of
lower gain, and with those of higher gain beyond the truncation in all draws of a batch, which ``mark`` marks by 1.
"""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.pairs import list_factor
from ltr_objectives.kernels.rankings import odds_of, ranking, rankings
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.slopes import BATCH, add_pairs, batches, filled_up, part_of
from ltr_objectives.kernels.sorting import longest_list, sort_descending
from ltr_objectives.kernels.swaps import LINEAR


@kernel
def _graded_list(draws, truncated, narrow, sigma, r, stop):
    """Add the pairs of one list in order of gain, for all draws of a batch; return the sum of |slope|."""
    n = len(r.g)
    total = 0.0
    same, lower = 0, 0  # the documents same <= j < lower have the gain of i
    for i in range(n):
        if stop[0]:
            return total
        if i == lower:
            same = i
            while lower < n and r.g[lower] == r.g[i]:
                lower += 1
        if r.mark[i] > 0.0:
            continue
        total += add_pairs(LINEAR, i, lower, n, True, draws, narrow, sigma, r)
        if truncated:
            total += add_pairs(LINEAR, i, 0, same, False, draws, narrow, sigma, r)
    return total


@kernel
def _gain_order(by_label, gain, space, by_gain):
    """Copy the order by label where gains descend in it; else sort, since a gain need not grow with the label."""
    ascents = 0
    for at in range(len(gain)):
        by_gain[at] = by_label[at]
        ascents += at > 0 and gain[by_label[at]] > gain[by_label[at - 1]]
    if ascents > 0:
        for at in range(len(gain)):
            space.key[at] = gain[by_gain[at]]
        sort_descending(space.key, by_gain, space.key2, space.order2, len(gain))


@kernel
def graded_gradients(first, last, ptr, s, terms, pairs, draw, out):
    """Write gradient and Hessian of the queries ``first <= q < last``, document by document in order of gain."""
    longest = longest_list(ptr, first, last)
    space, E = rankings(longest), np.empty(longest)
    by_gain, place = np.empty(longest, np.int64), np.empty(longest, np.int64)
    whole = batches(longest, draw.draws)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or terms.scale[q] == 0.0 or out.skip[q]:
            continue
        x, y, r = s[a:b], terms.gain[a:b], part_of(whole, n)
        narrow = relative_to_top(x, pairs.sigma, E)
        logistic_noise = odds_of(x, draw, space)
        _gain_order(pairs.by_label[a:b], y, space, by_gain)
        for at in range(n):
            i = by_gain[at]
            place[i] = at
            r.g[at], r.s[at], r.E[at] = y[i], x[i], E[i]
            r.lam[at], r.hes[at] = 0.0, 0.0
        key = stream(draw.seed, draw.iteration, np.uint64(q))
        truncated = pairs.ranks < n
        batch = 1 if truncated and terms.discount[pairs.ranks] > 0.0 else BATCH
        total = 0.0
        for begin in range(0, draw.draws, batch):
            draws = min(batch, draw.draws - begin)
            r.mark[:] = 1.0 if truncated else 0.0
            r.D[draws * n : filled_up(draws) * n] = 0.0
            for p in range(draws):
                if out.stop[0]:
                    return
                ranking(x, min(n, pairs.head), draw, key, begin + p, logistic_noise, space)
                w = r.U if p == 0 else r.D[p * n : (p + 1) * n]
                for d in range(n):
                    w[place[space.order[d]]] = terms.discount[d] * terms.scale[q]
                for d in range(min(n, pairs.ranks)):
                    r.mark[place[space.order[d]]] = 0.0
            total += _graded_list(filled_up(draws), truncated, narrow, pairs.sigma, r, out.stop)
        factor = list_factor(total, pairs, draw)
        for at in range(n):
            i = a + by_gain[at]
            out.grad[i] = r.lam[at] * factor
            out.hess[i] = r.hes[at] * factor * pairs.sigma

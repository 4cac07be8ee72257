r"""The logistic pairs of :mod:`ltr_objectives.kernels.pairs` for linear metrics, over all pairs.

A swap changes a linear metric by scale |g_i - g_j| |w_i - w_j|, with w_i the discount at the rank of i, whichever
document ranks first. So the loop takes the documents of a query in descending order of gain, and pairs each with those
of lower gain. It skips the pairs of equal gains, two fifths of the pairs in web search data. In all others the first
document is the better one, which saves comparisons. Over all pairs this loop is 1.6 times as fast as that by rank; with
a truncation of 30 it is as fast.

With a truncation, the loop takes only the documents among the first ranks. It pairs each of them with all documents of
lower gain, and with those of higher gain beyond the truncation, which ``beyond`` marks by 1.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.pairs import LOGISTIC, better_first, list_factor, slope_and_curve
from ltr_objectives.kernels.rankings import odds_of, ranking, rankings
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.sorting import longest_list, sort_descending


class Graded(NamedTuple):
    """One list in descending order of gain; ``beyond`` is 1 for a rank beyond the truncation, else 0."""

    g: np.ndarray
    s: np.ndarray
    E: np.ndarray
    w: np.ndarray
    beyond: np.ndarray
    lam: np.ndarray
    hes: np.ndarray


@inlined
def _below(i, start, r):
    """The pairs of i with the documents from ``start`` on, all of lower gain."""
    gi, Ei, wi = r.g[i], r.E[i], r.w[i]
    up, curve = 0.0, 0.0
    gb, Eb, wb, lamb, hesb = r.g[start:], r.E[start:], r.w[start:], r.lam[start:], r.hes[start:]
    for j in range(len(gb)):
        inverse = 1.0 / (Ei + Eb[j])
        x, h = better_first((gi - gb[j]) * abs(wi - wb[j]), Eb[j] * inverse, Ei * inverse)
        lamb[j] += x
        hesb[j] += h
        up += x
        curve += h
    r.lam[i] -= up
    r.hes[i] += curve
    return up


@inlined
def _above(i, end, r):
    """The pairs of i with the documents before ``end`` that ``beyond`` marks, all of higher gain."""
    gi, Ei, wi = r.g[i], r.E[i], r.w[i]
    down, curve = 0.0, 0.0
    ga, Ea, wa, lama, hesa, mark = r.g[:end], r.E[:end], r.w[:end], r.lam[:end], r.hes[:end], r.beyond[:end]
    for j in range(len(ga)):
        inverse = 1.0 / (Ea[j] + Ei)
        x, h = better_first((ga[j] - gi) * abs(wa[j] - wi) * mark[j], Ei * inverse, Ea[j] * inverse)
        lama[j] -= x
        hesa[j] += h
        down += x
        curve += h
    r.lam[i] += down
    r.hes[i] += curve
    return down


@kernel
def _wide(i, start, end, sigma, r):
    """As ``_below`` and ``_above`` together, for scores of any span: one exponential a pair."""
    total = 0.0
    for j in range(len(r.g)):
        if end <= j < start or (j < end and r.beyond[j] == 0.0):
            continue
        hi, lo = min(i, j), max(i, j)
        slope, curve = slope_and_curve(LOGISTIC, sigma * (r.s[hi] - r.s[lo]))
        m = (r.g[hi] - r.g[lo]) * abs(r.w[hi] - r.w[lo])
        r.lam[hi] -= m * slope
        r.lam[lo] += m * slope
        r.hes[hi] += m * curve
        r.hes[lo] += m * curve
        total += m * slope
    return total


@kernel
def _graded_list(ranks, narrow, sigma, r, stop):
    """Add the pairs of one list in order of gain; return the sum of |slope|."""
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
        if r.beyond[i] > 0.0:
            continue
        end = 0 if ranks >= n else same
        if not narrow:
            total += _wide(i, lower, end, sigma, r)
            continue
        total += _below(i, lower, r)
        if end > 0:
            total += _above(i, end, r)
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
    whole = Graded(np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest),
                   np.empty(longest), np.empty(longest))  # fmt: skip
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or terms.scale[q] == 0.0 or out.skip[q]:
            continue
        x, y = s[a:b], terms.gain[a:b]
        r = Graded(whole.g[:n], whole.s[:n], whole.E[:n], whole.w[:n], whole.beyond[:n], whole.lam[:n], whole.hes[:n])
        narrow = relative_to_top(x, pairs.sigma, E)
        logistic_noise = odds_of(x, draw, space)
        _gain_order(pairs.by_label[a:b], y, space, by_gain)
        for at in range(n):
            i = by_gain[at]
            place[i] = at
            r.g[at], r.s[at], r.E[at] = y[i], x[i], E[i]
            r.lam[at], r.hes[at] = 0.0, 0.0
        key = stream(draw.seed, draw.iteration, np.uint64(q))
        total = 0.0
        for number in range(draw.draws):
            if out.stop[0]:
                return
            ranking(x, min(n, pairs.head), draw, key, number, logistic_noise, space)
            for d in range(n):
                at = place[space.order[d]]
                r.w[at] = terms.discount[d] * terms.scale[q]
                r.beyond[at] = 0.0 if d < pairs.ranks else 1.0
            total += _graded_list(pairs.ranks, narrow, pairs.sigma, r, out.stop)
        factor = list_factor(total, pairs, draw)
        for at in range(n):
            i = a + by_gain[at]
            out.grad[i] = r.lam[at] * factor
            out.hess[i] = r.hes[at] * factor * pairs.sigma

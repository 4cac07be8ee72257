r"""The logistic pairs of :mod:`ltr_objectives.kernels.pairs` for linear metrics, over all pairs.

A swap changes a linear metric by scale |g_i - g_j| |w_i - w_j|, with w_i the discount at the rank of i, whichever
document ranks first. So the loop takes the documents of a query in descending order of gain, and pairs each with those
of lower gain. It skips the pairs of equal gains, two fifths of the pairs in web search data. The index of a document in
that order is its slot.

With a truncation, the loop takes only the documents among the first ranks. It pairs each of them with all documents of
lower gain, and with those of higher gain beyond the truncation in all draws of a batch, which ``mark`` marks by 1.

Where the discount is 0 beyond the truncation and most documents are, abs(w_i - w_j) = w_i + w_j - 2 min(w_i, w_j), and
the last term is 0 unless both are among the first ranks of the draw. So the sum over the draws takes a pass over the
documents and one over those ranks, whatever the number of draws.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.pairs import list_factor
from ltr_objectives.kernels.rankings import key_of, number_of, odds_of, ranking, rankings
from ltr_objectives.kernels.slopes import BATCH, add_given_pairs, add_pairs, batches, filled_up, part_of
from ltr_objectives.kernels.sorting import longest_list, sort_descending
from ltr_objectives.kernels.swaps import LINEAR

HEADS = 256  # draws at a time where only the first ranks of each are read


class Heads(NamedTuple):
    """The first ranks of the draws of one list; rank d of draw p is entry ``p * stride + d``."""

    ranks: int  # 0 where all are read
    stride: int  # a power of two
    w: np.ndarray  # the discounts of these ranks, times the scale
    slot: np.ndarray  # by entry: the slot of its document
    before: np.ndarray  # by entry: the document's entry of an earlier draw, -1 where there is none
    last: np.ndarray  # by slot: the document's last entry, -1 where there is none


@kernel
def _heads(longest, ranks, draws):
    """Space for lists of up to ``longest`` documents."""
    stride = 1
    while stride < ranks:
        stride *= 2
    entries = stride * min(draws, HEADS)
    return Heads(
        ranks, stride, np.empty(ranks), np.empty(entries, np.uint32), np.empty(entries, np.int64),
        np.empty(longest, np.int64),
    )  # fmt: skip


@kernel
def _heads_of(heads, n, discount, scale):
    """The space for a list of n documents."""
    ranks = heads.ranks if heads.ranks <= n // 4 else 0
    for d in range(ranks):
        heads.w[d] = discount[d] * scale
    return Heads(ranks, heads.stride, heads.w[:ranks], heads.slot, heads.before, heads.last[:n])


@kernel
def _add_ranking(order, slot, ranks, discount, scale, w, mark):
    """Write ``w`` of one draw, and mark its first ``ranks`` documents by 0."""
    n = len(w)
    for d in range(n):
        w[slot[order[d]]] = discount[d] * scale
    for d in range(min(n, ranks)):
        mark[slot[order[d]]] = 0.0


@kernel
def _add_head(order, slot, p, heads, total, mark):
    """Add draw p, whose first ranks are sorted in ``order``."""
    for d in range(heads.ranks):
        at, entry = slot[order[d]], p * heads.stride + d
        heads.slot[entry], heads.before[entry], heads.last[at] = at, heads.last[at], entry
        total[at] += heads.w[d]
        mark[at] = 0.0


@inlined
def _head_weights(i, heads, total, weight):
    """Write the weights of the pairs of i with all documents, summed over all draws."""
    w, ranks = heads.w, heads.ranks
    for j in range(len(weight)):
        weight[j] = total[i] + total[j]
    entry = heads.last[i]
    while entry >= 0:
        first = entry & -heads.stride
        slot, own = heads.slot[first : first + ranks], w[entry - first]
        for d in range(ranks):
            weight[slot[d]] -= 2.0 * (own if own < w[d] else w[d])
        entry = heads.before[entry]


@kernel
def _graded_list(draws, truncated, narrow, sigma, heads, r, stop):
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
        if heads is not None and heads.ranks > 0:
            _head_weights(i, heads, r.S, r.weight)
            total += add_given_pairs(i, lower, n, True, narrow, sigma, r)
            total += add_given_pairs(i, 0, same, False, narrow, sigma, r)
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
    by_gain, slot = np.empty(longest, np.int64), np.empty(longest, np.int64)
    whole = batches(longest, number_of(draw))
    if draw is not None:
        few = draw.draws > 1 and pairs.ranks <= longest // 4 and terms.discount[pairs.ranks] == 0.0
        all_heads = _heads(longest, pairs.ranks if few else 0, draw.draws)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or terms.scale[q] == 0.0 or out.skip[q]:
            continue
        x, y, r = s[a:b], terms.gain[a:b], part_of(whole, n)
        narrow = relative_to_top(x, pairs.sigma, E)
        _gain_order(pairs.by_label[a:b], y, space, by_gain)
        for at in range(n):
            i = by_gain[at]
            slot[i] = at
            r.g[at], r.s[at], r.E[at] = y[i], x[i], E[i]
            r.lam[at], r.hes[at] = 0.0, 0.0
        truncated, total = pairs.ranks < n, 0.0
        if draw is None:
            r.mark[:] = 1.0 if truncated else 0.0
            ranking(x, min(n, pairs.head), True, draw, key_of(draw, q), 0, False, space)
            _add_ranking(space.order, slot, pairs.ranks, terms.discount, terms.scale[q], r.U, r.mark)
            total = _graded_list(None, truncated, narrow, pairs.sigma, None, r, out.stop)
        else:
            key, logistic_noise = key_of(draw, q), odds_of(x, draw, space)
            heads = _heads_of(all_heads, n, terms.discount, terms.scale[q])
            only_heads = heads.ranks > 0
            batch = 1 if truncated and terms.discount[pairs.ranks] > 0.0 else HEADS if only_heads else BATCH
            for begin in range(0, draw.draws, batch):
                draws = min(batch, draw.draws - begin)
                r.mark[:] = 1.0 if truncated else 0.0
                r.U[:], heads.last[:], r.S[:] = 0.0, -1, 0.0
                for p in range(draws):
                    if out.stop[0]:
                        return
                    ranking(x, min(n, pairs.head), not only_heads, draw, key, begin + p, logistic_noise, space)
                    if only_heads:
                        _add_head(space.order, slot, p, heads, r.S, r.mark)
                    else:
                        w = r.U if p == 0 else r.D[p * n : (p + 1) * n]
                        _add_ranking(space.order, slot, pairs.ranks, terms.discount, terms.scale[q], w, r.mark)
                if not only_heads:
                    r.D[draws * n : filled_up(draws) * n] = 0.0
                total += _graded_list(filled_up(draws), truncated, narrow, pairs.sigma, heads, r, out.stop)
        factor = list_factor(total, pairs, draw)
        for at in range(n):
            i = a + by_gain[at]
            out.grad[i] = r.lam[at] * factor
            out.hess[i] = r.hes[at] * factor * pairs.sigma

r"""The loop over the logistic pairs of one linear metric, by gain.

A swap changes the metric by :math:`c \, |g_i - g_j| \, |w_i - w_j|`, with the scale :math:`c` and :math:`w_i` the
discount at the rank of :math:`i`. Documents come in descending order of gain, and each is paired with the documents of
lower gain. So the pairs of equal gains, two fifths of all in web search data, are skipped. With a truncation, only
documents that a draw ranks within it are taken. Each is paired with all documents of lower gain, and with the ones of
higher gain that no draw ranks there.

If the discount is 0 beyond the truncation and most documents are, :math:`|w_i - w_j| = w_i + w_j - 2 \min(w_i, w_j)`,
and the last term is 0 unless both are at the top of the draw. So the sum over the draws takes one pass over the
documents and one over the top ranks, however many draws there are. It saves 5 to 8% of a training's time for NDCG@10.
"""

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel
from ltr_objectives.kernels.batches import add_pairs, batch_space, draws_at_once, filled_up
from ltr_objectives.kernels.pairs import pair_kernel
from ltr_objectives.kernels.sorting import sort_descending
from ltr_objectives.kernels.swaps import LINEAR


@inlined_kernel
def _take_by_gain(one, s, terms, pairs, space):
    """Write the list by slot, in descending order of gain."""
    n, a, r = one.n, one.first, space.r
    gain, by_label, ascents = terms.gain[a : a + n], pairs.by_label[a : a + n], 0
    for at in range(n):
        space.by_slot[at] = by_label[at]
        ascents += at > 0 and gain[by_label[at]] > gain[by_label[at - 1]]
    if ascents > 0:  # a gain need not grow with the label
        for at in range(n):
            r.weight[at] = gain[by_label[at]]
        sort_descending(r.weight, space.by_slot, r.S, space.last, n)
    for at in range(n):
        i = space.by_slot[at]
        space.slot[i] = at
        r.g[at], r.s[at], r.E[at] = gain[i], s[i], space.E_by_row[i]
        r.lam[at], r.hes[at] = 0.0, 0.0


@inlined_kernel
def _add_discounts(order, w, terms, one, pairs, space):
    """Write into ``w`` the scaled discounts of one draw by slot."""
    n, scale, beyond = one.n, terms.scale[one.q], space.r.beyond
    for d in range(n):
        w[space.slot[order[d]]] = terms.discount[d] * scale
    for d in range(min(n, pairs.ranks)):
        beyond[space.slot[order[d]]] = 0.0


@inlined_kernel
def _add_top(k, one, space):
    """Add the top ranks of draw k."""
    r = space.r
    for d in range(space.top):
        entry = k * one.width + d
        at = space.slot[space.orders[entry]]
        space.orders[entry], space.before[entry], space.last[at] = at, space.last[at], entry
        r.S[at] += r.V[d]
        r.beyond[at] = 0.0


@inlined
def _top_weights(i, n, space):
    """Write the weights of the pairs of i with all n documents, summed over all draws."""
    r = space.r
    w, weight, S, Si = r.V[: space.top], r.weight[:n], r.S[:n], r.S[i]
    for j in range(len(weight)):
        weight[j] = Si + S[j]
    entry = space.last[i]
    while entry >= 0:
        begin = entry & -space.width
        slot, own = space.orders[begin : begin + space.top], w[entry - begin]
        for d in range(len(slot)):
            weight[np.uint64(slot[d])] -= 2.0 * (own if own < w[d] else w[d])
        entry = space.before[entry]


@inlined_kernel
def _add_gains(truncated, draw, one, space):
    """Add the pairs of one list for all draws of a batch; return the sum of |slope|."""
    n, r, total = one.n, space.r, 0.0
    same, lower = 0, 0  # the slots same <= j < lower have the gain of i
    for i in range(n):
        if i == lower:
            same = i
            while lower < n and r.g[lower] == r.g[i]:
                lower += 1
        if r.beyond[i] > 0.0:
            continue
        if draw is not None and one.width < n:
            _top_weights(i, n, space)
        total += add_pairs(LINEAR, i, lower, n, True, draw, one, r)
        if truncated:
            total += add_pairs(LINEAR, i, np.int64(0), same, False, draw, one, r)  # a literal 0 compiles anew
    return total


@inlined_kernel
def by_gain(one, s, layers, pairs, draw, space, out):
    n, a, r, terms = one.n, one.first, space.r, layers[0]
    truncated = pairs.ranks < n
    if one.begin == 0:
        _take_by_gain(one, s, terms, pairs, space)
    r.beyond[:n] = 1.0 if truncated else 0.0
    if draw is None:
        _add_discounts(space.orders, r.U, terms, one, pairs, space)
    else:
        r.U[:n], space.last[:n], r.S[:n] = 0.0, -1, 0.0
        if one.width < n:
            for d in range(space.top):
                r.V[d] = terms.discount[d] * terms.scale[one.q]
            for k in range(one.draws):
                _add_top(k, one, space)
        else:
            for k in range(one.draws):
                w = r.U if k == 0 else r.D[k * n : (k + 1) * n]
                _add_discounts(space.orders[k * n : (k + 1) * n], w, terms, one, pairs, space)
            r.D[one.draws * n : filled_up(one.draws) * n] = 0.0
    total = _add_gains(truncated, draw, one, space)
    grad, hess, slot = out.grad[a : a + n], out.hess[a : a + n], space.slot[:n]
    for i in range(n):
        at = np.uint64(slot[i])  # unsigned: numba checks whether signed indices are negative
        grad[i], hess[i] = r.lam[at], r.hes[at]
    return total


pairs_by_gain = pair_kernel(batch_space, draws_at_once, by_gain)

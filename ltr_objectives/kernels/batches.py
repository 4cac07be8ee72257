"""The pairs of one document, their weights summed over a batch of draws; for the loops by gain and by relevance.

In these loops the slope of a pair does not depend on the draw, only its weight does, and the weight does not depend on
which of the two documents ranks first. So the weights of a batch of draws are added up, 0.2 ns a pair and draw, before
one division and one slope, 0.9 ns, serve all of them. The loops take the documents in an order of their own. The index
of a document in that order is its slot.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel, kernel
from ltr_objectives.kernels.pairs import row_of
from ltr_objectives.kernels.rankings import number_of
from ltr_objectives.kernels.swaps import AVERAGE, LINEAR

TOGETHER = 3  # draws whose weights one loop adds up, after the first
BATCH = 16  # draws at a time: one, and a multiple of TOGETHER
TOP_BATCH = 256  # draws at a time if only the top ranks of each are read
ROUNDING = 1e-13  # a sum of equal discounts, subtracted from itself in another order, leaves less


class Batch(NamedTuple):
    """One list by slot, and the weights of a batch of draws; D of draw k begins at k times the length of the list."""

    s: np.ndarray
    E: np.ndarray
    g: np.ndarray
    U: np.ndarray  # of the first draw; the scaled discount for linear metrics
    V: np.ndarray  # of the first draw; by rank, the scaled discount if only top ranks are read
    D: np.ndarray  # of the other draws: (U - V) / 2; the scaled discount for linear metrics
    S: np.ndarray  # sum of (U + V) / 2 over the other draws; of scaled discounts if only top ranks are read
    weight: np.ndarray  # of the pairs with one document, summed over the draws
    beyond: np.ndarray  # 0 if a draw of the batch ranks the document within the truncation, else 1
    lam: np.ndarray
    hes: np.ndarray


class Draws(NamedTuple):
    """The rankings of a batch; in ``orders`` and ``before``, draw k begins at k times ``One.width``."""

    orders: np.ndarray  # by draw and rank: the document; later its slot if only top ranks are read
    E_by_row: np.ndarray
    by_slot: np.ndarray  # the document
    slot: np.ndarray  # by document
    before: np.ndarray  # by draw and rank: where ``orders`` has the same document in an earlier draw, or -1
    last: np.ndarray  # where ``orders`` has the document in the last draw that ranks it at the top, or -1
    top: int  # how many top ranks of each draw are read; 0 for all
    width: int  # the least power of two that is not below ``top``
    r: Batch


@kernel
def filled_up(draws):
    """The draws of a batch together with the draws of weight 0 that fill it up."""
    return 1 + (min(draws, BATCH) + TOGETHER - 2) // TOGETHER * TOGETHER


@kernel
def batch_space(n, layers, pairs, draw):
    """Space for lists of up to n documents."""
    draws, top, width = number_of(draw), 0, 1
    if draws > 1 and layers[0].kind == LINEAR and pairs.ranks <= n // 4 and layers[0].discount[pairs.ranks] == 0.0:
        top = pairs.ranks
        while width < top:
            width *= 2
    entries = width * min(draws, TOP_BATCH) if top > 0 else 0
    r = Batch(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n * filled_up(draws)), np.empty(n),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip
    return Draws(
        np.empty(max(n * min(draws, BATCH), n + entries), np.int64), np.empty(n), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(entries, np.int64), np.empty(n, np.int64), top, width, r,
    )  # fmt: skip


@kernel
def draws_at_once(n, layers, pairs, r):
    """All draws of a batch, if pairs of two documents beyond the truncation have the weight 0 anyway, else one draw."""
    alike = True
    for terms in layers:
        alike &= pairs.ranks >= n or terms.discount[pairs.ranks] == 0.0
    if not alike:
        return 1, n
    return (TOP_BATCH, r.width) if 0 < r.top <= n // 4 else (BATCH, n)


@inlined
def _weight(kind, Ui, Vi, Uj, Vj):
    """The weight of a pair in one draw, for a linear metric without the gains."""
    if kind == LINEAR:
        return abs(Ui - Uj)
    x, y = Ui + Vj, Vi + Uj
    x = x if x > y else y
    return x if x > 0.0 else 0.0


@inlined
def _add_weights(kind, i, start, end, n, draws, r):
    """Write the weights of the pairs of i with the slots ``start <= j < end``, summed over all draws."""
    weight, S, U, V = r.weight[start:end], r.S[start:end], r.U[start:end], r.V[start:end]
    Ui, Vi, Si = r.U[i], r.V[i], r.S[i]
    for j in range(len(weight)):
        weight[j] = _weight(kind, Ui, Vi, U[j], V[j]) if kind == LINEAR else Si + S[j]
    for k in range(1, draws, TOGETHER):
        a, b, c = k * n, (k + 1) * n, (k + 2) * n
        Da, Db, Dc = r.D[a + i], r.D[b + i], r.D[c + i]
        da, db, dc = r.D[a + start : a + end], r.D[b + start : b + end], r.D[c + start : c + end]
        for j in range(len(weight)):
            weight[j] += abs(Da - da[j]) + abs(Db - db[j]) + abs(Dc - dc[j])
    if kind != LINEAR:
        for j in range(len(weight)):
            others = weight[j] if weight[j] > 0.0 else 0.0  # rounding may leave less
            weight[j] = others + _weight(kind, Ui, Vi, U[j], V[j])


@inlined
def _linear(i, j, how, r):
    return abs(r.U[i] - r.U[j]) * (r.g[i] - r.g[j])


@inlined
def _linear_beyond(i, j, how, r):
    return _linear(i, j, how, r) * r.beyond[j]


@inlined
def _sum(i, j, how, r):
    m = r.weight[j]
    return (m if m > ROUNDING * (r.S[i] + r.S[j]) else 0.0) * (r.g[i] - r.g[j])


@inlined
def _sum_beyond(i, j, how, r):
    return _sum(i, j, how, r) * r.beyond[j]


@inlined
def _average(i, j, how, r):
    return _weight(AVERAGE, r.U[i], r.V[i], r.U[j], r.V[j])


@inlined
def _written(i, j, how, r):
    return r.weight[j]


_linear_row, _sum_row = row_of(_linear, 1), row_of(_sum, 1)
_average_row, _written_row = row_of(_average, 1), row_of(_written, 1)
_beyond_row, _sum_beyond_row = row_of(_linear_beyond, -1), row_of(_sum_beyond, -1)


@inlined_kernel
def add_pairs(kind, i, start, end, better, draw, one, r):
    """Add the pairs of i with the slots ``start <= j < end``; return the sum of |slope|.

    If ``better``, i is the better document of all these pairs, else the worse one. Like ``kind``, it is a constant.
    """
    if start >= end:
        return 0.0
    if draw is not None and one.width == one.n:  # else the weights are written already
        _add_weights(kind, i, start, end, one.n, filled_up(one.draws), r)
    if kind != LINEAR:
        if draw is None:
            return _average_row(i, start, end, None, one, r)
        return _written_row(i, start, end, None, one, r)
    if better:
        if draw is None:
            return _linear_row(i, start, end, None, one, r)
        return _sum_row(i, start, end, None, one, r)
    if draw is None:
        return _beyond_row(i, start, end, None, one, r)
    return _sum_beyond_row(i, start, end, None, one, r)

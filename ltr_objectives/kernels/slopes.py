r"""The logistic pairs of one document with others, their weights summed over the draws of noise.

The slope of a pair depends on the scores without noise, only its weight on the draw. So the weights of many draws
are added up, 0.2 ns a pair and draw, before one division and one slope, 0.9 ns, serve all of them.

The weight of a pair in one draw does not depend on which of the two ranks first (scale is part of U and V):

* linear metrics: abs(g_i - g_j) abs(w_i - w_j), with w the discount at the rank of the document.
* average precision: max(x, y), x = U_i + V_j, y = V_i + U_j, for a relevant i and a j that is not, with U and V of
  :mod:`ltr_objectives.kernels.swaps`. The swap of a relevant document with one further down lowers average precision,
  so U + V of the upper and the lower rank is at least 0. For discounts w that do not increase, that of the lower and
  the upper rank is at most N_d (w_e - w_d) <= 0. Since max(x, y) = (x + y + abs(x - y)) / 2, a pair takes in each draw
  only abs(D_i - D_j), D = (U - V) / 2, and once S_i + S_j, the sums of (U + V) / 2 over the draws.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel, kernel
from ltr_objectives.kernels.pairs import LOGISTIC, slope_and_curve
from ltr_objectives.kernels.swaps import AVERAGE, LINEAR

GIVEN = -1  # a kind: the weights of all draws together are in ``weight``, for a linear metric without the gains
ROUNDING = 1e-13  # of equal discounts a difference of sums leaves less
TOGETHER = 3  # draws whose weights one loop adds up, after the first
BATCH = 16  # draws at a time: one, and a multiple of TOGETHER


class Batch(NamedTuple):
    """One list in any order, for a batch of draws; D of draw p begins at p times the length of the list."""

    s: np.ndarray
    E: np.ndarray
    g: np.ndarray
    U: np.ndarray  # of the first draw; w for linear metrics
    V: np.ndarray
    D: np.ndarray  # of the other draws; w for linear metrics
    S: np.ndarray  # where all weights are given, the sum of w over the draws
    weight: np.ndarray  # of the pairs with one document, in the draws that U leaves out, or in all of them
    mark: np.ndarray  # 0 where a pair with a better document does not count, else 1
    lam: np.ndarray
    hes: np.ndarray


@kernel
def filled_up(draws):
    """The draws of a batch together with those of weight 0 that fill it up."""
    return 1 + (min(draws, BATCH) + TOGETHER - 2) // TOGETHER * TOGETHER


@kernel
def batches(longest, draws):
    """Space for lists of up to ``longest`` documents."""
    return Batch(
        np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest),
        np.empty(filled_up(draws) * longest), np.empty(longest), np.empty(longest), np.empty(longest),
        np.empty(longest), np.empty(longest),
    )  # fmt: skip


@inlined_kernel
def part_of(r, n):
    """The space for a list of n documents."""
    return Batch(
        r.s[:n], r.E[:n], r.g[:n], r.U[:n], r.V[:n], r.D, r.S[:n], r.weight[:n], r.mark[:n], r.lam[:n], r.hes[:n]
    )


@inlined
def _weight(kind, Ui, Vi, Uj, Vj):
    """The weight of a pair in one draw, for a linear metric without the gains."""
    if kind == LINEAR:
        return abs(Ui - Uj)
    x, y = Ui + Vj, Vi + Uj
    x = x if x > y else y
    return x if x > 0.0 else 0.0


@inlined
def _add_weights(kind, i, start, end, draws, r):
    """Write the weights of the pairs of i with ``start <= j < end``, summed over all draws but the first."""
    n, out, S, Si = len(r.s), r.weight[start:end], r.S[start:end], r.S[i]
    for j in range(len(out)):
        out[j] = 0.0 if kind == LINEAR else Si + S[j]
    for p in range(1, draws, TOGETHER):
        a, b, c = p * n, (p + 1) * n, (p + 2) * n
        Da, Db, Dc = r.D[a + i], r.D[b + i], r.D[c + i]
        da, db, dc = r.D[a + start : a + end], r.D[b + start : b + end], r.D[c + start : c + end]
        for j in range(len(out)):
            out[j] += abs(Da - da[j]) + abs(Db - db[j]) + abs(Dc - dc[j])
    if kind != LINEAR:
        for j in range(len(out)):
            out[j] = out[j] if out[j] > 0.0 else 0.0  # where rounding leaves less


@inlined
def _row(kind, i, start, end, better, many, r):
    """The pairs of i with ``start <= j < end``. ``kind`` and ``better`` are constants: LLVM makes a loop for each."""
    gi, Ei, Ui, Vi, Si, total, curve = r.g[i], r.E[i], r.U[i], r.V[i], r.S[i], 0.0, 0.0
    g, E, U, V, S = r.g[start:end], r.E[start:end], r.U[start:end], r.V[start:end], r.S[start:end]
    weight, mark = r.weight[start:end], r.mark[start:end]
    lam, hes = r.lam[start:end], r.hes[start:end]
    for j in range(len(E)):
        if kind == GIVEN:
            m = weight[j] if weight[j] > ROUNDING * (Si + S[j]) else 0.0
        else:
            m = _weight(kind, Ui, Vi, U[j], V[j])
            if many:
                m += weight[j]
        if kind != AVERAGE:
            m *= gi - g[j] if better else (g[j] - gi) * mark[j]
        inverse = 1.0 / (Ei + E[j])
        loses, wins = (E[j] * inverse, Ei * inverse) if better else (Ei * inverse, E[j] * inverse)
        x = m * loses
        h = x * wins
        lam[j] += x if better else -x
        hes[j] += h
        total += x
        curve += h
    r.lam[i] -= total if better else -total
    r.hes[i] += curve
    return total


@kernel
def _wide(kind, i, start, end, better, many, sigma, r):
    """As ``_row``, for scores of any span: one exponential a pair."""
    total = 0.0
    for j in range(start, end):
        if kind == GIVEN:
            m = r.weight[j] if r.weight[j] > ROUNDING * (r.S[i] + r.S[j]) else 0.0
        else:
            m = _weight(kind, r.U[i], r.V[i], r.U[j], r.V[j])
            if many:
                m += r.weight[j]
        if kind != AVERAGE:
            m *= r.g[i] - r.g[j] if better else (r.g[j] - r.g[i]) * r.mark[j]
        sign = 1.0 if better else -1.0
        slope, curve = slope_and_curve(LOGISTIC, sigma * sign * (r.s[i] - r.s[j]))
        r.lam[i] -= sign * m * slope
        r.lam[j] += sign * m * slope
        r.hes[i] += m * curve
        r.hes[j] += m * curve
        total += m * slope
    return total


@inlined_kernel
def _add(kind, i, start, end, better, many, narrow, sigma, r):
    if narrow:
        return _row(kind, i, start, end, better, many, r)
    return _wide(kind, i, start, end, better, many, sigma, r)


@inlined_kernel
def add_given_pairs(i, start, end, better, narrow, sigma, r):
    """As ``add_pairs`` for a linear metric, with the weights of all draws in ``weight``."""
    return _add(GIVEN, i, start, end, better, True, narrow, sigma, r)


@inlined_kernel
def add_pairs(kind, i, start, end, better, draws, narrow, sigma, r):
    """Add the pairs of i with ``start <= j < end`` of all draws; return the sum of |slope|.

    ``draws`` is None where scores get no noise, which leaves out the code for several draws. ``better`` says whether i
    is the better document of all these pairs, or the worse one. Like ``kind``, it is a constant.
    """
    if start >= end:
        return 0.0
    if draws is None:
        return _add(kind, i, start, end, better, False, narrow, sigma, r)
    if narrow and draws == 1:
        return _row(kind, i, start, end, better, False, r)
    _add_weights(kind, i, start, end, draws, r)
    return _add(kind, i, start, end, better, True, narrow, sigma, r)

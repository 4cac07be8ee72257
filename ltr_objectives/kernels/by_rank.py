"""The loop over pairs of any metric, loss and choice of pairs, one draw at a time and in rank order."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel, kernel
from ltr_objectives.kernels.pairs import discounted, pair, pair_kernel, slope_and_curve
from ltr_objectives.kernels.partners import is_sampled, runs
from ltr_objectives.kernels.sorting import all_equal
from ltr_objectives.kernels.swaps import CASCADE, restart, swap_terms

NEAR = 8  # with at most this many neighbours the inner loop runs over d, else over e


class Ranked(NamedTuple):
    """One list in rank order and the terms of its swaps; gradient ``lam + low``, Hessian ``hes + low_hes``."""

    orders: np.ndarray
    E_by_row: np.ndarray
    g: np.ndarray
    s: np.ndarray
    E: np.ndarray
    propensity: np.ndarray
    divisor: np.ndarray
    U: np.ndarray
    A: np.ndarray
    V: np.ndarray
    W: np.ndarray
    lam: np.ndarray
    hes: np.ndarray
    low: np.ndarray
    low_hes: np.ndarray


@kernel
def _ranked(n, layers, pairs, draw):
    """Space for lists of up to n documents."""
    return Ranked(
        np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n if len(pairs.propensity) > 0 else 0), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip


@inlined
def capped(gap, cap):
    gap = cap if gap > cap else gap
    return -cap if gap < -cap else gap


@inlined
def _rank(d, end, cap, divided, a, V, r):
    """The logistic pairs of rank d with the ranks d < e < ``end``; return the sum of |slope|.

    ``divided`` is a constant in each call, so that LLVM makes a separate loop for each.
    """
    gd, Ed, Ud, down, curve, total = r.g[d], r.E[d], r.U[d], 0.0, 0.0, 0.0
    g, E, V, divisor = r.g[d + 1 : end], r.E[d + 1 : end], V[d + 1 : end], r.divisor[d + 1 : end]
    lam, hes = r.lam[d + 1 : end], r.hes[d + 1 : end]
    for e in range(len(g)):
        m = capped(gd - g[e], cap) * (Ud + a * V[e])
        if divided:
            m = m / divisor[e]
        inverse = 1.0 / (Ed + E[e])
        x, h = pair(m, E[e] * inverse, Ed * inverse)
        lam[e] += x
        hes[e] += h
        down += x
        curve += h
        total += abs(x)
    r.lam[d] -= down
    r.hes[d] += curve
    return total


@inlined
def _run(a, b, count, weight, cap, r):
    """The logistic pairs of ranks a + i < b + i, i < ``count``; sums of the lower rank go to ``low``, ``low_hes``."""
    total, upper, lower = 0.0, slice(a, a + count), slice(b, b + count)
    gd, Ed, U, A, lam, hes = r.g[upper], r.E[upper], r.U[upper], r.A[upper], r.lam[upper], r.hes[upper]
    ge, Ee, V, low, low_hes = r.g[lower], r.E[lower], r.V[lower], r.low[lower], r.low_hes[lower]
    for d in range(len(gd)):
        m = weight * capped(gd[d] - ge[d], cap) * (U[d] + A[d] * V[d])
        inverse = 1.0 / (Ed[d] + Ee[d])
        x, h = pair(m, Ee[d] * inverse, Ed[d] * inverse)
        lam[d] -= x
        low[d] += x
        hes[d] += h
        low_hes[d] += h
        total += abs(x)
    return total


@inlined
def _divide(d, end, score_norm, r):
    """Write what divides the pairs of rank d: score distance, propensity of the larger gain, or their product."""
    gd, sd = r.g[d], r.s[d]
    g, s, divisor = r.g[d + 1 : end], r.s[d + 1 : end], r.divisor[d + 1 : end]
    if score_norm:
        for e in range(len(divisor)):
            divisor[e] = 0.01 + abs(sd - s[e])
    else:
        divisor[:] = 1.0
    if len(r.propensity) > 0:
        at_d, at_e = r.propensity[d], r.propensity[d + 1 : end]
        for e in range(len(divisor)):
            divisor[e] *= at_d if gd > g[e] else at_e[e]


@kernel
def _rank_any_loss(d, end, cap, a, V, pairs, r):
    """As ``_rank``, for scores of any span and any loss."""
    total = 0.0
    for e in range(d + 1, end):
        m = capped(r.g[d] - r.g[e], cap) * (r.U[d] + a * V[e])
        if m == 0.0:
            continue
        m /= r.divisor[e]
        margin = pairs.sigma * (r.s[d] - r.s[e])
        slope, curve = slope_and_curve(pairs.loss, margin if m > 0.0 else -margin)
        x, h = m * slope, abs(m) * curve
        r.lam[d] -= x
        r.hes[d] += h
        r.lam[e] += x
        r.hes[e] += h
        total += abs(x)
    return total


@kernel
def _run_any_loss(a, b, count, weight, cap, score_norm, pairs, r):
    """As ``_run``, for scores of any span, any loss and divided weights."""
    total = 0.0
    for i in range(count):
        d, e = a + i, b + i
        m = weight * capped(r.g[d] - r.g[e], cap) * (r.U[d] + r.A[d] * r.V[e])
        if m == 0.0:
            continue
        if score_norm:
            m /= 0.01 + abs(r.s[d] - r.s[e])
        if len(r.propensity) > 0:
            m /= r.propensity[d if r.g[d] > r.g[e] else e]
        margin = pairs.sigma * (r.s[d] - r.s[e])
        slope, curve = slope_and_curve(pairs.loss, margin if m > 0.0 else -margin)
        x, h = m * slope, abs(m) * curve
        r.lam[d] -= x
        r.hes[d] += h
        r.low[e] += x
        r.low_hes[e] += h
        total += abs(x)
    return total


@kernel
def _add_ranks(n, terms, one, s, pairs, draw, r, out):
    """Add the pairs of the first n ranks by one layer; return the sum of |slope|."""
    swap_terms(terms.kind, r.g, terms.discount, terms.scale[one.q], n, r.U, r.A, r.V)
    total, cap, neighbors, narrow = 0.0, terms.cap, pairs.neighbors, one.narrow
    ranks = discounted(terms.discount, min(pairs.ranks, n - 1))
    score_norm = pairs.score_norm and not all_equal(s)
    divided = score_norm or len(r.propensity) > 0
    near = neighbors <= NEAR and narrow and not divided
    top, sampled = n, False
    if draw is not None:
        if pairs.partners < n:
            for d in range(ranks):
                if r.U[d] == 0.0 and r.A[d] == 0.0:
                    ranks = d
                    break
        top = n if ranks == n - 1 else ranks
        sampled = is_sampled(n, top, pairs.partners)
    by_run = near or sampled
    # with runs, this loop takes only the ranks that need ``restart``, which other kinds do not have
    for d in range(0 if by_run and terms.kind != CASCADE else ranks):
        if r.U[d] == 0.0 and r.A[d] == 0.0:  # and so it is further down
            break
        if by_run and not r.A[d] < 0.0:
            continue
        end = n if neighbors >= n else min(n, d + 1 + neighbors)
        a, V = r.A[d], r.V
        if a < 0.0:
            restart(r.g, terms.discount, d, end, r.U, r.W)
            a, V = 1.0, r.W
        if divided or not narrow:
            _divide(d, end, score_norm, r)
        if not narrow:
            total += _rank_any_loss(d, end, cap, a, V, pairs, r)
        elif divided:
            total += _rank(d, end, cap, True, a, V, r)
        else:
            total += _rank(d, end, cap, False, a, V, r)
        if by_run:
            r.U[d], r.A[d] = 0.0, 0.0
    if near:
        for apart in range(1, neighbors + 1):
            total += _run(0, apart, max(min(ranks, n - apart), 0), 1.0, cap, r)
    if draw is not None:  # noqa: SIM102  numba leaves code out only by such a condition alone
        if sampled:
            found, weight = runs(n, top, pairs.partners, False, draw, one.q, one.begin)
            for k in range(len(weight)):
                a, b, count = found[0, k], found[1, k], found[2, k]
                if narrow and not divided:
                    total += _run(a, b, count, weight[k], cap, r)
                else:
                    total += _run_any_loss(a, b, count, weight[k], cap, score_norm, pairs, r)
    return total


@kernel
def _one_draw(n, layers, pairs, r):
    return 1, n


@inlined_kernel
def by_rank(one, s, layers, pairs, draw, r, out):
    n, a, total = one.n, one.first, 0.0
    ranks = n if pairs.neighbors >= n else min(n, pairs.ordered)
    for d in range(ranks):
        i = np.uint64(r.orders[d])  # unsigned: numba checks whether signed indices are negative
        r.s[d], r.E[d] = s[i], r.E_by_row[i]
        if len(r.propensity) > 0:
            r.propensity[d] = pairs.propensity[a + r.orders[d]]
    r.lam[:ranks], r.low[:ranks], r.hes[:ranks], r.low_hes[:ranks] = 0.0, 0.0, 0.0, 0.0
    for terms in layers:
        if terms.scale[one.q] != 0.0:
            gain = terms.gain[a : a + n]
            for d in range(ranks):
                r.g[d] = gain[np.uint64(r.orders[d])]
            total += _add_ranks(ranks, terms, one, s, pairs, draw, r, out)
    grad, hess = out.grad[a : a + n], out.hess[a : a + n]
    for d in range(ranks):
        i = np.uint64(r.orders[d])
        grad[i] += r.lam[d] + r.low[d]
        hess[i] += r.hes[d] + r.low_hes[d]
    return total


pairs_by_rank = pair_kernel(_ranked, _one_draw, by_rank)

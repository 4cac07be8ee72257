"""The loop over pairs of any metric, loss and choice of pairs, one draw at a time and in rank order."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel, kernel
from ltr_objectives.kernels.pairs import discounted, pair_kernel, row_of, run_of
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
        np.ones(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n),
    )  # fmt: skip


class How(NamedTuple):
    """What weights depend on besides the arrays."""

    factor: float
    cap: float  # a larger gain difference counts as this
    score_norm: bool


@inlined
def _change(d, e, how, r):
    """The weight of the ranks d < e: the change of the metric, above 0 if d has the larger gain."""
    gap = r.g[d] - r.g[e]
    gap = how.cap if gap > how.cap else gap
    gap = -how.cap if gap < -how.cap else gap
    return how.factor * gap * (r.U[d] + r.A[d] * r.V[e])


@inlined
def _divided(d, e, how, r):
    """The change over the score distance and the propensity of the document of larger gain."""
    m = _change(d, e, how, r)
    apart = 0.01 + abs(r.s[d] - r.s[e]) if how.score_norm else 1.0
    at_d, at_e = r.propensity[d], r.propensity[e]
    return m / (apart * (at_d if m > 0.0 else at_e))


add_changes, add_run_of_changes = row_of(_change), run_of(_change)
add_divided, add_run_of_divided = row_of(_divided), run_of(_divided)


@kernel
def _exchange(a, b):
    for i in range(len(a)):
        a[i], b[i] = b[i], a[i]


@inlined_kernel
def _add_run(d, e, count, how, divided, one, r):
    if divided:
        return add_run_of_divided(d, e, count, how, one, r)
    return add_run_of_changes(d, e, count, how, one, r)


@kernel
def _add_ranks(n, terms, one, s, pairs, draw, r):
    """Add the pairs of the first n ranks by one layer; return the sum of |slope|."""
    swap_terms(terms.kind, r.g, terms.discount, terms.scale[one.q], n, r.U, r.A, r.V)
    total, neighbors = 0.0, pairs.neighbors
    ranks = discounted(terms.discount, min(pairs.ranks, n - 1))
    how = How(1.0, terms.cap, pairs.score_norm and not all_equal(s))
    divided = how.score_norm or len(pairs.propensity) > 0
    top, sampled = n, False
    if draw is not None:
        if pairs.partners < n:
            for d in range(ranks):
                if r.U[d] == 0.0 and r.A[d] == 0.0:
                    ranks = d
                    break
        top = n if ranks == n - 1 else ranks
        sampled = is_sampled(n, top, pairs.partners)
    by_run = neighbors <= NEAR or sampled
    # with runs, this loop takes only the ranks that need ``restart``, which other kinds do not have
    for d in range(0 if by_run and terms.kind != CASCADE else ranks):
        if r.U[d] == 0.0 and r.A[d] == 0.0:  # and so it is further down
            break
        if by_run and not r.A[d] < 0.0:
            continue
        end = n if neighbors >= n else min(n, d + 1 + neighbors)
        restarts = r.A[d] < 0.0
        if restarts:
            restart(r.g, terms.discount, d, end, r.U, r.W)
            r.A[d] = 1.0
            _exchange(r.V[d + 1 : end], r.W[d + 1 : end])
        if divided:
            total += add_divided(d, d + 1, end, how, one, r)
        else:
            total += add_changes(d, d + 1, end, how, one, r)
        if restarts:
            _exchange(r.V[d + 1 : end], r.W[d + 1 : end])
        if by_run:
            r.U[d], r.A[d] = 0.0, 0.0
    if neighbors <= NEAR:
        for apart in range(1, neighbors + 1):
            total += _add_run(0, apart, max(min(ranks, n - apart), 0), how, divided, one, r)
    if draw is not None:  # noqa: SIM102  numba leaves code out only by such a condition alone
        if sampled:
            found, weight = runs(n, top, pairs.partners, False, draw, one.q, one.begin)
            for k in range(len(weight)):
                some = How(weight[k], how.cap, how.score_norm)
                total += _add_run(found[0, k], found[1, k], found[2, k], some, divided, one, r)
    return total


@kernel
def _one_draw(n, layers, pairs, r):
    return 1, n, False


@inlined_kernel
def by_rank(one, s, layers, pairs, draw, r, out):
    n, a, total = one.n, one.first, 0.0
    ranks = n if pairs.neighbors >= n else min(n, pairs.ordered)
    for d in range(ranks):
        i = np.uint64(r.orders[d])  # unsigned: numba checks whether signed indices are negative
        r.s[d], r.E[d] = s[i], r.E_by_row[i]
        if len(pairs.propensity) > 0:
            r.propensity[d] = pairs.propensity[a + r.orders[d]]
    r.lam[:ranks], r.low[:ranks], r.hes[:ranks], r.low_hes[:ranks] = 0.0, 0.0, 0.0, 0.0
    for terms in layers:
        if terms.scale[one.q] != 0.0:
            gain = terms.gain[a : a + n]
            for d in range(ranks):
                r.g[d] = gain[np.uint64(r.orders[d])]
            total += _add_ranks(ranks, terms, one, s, pairs, draw, r)
    grad, hess = out.grad[a : a + n], out.hess[a : a + n]
    for d in range(ranks):
        i = np.uint64(r.orders[d])
        grad[i] += r.lam[d] + r.low[d]
        hess[i] += r.hes[d] + r.low_hes[d]
    return total


pairs_by_rank = pair_kernel(_ranked, _one_draw, by_rank)

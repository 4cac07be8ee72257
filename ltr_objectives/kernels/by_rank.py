"""The loop over pairs of any metric, loss and choice of pairs, one draw at a time and in rank order.

The pairs of one rank are taken together; if there are few neighbours, or random partners, those of equal distance.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.pairs import Batch, Plan, pair_kernel, pairs_of_one, pairs_of_run
from ltr_objectives.kernels.partners import is_sampled, runs
from ltr_objectives.kernels.records import Out, Pairs, Rng, Terms
from ltr_objectives.kernels.sorting import all_equal
from ltr_objectives.kernels.swaps import CASCADE, CATBOOST_MRR, discounted, needs_restart, restart_swaps, swap_terms

FEW_NEIGHBORS = 8  # with at most this many neighbours pairs are taken in runs


class Scratch(NamedTuple):
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
    V_d: np.ndarray  # of one rank that restarts
    delta: np.ndarray  # by distance of two ranks
    lam: np.ndarray
    hes: np.ndarray
    low: np.ndarray
    low_hes: np.ndarray


@allocating
def _scratch(n, layers: tuple[Terms, ...], pairs: Pairs, rng: Rng | None):
    """Return scratch for lists of up to n documents."""
    return Scratch(
        np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.ones(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.zeros(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip


class How(NamedTuple):
    """The settings of weights, and V of the swaps (:mod:`ltr_objectives.kernels.swaps`)."""

    factor: float
    cap: float  # a larger gain difference counts as this
    score_norm: bool
    divided: bool  # by the score distance, a propensity, or both
    V: np.ndarray


@inlined
def _change(d, e, how: How, r: Scratch):
    """Return the decrease of the metric if ranks d < e are swapped, times ``factor``; above 0 if d is better."""
    gap = r.g[d] - r.g[e]
    gap = how.cap if gap > how.cap else gap
    gap = -how.cap if gap < -how.cap else gap
    return how.factor * gap * (r.U[d] + r.A[d] * how.V[e] + r.delta[np.uint64(e) - np.uint64(d)])


@inlined
def _divided(d, e, how: How, r: Scratch):
    """Return the change divided by the score distance and by the propensity of the better document."""
    m = _change(d, e, how, r)
    distance = 0.01 + abs(r.s[d] - r.s[e]) if how.score_norm else 1.0
    at_d, at_e = r.propensity[d], r.propensity[e]  # read before the choice, or LLVM does not vectorise
    return m / (distance * (at_d if m > 0.0 else at_e))


one_of_changes, one_of_divided = pairs_of_one(_change), pairs_of_one(_divided)
run_of_changes, run_of_divided = pairs_of_run(_change), pairs_of_run(_divided)


@inlined_kernel
def _add_rank(d, end, how: How, batch: Batch, r: Scratch):
    """Add the pairs of rank d with the ranks d < e < ``end``."""
    if how.divided:
        return one_of_divided(d, d + 1, end, how, batch, r)
    return one_of_changes(d, d + 1, end, how, batch, r)


@inlined_kernel
def _add_run(d, e, count, how: How, batch: Batch, r: Scratch):
    """Add the pairs of ranks (d + k, e + k), k < ``count``."""
    if how.divided:
        return run_of_divided(d, e, count, how, batch, r)
    return run_of_changes(d, e, count, how, batch, r)


@inlined_kernel
def _swap_terms(n, terms: Terms, batch: Batch, pairs: Pairs, r: Scratch):
    """Write the terms of all swaps; return the number of first ranks whose pairs with lower ranks can have a weight."""
    scale, ranks = terms.scale[batch.q], min(pairs.truncation, n - 1)
    swap_terms(terms.kind, r.g, terms.discount, scale, n, r.U, r.A, r.V)
    if len(pairs.delta) > 0:
        for k in range(n):
            r.delta[k] = pairs.delta[k] * scale
        return ranks
    ranks = discounted(terms.discount, ranks)
    for d in range(ranks if terms.kind in (CASCADE, CATBOOST_MRR) else 0):
        if r.U[d] == 0.0 and r.A[d] == 0.0:  # and so have all lower ranks
            return d
    return ranks


@inlined_kernel
def _add_ranks(ranks, n, by_run, terms: Terms, pairs: Pairs, how: How, batch: Batch, r: Scratch):
    """Add the pairs of each of the first ranks with the ranks below; with ``by_run`` only of those that restart."""
    restarted, total = How(how.factor, how.cap, how.score_norm, how.divided, r.V_d), 0.0
    for d in range(ranks):
        end = min(n, d + 1 + min(n, pairs.neighbors))
        if needs_restart(terms.kind, 1.0 - r.g[d]):
            restart_swaps(r.g, terms.discount, d, end, r.U, r.V_d)
            total += _add_rank(d, end, restarted, batch, r)
            r.U[d], r.A[d] = 0.0, 0.0  # so that no run counts it again
        elif not by_run:
            total += _add_rank(d, end, how, batch, r)
    return total


@allocating
def _add_sampled(n, top, total, how: How, batch: Batch, pairs: Pairs, rng: Rng, r: Scratch):
    """Add the pairs that are drawn; return ``total`` plus the sum of |slope|."""
    starts, weight = runs(n, top, pairs.partners, len(pairs.delta) > 0, rng, batch.q, batch.begin)
    for k in range(len(weight)):
        weighted = How(weight[k], how.cap, how.score_norm, how.divided, how.V)
        total += _add_run(starts[0, k], starts[1, k], starts[2, k], weighted, batch, r)
    return total


@inlined_kernel
def _add_layer(n, terms: Terms, batch: Batch, s, pairs: Pairs, rng: Rng | None, r: Scratch):
    """Add the pairs of the first n ranks by one layer; return the sum of |slope|."""
    ranks, norm = _swap_terms(n, terms, batch, pairs, r), pairs.score_norm and not all_equal(s)
    how = How(1.0, terms.cap, norm, norm or len(pairs.propensity) > 0, r.V)
    few, sampled, top = pairs.neighbors <= FEW_NEIGHBORS, False, n if ranks == n - 1 else ranks
    if rng is not None:
        sampled = is_sampled(n, top, pairs.partners)
    by_run, total = few or sampled, 0.0
    if not by_run or terms.kind == CASCADE:  # no other kind restarts
        total += _add_ranks(ranks, n, by_run, terms, pairs, how, batch, r)
    if few:
        for distance in range(1, pairs.neighbors + 1):
            total += _add_run(0, distance, max(min(ranks, n - distance), 0), how, batch, r)
    if rng is not None:  # noqa: SIM102  numba leaves code out only by such a condition alone
        if sampled:
            total = _add_sampled(n, top, total, how, batch, pairs, rng, r)
    return total


@kernel
def _plan(n, layers: tuple[Terms, ...], pairs: Pairs, rng: Rng | None):
    """Take one draw at a time, with all ranks."""
    return Plan(1, n, n)


@inlined_kernel
def by_rank(batch: Batch, s, layers: tuple[Terms, ...], pairs: Pairs, rng: Rng | None, r: Scratch, out: Out):
    """Add the pairs of one list and draw to ``out``; return the sum of |slope|."""
    n, a, total = batch.n, batch.first, 0.0
    ranks = n if pairs.neighbors >= n else min(n, pairs.ordered)
    for d in range(ranks):
        i = np.uint64(r.orders[d])  # unsigned: numba checks whether signed indices are negative
        r.s[d], r.E[d] = s[i], r.E_by_row[i]
        if len(pairs.propensity) > 0:
            r.propensity[d] = pairs.propensity[a + r.orders[d]]
    r.lam[:ranks], r.low[:ranks], r.hes[:ranks], r.low_hes[:ranks] = 0.0, 0.0, 0.0, 0.0
    for terms in layers:
        if terms.scale[batch.q] != 0.0:
            gain = terms.gain[a : a + n]
            for d in range(ranks):
                r.g[d] = gain[np.uint64(r.orders[d])]
            total += _add_layer(ranks, terms, batch, s, pairs, rng, r)
    grad, hess = out.grad[a : a + n], out.hess[a : a + n]
    for d in range(ranks):
        i = np.uint64(r.orders[d])
        grad[i] += r.lam[d] + r.low[d]
        hess[i] += r.hes[d] + r.low_hes[d]
    return total


pairs_by_rank = pair_kernel(_scratch, _plan, by_rank)

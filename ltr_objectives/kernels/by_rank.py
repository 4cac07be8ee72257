"""The loop over pairs of any metric, loss and choice of pairs, one draw at a time and in rank order.

The pairs of one rank are taken together; if there are few neighbours, or random partners, those of equal distance.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList
from ltr_objectives.kernels.pairs import Batch, Inputs, Plan, pair_kernel, pairs_of_one, pairs_of_run
from ltr_objectives.kernels.partners import leaves_out_pairs, runs
from ltr_objectives.kernels.records import Rng, Terms
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
def scratch_by_rank(n, inputs: Inputs):
    """Return scratch for lists of up to n documents."""
    return Scratch(
        orders=np.empty(n, np.int64), E_by_row=np.empty(n), g=np.empty(n), s=np.empty(n), E=np.empty(n),
        propensity=np.ones(n), U=np.empty(n), A=np.empty(n), V=np.empty(n), V_d=np.empty(n),
        delta=np.zeros(n), lam=np.empty(n), hes=np.empty(n), low=np.empty(n), low_hes=np.empty(n),
    )  # fmt: skip


class Weighting(NamedTuple):
    """The settings of weights, and V of the swaps (:mod:`ltr_objectives.kernels.swaps`)."""

    factor: float
    cap: float  # a larger gain difference counts as this
    score_norm: bool
    divided: bool  # by the score distance, a propensity, or both
    V: np.ndarray


@inlined
def _change(d, e, weighting: Weighting, r: Scratch):
    """Return the decrease of the metric if ranks d < e are swapped, times ``factor``; above 0 if d is better."""
    gap = r.g[d] - r.g[e]
    gap = weighting.cap if gap > weighting.cap else gap
    gap = -weighting.cap if gap < -weighting.cap else gap
    return weighting.factor * gap * (r.U[d] + r.A[d] * weighting.V[e] + r.delta[np.uint64(e) - np.uint64(d)])


@inlined
def _divided(d, e, weighting: Weighting, r: Scratch):
    """Return the change divided by the score distance and by the propensity of the better document."""
    m = _change(d, e, weighting, r)
    distance = 0.01 + abs(r.s[d] - r.s[e]) if weighting.score_norm else 1.0
    at_d, at_e = r.propensity[d], r.propensity[e]  # read before the choice, or LLVM does not vectorise
    return m / (distance * (at_d if m > 0.0 else at_e))


one_of_changes, one_of_divided = pairs_of_one(_change), pairs_of_one(_divided)
run_of_changes, run_of_divided = pairs_of_run(_change), pairs_of_run(_divided)


@inlined_kernel
def _add_rank(d, end, weighting: Weighting, batch: Batch, r: Scratch):
    """Add the pairs of rank d with the ranks d < e < ``end``."""
    if weighting.divided:
        return one_of_divided(d, d + 1, end, weighting, batch, r)
    return one_of_changes(d, d + 1, end, weighting, batch, r)


@inlined_kernel
def _add_run(d, e, count, weighting: Weighting, batch: Batch, r: Scratch):
    """Add the pairs of ranks (d + k, e + k), k < ``count``."""
    if weighting.divided:
        return run_of_divided(d, e, count, weighting, batch, r)
    return run_of_changes(d, e, count, weighting, batch, r)


@inlined_kernel
def _swap_terms(n, scale, terms: Terms, inputs: Inputs, r: Scratch):
    """Write the terms of all swaps; return the number of first ranks whose pairs with lower ranks can have a weight."""
    ranks = min(inputs.truncation, n - 1)
    swap_terms(terms.kind, r.g, terms.discount, scale, n, r.U, r.A, r.V)
    if len(inputs.delta) > 0:
        for k in range(n):
            r.delta[k] = inputs.delta[k] * scale
        return ranks
    ranks = discounted(terms.discount, ranks)
    for d in range(ranks if terms.kind in (CASCADE, CATBOOST_MRR) else 0):
        if r.U[d] == 0.0 and r.A[d] == 0.0:  # and so have all lower ranks
            return d
    return ranks


@inlined_kernel
def _add_ranks(ranks, n, by_run, terms: Terms, skip, inputs: Inputs, weighting: Weighting, batch: Batch, r: Scratch):
    """Add the pairs of each of the first ranks with the ranks below; with ``by_run`` only of those that restart."""
    total, cap, norm, divided = 0.0, weighting.cap, weighting.score_norm, weighting.divided
    restarted = Weighting(factor=weighting.factor, cap=cap, score_norm=norm, divided=divided, V=r.V_d)
    for d in range(ranks):
        if inputs.part.step > 1 and (skip[0] or d % inputs.part.step != inputs.part.start):
            continue
        end = min(n, d + 1 + min(n, inputs.neighbors))
        if needs_restart(terms.kind, 1.0 - r.g[d]):
            restart_swaps(r.g, terms.discount, d, end, r.U, r.V_d)
            total += _add_rank(d, end, restarted, batch, r)
            r.U[d], r.A[d] = 0.0, 0.0  # so that no run counts it again
        elif not by_run:
            total += _add_rank(d, end, weighting, batch, r)
    return total


@allocating
def _add_sampled(q, n, top, total, weighting: Weighting, batch: Batch, inputs: Inputs, rng: Rng, r: Scratch):
    """Add the pairs that are drawn; return ``total`` plus the sum of |slope|."""
    starts, weight = runs(n, top, inputs.partners, len(inputs.delta) > 0, rng, q, batch.begin)
    cap, norm, divided = weighting.cap, weighting.score_norm, weighting.divided
    for k in range(len(weight)):
        weighted = Weighting(factor=weight[k], cap=cap, score_norm=norm, divided=divided, V=weighting.V)
        total += _add_run(starts[0, k], starts[1, k], starts[2, k], weighted, batch, r)
    return total


@inlined_kernel
def _add_layer(n, terms: Terms, one: OneList, batch: Batch, inputs: Inputs, rng: Rng | None, r: Scratch):
    """Add the pairs of the first n ranks by one layer; return the sum of |slope|."""
    norm = inputs.score_norm and not all_equal(one.s)
    ranks = _swap_terms(n, terms.scale[one.q], terms, inputs, r)
    divided = norm or len(inputs.propensity) > 0
    weighting = Weighting(factor=1.0, cap=terms.cap, score_norm=norm, divided=divided, V=r.V)
    few, sampled, top = inputs.neighbors <= FEW_NEIGHBORS, False, n if ranks == n - 1 else ranks
    if rng is not None:
        sampled = leaves_out_pairs(n, top, inputs.partners)
    by_run, total = few or sampled, 0.0
    if not by_run or terms.kind == CASCADE:  # no other kind restarts
        total += _add_ranks(ranks, n, by_run, terms, one.skip, inputs, weighting, batch, r)
    if few:
        for distance in range(1, inputs.neighbors + 1):
            total += _add_run(0, distance, max(min(ranks, n - distance), 0), weighting, batch, r)
    if rng is not None:  # noqa: SIM102  numba leaves code out only by such a condition alone
        if sampled:
            total = _add_sampled(one.q, n, top, total, weighting, batch, inputs, rng, r)
    return total


@kernel
def _plan(n, inputs: Inputs):
    """Take one draw at a time, with all ranks."""
    return Plan(draws=1, top=n, stride=n)


@inlined_kernel
def by_rank(one: OneList, batch: Batch, inputs: Inputs, r: Scratch):
    """Add the pairs of one list and draw; return the sum of |slope|."""
    n, total = len(one.s), 0.0
    ranks = n if inputs.neighbors >= n else min(n, inputs.ordered)
    for d in range(ranks):
        i = np.uint64(r.orders[d])  # unsigned: numba checks whether signed indices are negative
        r.s[d], r.E[d] = one.s[i], r.E_by_row[i]
        if len(inputs.propensity) > 0:
            r.propensity[d] = inputs.propensity[one.first + r.orders[d]]
    r.lam[:ranks], r.low[:ranks], r.hes[:ranks], r.low_hes[:ranks] = 0.0, 0.0, 0.0, 0.0
    for terms in inputs.layers:
        if terms.scale[one.q] != 0.0:
            gain = terms.gain[one.first : one.last]
            for d in range(ranks):
                r.g[d] = gain[np.uint64(r.orders[d])]
            total += _add_layer(ranks, terms, one, batch, inputs, inputs.rng, r)
    for d in range(ranks):
        i = np.uint64(r.orders[d])
        one.grad[i] += r.lam[d] + r.low[d]
        one.hess[i] += r.hes[d] + r.low_hes[d]
    return total


pairs_by_rank = pair_kernel(scratch_by_rank, _plan, by_rank)

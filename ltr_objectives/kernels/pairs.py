r"""Gradient and Hessian of a loss over pairs of documents, each weighted by the change of a metric.

For each query, ``rng.draws`` times, add noise to the scores and sort. Each pair of ranks d < e <= d + neighbors with
d < truncation has the weight :math:`\delta`, the absolute change of the metric when d and e are swapped. The mean over
the draws is that of LambdaMART's formula (:class:`ltr_objectives.LambdaMART`), at the scores without noise, or at those
of the draw if ``inputs.noisy``.

The weight of a pair is the sum of its weights in the ``layers``, each of one family; if ``inputs.delta`` is not empty,
each also has :math:`|g_{hi} - g_{lo}|` times the entry for the distance :math:`e - d`. With propensities :math:`\delta`
is divided by that of :math:`hi`, the document of the larger gain. The gradient is linear in the weights, so pairs are
not stored: a thread takes :math:`O(n)` memory.

One exponential per document serves all its pairs: with :math:`E = e^{\sigma (s - s_{max})}`, the probability that e
beats d is :math:`E_e / (E_d + E_e)`. If scores span more than the exponential can represent, and for other losses,
``slope_and_curve`` computes each pair by itself. Inner loops have unsigned indices and no ``min`` or ``max``, so that
LLVM vectorises them: 0.8 ns a pair instead of 2.4.

``pairs_of_one`` and ``pairs_of_run`` are the mathematics of pairs, given a function that returns the weight of one.
Two loops choose the pairs and give the weights: ``by_rank`` for any metric, loss and choice of pairs, ``by_gain`` for
linear metrics and average precision. Each has a kernel of its own, because one kernel with both compiles longer.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import FARTHEST, relative_to_top
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.rankings import (
    KEEP_NONE,
    Kept,
    begin_draws,
    copy_order,
    draw_ranking,
    draws_of,
    ranking_scratch,
)
from ltr_objectives.kernels.records import Rng, Terms
from ltr_objectives.kernels.swaps import is_empty

LOGISTIC, HINGE = range(2)


class Part(NamedTuple):
    """A part of the pairs of one list: those of the documents start, start + step, ... with the others."""

    start: int
    step: int
    total: np.ndarray  # one number, to be written: the sum of |slope|; empty if the list has no other part


WHOLE = Part(start=0, step=1, total=np.empty(0))


class Inputs(NamedTuple):
    """The pairs of documents that count, their loss, and what their weight depends on."""

    layers: tuple[Terms, ...]
    rng: Rng | None  # None if scores get no noise and pairs are not drawn
    loss: int  # LOGISTIC or HINGE
    sigma: float
    truncation: int  # at least one document of a pair is among this many first ranks
    ordered: int  # how many first ranks must be sorted
    neighbors: int  # documents of a pair are at most this many ranks apart
    partners: int  # of a document of a longer list, drawn at random
    noisy: bool  # the loss is at the noisy scores of each draw
    score_norm: bool
    lambda_norm: bool
    propensity: np.ndarray  # by row; empty if labels are not clicks
    by_label: np.ndarray  # as in Queries, or empty if the kernel does not read it
    delta: np.ndarray  # by distance of two ranks: added to the difference of their discounts; empty for 0
    part: Part = WHOLE
    kept: Kept = KEEP_NONE


class Plan(NamedTuple):
    """How the draws of one list are taken."""

    draws: int  # of a batch, but for the last one
    top: int  # ranks of each draw that are read; fewer than the list has if only top ranks are
    stride: int  # entries of ``orders`` from one draw to the next


class Batch(NamedTuple):
    """A batch of the draws of one list, and the loss of its pairs."""

    by_exponentials: bool  # the loss is logistic, and the exponentials represent all scores
    loss: int
    sigma: float
    begin: int  # the first draw
    draws: int
    plan: Plan


@kernel
def slope_and_curve(loss, margin):
    """Return minus the first derivative of the loss at ``sigma (s_hi - s_lo)``, and the second or a bound of it."""
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + math.exp(min(margin, FARTHEST)))
        return p, p / (1.0 + math.exp(min(-margin, FARTHEST)))
    active = 1.0 if margin < 1.0 else 0.0
    return active, active  # a bound; the second derivative of the hinge is 0


@functools.cache
def _any_pairs(weigh: Any) -> Any:
    """Return the slow general loop over pairs: any loss, scores of any span."""

    @kernel
    def any_pairs(i, j, count, step, weighting, batch: Batch, r):
        """Add the pairs (i + k step, j + k), k < ``count``, of any loss and for scores of any span."""
        total = 0.0
        for k in range(count):
            d, e = i + k * step, j + k
            weight = weigh(d, e, weighting, r)
            if weight != 0.0:
                margin = batch.sigma * (r.s[d] - r.s[e])
                slope, curve = slope_and_curve(batch.loss, margin if weight > 0.0 else -margin)
                r.lam[d] -= weight * slope
                r.lam[e] += weight * slope
                r.hes[d] += abs(weight) * curve
                r.hes[e] += abs(weight) * curve
                total += abs(weight) * slope
        return total

    return any_pairs


def pairs_of_one(weigh: Any, better: int = 0) -> Any:
    """Return the function that adds the pairs of i and ``a <= j < b``, each of weight ``weigh(i, j, weighting, r)``.

    ``r`` is a record with the arrays s, E, lam and hes, and what ``weigh`` reads; ``weighting`` is for ``weigh`` alone.
    A weight is positive if i is the better document. Set ``better`` to 1 (or -1) if i is better (or worse) in all
    pairs; the loop is then faster. The function returns the sum of |slope|.
    """
    any_pairs = _any_pairs(weigh)

    @inlined
    def exponential_one(i, a, b, weighting, r):
        """Add the logistic pairs by the exponentials of their documents."""
        apart()
        d, sum_of_slopes, curve, total = np.uint64(i), 0.0, 0.0, 0.0
        for j in range(np.uint64(a), np.uint64(b)):  # unsigned: numba checks whether signed indices are negative
            weight = weigh(d, j, weighting, r)
            inverse = 1.0 / (r.E[d] + r.E[j])
            loses, wins = r.E[j] * inverse, r.E[d] * inverse
            d_is_better = better > 0 or (better == 0 and weight > 0.0)
            slope = weight * (loses if d_is_better else wins)
            size = better * slope if better != 0 else abs(slope)
            h = size * (wins if d_is_better else loses)
            r.lam[j] += slope
            r.hes[j] += h
            sum_of_slopes += slope
            curve += h
            total += size
        r.lam[d] -= sum_of_slopes
        r.hes[d] += curve
        return better * sum_of_slopes if better != 0 else total

    @inlined_kernel
    def add_one(i, a, b, weighting, batch: Batch, r):
        """Add the pairs by the exponentials, if they apply."""
        return (
            exponential_one(i, a, b, weighting, r)
            if batch.by_exponentials
            else any_pairs(i, a, b - a, 0, weighting, batch, r)
        )

    return add_one


def pairs_of_run(weigh: Any) -> Any:
    """Return the function that adds the pairs (a + k, b + k), k < ``count``, as ``pairs_of_one`` does.

    The sums of b + k go to ``r.low`` and ``r.low_hes``, because arrays of a vectorised loop must not overlap.
    """
    any_pairs = _any_pairs(weigh)

    @inlined
    def exponential_run(a, b, count, weighting, r):
        """Add the logistic pairs by the exponentials of their documents."""
        apart()
        total = 0.0
        for k in range(np.uint64(count)):
            d, e = np.uint64(a) + np.uint64(k), np.uint64(b) + np.uint64(k)
            weight = weigh(d, e, weighting, r)
            inverse = 1.0 / (r.E[d] + r.E[e])
            loses, wins = r.E[e] * inverse, r.E[d] * inverse
            slope, h = weight * (loses if weight > 0.0 else wins), abs(weight) * loses * wins
            r.lam[d] -= slope
            r.low[e] += slope
            r.hes[d] += h
            r.low_hes[e] += h
            total += abs(slope)
        return total

    @inlined_kernel
    def add_run(a, b, count, weighting, batch: Batch, r):
        """Add the pairs by the exponentials, if they apply."""
        return (
            exponential_run(a, b, count, weighting, r)
            if batch.by_exponentials
            else any_pairs(a, b, count, 1, weighting, batch, r)
        )

    return add_run


@kernel
def scale(grad, hess, total, inputs: Inputs):
    """Multiply the sums over the pairs of one list by what all have in common; ``total`` is the sum of |slope|."""
    factor = inputs.sigma / draws_of(inputs.rng)
    if inputs.lambda_norm:
        total *= 2.0 * factor
        if total > 0.0:
            factor *= np.log2(1.0 + total) / total
    for i in range(len(grad)):
        grad[i] *= factor
        hess[i] = hess[i] * factor * inputs.sigma


@kernel
def _write_exponentials(x, inputs: Inputs, E):
    """Write the exponentials, and return True if they apply to all pairs."""
    return relative_to_top(x, inputs.sigma, E) and inputs.loss == LOGISTIC


@inlined_kernel
def _is_known(q, inputs: Inputs, rng: Rng | None):
    """Return True if another part of the sum has kept the rankings of the query."""
    if rng is None:
        return False
    return len(inputs.kept.order) > 0 and inputs.kept.known[q]


@inlined_kernel
def _copy(one: OneList, draw, order, keeps, inputs: Inputs, rng: Rng | None):
    """Keep the ranking of a draw if there is room, or read it."""
    if rng is not None:  # noqa: SIM102  numba leaves code out only by such a condition alone
        if len(inputs.kept.order) > 0:
            kept = inputs.kept.order[draw, one.first : one.last]
            if keeps:
                copy_order(order, kept)
            else:
                copy_order(kept, order)


@inlined_kernel
def _end(q, inputs: Inputs, rng: Rng | None):
    """Say that the rankings of the query are known."""
    if rng is not None:  # noqa: SIM102  as above
        if len(inputs.kept.order) > 0:
            inputs.kept.known[q] = True


def pair_kernel(scratch: Any, plan: Any, loop: Any) -> Callable[..., Any]:
    """Return the kernel that draws the rankings of each list and adds its pairs by ``loop``.

    ``scratch(longest, inputs)`` returns the loop's arrays, ``plan(n, inputs)`` the plan of a list. ``loop(one, batch,
    inputs, arrays)`` adds the pairs at the scores ``one.s`` and returns the sum of |slope|.
    """

    @allocating
    def both_scratches(longest, inputs: Inputs):
        """Return the scratch of the draws, and that of the loop."""
        return ranking_scratch(longest, inputs.rng), scratch(longest, inputs)

    @inlined_kernel
    def add_pairs(one: OneList, inputs: Inputs, scratches):
        """Add the pairs of one list, if it has some."""
        x, n, rng, (drawn, r), total = one.s, len(one.s), inputs.rng, scratches, 0.0
        if n < 2 or is_empty(inputs.layers, one.q):
            return
        of_list, draws = plan(n, inputs), draws_of(rng)
        by_exponentials = _write_exponentials(x, inputs, r.E_by_row)
        known = _is_known(one.q, inputs, rng)
        multiplies = not known and begin_draws(x, inputs.noisy, rng, one.q, drawn)
        for begin in range(0, draws, of_list.draws):
            if one.skip[0]:
                return
            together = min(of_list.draws, draws - begin)
            for k in range(together):
                order = r.orders[k * of_list.stride : k * of_list.stride + n]
                if known:
                    _copy(one, begin + k, order, False, inputs, rng)
                else:
                    draw_ranking(x, min(n, inputs.ordered), of_list.top == n, rng, multiplies, order, drawn)
                    _copy(one, begin + k, order, True, inputs, rng)
            at = x
            if rng is not None and inputs.noisy:  # then a batch is one draw
                at = drawn.noisy[:n]
                by_exponentials = _write_exponentials(at, inputs, r.E_by_row)
            batch = Batch(
                by_exponentials=by_exponentials, loss=inputs.loss, sigma=inputs.sigma, begin=begin, draws=together,
                plan=of_list,
            )  # fmt: skip
            at_draw = OneList(
                q=one.q, first=one.first, last=one.last, s=at, grad=one.grad, hess=one.hess, skip=one.skip
            )  # fmt: skip
            total += loop(at_draw, batch, inputs, r)
        _end(one.q, inputs, rng)
        if len(inputs.part.total) > 0:
            inputs.part.total[0] = total
        else:
            scale(one.grad, one.hess, total, inputs)

    return each_list(both_scratches, add_pairs)

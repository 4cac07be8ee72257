r"""Gradient and Hessian of a loss over pairs of documents, each weighted by the change of a metric.

For each query, ``rng.draws`` times, add noise to the scores and sort. Each pair of ranks d < e <= d + neighbors with
d < truncation has the weight :math:`\delta`, the absolute change of the metric when d and e are swapped. The mean over
the draws is that of LambdaMART's formula (:class:`ltr_objectives.LambdaMART`), at the scores without noise, or at those
of the draw if ``pairs.noisy``.

The weight of a pair is the sum of its weights in the ``layers``, each of one family; if ``pairs.delta`` is not empty,
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
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rankings import begin_draws, draw_ranking, draws_of, ranking_scratch
from ltr_objectives.kernels.records import Out, Pairs, Rng
from ltr_objectives.kernels.sorting import longest_list
from ltr_objectives.kernels.swaps import is_empty

LOGISTIC, HINGE = range(2)


class Plan(NamedTuple):
    """How the draws of one list are taken."""

    draws: int  # of a batch, but for the last one
    top: int  # ranks of each draw that are read; fewer than the list has if only top ranks are
    stride: int  # entries of ``orders`` from one draw to the next


class Batch(NamedTuple):
    """One list, and a batch of its draws."""

    q: int
    first: int  # its first row
    n: int
    narrow: bool  # the loss is logistic, and the exponentials represent all scores
    loss: int
    sigma: float
    begin: int  # the first draw
    draws: int
    plan: Plan


@kernel
def slope_and_curve(loss, margin):
    """Return minus the first derivative of the loss at ``sigma (s_hi - s_lo)``, and the second or a bound of it."""
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + math.exp(min(margin, 700.0)))
        return p, p / (1.0 + math.exp(min(-margin, 700.0)))
    active = 1.0 if margin < 1.0 else 0.0
    return active, active  # a bound; the second derivative of the hinge is 0


@functools.cache
def _any_pairs(weight: Any) -> Any:
    """Return the slow general loop over pairs: any loss, scores of any span."""

    @kernel
    def any_pairs(i, j, count, step, how, batch: Batch, r):
        """Add the pairs (i + k step, j + k), k < ``count``, of any loss and for scores of any span."""
        total = 0.0
        for k in range(count):
            d, e = i + k * step, j + k
            m = weight(d, e, how, r)
            if m != 0.0:
                margin = batch.sigma * (r.s[d] - r.s[e])
                slope, curve = slope_and_curve(batch.loss, margin if m > 0.0 else -margin)
                r.lam[d] -= m * slope
                r.lam[e] += m * slope
                r.hes[d] += abs(m) * curve
                r.hes[e] += abs(m) * curve
                total += abs(m) * slope
        return total

    return any_pairs


def pairs_of_one(weight: Any, better: int = 0) -> Any:
    """Return the function that adds the pairs of i and ``a <= j < b``, each of weight ``weight(i, j, how, r)``.

    ``r`` is a record with the arrays s, E, lam and hes, and what the weight reads; ``how`` is for the weight alone.
    It is positive if i is the better document. If that is so for all pairs, or for none, ``better`` is 1 or -1, and the
    loop is faster. The function returns the sum of |slope|.
    """
    any_pairs = _any_pairs(weight)

    @inlined
    def narrow_one(i, a, b, how, r):
        """Add the logistic pairs by the exponentials of their documents."""
        apart()
        d, down, curve, total = np.uint64(i), 0.0, 0.0, 0.0
        for j in range(np.uint64(a), np.uint64(b)):  # unsigned: numba checks whether signed indices are negative
            m = weight(d, j, how, r)
            inverse = 1.0 / (r.E[d] + r.E[j])
            loses, wins = r.E[j] * inverse, r.E[d] * inverse
            wins_d = better > 0 or (better == 0 and m > 0.0)
            slope = m * (loses if wins_d else wins)
            size = better * slope if better != 0 else abs(slope)
            h = size * (wins if wins_d else loses)
            r.lam[j] += slope
            r.hes[j] += h
            down += slope
            curve += h
            total += size
        r.lam[d] -= down
        r.hes[d] += curve
        return better * down if better != 0 else total

    @inlined_kernel
    def add_one(i, a, b, how, batch: Batch, r):
        """Add the pairs by the exponentials, if they apply."""
        return narrow_one(i, a, b, how, r) if batch.narrow else any_pairs(i, a, b - a, 0, how, batch, r)

    return add_one


def pairs_of_run(weight: Any) -> Any:
    """Return the function that adds the pairs (a + k, b + k), k < ``count``, as ``pairs_of_one`` does.

    The sums of b + k go to ``r.low`` and ``r.low_hes``, because arrays of a vectorised loop must not overlap.
    """
    any_pairs = _any_pairs(weight)

    @inlined
    def narrow_run(a, b, count, how, r):
        """Add the logistic pairs by the exponentials of their documents."""
        apart()
        total = 0.0
        for k in range(np.uint64(count)):
            d, e = np.uint64(a) + np.uint64(k), np.uint64(b) + np.uint64(k)
            m = weight(d, e, how, r)
            inverse = 1.0 / (r.E[d] + r.E[e])
            loses, wins = r.E[e] * inverse, r.E[d] * inverse
            slope, h = m * (loses if m > 0.0 else wins), abs(m) * loses * wins
            r.lam[d] -= slope
            r.low[e] += slope
            r.hes[d] += h
            r.low_hes[e] += h
            total += abs(slope)
        return total

    @inlined_kernel
    def add_run(a, b, count, how, batch: Batch, r):
        """Add the pairs by the exponentials, if they apply."""
        return narrow_run(a, b, count, how, r) if batch.narrow else any_pairs(a, b, count, 1, how, batch, r)

    return add_run


@kernel
def _scale(grad, hess, total, pairs: Pairs, rng: Rng | None):
    """Multiply the sums over the pairs of one list by what all have in common; ``total`` is the sum of |slope|."""
    factor = pairs.sigma / draws_of(rng)
    if pairs.lambda_norm:
        total *= 2.0 * factor
        if total > 0.0:
            factor *= np.log2(1.0 + total) / total
    for i in range(len(grad)):
        grad[i] *= factor
        hess[i] = hess[i] * factor * pairs.sigma


@kernel
def _write_exponentials(x, pairs: Pairs, E):
    """Write the exponentials, and return True if they apply to all pairs."""
    return relative_to_top(x, pairs.sigma, E) and pairs.loss == LOGISTIC


def pair_kernel(scratch: Any, plan: Any, loop: Any) -> Callable[..., Any]:
    """Return the kernel that draws the rankings of each list and adds its pairs by ``loop``.

    ``scratch(longest, layers, pairs, rng)`` returns the loop's arrays, ``plan(n, layers, pairs, rng)`` the plan of a
    list, ``loop(batch, s, layers, pairs, rng, arrays, out)`` the sum of |slope|.
    """

    @inlined_kernel
    def add_list(q, ptr, s, layers, pairs: Pairs, rng: Rng | None, scratches, out: Out):
        """Add the pairs of one list. It allocates nothing, so numba counts no references here."""
        a, n, (drawn, r), total = ptr[q], ptr[q + 1] - ptr[q], scratches, 0.0
        x, of_list = s[a : a + n], plan(n, layers, pairs, rng)
        narrow = _write_exponentials(x, pairs, r.E_by_row)
        multiplies = begin_draws(x, pairs.noisy, rng, q, drawn)
        for begin in range(0, draws_of(rng), of_list.draws):
            draws = min(of_list.draws, draws_of(rng) - begin)
            for k in range(draws):
                order = r.orders[k * of_list.stride : k * of_list.stride + n]
                draw_ranking(x, min(n, pairs.ordered), of_list.top == n, rng, multiplies, order, drawn)
            at = x
            if rng is not None and pairs.noisy:  # then a batch is one draw
                at = drawn.noisy[:n]
                narrow = _write_exponentials(at, pairs, r.E_by_row)
            batch = Batch(q, a, n, narrow, pairs.loss, pairs.sigma, begin, draws, of_list)
            total += loop(batch, at, layers, pairs, rng, r, out)
        _scale(out.grad[a : a + n], out.hess[a : a + n], total, pairs, rng)

    @allocating
    def pair_gradients(first, last, ptr, s, layers, pairs: Pairs, rng: Rng | None, out: Out):
        """Add the pairs of each list that has some."""
        longest = longest_list(ptr, first, last)
        scratches = ranking_scratch(longest, rng), scratch(longest, layers, pairs, rng)
        for q in range(first, last):
            if ptr[q + 1] - ptr[q] >= 2 and not (is_empty(layers, q) or out.skip[q]):
                add_list(q, ptr, s, layers, pairs, rng, scratches, out)

    return pair_gradients

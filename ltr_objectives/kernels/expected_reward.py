r"""The expected reward of rankings drawn from a Plackett-Luce model, and its derivatives.

Kang, de Rijke and Oosterhuis, "Estimating the Hessian Matrix of Ranking Objectives for Stochastic Learning to Rank with
Gradient Boosted Trees", SIGIR 2024. For one ranking :math:`y` with open masses :math:`S_k`, weights :math:`\theta` and
rewards :math:`\rho` (eqs. 5-8), let

.. math::
    \begin{aligned}
    PR_i &= \sum_{k \ge i} \theta_k \rho_{y_k}, & RI_i &= \sum_{k \le i} PR_k / S_k, &
    RS_i &= \sum_{k \le i} PR_k / S_k^2, \\
    DN_i &= \sum_{k \le i} 1 / S_k, & DR_i &= \sum_{k \le i} \theta_k / S_k, &
    DS_i &= \sum_{k \le i} \theta_k / S_k^2.
    \end{aligned}

A document of mass :math:`e` at rank :math:`i` has, with :math:`a = \rho \, DR_i - RI_i` (eqs. 6, 9, 10), the gradient
:math:`PR_{i+1} + e a` and the Hessian

.. math:: PR_{i+1} + 2 e a - e \, DN_i \, PR_{i+1} + e^2 (RS_i - \rho \, DS_i - DN_i \, a).

A document beyond the last rank :math:`K` has :math:`PR_{i+1} = 0`, the sums at :math:`K`, and :math:`e a` instead of
:math:`2 e a`. Its derivatives depend on the ranking only through RI, DR, RS, DS, DN DR and DN RI at :math:`K`. So these
are added up over the :math:`N` rankings once for all documents, and each ranking visits only the :math:`K` documents
that it places. A list takes about :math:`O(N K \log K + n \log n)`, because later ranks reject more draws, instead of
:math:`O(N (n + K))`.

Every document gets these sums, and a ranking that placed it subtracts its part again. That would cancel badly if the
ranking placed it early, because :math:`e` may be far above :math:`S_K`. But a document is open at :math:`K` only if
:math:`e \le S_K`, in floating point too. So rankings are sorted by :math:`S_K`, and a document gets only the sums of
the rankings with :math:`S_K \ge e`. Then each term is at most of order 1, and exactly what was added is subtracted.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel
from ltr_objectives.kernels.exponential import REACH, WIDEST_SQUARED
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.plackett_luce import (
    Placed,
    Strata,
    first_ranks,
    lattice,
    open_all,
    place_narrow,
    place_wide,
    placed_space,
    table_of,
    uniforms_by_rank,
)
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.sorting import Sorter, descending_order, sorter

NOTHING, SECOND_DERIVATIVE, EXPOSURE = range(3)  # the second output besides the gradient


class Inputs(NamedTuple):
    """The reward of a data set, and the rankings over which its mean is taken."""

    reward: np.ndarray  # by row
    scale: np.ndarray  # by query
    theta: np.ndarray  # by rank
    curvature: int
    rng: Rng


class Sums(NamedTuple):
    """The sums of the module's formula, from the first rank to one rank, in the unit of that rank."""

    RI: float
    DR: float
    RS: float
    DS: float
    DN: float


RI, DR, RS, DS, DN_DR, DN_RI = range(6)  # the columns of what is added up over the rankings


class ByScore(NamedTuple):
    """The documents of one list in the order of descending scores, and space for longer lists."""

    s: np.ndarray
    rho: np.ndarray  # rewards between 0 and 1
    grad: np.ndarray  # of the expected reward
    hess: np.ndarray


class Scratch(NamedTuple):
    """The order of a list, a ranking of it, and the sums of all rankings."""

    sort: Sorter
    order: np.ndarray
    x: ByScore
    placed: Placed
    strata: Strata
    sums: np.ndarray  # by ranking, at its last rank
    total: np.ndarray
    open_mass: np.ndarray  # by ranking, at its last rank
    by_mass: np.ndarray
    mass_sort: Sorter


@allocating
def scratch_for(longest, inputs: Inputs):
    """Return scratch for lists of up to ``longest`` documents."""
    rankings, ranks, sort = inputs.rng.draws, min(longest, len(inputs.theta)), sorter(longest)
    x = ByScore(s=sort.key, rho=np.empty(longest), grad=np.empty(longest), hess=np.empty(longest))
    strata = Strata(step=np.zeros(ranks, np.int64), at=np.zeros(ranks, np.int64))
    return Scratch(
        sort=sort, order=np.empty(longest, np.int64), x=x, placed=placed_space(ranks, longest), strata=strata,
        sums=np.empty((rankings, 6)), total=np.empty(6), open_mass=np.empty(rankings),
        by_mass=np.empty(rankings, np.int64), mass_sort=sorter(rankings),
    )  # fmt: skip


@inlined_kernel
def _next_sums(sums: Sums, shrink, PR, theta, S):
    """Return the sums one rank further down, where the open mass is ``S``."""
    inverse, square, both = 1.0 / S, (1.0 / S) * (1.0 / S), shrink * shrink
    return Sums(
        RI=sums.RI * shrink + PR * inverse, DR=sums.DR * shrink + theta * inverse, RS=sums.RS * both + PR * square,
        DS=sums.DS * both + theta * square, DN=sums.DN * shrink + inverse,
    )  # fmt: skip


@inlined_kernel
def add_ranking(inputs: Inputs, x: ByScore, placed: Placed, weight, last):
    """Add the derivatives of the documents of one ranking; write the sums at its last rank."""
    ranks, PR, sums = len(placed.y), placed.later, Sums(RI=0.0, DR=0.0, RS=0.0, DS=0.0, DN=0.0)
    PR[ranks] = 0.0
    for k in range(ranks - 1, -1, -1):
        PR[k] = PR[k + 1] + inputs.theta[k] * x.rho[placed.y[k]]
    for k in range(ranks):
        d, e, after = placed.y[k], placed.e[k], PR[k + 1]
        sums = _next_sums(sums, placed.shrink[k], PR[k], inputs.theta[k], placed.m[k])
        a = x.rho[d] * sums.DR - sums.RI
        x.grad[d] += weight * (after + e * a)
        if inputs.curvature == EXPOSURE:
            x.hess[d] += weight * e * sums.DR
        elif inputs.curvature == SECOND_DERIVATIVE:
            bend = sums.RS - x.rho[d] * sums.DS - sums.DN * a
            x.hess[d] += weight * (after + 2.0 * e * a - e * sums.DN * after + e * e * bend)
    last[RI], last[DR], last[RS], last[DS] = sums.RI, sums.DR, sums.RS, sums.DS
    last[DN_DR], last[DN_RI] = sums.DN * sums.DR, sums.DN * sums.RI


@inlined_kernel
def open_derivatives(curvature, e, rho, sums):
    """Return gradient and curvature of a document that is open at the last rank."""
    slope = e * (rho * sums[DR] - sums[RI])
    if curvature == NOTHING:
        return slope, 0.0
    if curvature == EXPOSURE:
        return slope, e * sums[DR]
    return slope, slope + e * e * (sums[RS] - rho * sums[DS] - rho * sums[DN_DR] + sums[DN_RI])


@inlined_kernel
def subtract_placed(inputs: Inputs, x: ByScore, placed: Placed, weight, j, r: Scratch):
    """Subtract from the documents of ranking ``j`` what ``add_open`` adds to them; weigh the sums for it."""
    last = r.open_mass[j] = placed.m[len(placed.y) - 1]
    for k in range(len(placed.y)):  # no branch: it would be mispredicted
        d, e = placed.y[k], placed.e[k]
        slope, curve = open_derivatives(inputs.curvature, e, x.rho[d], r.sums[j])
        share = weight if e <= last else 0.0
        x.grad[d] -= share * slope
        x.hess[d] -= share * curve
    for c in range(6):
        r.sums[j, c] *= weight


@inlined_kernel
def add_open(inputs: Inputs, x: ByScore, mass, r: Scratch):
    """Add to each document the sums of the rankings at whose last rank it may be open."""
    descending_order(r.open_mass, r.by_mass, r.mass_sort)
    r.total[:] = 0.0
    taken = 0
    for d in range(len(mass)):
        while taken < len(r.open_mass) and mass[d] <= r.mass_sort.key[taken]:
            for c in range(6):
                r.total[c] += r.sums[r.by_mass[taken], c]
            taken += 1
        slope, curve = open_derivatives(inputs.curvature, mass[d], x.rho[d], r.total)
        x.grad[d] += slope
        x.hess[d] += curve


@allocating
def _add_narrow(key, n, inputs: Inputs, x: ByScore, r: Scratch):
    """Add all rankings of one list; documents beyond the last rank take the sums over the rankings at once."""
    rankings, weight = inputs.rng.draws, 1.0 / inputs.rng.draws
    placed = first_ranks(r.placed, min(n, len(inputs.theta)))
    table = table_of(x.s[:n])
    placed.shrink[:] = 1.0
    for j in range(rankings):
        uniforms_by_rank(key, j, rankings, r.strata, placed.u)
        place_narrow(table, key, j, placed)
        add_ranking(inputs, x, placed, weight, r.sums[j])
        subtract_placed(inputs, x, placed, weight, j, r)
    add_open(inputs, x, table.mass, r)


@inlined_kernel
def add_beyond(inputs: Inputs, s, x: ByScore, placed: Placed, weight, unit, sums):
    """Add the documents beyond the last rank of one ranking; ``unit`` is the score whose mass is 1 there."""
    for i in placed.y:
        placed.open_[i] = False
    d = 0
    while d < len(s) and s[d] - unit > -REACH:
        if placed.open_[d]:
            slope, curve = open_derivatives(inputs.curvature, math.exp(s[d] - unit), x.rho[d], sums)
            x.grad[d] += weight * slope
            x.hess[d] += weight * curve
        d += 1
    open_all(placed)


@allocating
def _add_wide(key, n, inputs: Inputs, x: ByScore, r: Scratch):
    """As ``_add_narrow`` for scores whose exponentials do not fit one unit: each ranking has its own."""
    rankings, weight = inputs.rng.draws, 1.0 / inputs.rng.draws
    placed = first_ranks(r.placed, min(n, len(inputs.theta)))
    for j in range(rankings):
        uniforms_by_rank(key, j, rankings, r.strata, placed.u)
        unit = place_wide(x.s[:n], placed)
        add_ranking(inputs, x, placed, weight, r.sums[j])
        add_beyond(inputs, x.s[:n], x, placed, weight, unit, r.sums[j])


@inlined_kernel
def _plrank(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the gradient of minus ``scale`` times the expected reward, and its curvature or the exposure."""
    n, reward, x = len(one.s), inputs.reward[one.first : one.last], r.x
    low, high = reward[0], reward[0]
    for value in reward:
        low, high = min(low, value), max(high, value)
    if inputs.curvature == EXPOSURE:  # which does not depend on the rewards
        low, high = 0.0, 1.0
    if n < 2 or inputs.scale[one.q] == 0.0 or low == high:
        if inputs.curvature == EXPOSURE:  # of a single document
            one.hess[0] = inputs.theta[0]
        return
    # scores in descending order, and rewards between 0 and 1 beside them
    descending_order(one.s, r.order, r.sort)
    for d in range(n):
        # the least reward adds the same to every ranking: it adds only variance
        x.rho[d] = (reward[r.order[d]] - low) / (high - low)
        x.grad[d], x.hess[d] = 0.0, 0.0
    # the mean over the rankings
    key = stream(inputs.rng.seed, inputs.rng.iteration, np.uint64(one.q))
    lattice(key, inputs.rng.draws, min(n, len(inputs.theta)), r.strata)
    if x.s[0] - x.s[n - 1] < WIDEST_SQUARED:
        _add_narrow(key, n, inputs, x, r)
    else:
        _add_wide(key, n, inputs, x, r)
    # back to rows and to the unit of the rewards
    unit = inputs.scale[one.q] * (high - low)
    factor = 1.0 if inputs.curvature == EXPOSURE else -unit
    for d in range(n):
        one.grad[r.order[d]] = -unit * x.grad[d]
        one.hess[r.order[d]] = factor * x.hess[d]


expected_reward = each_list(scratch_for, _plrank)

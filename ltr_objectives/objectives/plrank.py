r"""PL-Rank: the expected DCG or NDCG of rankings drawn from a Plackett-Luce model of the scores.

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
the rankings with :math:`S_K \ge e`. Then each term is at most of order 1, and exactly what was added is subtracted."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ltr_objectives.checks import Check, check_choice, check_positive, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels._jit import inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.plackett_luce import (
    REACH,
    WIDEST,
    Placed,
    Strata,
    first_ranks,
    lattice,
    open_all,
    place_narrow,
    place_wide,
    placed_space,
    shares,
    table_of,
)
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.sorting import Sorter, descending_order, sorter
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import Facts
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.queries import Queries

EXPOSED = np.uint64(0xE5905ED)  # separates the draws of the exposure from those of the gradient
NOTHING, SECOND_DERIVATIVE, EXPOSURE = range(3)  # the second output besides the gradient


class Rewarded(NamedTuple):
    """The reward of a data set, and the rankings over which its mean is taken."""

    reward: np.ndarray  # by row
    scale: np.ndarray  # by query
    theta: np.ndarray  # by rank
    curvature: int
    rng: Rng


def _check_discount(name: str, discount: object) -> str | tuple[float, ...]:
    if isinstance(discount, str):
        return str(check_choice(name, discount, gains.DISCOUNTS))
    table = gains.numbers_of(name, discount, "a name or a table of numbers")  # which may rise
    good = np.isfinite(table).all() and min(table, default=0.0) >= 0 and any(table)
    require(good, f"{name}={table!r} must be finite, not negative and not all zero")
    return table


@dataclass(frozen=True)
class PLRank(NDCGObjective, text="plrank"):
    r"""Expected DCG@k or NDCG@k under a Plackett-Luce policy, with second derivatives.

    Rankings y place one document after another, each with probability
    :math:`\pi(d \mid y_{1:i-1}) = e^{s_d} / \sum_{d' \text{ open}} e^{s_{d'}}`. The loss of a query is

    .. math:: -\mathbb{E}_y \sum_{i \le k} \theta_i \rho_{y_i}

    with rank weights :math:`\theta` and gains :math:`\rho`; ``normalize`` divides by the ideal. The gradient is
    PL-Rank-3's (Oosterhuis, "Learning-to-Rank at the Speed of Sampling", SIGIR 2022). The diagonal Hessian is that of
    Kang, de Rijke and Oosterhuis, "Estimating the Hessian Matrix of Ranking Objectives for Stochastic Learning to Rank
    with Gradient Boosted Trees", SIGIR 2024, eqs. 5 to 10. Both are unbiased means over sampled rankings. The
    least gain of a query is subtracted from all its gains, which lowers the variance and leaves the means as they are.
    So does the random lattice from which the rankings of a query are drawn: each rank meets every stratum once.
    A subclass with a reward of its own overrides :meth:`rewards`, which may read the :meth:`exposure`.

    Parameters
    ----------
    k : int, optional
        Only the first k ranks count; None is all of them.
    samples : int
        Rankings per query and iteration, from 1 to 1,000,000. On real data ten gave more NDCG@10 than 200 with
        200 trees at a learning rate of 0.04, and less with 30 trees at 0.3.
    gain : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...
    discount : "log2", "log2-rank", "reciprocal" or table
        :math:`\theta_i`: :math:`1 / \log_2(1 + i)`, :math:`1 / \max(1, \log_2 i)`, :math:`1 / i`, or a weight of at
        least 0 for each rank, 0 beyond the table.
    normalize : bool
        Divide by the largest possible reward of the query: NDCG instead of DCG.
    hessian : "gradient", "absolute", "exact", "clipped" or "ones"
        "exact" is the second derivative of the loss. Many of its entries are negative, and neither XGBoost nor LightGBM
        learns from it. "absolute" is its absolute value, "clipped" its positive part. "gradient" is the
        absolute value of the gradient, so that no leaf exceeds the learning rate. "ones" is 1 and needs learning rates
        of 10 and more. "absolute" vanishes at points of inflection, such as two tied documents.
    seed : int
        Seed of the rankings.

    Examples
    --------
    >>> grad, hess = PLRank(1, samples=100_000).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad.round(2), hess.round(2)
    (array([-0.25,  0.25]), array([0.25, 0.25]))
    """

    k: int | None = 10
    _: KW_ONLY
    samples: int = 100
    discount: str | tuple[float, ...] = "log2"
    normalize: bool = True
    hessian: str = "gradient"
    seed: int = 0

    checks: ClassVar[dict[str, Check]] = {
        "discount": _check_discount,
        "hessian": one_of("gradient", "absolute", "exact", "clipped", "ones"),
    }

    @property
    def facts(self) -> Facts:
        return super().facts._replace(random=True)

    def theta(self, longest: int) -> np.ndarray:
        """Weights of the ranks, down to the last that is not zero."""
        ranks = np.arange(1, min(longest, self.k or longest) + 1)
        weights = gains.apply_discount(self.discount, ranks)
        return weights[: np.flatnonzero(weights)[-1] + 1] if weights.any() else weights[:0]

    def rewards(self, call: Call) -> tuple[np.ndarray, np.ndarray]:
        """Reward of each row and factor of each query; override it for your own reward.

        Rewards may be negative. If the reward is not linear in the exposure of the documents, such as fairness of
        exposure, return its derivative with respect to :meth:`exposure`. That linear reward has the same gradient.
        """
        return call.queries.once(("rewards", self), lambda: self._gains(call.queries))

    def worth(self, queries: Queries) -> np.ndarray:
        return self.rewards(Call.at(queries, np.zeros(queries.rows)))[0]

    def _gains(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        DCG(gain_type=self.gain).layers(queries)  # raises for labels without a gain
        gain = np.require(gains.apply_gain(self.gain, queries.labels), np.float64, ["C", "A", "W"])
        if not self.normalize:
            return gain, np.ones(len(queries))
        theta, weights = self.theta(queries.longest), np.zeros(queries.longest)
        weights[: len(theta)] = -np.sort(-theta)
        return gain, gains.reciprocal(gains.best_sums(queries, gain, weights), gains.SMALLEST)

    def exposure(self, call: Call) -> np.ndarray:
        r"""Expected rank weight of each row, mean of :math:`\sum_{i \le rank(d)} \theta_i \pi(d \mid y_{1:i-1})`.

        Its rankings are independent of those of the gradient, which a reward linear in it leaves unbiased.
        """
        queries, out = call.queries, np.zeros(call.queries.rows)
        distinct = np.arange(queries.rows, dtype=np.float64)
        self._run(call._replace(grad=np.empty(queries.rows), hess=out), distinct, np.ones(len(queries)), EXPOSURE)
        alone = np.flatnonzero(np.diff(queries.ptr) == 1)
        out[queries.ptr[alone]] = self.theta(1).sum()
        return out

    def fill(self, call: Call) -> None:
        self._run(call, *self.rewards(call), NOTHING if self.hessian in ("gradient", "ones") else SECOND_DERIVATIVE)

    def _run(self, call: Call, reward: np.ndarray, scale: np.ndarray, curvature: int) -> None:
        theta = self.theta(call.queries.longest)
        if len(theta):
            seed = int(call.key(self.seed, EXPOSED)) if curvature == EXPOSURE else self.seed
            call.run(_expected_reward, Rewarded(reward, scale, theta, curvature, call.rng(seed, self.samples)))


@dataclass(frozen=True)
class FairExposure(PLRank):
    r"""Exposure in proportion to merit under a Plackett-Luce policy.

    .. math:: \tfrac12 \sum_i \Big(\varepsilon_i - \frac{m_i}{\sum_j m_j} \sum_j \varepsilon_j\Big)^2

    :math:`\varepsilon_i` is the expected rank weight of document i under the policy of :class:`PLRank`, and
    :math:`m_i` its merit, the gain of its label plus ``floor``. It is amortised fairness of exposure as a reward
    (Oosterhuis, "Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and Fairness",
    SIGIR 2021, section 5): the reward of a document is minus the derivative of the loss by its exposure. The policy
    must stay random when the model is used, as in ``evaluate_exposure(policy="plackett-luce")``. Train it together with
    relevance by ``Mixture(["plrank", FairExposure()], weights=[1, 0.1])``.

    Parameters
    ----------
    k, discount, hessian, seed
        As in :class:`PLRank`.
    samples : int
        Rankings per query and iteration, which also estimate the exposure.
    gain : "exp", "linear" or table
        Merit of each label, before ``floor`` is added.
    floor : float
        Merit of a document of gain 0, above 0.

    Examples
    --------
    >>> grad, _ = FairExposure(1).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> bool(grad[0] < 0 < grad[1])  # equal exposure, unequal merit
    True
    """

    _: KW_ONLY
    samples: int = 200
    gain: gains.GainType = "linear"
    floor: float = 0.5

    name: ClassVar[str] = "fairexposure"
    checks: ClassVar[dict[str, Check]] = {"floor": check_positive}

    def _merit(self, queries: Queries) -> np.ndarray:
        """Shares of the merit of each query."""
        DCG(gain_type=self.gain).layers(queries)  # raises for labels without a gain
        merit = gains.apply_gain(self.gain, queries.labels) + float(self.floor)
        return merit / np.repeat(np.add.reduceat(merit, queries.ptr[:-1]), np.diff(queries.ptr))

    def worth(self, queries: Queries) -> np.ndarray:
        return self._merit(queries)

    def rewards(self, call: Call) -> tuple[np.ndarray, np.ndarray]:
        queries, exposure = call.queries, self.exposure(call)
        total = np.repeat(np.add.reduceat(exposure, queries.ptr[:-1]), np.diff(queries.ptr))
        return self._merit(queries) * total - exposure, np.ones(len(queries))


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


@kernel
def scratch_for(longest, how: Rewarded):
    """Return scratch for lists of up to ``longest`` documents."""
    rankings, ranks, sort = how.rng.draws, min(longest, len(how.theta)), sorter(longest)
    return Scratch(
        sort, np.empty(longest, np.int64), ByScore(sort.key, np.empty(longest), np.empty(longest), np.empty(longest)),
        placed_space(ranks, longest), Strata(np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)),
        np.empty((rankings, 6)), np.empty(6), np.empty(rankings), np.empty(rankings, np.int64), sorter(rankings),
    )  # fmt: skip


@inlined_kernel
def _next_sums(sums: Sums, shrink, PR, theta, S):
    """Return the sums one rank further down, where the open mass is ``S``."""
    inverse, square, both = 1.0 / S, (1.0 / S) * (1.0 / S), shrink * shrink
    return Sums(sums.RI * shrink + PR * inverse, sums.DR * shrink + theta * inverse, sums.RS * both + PR * square,
                sums.DS * both + theta * square, sums.DN * shrink + inverse)  # fmt: skip


@inlined_kernel
def add_ranking(how: Rewarded, x: ByScore, placed: Placed, weight, last):
    """Add the derivatives of the documents of one ranking; write the sums at its last rank."""
    ranks, PR, sums = len(placed.y), placed.later, Sums(0.0, 0.0, 0.0, 0.0, 0.0)
    PR[ranks] = 0.0
    for k in range(ranks - 1, -1, -1):
        PR[k] = PR[k + 1] + how.theta[k] * x.rho[placed.y[k]]
    for k in range(ranks):
        d, e, after = placed.y[k], placed.e[k], PR[k + 1]
        sums = _next_sums(sums, placed.shrink[k], PR[k], how.theta[k], placed.m[k])
        a = x.rho[d] * sums.DR - sums.RI
        x.grad[d] += weight * (after + e * a)
        if how.curvature == EXPOSURE:
            x.hess[d] += weight * e * sums.DR
        elif how.curvature == SECOND_DERIVATIVE:
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
def subtract_placed(how: Rewarded, x: ByScore, placed: Placed, weight, j, r: Scratch):
    """Subtract from the documents of ranking ``j`` what ``add_open`` adds to them; weigh the sums for it."""
    last = r.open_mass[j] = placed.m[len(placed.y) - 1]
    for k in range(len(placed.y)):  # no branch: it would be mispredicted
        d, e = placed.y[k], placed.e[k]
        slope, curve = open_derivatives(how.curvature, e, x.rho[d], r.sums[j])
        share = weight if e <= last else 0.0
        x.grad[d] -= share * slope
        x.hess[d] -= share * curve
    for c in range(6):
        r.sums[j, c] *= weight


@inlined_kernel
def add_open(how: Rewarded, x: ByScore, mass, r: Scratch):
    """Add to each document the sums of the rankings at whose last rank it may be open."""
    descending_order(r.open_mass, r.by_mass, r.mass_sort)
    r.total[:] = 0.0
    taken = 0
    for d in range(len(mass)):
        while taken < len(r.open_mass) and mass[d] <= r.mass_sort.key[taken]:
            for c in range(6):
                r.total[c] += r.sums[r.by_mass[taken], c]
            taken += 1
        slope, curve = open_derivatives(how.curvature, mass[d], x.rho[d], r.total)
        x.grad[d] += slope
        x.hess[d] += curve


@kernel
def _add_narrow(key, n, how: Rewarded, x: ByScore, r: Scratch):
    """Add all rankings of one list; documents beyond the last rank take the sums over the rankings at once."""
    rankings, weight, placed = how.rng.draws, 1.0 / how.rng.draws, first_ranks(r.placed, min(n, len(how.theta)))
    table = table_of(x.s[:n])
    placed.shrink[:] = 1.0
    for j in range(rankings):
        shares(key, j, rankings, r.strata, placed.u)
        place_narrow(table, key, j, placed)
        add_ranking(how, x, placed, weight, r.sums[j])
        subtract_placed(how, x, placed, weight, j, r)
    add_open(how, x, table.mass, r)


@inlined_kernel
def add_beyond(how: Rewarded, s, x: ByScore, placed: Placed, weight, unit, sums):
    """Add the documents beyond the last rank of one ranking; ``unit`` is the score whose mass is 1 there."""
    for i in placed.y:
        placed.open_[i] = False
    d = 0
    while d < len(s) and s[d] - unit > -REACH:
        if placed.open_[d]:
            slope, curve = open_derivatives(how.curvature, math.exp(s[d] - unit), x.rho[d], sums)
            x.grad[d] += weight * slope
            x.hess[d] += weight * curve
        d += 1
    open_all(placed)


@kernel
def _add_wide(key, n, how: Rewarded, x: ByScore, r: Scratch):
    """As ``_add_narrow`` for scores whose exponentials do not fit one unit: each ranking has its own."""
    rankings, weight, placed = how.rng.draws, 1.0 / how.rng.draws, first_ranks(r.placed, min(n, len(how.theta)))
    for j in range(rankings):
        shares(key, j, rankings, r.strata, placed.u)
        unit = place_wide(x.s[:n], placed)
        add_ranking(how, x, placed, weight, r.sums[j])
        add_beyond(how, x.s[:n], x, placed, weight, unit, r.sums[j])


@inlined_kernel
def _plrank(one: OneList, how: Rewarded, r: Scratch) -> None:
    """Write the gradient of minus ``scale`` times the expected reward, and its curvature or the exposure."""
    n, reward, x = len(one.s), how.reward[one.first : one.last], r.x
    low, high = reward.min(), reward.max()
    if n < 2 or how.scale[one.q] == 0.0 or low == high:
        return
    # scores in descending order, and rewards between 0 and 1 beside them
    descending_order(one.s, r.order, r.sort)
    for d in range(n):
        # the least reward adds the same to every ranking: it adds only variance
        x.rho[d] = (reward[r.order[d]] - low) / (high - low)
        x.grad[d], x.hess[d] = 0.0, 0.0
    # the mean over the rankings
    key = stream(how.rng.seed, how.rng.iteration, np.uint64(one.q))
    lattice(key, how.rng.draws, min(n, len(how.theta)), r.strata)
    if x.s[0] - x.s[n - 1] < WIDEST:
        _add_narrow(key, n, how, x, r)
    else:
        _add_wide(key, n, how, x, r)
    # back to rows and to the unit of the rewards
    unit = how.scale[one.q] * (high - low)
    factor = 1.0 if how.curvature == EXPOSURE else -unit
    for d in range(n):
        one.grad[r.order[d]] = -unit * x.grad[d]
        one.hess[r.order[d]] = factor * x.hess[d]


_expected_reward = each_list(scratch_for, _plrank)

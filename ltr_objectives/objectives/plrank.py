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
from ltr_objectives.kernels.plackett_luce import (
    REACH,
    WIDEST,
    Placed,
    Strata,
    first_ranks,
    lattice,
    place_narrow,
    place_wide,
    placed_space,
    shares,
    table_of,
)
from ltr_objectives.kernels.records import Out, Rng
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.sorting import Sorter, descending_order, longest_list, sorter
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
    given: np.ndarray
    weight: np.ndarray  # by ranking


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

    def rankings(self, ranks: int) -> tuple[np.ndarray, np.ndarray]:
        """Rankings of shape (rankings, ranks), and their probabilities. They are drawn if the first entry is -1.

        A ranking names documents by their rank in the stable order of descending scores.
        """
        return np.full((1, ranks), -1), np.full(self.samples, 1.0 / self.samples)

    def fill(self, call: Call) -> None:
        self._run(call, *self.rewards(call), NOTHING if self.hessian in ("gradient", "ones") else SECOND_DERIVATIVE)

    def _run(self, call: Call, reward: np.ndarray, scale: np.ndarray, curvature: int) -> None:
        theta = self.theta(call.queries.longest)
        if len(theta):
            given, weight = self.rankings(len(theta))
            policy = Rewarded(reward, scale, theta, curvature, given, weight)
            seed = int(call.key(self.seed, EXPOSED)) if curvature == EXPOSURE else self.seed
            call.run(_plrank, policy, call.rng(seed, self.samples))


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


RI, DR, RS, DS, DN_DR, DN_RI = range(6)  # the columns of sums at the last rank


@inlined_kernel
def _open(curvature, e, rho, sums):
    """Gradient and curvature of a document beyond the last rank."""
    slope = e * (rho * sums[DR] - sums[RI])
    if curvature == NOTHING:
        return slope, 0.0
    if curvature == EXPOSURE:
        return slope, e * sums[DR]
    return slope, slope + e * e * (sums[RS] - rho * sums[DS] - rho * sums[DN_DR] + sums[DN_RI])


@inlined_kernel
def _placed(how: Rewarded, placed: Placed, rho, weight, sums, out: Out):
    """Add the placed documents of one ranking; leave the sums at the last rank in ``sums``."""
    y, e, m, shrink, later = placed.y, placed.e, placed.m, placed.shrink, placed.later
    ranks, curvature, theta, grad, hess = len(y), how.curvature, how.theta, out.grad, out.hess
    later[ranks] = 0.0
    for k in range(ranks - 1, -1, -1):
        later[k] = later[k + 1] + theta[k] * rho[y[k]]
    ri, dr, rs, ds, dn = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(ranks):
        f, inverse = shrink[k], 1.0 / m[k]
        d, x, after = y[k], e[k], later[k + 1]
        ri, dr = ri * f + later[k] * inverse, dr * f + theta[k] * inverse
        a = rho[d] * dr - ri
        grad[d] += weight * (after + x * a)
        if curvature == NOTHING:
            continue
        g, square = f * f, inverse * inverse
        dn, rs, ds = dn * f + inverse, rs * g + later[k] * square, ds * g + theta[k] * square
        if curvature == EXPOSURE:
            hess[d] += weight * x * dr
        else:
            hess[d] += weight * (after + 2.0 * x * a - x * dn * after + x * x * (rs - rho[d] * ds - dn * a))
    sums[RI], sums[DR], sums[RS], sums[DS], sums[DN_DR], sums[DN_RI] = ri, dr, rs, ds, dn * dr, dn * ri


class Scratch(NamedTuple):
    """The sums and the open mass at the last rank of each ranking, and scratch to sort by that mass."""

    sums: np.ndarray  # of shape (rankings, 6)
    open_mass: np.ndarray
    order: np.ndarray
    sort: Sorter


@kernel
def _narrow(s, how: Rewarded, rho, key, strata: Strata, placed: Placed, scratch: Scratch, out: Out):
    """Add all rankings of one list; documents beyond the last rank take the sums over the rankings at once."""
    n, rankings, ranks = len(s), len(how.weight), len(placed.u)
    y, e, sums, weight, given = placed.y, placed.e, scratch.sums, how.weight, how.given
    table = table_of(s)
    mass = table.mass
    placed.shrink[:] = 1.0
    for j in range(rankings):
        shares(key, j, rankings, strata, placed.u)
        place_narrow(table, key, j, given[j % len(given)], placed)
        _placed(how, placed, rho, weight[j], sums[j], out)
        last = scratch.open_mass[j] = placed.m[ranks - 1]
        for k in range(ranks):  # no branch: it would be mispredicted
            slope, curve = _open(how.curvature, e[k], rho[y[k]], sums[j])
            share = weight[j] if e[k] <= last else 0.0
            out.grad[y[k]] -= share * slope
            out.hess[y[k]] -= share * curve
    descending_order(scratch.open_mass, scratch.order, scratch.sort)
    total, taken = np.zeros(6), 0
    for d in range(n):
        while taken < rankings and mass[d] <= scratch.sort.key[taken]:
            j = scratch.order[taken]
            for c in range(6):
                total[c] += weight[j] * sums[j, c]
            taken += 1
        slope, curve = _open(how.curvature, mass[d], rho[d], total)
        out.grad[d] += slope
        out.hess[d] += curve


@kernel
def _wide(s, how: Rewarded, rho, key, strata: Strata, placed: Placed, scratch: Scratch, out: Out):
    """As ``_narrow`` for scores whose exponentials do not fit one unit: each ranking has its own."""
    n, rankings, open_ = len(s), len(how.weight), placed.open_
    for j in range(rankings):
        shares(key, j, rankings, strata, placed.u)
        unit = place_wide(s, how.given[j % len(how.given)], placed)
        _placed(how, placed, rho, how.weight[j], scratch.sums[j], out)
        open_[placed.y] = False
        d = 0
        while d < n and s[d] - unit > -REACH:
            if open_[d]:
                slope, curve = _open(how.curvature, math.exp(s[d] - unit), rho[d], scratch.sums[j])
                out.grad[d] += how.weight[j] * slope
                out.hess[d] += how.weight[j] * curve
            d += 1
        open_[placed.y] = True


@kernel
def _plrank(first, last, ptr, scores, how: Rewarded, rng: Rng, out: Out):
    """Write the gradient of minus ``scale`` times the expected reward, and its curvature or the exposure."""
    longest = longest_list(ptr, first, last)
    sort, order = sorter(longest), np.empty(longest, np.int64)
    one, rho = Out(np.empty(longest), np.empty(longest), out.skip), np.empty(longest)
    rankings, most = len(how.weight), min(longest, len(how.theta))
    strata = Strata(np.zeros(most, np.int64), np.zeros(most, np.int64))
    whole = placed_space(most, longest)
    scratch = Scratch(np.empty((rankings, 6)), np.empty(rankings), np.empty(rankings, np.int64), sorter(rankings))
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        low, high = how.reward[a], how.reward[a]
        for i in range(a, b):
            low, high = min(low, how.reward[i]), max(high, how.reward[i])
        if n < 2 or how.scale[q] == 0.0 or low == high or out.skip[q]:
            continue
        # scores in descending order, and rewards between 0 and 1 beside them
        descending_order(scores[a:b], order, sort)
        s = sort.key[:n]
        for d in range(n):
            # the least reward adds the same to every ranking: it adds only variance
            rho[d] = (how.reward[a + order[d]] - low) / (high - low)
            one.grad[d], one.hess[d] = 0.0, 0.0
        ranks = min(n, len(how.theta))
        # the rankings
        stream_key = stream(rng.seed, rng.iteration, np.uint64(q))
        lattice(stream_key, rankings, ranks, strata)
        placed = first_ranks(whole, ranks)
        if s[0] - s[n - 1] < WIDEST:
            _narrow(s, how, rho, stream_key, strata, placed, scratch, one)
        else:
            _wide(s, how, rho, stream_key, strata, placed, scratch, one)
        # back to rows and to the unit of the rewards
        unit = how.scale[q] * (high - low)
        factor = 1.0 if how.curvature == EXPOSURE else -unit
        for d in range(n):
            out.grad[a + order[d]] = -unit * one.grad[d]
            out.hess[a + order[d]] = factor * one.hess[d]

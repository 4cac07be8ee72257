"""PL-Rank: the expected DCG or NDCG of rankings drawn from a Plackett-Luce model of the scores."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_choice, check_positive, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.expected_reward import EXPOSURE, NOTHING, SECOND_DERIVATIVE, Inputs, expected_reward
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import Facts
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.queries import Queries

EXPOSED = np.uint64(0xE5905ED)  # separates the draws of the exposure from those of the gradient


def _check_discount(name: str, discount: object) -> str | tuple[float, ...]:
    if isinstance(discount, str):
        return str(check_choice(name, discount, gains.DISCOUNTS))
    table = gains.numbers_of(name, discount, "a name or a table of numbers")  # which may rise
    good = np.isfinite(table).all() and min(table, default=0.0) >= 0 and any(table)
    require(good, f"{name}={table!r} must be finite, not negative and not all zero")
    return table


Hessian = Literal["gradient", "absolute", "exact", "clipped", "ones"]


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
    hessian: Hessian = "gradient"
    seed: int = 0

    checks: ClassVar[dict[str, Check]] = {
        "discount": _check_discount,
        "hessian": one_of(*get_args(Hessian)),
    }

    @property
    def facts(self) -> Facts:
        return super().facts._replace(random=True)

    def theta(self, longest: int) -> np.ndarray:
        """Return the weights of the ranks, down to the last that is not zero."""
        ranks = np.arange(1, min(longest, self.k or longest) + 1)
        weights = gains.apply_discount(self.discount, ranks)
        return weights[: np.flatnonzero(weights)[-1] + 1] if weights.any() else weights[:0]

    def rewards(self, call: Call) -> tuple[np.ndarray, np.ndarray]:
        """Return the reward of each row and the factor of each query; override it for your own reward.

        Rewards may be negative. If the reward is not linear in the exposure of the documents, such as fairness of
        exposure, return its derivative with respect to :meth:`exposure`. That linear reward has the same gradient.
        """
        return call.queries.cached(("rewards", self), lambda: self._gains(call.queries))

    def relevance(self, queries: Queries) -> np.ndarray:
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
        r"""Estimate the rank weight of each row: mean of :math:`\sum_{i \le rank(d)} \theta_i \pi(d \mid y_{1:i-1})`.

        Its rankings are independent of those of the gradient, which a reward linear in it leaves unbiased.
        """
        queries = call.queries
        unread, out = np.zeros((2, queries.rows))
        self._run(call._replace(grad=unread, hess=out), unread, np.ones(len(queries)), EXPOSURE)
        return out

    def fill(self, call: Call) -> None:
        self._run(call, *self.rewards(call), NOTHING if self.hessian in ("gradient", "ones") else SECOND_DERIVATIVE)

    def _run(self, call: Call, reward: np.ndarray, scale: np.ndarray, curvature: int) -> None:
        theta = self.theta(call.queries.longest)
        if len(theta):
            seed = int(call.key(self.seed, EXPOSED)) if curvature == EXPOSURE else self.seed
            rng = call.rng(seed, self.samples)
            inputs = Inputs(reward=reward, scale=scale, theta=theta, curvature=curvature, rng=rng)
            call.run(expected_reward, inputs)


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
        """Return the shares of the merit of each query."""
        DCG(gain_type=self.gain).layers(queries)  # raises for labels without a gain
        merit = gains.apply_gain(self.gain, queries.labels) + float(self.floor)
        return merit / np.repeat(np.add.reduceat(merit, queries.ptr[:-1]), np.diff(queries.ptr))

    def relevance(self, queries: Queries) -> np.ndarray:
        return self._merit(queries)

    def rewards(self, call: Call) -> tuple[np.ndarray, np.ndarray]:
        queries, exposure = call.queries, self.exposure(call)
        total = np.repeat(np.add.reduceat(exposure, queries.ptr[:-1]), np.diff(queries.ptr))
        return self._merit(queries) * total - exposure, np.ones(len(queries))

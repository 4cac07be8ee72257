r"""PL-Rank: the expected DCG or NDCG of rankings drawn from a Plackett-Luce model of the scores."""

import itertools
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, draws, require, seed, whole
from ltr_objectives.kernels.plackett_luce import VARIATES
from ltr_objectives.kernels.plrank import EXACT, EXPOSURE, LIKELIHOOD, plrank
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries

HESSIANS = ("gradient", "absolute", "likelihood", "exact", "clipped", "ones")
DISCOUNTS = ("log2", "reciprocal")


@dataclass(frozen=True)
class PLRank(Objective):
    r"""Expected DCG@k or NDCG@k under a Plackett-Luce policy, with second derivatives.

    Rankings y place one document after another, each with probability
    :math:`\pi(d \mid y_{1:i-1}) = e^{s_d} / \sum_{d' \text{ open}} e^{s_{d'}}`. The loss of a query is

    .. math:: -\mathbb{E}_y \sum_{i \le k} \theta_i \rho_{y_i}

    with rank weights :math:`\theta` and gains :math:`\rho`, over the ideal with ``normalize``. Gradient by PL-Rank-3
    (Oosterhuis, "Learning-to-Rank at the Speed of Sampling", SIGIR 2022), diagonal Hessian by Kang, de Rijke and
    Oosterhuis, "Estimating the Hessian Matrix of Ranking Objectives for Stochastic Learning to Rank with Gradient
    Boosted Trees", SIGIR 2024, eqs. 5 to 10: unbiased means over sampled rankings, in
    O(samples k log n + n log n) a query. The least gain of a query is taken off all its gains, which changes no
    expected value and lowers the variance.

    Parameters
    ----------
    k : int, optional
        Only the first k ranks count; None is all of them.
    samples : int
        Rankings per query and iteration, from 1 to 1,000,000.
    gain : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...
    discount : "log2", "reciprocal" or table
        :math:`\theta_i`: :math:`1 / \log_2(1 + i)`, :math:`1 / i`, or any weight of at least 0 for each rank, zero
        beyond the table.
    normalize : bool
        Divide by the largest possible reward of the query: NDCG instead of DCG.
    hessian : "gradient", "absolute", "likelihood", "exact", "clipped" or "ones"
        "exact" is the second derivative of the loss, about a third of whose entries are negative, from which neither
        XGBoost nor LightGBM learns; "absolute" is its absolute value, "clipped" its positive part. "gradient" is the
        absolute value of the gradient, so that no leaf exceeds the learning rate. "likelihood" is
        :math:`\mathbb{E}_y \sum_{i \le rank(d)} \pi_i (1 - \pi_i) \sum_{j \ge i} \theta_j \rho_{y_j}`, the second
        derivative of :math:`-\sum_i \log \pi(y_i \mid y_{1:i-1}) \sum_{j \ge i} \theta_j \rho_{y_j}`, whose first
        derivative has the same expected value as ours: never negative, the counterpart of Gauss-Newton, and about four
        times too cautious. "ones" is 1 and needs learning rates of 10 and more. "gradient" and "absolute" trained
        best, at learning rates around 0.3; the latter vanishes at points of inflection, such as two tied documents.
    variates : "independent", "antithetic" or "lattice"
        How the uniform numbers of different rankings of a query are related. Antithetic pairs and a random lattice, in
        which each rank meets every stratum once, keep the distribution of each ranking and so every mean. The variance
        of the gradient was .9 to 1.0 and .5 to .8 times that of independent numbers.
    seed : int
        Of the rankings.

    Examples
    --------
    >>> grad, hess = PLRank(1, samples=100_000).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad.round(2), hess.round(2)
    (array([-0.25,  0.25]), array([0.25, 0.25]))
    """

    k: int | None = 10
    _: KW_ONLY
    samples: int = 200
    gain: str | tuple[float, ...] = "exp"
    discount: str | tuple[float, ...] = "log2"
    normalize: bool = True
    hessian: str = "gradient"
    variates: str = "lattice"
    seed: int = 0

    name: ClassVar[str] = "plrank"

    def __post_init__(self) -> None:
        if self.k is not None:
            whole("k", self.k)
        draws("samples", self.samples)
        seed(self.seed)
        choice("normalize", self.normalize, (True, False))
        choice("hessian", self.hessian, HESSIANS)
        choice("variates", self.variates, tuple(VARIATES))
        for field in ("gain", "discount"):
            object.__setattr__(self, field, gains.as_table(field, getattr(self, field)))
        gains.check_gain(self.gain, "gain")
        if isinstance(self.discount, str):
            choice("discount", self.discount, DISCOUNTS)
        else:
            table = np.array(self.discount)
            require(np.isfinite(table).all() and (table >= 0).all() and table.any(),
                    "a discount table must be finite, not negative and not all zero")  # fmt: skip

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return (
            cls(),
            cls(3, hessian="exact", normalize=False),
            cls(None, samples=30, hessian="absolute", gain="linear", discount="reciprocal", variates="antithetic"),
            cls(1, samples=50, hessian="clipped", variates="lattice", seed=2**64 - 1),
            cls(4, samples=20, hessian="likelihood"),
            cls(5, samples=7, hessian="ones", gain=(0.0, 0.5, 2.0, 2.0, 9.0), discount=(1.0, 3.0, 0.0, 2.0)),
        )

    @property
    def label_limit(self) -> float | None:
        return gains.gain_limit(self.gain)

    @property
    def random(self) -> bool:
        return True

    @property
    def negative_hessian(self) -> bool:
        return self.hessian == "exact"

    def theta(self, longest: int) -> np.ndarray:
        """Weights of the ranks, down to the last that is not zero."""
        ranks = np.arange(1, min(longest, self.k or longest) + 1)
        weights = gains.apply_discount(self.discount, ranks)
        return weights[: np.flatnonzero(weights)[-1] + 1] if weights.any() else weights[:0]

    def rewards(self, queries: Queries, scores: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray]:
        """Reward of each row and factor of each query; override for a reward of your own.

        A reward that is not linear in the exposure of the documents, such as the fairness of exposure, has the gradient
        of its linear part: return its derivative with respect to :meth:`exposure`. Rewards may be negative.
        """
        return queries.once(("plrank", self.k, self.gain, self.discount, self.normalize), lambda: self._gains(queries))

    def worth(self, queries: Queries) -> np.ndarray:
        return self._gains(queries)[0]

    def _gains(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        DCG(gain_type=self.gain).check_labels(queries.labels)
        gain = np.require(gains.apply_gain(self.gain, queries.labels), np.float64, ["C", "A", "W"])
        if not self.normalize:
            return gain, np.ones(len(queries))
        theta, weights = self.theta(queries.longest), np.zeros(queries.longest)
        weights[: len(theta)] = -np.sort(-theta)
        best = gains.best_sums(queries, gain, weights)
        return gain, np.divide(1.0, best, out=np.zeros(len(queries)), where=best > gains.SMALLEST)

    def exposure(self, queries: Queries, scores: np.ndarray, **how: Any) -> np.ndarray:
        r"""Expected rank weight of each row, mean of :math:`\sum_{i \le rank(d)} \theta_i \pi(d \mid y_{1:i-1})`."""
        out = np.zeros(queries.rows)
        distinct = np.arange(queries.rows, dtype=np.float64)
        self._run(queries, scores, distinct, np.ones(len(queries)), EXPOSURE, np.empty(queries.rows), out, **how)
        alone = np.flatnonzero(np.diff(queries.ptr) == 1)
        out[queries.ptr[alone]] = self.theta(1).sum()
        return out

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
        given: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """As in every objective; ``given`` is for tests: rankings and their probabilities, instead of drawn ones.

        The rankings, of shape (rankings, ranks), hold places in the stable order of descending scores.
        """
        how: dict[str, Any] = {"iteration": iteration, "n_threads": n_threads, "given": given}
        reward, scale = self.rewards(queries, scores, **how)
        curvature = LIKELIHOOD if self.hessian == "likelihood" else EXACT
        self._run(queries, scores, reward, scale, curvature, grad, hess, **how)
        self._policy(grad, hess)

    def _run(
        self,
        queries: Queries,
        scores: np.ndarray,
        reward: np.ndarray,
        scale: np.ndarray,
        curvature: int,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int = 0,
        n_threads: int | None = None,
        given: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        theta = self.theta(queries.longest)
        if not len(theta):
            return
        if given is None:
            given = np.full((1, len(theta)), -1), np.full(int(self.samples), 1.0 / self.samples)
        run(
            plrank,
            queries.ptr,
            (queries.ptr, scores, reward, theta, scale, curvature, *given, VARIATES[self.variates],
             np.uint64(self.seed), np.uint64(iteration), grad, hess),
            n_threads,
            stoppable=True,
        )  # fmt: skip

    def _policy(self, grad: np.ndarray, hess: np.ndarray) -> None:
        if self.hessian == "absolute":
            np.abs(hess, out=hess)
        elif self.hessian in ("clipped", "likelihood"):  # rounding can leave the latter at -1e-17
            np.maximum(hess, 0.0, out=hess)
        elif self.hessian == "gradient":
            np.abs(grad, out=hess)
        elif self.hessian == "ones":
            hess[:] = 1.0

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(scores)
        theta = self.theta(n)
        gain = gains.apply_gain(self.gain, labels)
        ideal = float(np.dot(np.sort(gain)[::-1][: len(theta)], np.sort(theta)[::-1]))
        gain = (gain - gain.min()) / (ideal if self.normalize and ideal > 0 else 1.0)
        grad, hess = np.zeros(n), np.zeros(n)
        for y in itertools.permutations(range(n), min(n, len(theta))):
            # of the ranking's log probability: value, first and second derivatives
            value, slope, curve, pull = 0.0, np.zeros(n), np.zeros(n), np.zeros(n)
            rewards = theta[: len(y)] * gain[list(y)]
            for i, d in enumerate(y):
                rest = [j for j in range(n) if j not in y[:i]]
                chance = np.zeros(n)
                chance[rest] = np.exp(scores[rest] - scores[rest].max())
                chance /= chance.sum()
                value += float(np.log(chance[d])) if chance[d] > 0 else -np.inf
                slope -= chance
                slope[d] += 1.0
                curve -= chance * (1.0 - chance)
                pull += chance * (1.0 - chance) * rewards[i:].sum()
            probability = np.exp(value)
            grad -= probability * rewards.sum() * slope
            hess += probability * (pull if self.hessian == "likelihood" else -rewards.sum() * (slope**2 + curve))
        self._policy(grad, hess)
        return grad, hess

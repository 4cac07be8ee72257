r"""ApproxNDCG, ApproxMRR and ApproxMAP: metrics of ranks that are sums of logistic functions."""

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import positive
from ltr_objectives.kernels.approx import MAP, MRR, NDCG, approx
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import NDCG as NDCGMetric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.reference import complex_step, sigmoid
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class _Approx(Objective):
    alpha: float = 1.0
    step: float = 10.0

    kind: ClassVar[int]

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        positive("step", self.step)

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return cls(), cls(alpha=10.0), cls(step=1)

    @property
    def longest_step(self) -> float | None:
        return self.step / self.alpha

    @property
    def treats_ties_alike(self) -> bool:
        return True

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
    ) -> None:
        gain, scale = self._gains(queries)
        arguments = (queries.ptr, scores, gain, scale, self.kind, float(self.alpha), grad, hess)
        run(approx, queries.ptr, arguments, n_threads, stoppable=True)
        with np.errstate(over="ignore"):  # seen by whoever asked, as any infinity
            hess /= self.step

    def _gains(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        return queries.once(("relevance", self.kind), lambda: self._relevance(queries))

    def _relevance(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        relevance = gains.relevant(queries.labels, 0.0)
        count = np.add.reduceat(relevance, queries.ptr[:-1])
        scale = np.divide(1.0, count, out=np.zeros(len(count)), where=count > 0)
        return relevance, scale if self.kind == MAP else np.minimum(count, 1.0)

    def pairs_visited(self, queries: Queries) -> np.ndarray:
        relevant = np.add.reduceat(np.sign(self._gains(queries)[0]), queries.ptr[:-1])
        return relevant * np.diff(queries.ptr)

    def part_of_pairs(self, queries: Queries, ranks: int) -> tuple[Objective, Queries]:
        labels = np.zeros(queries.rows)
        labels[:ranks] = 1.0
        return self, Queries(labels, np.diff(queries.ptr))

    def _chances(self, scores: np.ndarray) -> Any:
        beats = sigmoid(self.alpha * (scores - scores[:, None]))
        return np.where(np.eye(len(scores), dtype=bool), 0.0, beats)

    @abc.abstractmethod
    def _pull(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """|derivative of the loss| by each chance that a column's document beats a row's."""

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gaps = self.alpha * (scores - scores[:, None])
        curve = self.alpha**2 / self.step * self._pull(scores, labels) * sigmoid(gaps) * sigmoid(-gaps)
        np.fill_diagonal(curve, 0.0)
        return complex_step(lambda s: self.reference_loss(s, labels), scores), curve.sum(axis=0) + curve.sum(axis=1)


@dataclass(frozen=True)
class ApproxNDCG(_Approx):
    r"""ApproxNDCG (Qin, Liu and Li, "A General Approximation Framework for Direct Optimization of IR Measures", 2010).

    .. math:: -\frac{1}{N} \sum_i \frac{G(y_i)}{\log_2(1 + \pi_i)}, \quad
        \pi_i = 1 + \sum_{j \ne i} \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`N` the ideal. The gradient is exact. The Hessian is
    :math:`\alpha^2 \sum_j (c_i + c_j) p_{ij} (1 - p_{ij})` over ``step``, with :math:`c` the derivative by the rank and
    :math:`p` the chances above. Queries whose labels are all equal teach nothing.

    Parameters
    ----------
    alpha : float
        Steepness: the metric itself is approached as it grows, and the gradient of all but close documents vanishes.
        One over rax's temperature.
    step : float
        Newton steps are at most this over :math:`\alpha`. At 1 the Hessian bounds the second derivative, which is far
        too careful: logistic functions vanish on both sides, and 10 trained much better in LightGBM.
    gain : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...

    Examples
    --------
    >>> grad, hess = ApproxNDCG().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.082558, -0.082558]), array([0.008256, 0.008256]))
    """

    gain: str | tuple[float, ...] = "exp"

    name: ClassVar[str] = "approxndcg"
    kind: ClassVar[int] = NDCG

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "gain", gains.parse_gain(self.gain, "gain"))

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return *super().examples(), cls(gain="linear"), cls(0.3, gain=(0.0, 0.5, 2.0, 2.0, 9.0))

    @property
    def hessian_kind(self) -> str:
        return "bound" if self.step <= 1 else "estimate"

    @property
    def label_limit(self) -> float | None:
        return gains.gain_limit(self.gain)

    def _gains(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        terms = NDCGMetric(gain_type=self.gain).terms(queries)
        return terms.gain, terms.scale

    def _reference_gains(self, labels: np.ndarray) -> np.ndarray:
        gain = np.asarray(gains.apply_gain(self.gain, labels), float)
        if len(set(gain)) < 2:
            return np.zeros(len(gain))
        return gain / float(np.sum(np.sort(gain)[::-1] / np.log2(np.arange(2, len(gain) + 2))))

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        rank = 1.0 + self._chances(scores).sum(axis=1)
        return -np.sum(self._reference_gains(labels) * np.log(2.0) / np.log(1.0 + rank))

    def _pull(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        rank = 1.0 + self._chances(scores).sum(axis=1, keepdims=True)
        return self._reference_gains(labels)[:, None] * np.log(2.0) / ((1.0 + rank) * np.log(1.0 + rank) ** 2)


@dataclass(frozen=True)
class ApproxMRR(_Approx):
    r"""The reciprocal of the soft rank of the first relevant document, among those that are not relevant.

    .. math:: -\frac{1}{|T|} \sum_{i \in T} \frac{1}{\pi_i}, \quad
        \pi_i = 1 + \sum_{j: y_j \le 0} \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`T` the relevant documents of the largest score. No relevant document stands above these, so that the
    reciprocal rank is approached as :math:`\alpha` grows, as it is by rax's loss, which counts the other relevant
    documents in :math:`\pi` and takes one of :math:`T` only; with one relevant document both are the same. With more,
    rax's pushes all but one of them down, and at equal scores the order of the rows chooses that one: here MRR and
    NDCG came out far better in LightGBM.

    The gradient is exact where scores differ, the Hessian as for ApproxNDCG. Relevant documents below the first get no
    gradient. Queries of which all or none are relevant teach nothing.

    Parameters
    ----------
    alpha : float
        Steepness; one over rax's temperature.
    step : float
        As in :class:`ApproxNDCG`.

    Examples
    --------
    >>> grad, hess = ApproxMRR().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.111111, -0.111111]), array([0.011111, 0.011111]))
    """

    name: ClassVar[str] = "approxmrr"
    kind: ClassVar[int] = MRR

    @property
    def hessian_kind(self) -> str:
        return "bound" if self.step <= 1 else "estimate"

    def _first(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Shares of 1 for the first relevant documents."""
        relevant = labels > 0
        if relevant.all() or not relevant.any():
            return np.zeros(len(labels))
        first = relevant & (scores.real == scores.real[relevant].max())
        return first / first.sum()

    def _rank(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return 1.0 + self._chances(scores) @ (labels <= 0)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return -np.sum(self._first(scores, labels) / self._rank(scores, labels))

    def _pull(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.outer(self._first(scores, labels) / self._rank(scores, labels) ** 2, labels <= 0)


@dataclass(frozen=True)
class ApproxMAP(_Approx):
    r"""Average precision by the soft ranks of :class:`ApproxNDCG`.

    .. math:: -\frac{1}{R} \sum_{i: y_i > 0} \frac{1}{\pi_i} \Big(1 + \sum_{j \ne i,\, y_j > 0} p_{ij}\Big), \quad
        p_{ij} = \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`R` relevant documents. The paper takes the second factor from differences of soft ranks; here it is the
    same logistic function of the scores as in the ranks. The gradient is exact. The Hessian, an estimate, is
    :math:`\alpha` times the absolute gradient of every pair over ``step``.
    Queries of which all or none are relevant teach nothing.

    Parameters
    ----------
    alpha : float
        Steepness.
    step : float
        Newton steps are at most this over :math:`\alpha`.

    Examples
    --------
    >>> grad, hess = ApproxMAP().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.111111, -0.111111]), array([0.011111, 0.011111]))
    """

    name: ClassVar[str] = "approxmap"
    kind: ClassVar[int] = MAP

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        relevant = labels > 0
        if relevant.all() or not relevant.any():
            return 0.0
        chance = self._chances(scores)
        return -np.sum(relevant / (1.0 + chance.sum(axis=1)) * (1.0 + chance @ relevant)) / relevant.sum()

    def _pull(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        relevant = (labels > 0).astype(float)
        if relevant.min() == relevant.max():
            return np.zeros((len(labels), len(labels)))
        chance = self._chances(scores)
        rank = 1.0 + chance.sum(axis=1, keepdims=True)
        precision = (1.0 + chance @ relevant)[:, None] / rank
        return np.abs(relevant[:, None] * (precision - relevant) / rank) / relevant.sum()

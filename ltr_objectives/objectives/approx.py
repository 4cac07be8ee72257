"""ApproxNDCG, ApproxMRR and ApproxMAP: metrics of soft ranks, which are sums of logistic functions."""

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltr_objectives.kernels.approx import Inputs, soft_ranks
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE
from ltr_objectives.metrics.average_precision import MAP
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.cascade import MRR
from ltr_objectives.metrics.gains import GainType
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import reference_gains, sigmoid
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class _Approx(Objective):
    alpha: float = 1.0
    step: float = 10.0

    @property
    @abc.abstractmethod
    def _metric(self) -> Metric:
        """The metric that the loss approaches as ``alpha`` grows."""

    @property
    def facts(self) -> Facts:
        metric = self._metric
        return Facts(
            hessian_kind="bound" if self.step <= 1 and metric.kind != AVERAGE else "estimate",
            label_limit=metric.label_limit,
        )

    def pairs_visited(self, queries: Queries) -> float:
        relevant = np.count_nonzero(queries.in_longest(self._metric.terms(queries).gain))
        return 0.0 if self._metric.kind == CASCADE else float(queries.longest) * relevant

    def fill(self, call: Call) -> None:
        terms = self._metric.terms(call.queries)
        call.run(soft_ranks, Inputs(terms=terms, alpha=float(self.alpha), step=float(self.step)))

    @abc.abstractmethod
    def _loss(self, chance: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> Any:
        """Return the loss if the document of a column beats that of a row with probability ``chance``."""

    def _chances(self, scores: np.ndarray) -> Any:
        beats = sigmoid(self.alpha * (scores - scores[:, None]))
        return np.where(np.eye(len(scores), dtype=bool), 0.0, beats)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if len(set(self._metric.gain(labels))) < 2:
            return 0.0
        return self._loss(self._chances(scores), scores.real, labels)


@dataclass(frozen=True)
class ApproxNDCG(_Approx, text="approxndcg"):
    r"""ApproxNDCG (Qin, Liu and Li, "A General Approximation Framework for Direct Optimization of IR Measures", 2010).

    .. math:: -\frac{1}{N} \sum_i \frac{G(y_i)}{\log_2(1 + \pi_i)}, \quad
        \pi_i = 1 + \sum_{j \ne i} \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`N` the ideal DCG. The gradient is exact. The Hessian is :math:`\alpha` times the absolute gradients of a
    document's pairs, over ``step``. Queries whose labels are all equal have zero gradient.

    Parameters
    ----------
    alpha : float
        Steepness: one over rax's temperature. As it grows, the loss approaches the metric, and only documents of close
        scores keep a gradient.
    step : float
        Newton steps are at most this over :math:`\alpha`. At 1 the Hessian bounds the second derivative. That is far
        too cautious: 10 trained much better in LightGBM.
    gain : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...

    Examples
    --------
    >>> grad, hess = ApproxNDCG().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.082558, -0.082558]), array([0.008256, 0.008256]))
    """

    gain: GainType = "exp"

    @property
    def _metric(self) -> Metric:
        return NDCG(gain_type=self.gain)

    def _loss(self, chance: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> Any:
        return -np.sum(reference_gains(self.gain, labels) * np.log(2.0) / np.log(2.0 + chance.sum(axis=1)))


@dataclass(frozen=True)
class ApproxMRR(_Approx, text="approxmrr"):
    r"""The reciprocal soft rank of the first relevant document, counted among the documents that are not relevant.

    .. math:: -\frac{1}{|T|} \sum_{i \in T} \frac{1}{\pi_i}, \quad
        \pi_i = 1 + \sum_{j: y_j \le 0} \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`T` the relevant documents of the largest score. As :math:`\alpha` grows, the loss approaches the
    reciprocal rank. So does rax's loss, but that counts the other relevant documents in :math:`\pi` and takes only one
    of :math:`T`. With one relevant document both losses are the same. With several, rax's loss pushes all but one of
    them down; at equal scores the order of the rows chooses that one. In LightGBM this loss gave far better MRR and
    NDCG than rax's.

    The gradient is exact if scores differ; the Hessian is that of ApproxNDCG. Relevant documents below the first have
    zero gradient, and so have queries in which all documents or none are relevant.

    Parameters
    ----------
    alpha, step : float
        As in :class:`ApproxNDCG`.

    Examples
    --------
    >>> grad, hess = ApproxMRR().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.111111, -0.111111]), array([0.011111, 0.011111]))
    """

    _metric = MRR()

    def _loss(self, chance: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> Any:
        relevant = labels > 0
        first = relevant & (scores == scores[relevant].max())
        return -np.sum(first / (1.0 + chance @ ~relevant)) / first.sum()


@dataclass(frozen=True)
class ApproxMAP(_Approx, text="approxmap"):
    r"""Average precision by the soft ranks of :class:`ApproxNDCG`.

    .. math:: -\frac{1}{R} \sum_{i: y_i > 0} \frac{1}{\pi_i} \Big(1 + \sum_{j \ne i,\, y_j > 0} p_{ij}\Big), \quad
        p_{ij} = \frac{1}{1 + e^{\alpha (s_i - s_j)}}

    with :math:`R` relevant documents. The paper on ApproxNDCG computes the second factor from differences of soft
    ranks; here it uses the :math:`p_{ij}` of the soft ranks. The gradient is exact, and the Hessian, an estimate, is
    that of ApproxNDCG. Queries in which all documents or none are relevant have zero gradient.

    Parameters
    ----------
    alpha, step : float
        As in :class:`ApproxNDCG`.

    Examples
    --------
    >>> grad, hess = ApproxMAP().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.111111, -0.111111]), array([0.011111, 0.011111]))
    """

    _metric = MAP()

    def _loss(self, chance: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> Any:
        relevant = labels > 0
        return -np.sum(relevant / (1.0 + chance.sum(axis=1)) * (1.0 + chance @ relevant)) / relevant.sum()

r"""ApproxNDCG, ApproxMRR and ApproxMAP: metrics of soft ranks, which are sums of logistic functions.

:math:`p_{ij}` is the chance that j beats i, and :math:`c_i` the derivative of the loss by the soft rank of i. Each
pair adds :math:`\alpha c_i p_{ij} (1 - p_{ij})` to the gradient of j and subtracts it from that of i. It adds
:math:`\alpha` times the absolute value of that to both Hessians, because
:math:`|d^2 p / ds^2| \le \alpha^2 p (1 - p)`. The curvature of :math:`-1 / \log` and :math:`-1 / x` is left out,
because it is negative.

Only the ranks of relevant documents count, so a list takes two passes over (relevant x all) pairs and :math:`O(n)`
memory. With :math:`E = e^{\alpha (s - s_{max})}` the chance is :math:`E_j / (E_i + E_j)`, so that one exponential a
document serves all its pairs. If scores span more than the exponential does, each pair takes its own exponential.
"""

import abc
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.sorting import all_equal
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR
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
        call.run(_soft_ranks, Smoothed(self._metric.terms(call.queries), float(self.alpha), float(self.step)))

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


@inlined
def _narrow_chances(E_i, E, p, rest):
    """Write the chance that each j beats i and the chance that it does not, from one exponential a document."""
    apart()
    for j in range(len(E)):
        inverse = 1.0 / (E_i + E[j])
        p[j] = E[j] * inverse
        rest[j] = E_i * inverse


@kernel
def _wide_chances(s_i, s, alpha, p, rest):
    """As ``_narrow_chances``, with an exponential for each pair."""
    for j in range(len(s)):
        gap = alpha * (s_i - s[j])
        e = math.exp(-abs(gap))
        small, large = e / (1.0 + e), 1.0 / (1.0 + e)
        p[j] = small if gap > 0.0 else large
        rest[j] = large if gap > 0.0 else small


@inlined
def _above(p, g):
    """Return the sum of ``p``, and that over the relevant documents."""
    total, relevant = 0.0, 0.0
    for j in range(len(p)):
        total += p[j]
        relevant += p[j] if g[j] > 0.0 else 0.0
    return total, relevant


@kernel
def _slope_by_chance(kind, scale, g_i, above, relevant):
    """Return the derivative of the loss by p_ij, and how much smaller it is if j is relevant."""
    if kind == CASCADE:
        slope = scale / ((1.0 + above - relevant) * (1.0 + above - relevant))
        return slope, slope
    rank = 1.0 + above
    if kind == LINEAR:
        log = math.log(1.0 + rank)
        return scale * g_i * math.log(2.0) / ((1.0 + rank) * log * log), 0.0
    return scale / (rank * rank) * (1.0 + relevant), scale / rank


@inlined
def _add_pairs(c, r, alpha, p, rest, g, lam, hes):
    """Add pairs of weight ``c``, less ``r`` if j is relevant; return the sums for document i."""
    apart()
    down, curve = 0.0, 0.0
    for j in range(len(p)):
        t = alpha * (c - (r if g[j] > 0.0 else 0.0)) * p[j] * rest[j]
        h = alpha * abs(t)
        lam[j] += t
        hes[j] += h
        down += t
        curve += h
    return down, curve


@kernel
def _first(s, g):
    """Return the largest score of a relevant document, and how many have it."""
    top, ties = -np.inf, 0
    for i in range(len(s)):
        if g[i] > 0.0 and s[i] >= top:
            ties = ties + 1 if s[i] == top else 1
            top = s[i]
    return top, ties


class Smoothed(NamedTuple):
    """The metric, and the parameters of its soft ranks."""

    terms: Terms
    alpha: float
    step: float


class Scratch(NamedTuple):
    """By document: its exponential, and the chances that it beats another one or does not."""

    E: np.ndarray
    p: np.ndarray
    rest: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(np.empty(longest), np.empty(longest), np.empty(longest))


@inlined_kernel
def _approx(one: OneList, how: Smoothed, r: Scratch) -> None:
    """Write the derivatives of the metric of soft ranks, and their bound in place of the second ones."""
    s, g, lam, hes, kind = one.s, how.terms.gain[one.first : one.last], one.grad, one.hess, how.terms.kind
    n, scale = len(s), how.terms.scale[one.q]
    if scale == 0.0 or all_equal(g):
        return
    wide = not relative_to_top(s, how.alpha, r.E)
    p, rest = r.p[:n], r.rest[:n]
    top, ties = _first(s, g) if kind == CASCADE else (0.0, 1)
    for i in range(n):
        if g[i] <= 0.0 or (kind == CASCADE and s[i] != top):
            continue
        # the chance p that each other document beats i
        if wide:
            _wide_chances(s[i], s, how.alpha, p, rest)
        else:
            _narrow_chances(r.E[i], r.E[:n], p, rest)
        p[i] = 0.0
        # the soft rank of i, and the slope of the loss by each chance
        above, relevant = _above(p, g)
        slope, extra = _slope_by_chance(kind, scale, g[i], above, relevant)
        # the pairs of i: what the others gain, i loses
        down, curve = _add_pairs(slope, extra, how.alpha, p, rest, g, lam, hes)
        if kind == CASCADE:  # the first of the relevant documents with the largest score stands for all of them
            for j in range(n):
                if g[j] > 0.0 and s[j] == top:
                    lam[j] -= down / ties
                    hes[j] += curve / ties
            break
        lam[i] -= down
        hes[i] += curve
    for i in range(n):
        hes[i] /= how.step


_soft_ranks = each_list(_scratch, _approx)

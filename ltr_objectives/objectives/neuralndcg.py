"""NeuralNDCG and NeuralSort: NDCG or another metric of a differentiable sorting of the documents.

The sorting and its derivatives are in :mod:`ltr_objectives.kernels.relaxed_sort`.
"""

import abc
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, check_integer, check_not_negative, check_positive
from ltr_objectives.kernels.relaxed_sort import Inputs, neuralsort
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.base import Facts, Noise, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.reference import reference_head
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class _Sorted(Objective):
    temperature: float = 10.0
    rounds: int = 30
    tolerance: float = 1e-6
    transposed: bool = False
    max_documents: int = 1000
    noise: Noise | None = None
    samples: int = 10
    noise_scale: float = 1.0
    seed: int = 0

    hessian: ClassVar[str] = "gradient"
    checks: ClassVar[dict[str, Check]] = {
        "temperature": check_positive,
        "rounds": partial(check_integer, least=0, most=1000),
        "tolerance": check_not_negative,
    }

    @property
    def facts(self) -> Facts:
        return super().facts._replace(random=self.noise is not None)

    def pairs_visited(self, queries: Queries) -> float:
        draws = self.samples if self.noise else 1
        return float(min(queries.longest, self.max_documents)) ** 2 * draws * max(self.rounds, 1)

    @property
    @abc.abstractmethod
    def sorted_metric(self) -> Metric:
        """The metric of the sorted gains."""

    def fill(self, call: Call) -> None:
        metric = self.sorted_metric
        from_end = bool(metric.discount(np.arange(1, 2))[0] != metric.discount(np.arange(1, 3))[0])
        rng = call.rng(self.seed, self.samples, NOISES[self.noise], self.noise_scale) if self.noise else None
        inputs = Inputs(
            terms=metric.terms(call.queries), labels=call.queries.labels, rng=rng, tau=float(self.temperature),
            rounds=self.rounds, tolerance=float(self.tolerance), transposed=bool(self.transposed),
            most=self.max_documents, from_end=from_end,
        )  # fmt: skip
        call.run(neuralsort, inputs)

    def reference_sort(self, scores: np.ndarray) -> np.ndarray:
        """Return the scaled relaxed permutation matrix, of shape (ranks, documents), by definition."""
        n = len(scores)
        away = np.sum((scores[:, None] - scores) * np.sign(scores.real[:, None] - scores.real), axis=1)
        x = ((n + 1 - 2 * np.arange(1, n + 1))[:, None] * scores - away) / self.temperature
        p = np.exp(x - np.take_along_axis(x, np.argmax(x.real, axis=1)[:, None], 1))
        p = p / p.sum(axis=1, keepdims=True)
        axes = (1, 0) if self.transposed else (0, 1)  # transposed, the first division changes nothing
        for _ in range(self.rounds):
            for axis in axes:
                p = p / p.sum(axis=axis, keepdims=True)
            if max(np.abs(p.real.sum(axis=axis) - 1.0).max() for axis in axes) < self.tolerance:
                break
        return p

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        terms = self.sorted_metric.terms(Queries(labels, [len(labels)]))
        if len(set(terms.gain)) < 2:
            return 0.0
        chosen = reference_head(scores.real, labels, self.max_documents)
        g = self.reference_sort(scores[chosen]) @ terms.gain[chosen]
        before: Any = 1.0
        if terms.kind == AVERAGE:
            before = np.cumsum(g)
        elif terms.kind == CASCADE:
            before = np.cumprod(np.append(1.0, 1.0 - g[:-1]))
        return -terms.scale[0] * np.sum(terms.discount[: len(g)] * g * before)


@dataclass(frozen=True)
class NeuralNDCG(_Sorted, NDCGObjective, text="neuralndcg"):
    r"""NeuralNDCG (Pobrotyn and Białobrzeski, "NeuralNDCG: Direct Optimisation of a Ranking Metric via Differentiable
    Relaxation of Sorting", 2021), eqs. 3, 5 and 6.

    .. math:: -\frac{1}{N} \sum_{d \le k} \frac{(\operatorname{scale}(\hat P)\, G)_d}{\log_2(1 + d)}, \quad
        \hat P_{d \cdot} = \operatorname{softmax} \frac{(n + 1 - 2d)\, s - \sum_j |s - s_j|}{\tau}

    with gains G, ideal DCG N, and Sinkhorn's scaling, which divides columns and rows by their sums in turn. The
    gradient is exact, through every round. The Hessian is an estimate: the absolute value of the gradient, so that no
    leaf exceeds the learning rate. A score gap of about :math:`\tau / n` separates two documents, so gradients grow
    with the length n of the list: for tied scores the absolute gradients of a query add up to the order of
    :math:`n / (\tau \log n)`. A query takes at most O(n^2) a round, far less if scores differ.

    Parameters
    ----------
    k : int, optional
        Cutoff; None is the whole list.
    temperature : float
        :math:`\tau`; the loss approaches NDCG as it goes to 0. The paper has 1, for scores between -1 and 1. Here 10
        trained far better than 1 and 100 in XGBoost and LightGBM: each tree changes scores by up to the learning rate.
    rounds : int
        Largest number of rounds of Sinkhorn's scaling, each of columns and rows; 0 leaves :math:`\hat P` as it is. The
        paper has 30, allRank 50. At most 1,000: every round is kept, and scaling converges or stalls long before.
    tolerance : float
        Scaling stops when all sums are this close to 1.
    transposed : bool
        Scale :math:`\hat P^T` and sum over documents, not ranks: the paper's NeuralNDCG Transposed. The weights of one
        document, a column of :math:`\hat P`, then add up to 1 after any number of rounds; the rows do not. Once scaling
        has converged both losses are the same, with any cutoff.
    max_documents : int
        Longer lists are cut to this many documents: half of them the first ranks, half the most relevant of the others.
        The rest has zero gradient.
    noise : "gumbel", "logistic", "gaussian" or None
        With noise the loss is the mean over several draws of noisy scores. "gumbel" is stochastic NeuralSort (Grover et
        al., "Stochastic Optimization of Sorting Networks via Continuous Relaxations", ICLR 2019), which draws rankings
        of a Plackett-Luce model of the scores.
    samples : int
        Draws per iteration, from 1 to 1,000,000, if there is noise. Each takes as long as the loss without noise.
    noise_scale : float
        The noise is multiplied by this.
    seed : int
        Seed of the noise.
    gain : "exp", "linear" or table
        As in :class:`NDCG`.

    Examples
    --------
    >>> grad, hess = NeuralNDCG().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.009227, -0.009227]), array([0.009227, 0.009227]))
    """

    @property
    def sorted_metric(self) -> Metric:
        return NDCG(self.k, gain_type=self.gain)


@dataclass(frozen=True)
class _Named(Objective):
    metric: str | Metric = "map"


@dataclass(frozen=True)
class NeuralSort(_Sorted, _Named, text="neuralsort"):
    r"""The loss of :class:`NeuralNDCG` for another metric; Pobrotyn and Białobrzeski propose it for MAP (section 6).

    .. math:: -\frac{1}{N} \sum_{d \le k} w_d\, \hat g_d\, b_d, \quad \hat g = \operatorname{scale}(\hat P)\, g

    with the gains g, discounts w and normalisation N of the metric. In NDCG, precision and other sums of gain times
    discount :math:`b_d = 1`. In MAP :math:`b_d = \sum_{c \le d} \hat g_c`, and :math:`w_d = 1 / d`. In MRR, ERR and
    other cascades :math:`b_d = \prod_{c < d} (1 - \hat g_c)`. As the temperature goes to 0, the loss approaches the
    metric. The gradient is exact, the Hessian its absolute value. A sum of several such metrics, such as "gap",
    is refused.

    Parameters
    ----------
    metric : str or Metric
        The metric to optimise.
    temperature, rounds, tolerance, transposed, max_documents, noise, samples, noise_scale, seed
        As in :class:`NeuralNDCG`.

    Examples
    --------
    >>> grad, hess = NeuralSort("mrr", temperature=1.0).gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.125, -0.125]), array([0.125, 0.125]))
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sorted_metric.terms(Queries(np.arange(3.0) / 2.0 * min(2.0, self.label_limit or 2.0), [3]))  # or raise

    @property
    def facts(self) -> Facts:
        return super().facts._replace(label_limit=self.sorted_metric.label_limit)

    @property
    def sorted_metric(self) -> Metric:
        return get_metric(self.metric)

    def relevance(self, queries: Queries) -> np.ndarray:
        return self.sorted_metric.terms(queries).gain

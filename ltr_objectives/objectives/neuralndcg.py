r"""NeuralNDCG: NDCG of a differentiable sorting of the documents."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, not_negative, positive, whole
from ltr_objectives.kernels.neuralsort import neuralndcg
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.reference import complex_step, reference_head
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class NeuralNDCG(NDCGObjective):
    r"""NeuralNDCG (Pobrotyn and Białobrzeski, "NeuralNDCG: Direct Optimisation of a Ranking Metric via Differentiable
    Relaxation of Sorting", 2021), eqs. 3, 5 and 6.

    .. math:: -\frac{1}{N} \sum_{d \le k} \frac{(\operatorname{scale}(\hat P)\, G)_d}{\log_2(1 + d)}, \quad
        \hat P_{d \cdot} = \operatorname{softmax} \frac{(n + 1 - 2d)\, s - \sum_j |s - s_j|}{\tau}

    with gains G, ideal N, and Sinkhorn's scaling, which divides columns and rows by their sums in turn. The gradient is
    exact, through every round. The Hessian is its absolute value, an estimate, so that no leaf moves by more than the
    learning rate. Scores need a spread of about :math:`\tau / n` only, so that gradients grow with the length n of the
    list: the sum of a query's absolute values is of the order of :math:`n / (\tau \log n)` for tied scores.
    O(n^2) a query and round at most, far less where scores differ: each rank mixes only documents close to it.

    Parameters
    ----------
    k : int, optional
        Cutoff; None is the whole list.
    temperature : float
        :math:`\tau`: NDCG itself is approached as it goes to 0. The paper has 1, for scores between -1 and 1; trees
        move scores by up to the learning rate each, and 10 trained far better than 1 and 100 in XGBoost and LightGBM.
    rounds : int
        Most rounds of Sinkhorn's scaling, each of columns and rows; 0 leaves :math:`\hat P` as it is. The paper has 30,
        allRank 50; at most 1,000, since scaling converges or stalls long before and every round is kept.
    tolerance : float
        Scaling stops where all sums are this close to 1.
    transposed : bool
        Scale :math:`\hat P^T` and sum over documents, not ranks: the paper's NeuralNDCG Transposed. Then it is the
        columns of :math:`\hat P`, the weights of one document, that add up to exactly 1 however few the rounds, and not
        the rows; where scaling has converged both losses are the same, with every cutoff.
    max_documents : int
        Longer lists are cut to this many documents: half of them the first of the present ranking, half the most
        relevant of the others. The rest gets no gradient.
    gain : "exp", "linear" or table
        As in :class:`NDCG`.

    Examples
    --------
    >>> grad, hess = NeuralNDCG().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.009227, -0.009227]), array([0.009227, 0.009227]))
    """

    temperature: float = 10.0
    rounds: int = 30
    tolerance: float = 1e-6
    transposed: bool = False
    max_documents: int = 1000

    name: ClassVar[str] = "neuralndcg"

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("temperature", self.temperature)
        whole("rounds", self.rounds, 0, 1000)
        not_negative("tolerance", self.tolerance)
        choice("transposed", self.transposed, (True, False))
        whole("max_documents", self.max_documents, 2)

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return (
            cls(),
            cls(3, temperature=0.1, gain="linear"),
            cls(5, transposed=True, rounds=2, temperature=3.0),
            cls(temperature=1.0, rounds=0, gain=(0.0, 0.5, 2.0, 2.0, 9.0)),
            cls(2, rounds=4, tolerance=0.0, transposed=True, max_documents=6),
        )

    @property
    def longest_step(self) -> float | None:
        return 1.0

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
        terms = self.terms(queries)
        run(
            neuralndcg,
            queries.ptr,
            (queries.ptr, scores, queries.labels, terms.gain, terms.discount, terms.scale, float(self.temperature),
             int(self.rounds), float(self.tolerance), bool(self.transposed), int(self.max_documents), grad),
            n_threads,
            stoppable=True,
        )  # fmt: skip
        np.abs(grad, out=hess)

    def reference_sort(self, scores: np.ndarray) -> np.ndarray:
        """The scaled relaxed permutation matrix, of shape (ranks, documents), by definition."""
        n = len(scores)
        away = np.sum((scores[:, None] - scores) * np.sign(scores.real[:, None] - scores.real), axis=1)
        x = ((n + 1 - 2 * np.arange(1, n + 1))[:, None] * scores - away) / self.temperature
        p = np.exp(x - np.take_along_axis(x, np.argmax(x.real, axis=1)[:, None], 1))
        p = p / p.sum(axis=1, keepdims=True)
        axes = (1, 0) if self.transposed else (0, 1)  # the other axis first, in vain if transposed
        for _ in range(self.rounds):
            for axis in axes:
                p = p / p.sum(axis=axis, keepdims=True)
            if max(np.abs(p.real.sum(axis=axis) - 1.0).max() for axis in axes) < self.tolerance:
                break
        return p

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        chosen = reference_head(scores.real, labels, self.max_documents)
        gain = self.reference_gains(labels)[chosen]
        ranks = np.arange(1, len(chosen) + 1)
        weights = np.where(ranks <= (self.k or len(ranks)), 1.0 / np.log2(1.0 + ranks), 0.0)
        return -weights @ self.reference_sort(scores[chosen]) @ gain

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad = complex_step(lambda s: self.reference_loss(s, labels), scores)
        return grad, np.abs(grad)

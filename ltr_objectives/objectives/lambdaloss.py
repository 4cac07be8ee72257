r"""LambdaLoss: the bounds of NDCG that lie behind LambdaRank."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, not_negative, positive
from ltr_objectives.kernels.lambdaloss import lambdaloss
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.reference import complex_step, sigmoid, softplus
from ltr_objectives.queries import Queries

WEIGHTS = ("ndcg1", "ndcg2", "ndcg2++")
MANY = 2**62


@dataclass(frozen=True)
class LambdaLoss(NDCGObjective):
    r"""LambdaLoss (Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018).

    .. math:: \sum_{i, j} w_{ij} \log_2 \left(1 + e^{-\sigma (s_i - s_j)}\right)

    over pairs at the ranks d and e of the present ranking, with gains :math:`G` over the ideal, :math:`D(d) =
    \log_2(1 + d)`, and weights

    * NDCG-Loss1: :math:`w_{ij} = G_i / D(d)`, for all pairs in both directions;
    * NDCG-Loss2: :math:`w_{ij} = |G_i - G_j| \left(1 / D(|d - e|) - 1 / D(|d - e| + 1)\right)` where :math:`y_i > y_j`;
    * NDCG-Loss2++: the same times ``mu``, plus LambdaRank's :math:`|G_i - G_j| \left|1 / D(d) - 1 / D(e)\right|`.

    Ranks count as constants; the Hessian is then exact. The Hessians of a query grow with its length n: without a
    cutoff they add up to at most :math:`0.73\, n \sigma^2` for NDCG-Loss1, :math:`1.45 \log_2(1 + n)\, \sigma^2` for
    NDCG-Loss2 and ``mu`` times that plus :math:`1.45\, n \sigma^2` for NDCG-Loss2++. For 100 documents, 71, 3 and 63
    (``mu`` 10) times :math:`\sigma^2` were reached, the first and last by one relevant document first among ties.
    Newton steps are at most :math:`2 / \sigma` for tied scores, longer for pairs far apart in the wrong order.

    Parameters
    ----------
    k : int, optional
        Cutoff of the pairs and of the ideal; None is the whole list.
    weights : "ndcg2++", "ndcg2" or "ndcg1"
        Which of the three.
    mu : float
        Above, for NDCG-Loss2++; the paper's and allRank's is 10.
    sigma : float
        Steepness of the logistic function, above 0.
    pairs : "either" or "both"
        With a cutoff, at least one of a pair's documents or both must stand above it; allRank has both, which leaves
        all that stand below without gradient.
    gain : "exp", "linear" or table
        As in :class:`NDCG`.

    Examples
    --------
    >>> grad, hess = LambdaLoss(weights="ndcg2").gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([-0.266228,  0.266228]), array([0.133114, 0.133114]))
    """

    weights: str = "ndcg2++"
    mu: float = 10.0
    sigma: float = 1.0
    pairs: str = "either"

    name: ClassVar[str] = "lambdaloss"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("weights", self.weights, WEIGHTS)
        not_negative("mu", self.mu)
        positive("sigma", self.sigma)
        choice("pairs", self.pairs, ("either", "both"))

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return (
            cls(),
            cls(weights="ndcg1"),
            cls(weights="ndcg2", sigma=0.5),
            cls(3, weights="ndcg2", sigma=2.0),
            cls(5, mu=0.5, pairs="both", gain="linear"),
            cls(2, weights="ndcg1", gain=(0.0, 0.5, 2.0, 2.0, 9.0)),
        )

    @property
    def hessian_kind(self) -> str:
        return "exact"

    def hessian_limit(self, n: int) -> float | None:
        # (sigma^2 / 4) / ln 2 to both documents of a pair; gains over the ideal add up to at most log2(1 + n), and to
        # at most n over the sum of discounts
        if self.k is not None:
            return None
        unit = self.sigma**2 / (2.0 * np.log(2.0))
        far = 2.0 * np.log2(1.0 + n)
        return float(unit * {"ndcg1": n, "ndcg2": far, "ndcg2++": self.mu * far + 2.0 * n}[self.weights])

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
        discount = 1.0 / np.log2(np.arange(2, queries.longest + 3))
        near, far = {"ndcg2": (0.0, 1.0), "ndcg2++": (1.0, float(self.mu))}.get(self.weights, (0.0, 0.0))
        run(
            lambdaloss,
            queries.ptr,
            (queries.ptr, scores, terms.gain, discount, discount[:-1] - discount[1:], terms.scale, float(self.sigma),
             self.weights == "ndcg1", near, far, int(self.k or MANY), self.pairs == "both", grad, hess),
            n_threads,
            stoppable=True,
        )  # fmt: skip

    fewer_pairs = "choose a cutoff, such as k=30"

    def pairs_visited(self, queries: Queries) -> np.ndarray:
        n = np.diff(queries.ptr).astype(np.float64)
        return np.minimum(n, self.k or MANY) * n

    def part_of_pairs(self, queries: Queries, ranks: int) -> tuple[Objective, Queries]:
        return replace(self, k=ranks, pairs="either"), queries

    def _weights(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Weight of each ordered pair of documents."""
        n = len(scores)
        rank = np.empty(n)
        rank[np.argsort(-scores.real, kind="stable")] = np.arange(1, n + 1)
        gain = self.reference_gains(labels)
        d, e = np.meshgrid(rank, rank, indexing="ij")
        gap = np.where(d == e, 1.0, np.abs(d - e))
        lower = 1.0 / np.log2(1.0 + gap) - 1.0 / np.log2(2.0 + gap)
        near = np.abs(1.0 / np.log2(1.0 + d) - 1.0 / np.log2(1.0 + e))
        w = {"ndcg1": gain[:, None] / np.log2(1.0 + d), "ndcg2": lower, "ndcg2++": self.mu * lower + near}[self.weights]
        if self.weights != "ndcg1":
            w = w * np.maximum(gain[:, None] - gain, 0.0)
        inside = np.maximum(d, e) if self.pairs == "both" else np.minimum(d, e)
        return np.where((inside <= (self.k or n)) & (d != e), w, 0.0)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        gaps = scores[:, None] - scores
        return np.sum(self._weights(scores, labels) * softplus(-self.sigma * gaps)) / np.log(2.0)

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gaps = self.sigma * (scores[:, None] - scores)
        w = self._weights(scores, labels)
        curve = self.sigma**2 * (w + w.T) * sigmoid(gaps) * sigmoid(-gaps) / np.log(2.0)
        return complex_step(lambda s: self.reference_loss(s, labels), scores), curve.sum(axis=1)

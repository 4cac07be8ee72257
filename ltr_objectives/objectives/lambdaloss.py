"""LambdaLoss: the bounds of NDCG that lie behind LambdaRank."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.kernels.by_rank import pairs_by_rank
from ltr_objectives.kernels.exponential import LOG2_E
from ltr_objectives.kernels.pairs import LOGISTIC
from ltr_objectives.kernels.records import MANY, Pairs
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.objectives.base import Facts
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.pairwise import NO_ORDER, NO_PROPENSITY
from ltr_objectives.objectives.reference import reference_gains, softplus


@dataclass(frozen=True)
class LambdaLoss(NDCGObjective, text="lambdaloss"):
    r"""LambdaLoss (Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018).

    .. math:: \sum_{i, j} w_{ij} \log_2 \left(1 + e^{-\sigma (s_i - s_j)}\right)

    over pairs at the ranks d and e of the current ranking, with gains :math:`G` over the ideal DCG,
    :math:`D(d) = \log_2(1 + d)`, and weights

    * NDCG-Loss2: :math:`w_{ij} = |G_i - G_j| \left(1 / D(|d - e|) - 1 / D(|d - e| + 1)\right)` if :math:`y_i > y_j`;
    * NDCG-Loss2++: the same times ``mu``, plus LambdaRank's :math:`|G_i - G_j| \left|1 / D(d) - 1 / D(e)\right|`.

    Ranks count as constants; without noise and partners the Hessian is then exact. The Hessians of a query grow with
    its length n. Without a cutoff they add up to at most :math:`1.45 \log_2(1 + n)\, \sigma^2` for NDCG-Loss2. For
    NDCG-Loss2++ the limit is ``mu`` times this plus :math:`1.45\, n \sigma^2`. With 100 documents and ``mu=10`` the
    largest sums found are 3 and 63 times :math:`\sigma^2`. Without noise, Newton steps are at most
    :math:`2 / \sigma` for tied scores, longer for pairs far apart in the wrong order.

    Parameters
    ----------
    k : int, optional
        Cutoff of the ideal DCG. A pair counts if one of its documents is within the cutoff. None is the whole list.
    weights : "ndcg2++" or "ndcg2"
        The loss: NDCG-Loss2++ or NDCG-Loss2.
    mu : float
        The factor above, for NDCG-Loss2++; 10 in the paper and in allRank.
    sigma : float
        Steepness of the logistic function, above 0.
    gain
        As in :class:`NDCG`.
    partners
        As in :class:`LambdaMART`.
    seed : int
        Seed of the noise and of ``partners``.
    noise : "gumbel", "logistic", "gaussian" or None
        With noise the loss is its mean over ``samples`` draws of noise added to the scores. With "gumbel" that
        estimates the expected loss of Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions",
        WSDM 2020.
    samples, noise_scale
        As in :class:`NeuralNDCG`.

    Examples
    --------
    >>> grad, hess = LambdaLoss(weights="ndcg2").gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([-0.266228,  0.266228]), array([0.133114, 0.133114]))
    """

    weights: str = "ndcg2++"
    mu: float = 10.0
    sigma: float = 1.0
    partners: int | None = None
    seed: int = 0
    noise: str | None = None
    samples: int = 10
    noise_scale: float = 1.0

    checks: ClassVar[dict[str, Check]] = {"weights": one_of("ndcg2", "ndcg2++")}

    @property
    def facts(self) -> Facts:
        random = self.noise is not None or self.partners is not None
        kind = "estimate" if random else "exact"
        return super().facts._replace(random=random, hessian_kind=kind, quadratic=True)

    def fill(self, call: Call) -> None:
        discount = 1.0 / np.log2(np.arange(2, call.queries.longest + 2))
        by_rank, by_distance = (0.0, 1.0) if self.weights == "ndcg2" else (1.0, float(self.mu))
        delta = np.append(0.0, by_distance * (discount[:-1] - discount[1:]))
        terms = self.terms(call.queries)
        terms = terms._replace(discount=by_rank * discount, scale=terms.scale * LOG2_E)
        pairs = Pairs(LOGISTIC, float(self.sigma), self.k or MANY, MANY, MANY, self.partners or MANY, True,
                      False, False, NO_PROPENSITY, NO_ORDER, delta)  # fmt: skip
        draws = 1 if self.noise is None else self.samples
        rng = call.rng(self.seed, draws, NOISES[self.noise], self.noise_scale) if self.facts.random else None
        call.run(pairs_by_rank, (terms,), pairs, rng)

    def _weights(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the weight of each ordered pair of documents."""
        n = len(scores)
        rank = np.empty(n)
        rank[np.argsort(-scores.real, kind="stable")] = np.arange(1, n + 1)
        gain = reference_gains(self.gain, labels, self.k)
        d, e = np.meshgrid(rank, rank, indexing="ij")
        distance = np.where(d == e, 1.0, np.abs(d - e))
        delta = 1.0 / np.log2(1.0 + distance) - 1.0 / np.log2(2.0 + distance)
        change = np.abs(1.0 / np.log2(1.0 + d) - 1.0 / np.log2(1.0 + e))
        w = (delta if self.weights == "ndcg2" else self.mu * delta + change) * np.maximum(gain[:, None] - gain, 0.0)
        return np.where((np.minimum(d, e) <= (self.k or n)) & (d != e), w, 0.0)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if self.facts.random:
            return None
        gaps = scores[:, None] - scores
        return np.sum(self._weights(scores, labels) * softplus(-self.sigma * gaps)) / np.log(2.0)

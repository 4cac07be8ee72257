"""LambdaLoss: the bounds of NDCG that lie behind LambdaRank."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.kernels.exponential import LOG2_E
from ltr_objectives.kernels.pairs import Inputs
from ltr_objectives.kernels.records import MANY, Terms
from ltr_objectives.metrics import gains
from ltr_objectives.objectives.base import Facts, Noise
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.pairwise import PairSettings, PairwiseObjective
from ltr_objectives.objectives.reference import reference_gains
from ltr_objectives.queries import Queries

Weights = Literal["ndcg2", "ndcg2++"]


@dataclass(frozen=True)
class LambdaLoss(NDCGObjective, PairwiseObjective, text="lambdaloss"):
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

    weights: Weights = "ndcg2++"
    mu: float = 10.0
    sigma: float = 1.0
    partners: int | None = None
    seed: int = 0
    noise: Noise | None = None
    samples: int = 10
    noise_scale: float = 1.0

    checks: ClassVar[dict[str, Check]] = {"weights": one_of(*get_args(Weights))}

    @property
    def facts(self) -> Facts:
        return super().facts._replace(takes_clicks=False)

    def pair_settings(self) -> PairSettings:
        draws = 1 if self.noise is None else self.samples
        return super().pair_settings()._replace(truncation=self.k, draws=draws, difference="noisy")

    @property
    def _factors(self) -> tuple[float, float]:
        """The factors of LambdaRank's weight and of the weight by the distance of two ranks."""
        return (0.0, 1.0) if self.weights == "ndcg2" else (1.0, float(self.mu))

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        terms = self.terms(queries)
        discount = self._factors[0] * _discount(queries.longest)
        return (terms._replace(discount=discount, scale=terms.scale * LOG2_E),)

    def _inputs(self, queries: Queries) -> Inputs:
        delta = np.append(0.0, self._factors[1] * -np.diff(_discount(queries.longest)))
        return super()._inputs(queries)._replace(truncation=self.k or MANY, ordered=MANY, delta=delta)

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        n, gain = len(labels), reference_gains(self.gain, labels, self.k)
        d, e = np.indices((n, n)) + 1.0
        by_rank, by_distance = self._factors
        weight = by_rank * np.abs(1.0 / np.log2(1.0 + d) - 1.0 / np.log2(1.0 + e))
        for k in range(1, n):
            weight += by_distance * (np.abs(d - e) == k) * (1.0 / np.log2(1.0 + k) - 1.0 / np.log2(2.0 + k))
        out: np.ndarray = weight * np.abs(gain[:, None] - gain) / np.log(2.0)
        return out


def _discount(ranks: int) -> np.ndarray:
    return gains.apply_discount("log2", np.arange(1, ranks + 1))

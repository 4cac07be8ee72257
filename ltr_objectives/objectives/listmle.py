r"""ListMLE: the likelihood that a Plackett-Luce model ranks by label."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, seed
from ltr_objectives.kernels.listmle import listmle
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import STEP_HESSIANS, Objective
from ltr_objectives.objectives.reference import complex_step, shorten_steps
from ltr_objectives.queries import Queries

TIES = ("average", "random")


@dataclass(frozen=True)
class ListMLE(Objective):
    r"""ListMLE (Xia et al., "Listwise Approach to Learning to Rank: Theory and Algorithm", ICML 2008).

    .. math:: \sum_p \left(\log S_p - s_{y(p)}\right), \quad S_p = \sum_{q \ge p} e^{s_{y(q)}}

    with :math:`y(p)` the document at place p of the ranking by descending label: the negative log-probability of that
    ranking in a Plackett-Luce model. Gradients lie between -1 and the number of places, about log n for tied scores.
    Queries whose labels are all equal teach nothing.

    Parameters
    ----------
    ties : "average" or "random"
        Documents of equal label stand in a random order, another one for each iteration; or each counts by the average
        share of it that is still open: place l = 0, 1, ... of a tie of m documents has :math:`S` = lower labels' mass +
        (1 - l/m) of the tie's. That is Efron's treatment of ties in Cox's model ("The Efficiency of Cox's Likelihood
        Function for Censored Data", JASA 1977); the mean over all orders, which it stands for, has no short form.
    hessian : "bounded" or "exact"
        The second derivative raised to the absolute gradient, so that no Newton step exceeds 1; or as it is. Where a
        relevant document has little of the mass, steps are of the order of n without the bound; in XGBoost
        and LightGBM it trained better.
    seed : int
        Of the random order.

    Examples
    --------
    >>> grad, hess = ListMLE().gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([0.5, 0.5]))
    """

    ties: str = "average"
    hessian: str = "bounded"
    seed: int = 0

    name: ClassVar[str] = "listmle"

    def __post_init__(self) -> None:
        choice("ties", self.ties, TIES)
        choice("hessian", self.hessian, tuple(STEP_HESSIANS))
        seed(self.seed)

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return cls(), cls(hessian="exact"), cls("random", seed=2**64 - 1)

    @property
    def random(self) -> bool:
        return self.ties == "random"

    def without_noise(self) -> Objective:
        return replace(self, ties="average")

    @property
    def hessian_kind(self) -> str:
        return STEP_HESSIANS[self.hessian]

    @property
    def longest_step(self) -> float | None:
        return 1.0 if self.hessian == "bounded" else None

    @property
    def treats_ties_alike(self) -> bool:
        return self.ties == "average"

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
        run(
            listmle,
            queries.ptr,
            (queries.ptr, scores, queries.labels, queries.by_label, self.random, self.hessian == "bounded",
             np.uint64(self.seed), np.uint64(iteration), grad, hess),
            n_threads,
        )  # fmt: skip

    @staticmethod
    def _places(labels: np.ndarray) -> list[np.ndarray]:
        """For each place of the ranking, the share of each document that is open."""
        places = []
        for label in sorted(set(labels), reverse=True):
            m = int((labels == label).sum())
            lower = (labels < label).astype(float)
            places += [lower + (labels == label) * (1.0 - placed / m) for placed in range(m)]
        return places if len(set(labels)) > 1 else []

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        places = self._places(labels)
        loss = -np.sum(scores) if places else 0.0
        for share in places:
            top = scores[share > 0][np.argmax(scores[share > 0].real)]
            loss = loss + top + np.log(np.sum(share[share > 0] * np.exp(scores[share > 0] - top)))
        return loss

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        hess = np.zeros(len(scores))
        for share in self._places(labels):
            chance = np.where(share > 0, share * np.exp(np.minimum(scores - scores[share > 0].max(), 0.0)), 0.0)
            chance /= chance.sum()
            hess += chance * (1.0 - chance)
        grad = complex_step(lambda s: self.reference_loss(s, labels), scores)
        return grad, shorten_steps(self.hessian, grad, hess)

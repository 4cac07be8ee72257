r"""RankNet: pairwise logistic loss over all pairs of different labels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_choice
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import HEAD, PARTNER
from ltr_objectives.metrics.correlation import levels
from ltr_objectives.objectives.pairwise import PairwiseObjective
from ltr_objectives.queries import Queries

PAIR_WEIGHTS = ("equal", "difference", "partner")


@dataclass(frozen=True)
class RankNet(PairwiseObjective):
    r"""RankNet (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005).

    .. math:: \sum_{y_{hi} > y_{lo}} w_{hi,lo} \log \left(1 + e^{-\sigma (s_{hi} - s_{lo})}\right)

    with weights :math:`w` of pairs, all 1 by default. Gradient and Hessian are those of LambdaMART, with :math:`w`
    instead of the change of a metric. The sum over the pairs of a query is not divided by their number; see
    ``lambda_norm``.

    Parameters
    ----------
    weights : "equal", "difference" or "partner"
        "equal" is 1 for all pairs, "difference" the difference of their labels. "partner" is
        :math:`1 / m_{hi} + 1 / m_{lo}`, with :math:`m_i` documents of the query that have another label than :math:`i`.
        So each document has one pair on average, as if it chose one of the others at random.
    sigma, truncation, score_norm, lambda_norm, hessian
        As in :class:`LambdaMART`.
    preset : "xgboost" or "xgboost-1.7", optional
        Set each parameter that is left out to its value in XGBoost's rank:pairwise. That of XGBoost 1.7 and earlier
        draws the partner of each document anew in each iteration; here the gradient is its expected value. Both also
        divide query weights by their mean.
    partners : int, optional
        Pairs of a document with about this many others, drawn at random in each iteration, instead of all pairs of a
        longer list. Gradient and Hessian then have the same expected values, and a list of n documents takes
        O(n ``partners``) time.
    seed : int
        Seed of ``partners``.

    Examples
    --------
    >>> grad, hess = RankNet().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad, hess
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    weights: str | None = None
    sigma: float = 1.0
    truncation: int | None = None
    score_norm: bool | None = None
    lambda_norm: bool | None = None
    hessian: str | None = None
    preset: str | None = None
    partners: int | None = None
    seed: int = 0

    name: ClassVar[str] = "ranknet"
    native: ClassVar[dict[str, str]] = {"xgboost": "rank:pairwise"}
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "xgboost": {"truncation": 32, "score_norm": True, "lambda_norm": True, "hessian": "double"},
        "xgboost-1.7": {"weights": "partner", "hessian": "double"},
    }
    defaults: ClassVar[dict[str, Any]] = {
        "weights": "equal", "score_norm": False, "lambda_norm": False, "hessian": "exact"
    }  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weights", self.weights, PAIR_WEIGHTS)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        return queries.once(("ranknet", self.weights), lambda: (self._terms(queries),))

    def _terms(self, queries: Queries) -> Terms:
        ones = np.ones(len(queries))
        flat = np.ones(queries.longest)
        if self.weights == "difference":
            return Terms(HEAD, queries.labels.copy(), flat, ones, 0.0 * ones)
        if self.weights == "partner":
            level, found = levels(queries)
            return Terms(PARTNER, level, flat, (found > 1).astype(np.float64), 0.0 * ones, cap=1.0)
        # gains differ by at least 1, and a difference counts for at most 1
        steps = np.unique(queries.labels, return_inverse=True)[1].astype(np.float64)
        return Terms(HEAD, steps, flat, ones, 0.0 * ones, cap=1.0)

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        gap = np.abs(labels[:, None] - labels)
        if self.weights == "partner":
            share = 1.0 / np.maximum((gap > 0).sum(axis=0), 1)
            return (gap > 0) * (share[:, None] + share)
        return gap if self.weights == "difference" else (gap > 0).astype(np.float64)

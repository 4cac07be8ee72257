r"""RankNet: pairwise logistic loss over pairs of different labels, or over all pairs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import UPPER
from ltr_objectives.objectives.base import Facts
from ltr_objectives.objectives.pairwise import Hessian, PairwiseObjective
from ltr_objectives.queries import Queries

Weights = Literal["equal", "all", "difference"]


@dataclass(frozen=True)
class RankNet(PairwiseObjective, text="ranknet"):
    r"""RankNet (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005).

    .. math:: \sum_{y_{hi} > y_{lo}} w_{hi,lo} \log \left(1 + e^{-\sigma (s_{hi} - s_{lo})}\right)

    with weights :math:`w` of pairs, all 1 by default. Gradient and Hessian are those of LambdaMART, with :math:`w`
    instead of the change of a metric. The sum over the pairs of a query is not divided by their number; see
    ``lambda_norm``.

    Parameters
    ----------
    weights : "equal", "all" or "difference"
        "equal" is 1 for all pairs of different labels. "all" is 1 for pairs of equal labels too, unless a query has no
        others. Their target probability is 1/2, as in the paper, so the loss of a pair is
        :math:`\tfrac12 \log(1 + e^{-\sigma (s_i - s_j)}) + \tfrac12 \log(1 + e^{\sigma (s_i - s_j)})`, which pulls the
        two scores together. It does not take clicks, because documents without a click need not be equally relevant.
        "difference" is the difference of the labels.
    sigma, truncation, score_norm, lambda_norm, hessian, partners, seed
        As in :class:`LambdaMART`.
    preset : "xgboost", optional
        Set each parameter that is left out to its value in XGBoost's rank:pairwise, and divide query weights by their
        mean.

    Examples
    --------
    >>> grad, hess = RankNet().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad, hess
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    >>> grad, hess = RankNet("all").gradient_hessian([2.0, 0.0, -20.0], [1, 1, 0], group=[3])
    >>> grad.round(4), hess.round(4)
    (array([ 0.3808, -0.3808,  0.    ]), array([0.105, 0.105, 0.   ]))
    """

    weights: Weights = "equal"
    sigma: float = 1.0
    truncation: int | None = None
    score_norm: bool = False
    lambda_norm: bool = False
    hessian: Hessian = "exact"
    preset: str | None = None
    partners: int | None = None
    seed: int = 0

    presets: ClassVar[dict[Any, dict[str, Any]]] = {
        "xgboost": {"truncation": 32, "score_norm": True, "lambda_norm": True, "hessian": "double"},
    }
    checks: ClassVar[dict[str, Check]] = {"weights": one_of(*get_args(Weights))}

    @property
    def facts(self) -> Facts:
        return super().facts._replace(takes_clicks=self.weights != "all")

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        both = self.weights == "all"
        return queries.cached(("layers", self), lambda: self._both_ways(queries) if both else (self._terms(queries),))

    def _both_ways(self, queries: Queries) -> tuple[Terms, ...]:
        """Return two layers of weight 1/2, which prefer opposite documents of a pair of equal labels."""
        rows, gain = np.arange(queries.rows), np.empty((2, queries.rows))
        for i, ties in enumerate((rows, -rows)):
            gain[i, np.lexsort((ties, queries.labels))] = rows
        start = queries.ptr[:-1]
        differ = np.maximum.reduceat(queries.labels, start) > np.minimum.reduceat(queries.labels, start)
        half = 0.5 * differ
        return tuple(
            Terms(kind=UPPER, gain=g, discount=np.ones(queries.longest), scale=half, offset=0.0 * half, cap=1.0)
            for g in gain
        )

    def _terms(self, queries: Queries) -> Terms:
        ones = np.ones(len(queries))
        flat = np.ones(queries.longest)
        if self.weights == "difference":
            return Terms(kind=UPPER, gain=queries.labels.copy(), discount=flat, scale=ones, offset=0.0 * ones)
        # gains differ by at least 1, and a difference counts for at most 1
        steps = np.unique(queries.labels, return_inverse=True)[1].astype(np.float64)
        return Terms(kind=UPPER, gain=steps, discount=flat, scale=ones, offset=0.0 * ones, cap=1.0)

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        gap = np.abs(labels[:, None] - labels)
        return gap if self.weights == "difference" else (gap > 0).astype(np.float64)

    def _ranked(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        order, rank_high, rank_low, weight = super()._ranked(scores, labels)
        if self.weights != "all" or len(set(labels)) == 1:
            return order, rank_high, rank_low, weight
        y = labels[order]
        d, e = np.nonzero(np.triu(y[:, None] == y, 1)[: self.truncation])
        half = np.full(2 * len(d), 0.5)
        rank_high, rank_low = np.concatenate((rank_high, d, e)), np.concatenate((rank_low, e, d))
        return order, rank_high, rank_low, np.concatenate((weight, half))

r"""LambdaMART for any metric: RankNet's gradient, weighted by the exact change of the metric."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ltr_objectives.checks import check_choice
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.pairwise import Hessian, PairwiseObjective

NATIVE_METRICS = {"lightgbm": ("ndcg",), "xgboost": ("ndcg", "map")}


@dataclass(frozen=True)
class LambdaMART(PairwiseObjective, text="lambdamart"):
    r"""LambdaMART (Burges, "From RankNet to LambdaRank to LambdaMART", 2010) for any metric.

    For each pair with :math:`y_{hi} > y_{lo}` and at least one of the two within the truncation, let :math:`\delta` be
    the exact absolute change of the metric when the two are swapped. Then

    .. math::
        \rho = \frac{1}{1 + e^{\sigma (s_{hi} - s_{lo})}}, \quad
        g_{hi} \mathrel{-}= \sigma \delta \rho, \quad g_{lo} \mathrel{+}= \sigma \delta \rho, \quad
        h \mathrel{+}= \sigma^2 \delta \rho (1 - \rho) \text{ for both.}

    See also :class:`YetiLoss`, which averages over noisy rankings, and :func:`ltr_objectives.objective_for`.

    Parameters
    ----------
    metric : str or Metric
        The metric to optimise; "ndcg" by default. With a cutoff most pairs have zero weight. In LightGBM, on generated
        and real data, training for "ndcg" gave the better NDCG@10 too.
    sigma : float
        Steepness of the logistic function, above 0.
    truncation : int, optional
        Only pairs with a document among this many first ranks count; by default all pairs count. A pair beyond the
        metric's own cutoff always has zero weight.
    score_norm : bool
        Divide each weight by ``0.01 + |s_hi - s_lo|``, unless all scores of the query are equal.
    lambda_norm : bool
        Multiply gradients and Hessians of a query by ``log2(1 + S) / S`` with S the sum of its absolute gradients.
    hessian : "exact", "double" or "ones"
        "exact" is :math:`h` above. "double" is twice that, as in XGBoost: half the step. "ones" is 1 for each row.
    preset : "lightgbm" or "xgboost", optional
        Set each parameter that is left out to its value in LightGBM's lambdarank or XGBoost's rank:ndcg (with
        ``metric="map"``, rank:map). For NDCG both take discounts at all ranks but the ideal at the truncation, so the
        weight is not the change of NDCG. XGBoost also divides query weights by their mean.
    partners : int, optional
        Pairs of a document with about this many others, drawn at random in each iteration, instead of all pairs of a
        longer list. Gradient and Hessian then have the same expected values, and the time of a list grows
        in proportion to its documents. With ``lambda_norm`` expected values are smaller, because the logarithm of an
        estimated sum is too small on average: of lists of 26 documents by 1% with 10 partners, 6% with 3, 20% with 1.
    seed : int
        Seed of ``partners``.

    Examples
    --------
    >>> grad, hess = LambdaMART("mrr").gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad, hess
    (array([ 0.25, -0.25]), array([0.125, 0.125]))
    """

    metric: str | Metric = "ndcg"
    sigma: float = 1.0
    truncation: int | None = None
    score_norm: bool = False
    lambda_norm: bool = False
    hessian: Hessian = "exact"
    preset: str | None = None
    partners: int | None = None
    seed: int = 0

    presets: ClassVar[dict[Any, dict[str, Any]]] = {
        "lightgbm": {"truncation": 30, "score_norm": True, "lambda_norm": True},
        "xgboost": {"truncation": 32, "score_norm": True, "lambda_norm": True, "hessian": "double"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preset is not None:
            check_choice(
                f"metric (with preset {self.preset!r})", super().weighing_metric.name, NATIVE_METRICS[self.preset]
            )

    @property
    def weighing_metric(self) -> Metric:
        """The metric whose change weighs the pairs; with a preset, NDCG has its ideal at the truncation."""
        metric = super().weighing_metric
        if self.preset and isinstance(metric, NDCG) and metric.k is None and metric.ideal_k is None:
            return replace(metric, ideal_k=self.truncation)
        return metric

r"""YetiLoss: YetiRank for any metric, by the exact change of the metric in randomised rankings."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_choice, one_of, optional
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import CATBOOST_MAP, CATBOOST_MRR
from ltr_objectives.metrics.average_precision import MAP
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.cascade import MRR
from ltr_objectives.objectives.base import Noise
from ltr_objectives.objectives.pairwise import Difference, Hessian, PairSettings, PairwiseObjective
from ltr_objectives.queries import Queries

# How CatBoost's modes read labels. In modes MRR and MAP labels above 0 are relevant, unlike in its metrics MRR and MAP.
CATBOOST_READS: dict[str, dict[str, str]] = {
    "ndcg": {"gain_type": "linear"},
    "dcg": {"gain_type": "linear"},
    "err": {"grades": "identity"},
}
CATBOOST_MODES = ("ndcg", "dcg", "err", "mrr", "map")
Change = Literal["exact", "catboost"]


@dataclass(frozen=True)
class YetiLoss(PairwiseObjective, text="yetiloss"):
    r"""YetiLoss (Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", ICML 2023) for any metric.

    The weight :math:`w` of a pair is a mean over several rankings by noisy scores (section 3.1). Each ranking in which
    the two documents are at most ``neighbors`` ranks apart adds the exact absolute change of the metric when they are
    swapped. The loss of a query is :math:`\sum w_{hi,lo} \log(1 + e^{-(s_{hi} - s_{lo})})` at the scores without noise,
    if ``difference`` is "exact". For a metric with a maximum its gradient and Hessian are normalised as in lambdarank,
    so that queries with many or badly ranked pairs do not decide the trees alone. The paper's loss has
    ``lambda_norm=False``.

    Parameters
    ----------
    metric : str or Metric
        The metric to optimise; "ndcg@10" by default.
    permutations : int
        Rankings per iteration, from 1 to 1,000,000. Over them the noise of a document comes from as many equal strata
        (:mod:`ltr_objectives.kernels.strata`), so a gradient varies as with 1.1 to 5 times as many independent ones.
    noise : "logistic", "gaussian", "gumbel" or None
        Distribution of the noise. CatBoost calls the logistic one Gumbel.
    noise_scale : float
        The noise is multiplied by this.
    neighbors : int or "all"
        Only pairs at most this many ranks apart count. The paper and CatBoost take 1. With "all" the gradient varies
        less from one iteration to the next.
    change : "exact" or "catboost"
        "exact" is the change of the metric. "catboost" is the weight in CatBoost's modes MRR and MAP, which differs
        from it. Let a pair have the ranks :math:`d < e`. In MRR the weight is :math:`1/d - 1/e` if no rank above
        :math:`d` is relevant, else 0. In MAP it is :math:`1/d + \sum 1/c` over the relevant ranks :math:`c` between
        :math:`d` and :math:`e`. Other metrics always have the exact change.
    hessian : "exact", "double" or "ones"
        "exact" is the second derivative, "double" twice that, "ones" 1 for each row.
    preset : "catboost", optional
        Set each parameter that is left out to its value in CatBoost's YetiRank with a mode. A metric given by name then
        reads labels as that mode does: linear gains in NDCG and DCG, labels as probabilities in ERR.
    seed : int
        Seed of the noise and of ``partners``.
    partners : int, optional
        As in :class:`LambdaMART`, with other pairs in each ranking.
    difference : "exact" or "noisy"
        "noisy" takes the difference :math:`s_{hi} - s_{lo}` of each ranking from its noisy scores, so the loss is the
        mean of LambdaMART's over them. With Gumbel noise that is the expected LambdaMART of Bruch et al., "A Stochastic
        Treatment of Learning to Rank Scoring Functions", WSDM 2020. A pair's logistic function is then computed for
        each ranking anew, which takes longer.
    lambda_norm : bool, optional
        Multiply gradients and Hessians of a query by ``log2(1 + S) / S`` with S the sum of its absolute gradients, in
        the mean over the rankings. By default True, but False with propensities, which S would largely undo, and for a
        metric without a maximum, such as DCG: S would divide away that one query is worth more than another.

    Examples
    --------
    >>> objective = YetiLoss("mrr", noise=None, lambda_norm=False)
    >>> objective.gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    (array([ 0.25, -0.25]), array([0.125, 0.125]))
    """

    metric: str | Metric = "ndcg@10"
    permutations: int = 5
    noise: Noise | None = "logistic"
    noise_scale: float = 1.0
    neighbors: int | Literal["all"] = "all"
    change: Change = "exact"
    hessian: Hessian = "exact"
    preset: str | None = None
    seed: int = 0
    partners: int | None = None
    difference: Difference = "exact"
    lambda_norm: bool | None = None

    presets: ClassVar[dict[Any, dict[str, Any]]] = {
        "catboost": {"metric": "ndcg", "permutations": 10, "neighbors": 1, "change": "catboost", "lambda_norm": False}
    }
    checks: ClassVar[dict[str, Check]] = {
        "change": one_of(*get_args(Change)), "lambda_norm": optional(one_of(True, False))
    }  # fmt: skip

    def __post_init__(self) -> None:
        by_name = isinstance(self.metric, str)
        super().__post_init__()
        if self.preset is not None:
            name = self.weighing_metric.name
            check_choice(f"metric (with preset {self.preset!r})", name, CATBOOST_MODES)
            if by_name:
                metric, reads = self.weighing_metric, CATBOOST_READS.get(name, {})
                unwritten: Any = {option: value for option, value in reads.items() if option not in metric._written}
                object.__setattr__(self, "metric", replace(metric, **unwritten))

    def pair_settings(self) -> PairSettings:
        return super().pair_settings()._replace(draws=self.permutations)

    @property
    def _native(self) -> MRR | MAP | None:
        """The metric if CatBoost's weight replaces its change."""
        return self.metric if self.change == "catboost" and isinstance(self.metric, (MRR, MAP)) else None

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        layers = super().layers(queries)
        if self._native is None:
            return layers
        kind = CATBOOST_MRR if isinstance(self._native, MRR) else CATBOOST_MAP
        return tuple(terms._replace(kind=kind, scale=np.sign(terms.scale)) for terms in layers)

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        metric = self._native
        if metric is None:
            return super().pair_weights(labels)
        found, k = labels > metric.threshold, metric.k or len(labels)
        share = 1 / np.arange(1.0, len(labels) + 1)
        out = np.zeros((len(labels), len(labels)))
        for d, e in zip(*np.nonzero(found[:, None] != found), strict=True):
            if isinstance(metric, MRR):
                out[d, e] = (share[d] - (share[e] if e < k else 0)) * (d < k) * (not found[:d].any())
            else:
                out[d, e] = (share[d] + np.sum(share[d + 1 : e][found[d + 1 : e]])) * (d < k)
        return out

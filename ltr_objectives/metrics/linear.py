r"""Metrics that are linear in the gains: ``M = scale sum_d w_d g_d``."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, check_fraction, check_integer, optional
from ltr_objectives.errors import warn
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import LINEAR
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class DCG(Metric, text="dcg"):
    r"""Discounted cumulative gain, :math:`\sum_{d \le k} G(y_d) / \log_2(1 + d)`.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002; gains of Burges et al. 2005.

    Parameters
    ----------
    gain_type : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...
    discount_type : "log2", "log2-rank", "reciprocal" or table
        :math:`1 / \log_2(1 + d)`; :math:`1 / \max(1, \log_2 d)`, as Järvelin and Kekäläinen have it, not discounted at
        the first two ranks; :math:`1 / d`; or the discount of each rank, zero beyond the table.

    Examples
    --------
    >>> float(DCG(k=2).per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    1.0
    """

    gain_type: gains.GainType = "exp"
    discount_type: gains.DiscountType = "log2"

    checks: ClassVar[dict[str, Check]] = {"gain_type": gains.read_gain, "discount_type": gains.read_discount}
    kind: ClassVar[int] = LINEAR
    maximum: ClassVar[float | None] = None
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "catboost": {"gain_type": "linear", "ties": "worst"},
        "sklearn": {"gain_type": "linear", "ties": "average"},
    }
    _beyond_limit: ClassVar[str] = (
        "larger labels have no gain; put the labels into classes, or take linear gains: gain_type= of a metric, gain= "
        "of an objective"
    )

    @property
    def label_limit(self) -> float | None:
        return gains.gain_limit(self.gain_type)

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        layers, high = super()._layers(queries), queries.labels.max()
        if self.gain_type == "exp" and type(self).gain is DCG.gain and high > gains.LARGEST_GRADE:
            linear = "linear gains, as in 'ndcg(gain_type=linear)' or 'plrank:gain=linear', or put labels into classes"
            largest = f"labels are up to {high:g}, and their exponential gains up to 2^{high:g}"
            queries.cached("gains", lambda: warn(f"{largest}; for amounts take {linear}"))
        return layers

    def gain(self, labels: np.ndarray) -> np.ndarray:
        return gains.apply_gain(self.gain_type, labels)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return gains.apply_discount(self.discount_type, ranks)

    def reference(self, labels: np.ndarray) -> float:
        top = labels[: self.k]
        return float(np.dot(self.gain(top), self.discount(np.arange(1, len(top) + 1))))


@dataclass(frozen=True)
class NDCG(DCG, text="ndcg"):
    r"""DCG over the largest possible DCG of the query.

    .. math:: \frac{\sum_{d \le k} G(y_d) / \log_2(1 + d)}{\sum_{d \le k} G(y^*_d) / \log_2(1 + d)}

    :math:`y^*` are the labels in descending order. The value of a query without a gain is ``empty``.

    Parameters
    ----------
    gain_type, discount_type
        As in :class:`DCG`.
    ideal_k : int, optional
        Cutoff of the ideal DCG; by default ``k``. If it is smaller than ``k``, values may exceed 1. LightGBM and
        XGBoost train with the ideal DCG cut off at their truncation, but with discounts at all ranks.

    Examples
    --------
    >>> round(float(NDCG(k=10).per_query([3.0, 2.0, 1.0], [0, 1, 2], group=[3])[0]), 4)
    0.5869
    """

    ideal_k: int | None = None

    checks: ClassVar[dict[str, Check]] = {"ideal_k": optional(check_integer)}

    @property
    def maximum(self) -> float | None:  # type: ignore[override]  # a class variable elsewhere
        exceeds = self.ideal_k is not None and (self.k is None or self.ideal_k < self.k)
        return None if exceeds else 1.0

    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "lightgbm": {"gain_type": "exp", "ties": "input", "empty": 1.0, "query_weights": "relevant"},
        "xgboost": {"k": 32, "gain_type": "exp", "ties": "input", "empty": 1.0, "query_weights": "relevant"},
        "catboost": {"gain_type": "linear", "ties": "worst", "empty": 1.0},
        "sklearn": {"gain_type": "linear", "ties": "average"},
        "trec_eval": {"gain_type": "linear", "ties": "input"},
    }

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        if self.ideal_k is not None:
            ranks = np.arange(1, queries.longest + 1)
            discount = np.where(ranks <= self.ideal_k, self.discount(ranks), 0.0)
        return gains.reciprocal(gains.best_sums(queries, gain, discount), gains.SMALLEST)

    def reference(self, labels: np.ndarray) -> float:
        k = self.ideal_k or self.k
        top = np.sort(self.gain(labels))[::-1][:k]
        best = float(np.dot(top, self.discount(np.arange(1, len(top) + 1))))
        return super().reference(labels) / best if best > 0 else self._of_empty


@dataclass(frozen=True)
class ExpDCG(Metric, text="expdcg"):
    r"""DCG with exponential discount, :math:`\sum_d b^{d-1} y_d`, which classic YetiRank optimises.

    Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", ICML 2023, eq. 13.

    Parameters
    ----------
    decay : float
        :math:`b`, above 0 and at most 1.

    Examples
    --------
    >>> float(ExpDCG(decay=0.5).per_query([2.0, 1.0], [1, 2], group=[2])[0])
    2.0
    """

    decay: float = 0.85

    checks: ClassVar[dict[str, Check]] = {"decay": check_fraction}
    kind: ClassVar[int] = LINEAR
    maximum: ClassVar[float | None] = None

    def gain(self, labels: np.ndarray) -> np.ndarray:
        return labels

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return np.power(self.decay, ranks - 1.0)

    def reference(self, labels: np.ndarray) -> float:
        return float(sum(self.decay**i * y for i, y in enumerate(labels[: self.k])))

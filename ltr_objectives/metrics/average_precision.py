r"""Average precision: ``M = scale sum_d w_d g_d sum_{c<=d} g_c`` with 0/1 gains."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_choice
from ltr_objectives.kernels.swaps import AVERAGE
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class MAP(Metric):
    r"""Average precision: the mean, over the relevant documents, of the precision at their ranks.

    scikit-learn takes the precision at the end of a tie for all its documents, so its value differs for tied scores.
    There is not an "sklearn" convention.

    :math:`\frac{1}{\min(R, k)} \sum_{d \le k} [y_d > t] \, \mathrm{precision}(d)` with :math:`R` relevant documents.

    Parameters
    ----------
    k, ties, empty
        As in every metric.
    threshold : float
        A document is relevant if its label is above this.
    normalizer : "reachable" or "relevant"
        "reachable" divides by :math:`\min(R, k)`, so that a perfect ranking has the value 1. "relevant" divides by
        :math:`R`, as trec_eval does.

    Examples
    --------
    >>> float(MAP().per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    0.8333333333333333
    """

    threshold: float = 0.0
    normalizer: str = "reachable"

    name: ClassVar[str] = "map"
    kind: ClassVar[int] = AVERAGE
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "lightgbm": {"ties": "input", "threshold": 0.5, "empty": 1.0},
        "xgboost": {"ties": "input", "empty": 1.0},
        "catboost": {"ties": "worst", "threshold": 0.5, "query_weights": "ignore"},
        "trec_eval": {"ties": "input", "normalizer": "relevant"},
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("normalizer", self.normalizer, ("reachable", "relevant"))

    def gain(self, labels: np.ndarray) -> np.ndarray:
        return gains.relevant(labels, self.threshold)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return 1.0 / ranks

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        found = np.add.reduceat(gain, queries.ptr[:-1])
        if self.k is not None and self.normalizer == "reachable":
            found = np.minimum(found, self.k)
        return np.divide(1.0, found, out=np.zeros(len(queries)), where=found > 0)

    def reference(self, labels: np.ndarray) -> float:
        found = labels > self.threshold
        if not found.any():
            return float(self.empty)
        ranks = np.flatnonzero(found[: self.k]) + 1
        best = found.sum()
        if self.k is not None and self.normalizer == "reachable":
            best = min(best, self.k)
        return float(sum(found[:d].mean() for d in ranks) / best)

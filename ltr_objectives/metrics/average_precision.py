r"""Average precision, ``M = scale sum_d w_d g_d sum_{c<=d} g_c`` with 0/1 gains, and sums of it for graded labels."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import AVERAGE
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import CHECK, Metric
from ltr_objectives.metrics.binary import Binary
from ltr_objectives.queries import Queries

Normalizer = Literal["reachable", "relevant"]


@dataclass(frozen=True)
class MAP(Binary, text="map"):
    r"""Average precision: the mean, over the relevant documents, of the precision at their ranks.

    scikit-learn gives all documents of a tie the precision at the last rank of the tie. ``ties`` does not offer that,
    so "sklearn" is not a convention of this metric.

    :math:`\frac{1}{\min(R, k)} \sum_{d \le k} [y_d > t] \, \mathrm{precision}(d)` with threshold :math:`t` and
    :math:`R` relevant documents.

    Parameters
    ----------
    threshold : float
        A document is relevant if its label is above this.
    normalizer : "reachable" or "relevant"
        "reachable" divides by :math:`\min(R, k)`, so that a perfect ranking has the value 1. "relevant" divides by
        :math:`R`, as trec_eval does.

    Examples
    --------
    >>> round(float(MAP().per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0]), 4)
    0.8333
    """

    normalizer: Normalizer = "reachable"

    checks: ClassVar[dict[str, Check]] = {"normalizer": one_of(*get_args(Normalizer))}
    kind: ClassVar[int] = AVERAGE
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "lightgbm": {"ties": "input", "threshold": 0.5, "empty": 1.0},
        "xgboost": {"k": 32, "ties": "input", "empty": 1.0},
        "catboost": {"ties": "worst", "threshold": 0.5, "query_weights": "ignore"},
        "trec_eval": {"ties": "input", "normalizer": "relevant"},
    }

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return 1.0 / ranks

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        found = np.add.reduceat(gain, queries.ptr[:-1])
        if self.k is not None and self.normalizer == "reachable":
            found = np.minimum(found, self.k)
        return gains.reciprocal(found)

    def _reference(self, found: np.ndarray) -> Any:
        best = min(found.sum(), self.k or len(found)) if self.normalizer == "reachable" else found.sum()
        return sum(found[: d + 1].mean() for d in np.flatnonzero(found[: self.k])) / best


def _check_weights(name: str, value: object) -> tuple[float, ...]:
    table = gains.numbers_of(name, value)
    good = np.isfinite(table).all() and min(table, default=-1.0) >= 0 and max(table) > 0
    require(good, f"{name}={value!r} must be finite, not negative, and not all 0")
    return table


@dataclass(frozen=True)
class GAP(Metric, text="gap"):
    r"""Graded average precision: average precision for users who differ in the label that satisfies them.

    Robertson, Kanoulas and Yilmaz, "Extending average precision to graded relevance judgments", SIGIR 2010, eq. 3.

    .. math::
        \frac{\sum_t w_t \sum_{d \le k} [y_d > t] \, \mathrm{precision}_t(d)}{\sum_t w_t \min(R_t, k)}

    A user of threshold :math:`t = 0, 1, \dots` wants the :math:`R_t` documents with labels above :math:`t`. Their share
    among the first :math:`d` is :math:`\mathrm{precision}_t(d)`. The number of such users is proportional to
    :math:`w_t`.

    Parameters
    ----------
    weights : tuple of float
        :math:`w_0, w_1, \dots`, not negative. All labels above the last threshold count the same.

    Examples
    --------
    >>> round(float(GAP().per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0]), 4)
    0.7333
    >>> round(float(GAP(weights=(1,)).per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0]), 4)  # as MAP
    0.8333
    """

    weights: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)

    checks: ClassVar[dict[str, Check]] = {"weights": _check_weights}
    kind: ClassVar[int] = AVERAGE

    def gain(self, labels: np.ndarray) -> np.ndarray:
        """Return the sum of the weights of the users whom each label satisfies."""
        return sum((w * gains.relevant(labels, t) for t, w in enumerate(self.weights)), np.zeros(len(labels)))

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return 1.0 / ranks

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        self.check_labels(queries.labels)
        value = self._each("gain", "label", queries.labels)
        require(np.isfinite(value).all(), f"{self}: gain must be finite; {CHECK}")
        first = self._terms(queries, value)
        thresholds = np.flatnonzero(self.weights)
        used = thresholds[thresholds < queries.labels.max()]
        thresholds = thresholds if len(used) > 1 else used  # kernels are compiled anew for each number of layers
        weights = np.array(self.weights)[thresholds, None]
        relevant = (queries.labels > thresholds[:, None]).astype(np.float64)
        found = np.minimum(np.add.reduceat(relevant, queries.ptr[:-1], axis=1), self.k or queries.longest)
        scale = np.divide(weights, (weights * found).sum(axis=0), out=np.zeros_like(found), where=found > 0)
        offset = np.zeros_like(found)
        offset[:1] = first.offset
        layers = zip(relevant, scale, offset, strict=True)
        return tuple(first._replace(gain=g, scale=s, offset=o) for g, s, o in layers) or (first,)

    def reference(self, labels: np.ndarray) -> float:
        total, value = 0.0, 0.0
        for t, w in enumerate(self.weights):
            found = labels > t
            most = min(found.sum(), len(labels) if self.k is None else self.k)
            value += w * sum(found[: d + 1].mean() for d in np.flatnonzero(found[: self.k]))
            total += w * most
        return float(value / total) if total > 0 else self._of_empty

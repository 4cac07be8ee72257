r"""Values of which lower is better: :func:`ltr_objectives.evaluate` computes them, no objective trains for them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.kernels.swaps import CASCADE
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.binary import Binary
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class MeanAbsoluteError(Metric, text="mae"):
    r"""Mean absolute difference of score and label, :math:`\sum_i w_i |s_i - y_i| / \sum_i w_i` over all rows.

    It is a mean over rows, not over queries; with ``per_query`` it is that of the rows of each query.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate("mae", [1.0, 2.0, 4.0], [1, 0, 0], group=[1, 2])
    2.0
    """

    only_evaluated: ClassVar[bool] = True
    cutoff: ClassVar[str] = "none"
    power: ClassVar[int] = 1
    conventions: ClassVar[dict[str, dict[str, Any]]] = {x: {} for x in ("lightgbm", "xgboost", "catboost", "sklearn")}

    def gain(self, labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.name} has no gains")

    discount = reference = gain  # type: ignore[assignment]  # it has none of these

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        return self._error(queries, scores, queries.ptr[:-1])

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        return float(self._error(queries, scores, np.zeros(1, np.int64))[0])

    def _error(self, queries: Queries, scores: ArrayLike, starts: np.ndarray) -> np.ndarray:
        """The error of the rows from each start up to the next; NaN if their weights are all 0."""
        error = np.abs(queries.check_scores(scores).values - queries.of(self.goal).labels) ** self.power
        weight = np.ones(queries.rows) if queries.weight_by_row is None else queries.weight_by_row
        total, of = (np.add.reduceat(values, starts) for values in (weight * error, weight))
        return np.divide(total, of, out=np.full(len(of), np.nan), where=of > 0) ** (1 / self.power)


@dataclass(frozen=True)
class RootMeanSquaredError(MeanAbsoluteError, text="rmse"):
    r"""Root of the mean squared difference of score and label, :math:`\sqrt{\sum_i w_i (s_i - y_i)^2 / \sum_i w_i}`.

    It is a mean over rows, as :class:`MeanAbsoluteError`.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate("rmse", [3.0, 1.0], [0, 1], group=[2], weight=[1.0, 8.0])
    1.0
    """

    power: ClassVar[int] = 2


@dataclass(frozen=True)
class FirstRelevant(Binary, text="first"):
    """Rank of the first relevant document, such as the first click, in the mean over queries.

    A query without a relevant document has no such rank: it is NaN, and the mean leaves it out, unless ``empty`` is a
    number. Among equal scores the rank is the expected one, as in every metric. Without ties it is 1 over the
    reciprocal rank of the query.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate("first", [3.0, 2.0, 1.0, 2.0, 1.0, 0.0], [0, 0, 1, 1, 0, 1], group=[3, 2, 1], per_query=True)
    array([3., 1., 1.])
    >>> evaluate("first", [2.0, 1.0, 2.0, 1.0], [0, 1, 0, 0], group=[2, 2])
    2.0
    """

    empty: float | str = "skip"

    only_evaluated: ClassVar[bool] = True
    cutoff: ClassVar[str] = "none"
    kind: ClassVar[int] = CASCADE

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return len(ranks) + 1.0 - ranks

    def offset(self, queries: Queries, gain: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.full(len(queries), -1.0 - queries.longest)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        minus = super().values(queries, scores, n_threads=n_threads)
        return np.where(self.terms(queries).scale > 0, -minus, minus)

    def reference(self, labels: np.ndarray) -> float:
        found = np.flatnonzero(labels > self.threshold)
        return float(found[0] + 1 if len(found) else self.empty)

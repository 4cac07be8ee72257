r"""Values that :func:`ltr_objectives.evaluate` computes and no objective trains for: errors, ranks, functions."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import require, shown
from ltr_objectives.kernels.swaps import CASCADE
from ltr_objectives.metrics.binary import Binary
from ltr_objectives.metrics.sums import Value
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class AbsoluteError(Value, text="mae"):
    r"""Mean absolute error of scores as estimates of labels, over all rows.

    .. math:: \left(\sum_i w_i |s_i - y_i|^p / \sum_i w_i\right)^{1/p}, \quad p = 1

    It is a mean over rows, not over queries; with ``per_query`` it is that of the rows of each query.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate("mae", [1.0, 2.0, 4.0], [1, 0, 0], group=[1, 2])
    2.0
    """

    lower_is_better: ClassVar[bool] = True
    power: ClassVar[int] = 1
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        library: {} for library in ("lightgbm", "xgboost", "catboost", "sklearn")
    }

    @classmethod
    def options(cls) -> tuple[str, ...]:
        return ()

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        """Return the error of the rows of each query; NaN if their weights are all 0."""
        return self._error(queries, scores, queries.ptr[:-1])

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        """Return the error of all rows."""
        found = float(self._error(queries, scores, np.zeros(1, np.int64))[0])
        require(found == found, f"{self}: all rows have weight 0, so the mean is not defined; give some row a weight")
        return found

    def _error(self, queries: Queries, scores: ArrayLike, starts: np.ndarray) -> np.ndarray:
        """Return the error of the rows from each start up to the next."""
        error = np.abs(queries.check_scores(scores).values - queries.for_goal(self.goal).labels) ** self.power
        weight = np.ones(queries.rows) if queries.weight_by_row is None else queries.weight_by_row
        total, of = (np.add.reduceat(values, starts) for values in (weight * error, weight))
        return np.divide(total, of, out=np.full(len(of), np.nan), where=of > 0) ** (1 / self.power)


@dataclass(frozen=True)
class SquaredError(AbsoluteError, text="rmse"):
    """Root of the mean squared error of scores as estimates of labels: :class:`AbsoluteError` with :math:`p = 2`.

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
    number. Among equal scores the rank is the expected one, unless ``ties`` is another. Without ties it is 1 over the
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

    lower_is_better: ClassVar[bool] = True
    cutoff: ClassVar[str] = "none"
    kind: ClassVar[int] = CASCADE

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return len(ranks) + 1.0 - ranks

    def offset(self, queries: Queries, gain: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return np.full(len(queries), -1.0 - queries.longest)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        minus = super().values(queries, scores, n_threads=n_threads)
        return np.where(self.terms(queries).scale > 0, -minus, minus)

    def _reference(self, found: np.ndarray) -> Any:
        return found.argmax() + 1


@dataclass(frozen=True)
class OfFunction(Value):
    """A function of the scores and the labels of one query, in the mean over queries. NaN leaves a query out."""

    function: Any = None

    name: ClassVar[str] = "a function"

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "") or repr(self.function)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        s, y = queries.check_scores(scores).values, queries.for_goal(self.goal).labels
        found = [self.function(*each) for each in zip(*(np.split(x, queries.ptr[1:-1]) for x in (s, y)), strict=True)]
        for each in found:
            number = isinstance(each, Real | np.bool_)
            require(number, f"{self} must return a number for the scores and labels of a query, got {shown(each)}")
        return np.array(found, np.float64)


def of_function(function: Any, convention: str | None) -> OfFunction | None:
    """Return a function as a metric; None for anything else. It is evaluated in one way only."""
    if not callable(function) or isinstance(function, type):
        return None
    require(convention is None, f"convention={convention!r} is for metrics by name; leave it out beside a function")
    return OfFunction(function=function)

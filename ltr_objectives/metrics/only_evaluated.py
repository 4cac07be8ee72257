r"""Values that :func:`ltr_objectives.evaluate` computes and no objective trains for: errors, ranks, functions."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import require, shown
from ltr_objectives.goals import split_goal, with_goal
from ltr_objectives.kernels.swaps import CASCADE
from ltr_objectives.language import split_metric
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.binary import Binary
from ltr_objectives.metrics.text import read_metric
from ltr_objectives.queries import Queries

POWERS = {"mae": 1, "rmse": 2}
LIBRARIES = "lightgbm", "xgboost", "catboost", "sklearn"  # which all compute them so


@dataclass(frozen=True)
class RowError:
    r"""Error of scores as estimates of labels, :math:`(\sum_i w_i |s_i - y_i|^p / \sum_i w_i)^{1/p}` over all rows.

    :math:`p` is 1 for "mae", the mean absolute error, and 2 for "rmse", the root of the mean squared error. It is a
    mean over rows, not over queries; with ``per_query`` it is that of the rows of each query.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate("mae", [1.0, 2.0, 4.0], [1, 0, 0], group=[1, 2])
    2.0
    >>> evaluate("rmse", [3.0, 1.0], [0, 1], group=[2], weight=[1.0, 8.0])
    1.0
    """

    name: str
    goal: str | None = None

    cutoff: ClassVar[str] = "none"

    def __str__(self) -> str:
        return with_goal(self.name, self.goal)

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
        power = POWERS[self.name]
        error = np.abs(queries.check_scores(scores).values - queries.of(self.goal).labels) ** power
        weight = np.ones(queries.rows) if queries.weight_by_row is None else queries.weight_by_row
        total, of = (np.add.reduceat(values, starts) for values in (weight * error, weight))
        return np.divide(total, of, out=np.full(len(of), np.nan), where=of > 0) ** (1 / power)


@dataclass(frozen=True)
class FirstRelevant(Binary):
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

    name: ClassVar[str] = "first"
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
class OfFunction(Metric):
    """A function of the scores and the labels of one query, in the mean over queries. NaN leaves a query out."""

    function: Any = None

    name: ClassVar[str] = "a function"
    kind: ClassVar[int] = -1
    maximum: ClassVar[float | None] = None
    cutoff: ClassVar[str] = "none"

    def __str__(self) -> str:
        return getattr(self.function, "__name__", "") or repr(self.function)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        s, y = queries.check_scores(scores).values, queries.of(self.goal).labels
        found = [self.function(*each) for each in zip(*(np.split(x, queries.ptr[1:-1]) for x in (s, y)), strict=True)]
        for each in found:
            number = isinstance(each, Real | np.bool_)
            require(number, f"{self} must return a number for the scores and labels of a query, got {shown(each)}")
        return np.array(found, np.float64)

    def _same_for_every_order(self, queries: Queries, n_threads: int | None = None) -> bool:
        return False  # is not known

    def gain(self, labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.name} has no gains")

    discount: Any = gain
    reference: Any = gain


def of_function(function: Any, convention: str | None) -> OfFunction | None:
    """Return a function as a metric; None for anything else. It is evaluated in one way only."""
    if not callable(function) or isinstance(function, type):
        return None
    require(convention is None, f"convention={convention!r} is for metrics by name; leave it out beside a function")
    return OfFunction(function=function)


def any_metric(metric: Any, convention: str | None = None) -> Any:
    """As :func:`get_metric`, also for functions and the names of this module."""
    if made := of_function(metric, convention):
        return made
    plain, goal = split_goal(metric.strip()) if isinstance(metric, str) else ("", None)
    name, settings, k = split_metric(plain) or ("", "", None)
    if name not in POWERS:
        known: Any = {"first": FirstRelevant, **dict.fromkeys(POWERS, RowError), **Metric.named}
        return read_metric(metric, convention, known)
    require(not settings and k is None, f"{name} has no cutoff and no options; write {name!r}")
    there = f"conventions of {name}: {', '.join(LIBRARIES)}"
    require(convention in (None, *LIBRARIES), f"{name} has no convention {shown(convention)}; {there}")
    return RowError(name, goal)

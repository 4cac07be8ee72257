"""Gradients, metrics and the `Queries` of data sets, as the callables of all libraries need them."""

import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._parameters import refuse_unread
from ltr_objectives.diagnostics import warn_if_long, warn_if_useless, warn_of_equal_orders
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.goals import check_goal, check_read
from ltr_objectives.kernels.scores import Scores, content_stream
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, by_goal, to_numpy, vector

KEPT = 8  # data sets remembered at a time: one training set and some evaluation sets
Params = Mapping[str, Any]  # of a training, by the library's names
ByGoal = Mapping[str, ArrayLike]


class Stream:
    """The random numbers of one training.

    The scores select them, not a count of the calls: an object that was used before, copied, pickled or continued from
    a saved model draws alike at equal scores. A round that changed no score is followed by other numbers all the same.
    """

    def __init__(self) -> None:
        self._content: int | None = None  # of the scores at the last tree
        self._repeats = 0  # trees before this one with the same scores

    def iteration(self, scores: Scores, queries: Queries, n_threads: int | None, new_tree: bool = True) -> int:
        """Select the random numbers at these scores; a step within a tree has those of the tree."""
        if new_tree or self._content is None:
            content = content_stream(scores, queries.ptr, n_threads)
            self._repeats = self._repeats + 1 if content == self._content else 0
            self._content = content
        return self._content + self._repeats


class QueriesMemo:
    """The validated `Queries` of a library's data sets, found again by content in each iteration.

    Comparing labels, groups and weights takes far less time than preparing them anew. Content, unlike an address,
    cannot mistake one data set for another if the user changes or frees arrays between two calls. Copies and pickles
    start empty.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[tuple[np.ndarray | None, ...], Queries], ...] = ()
        self._asked: weakref.WeakSet[Queries] = weakref.WeakSet()
        self._streams: weakref.WeakKeyDictionary[Any, Stream] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return QueriesMemo, ()

    def find(self, data: Mapping[str, Any], goals: Mapping[str, np.ndarray], check: Callable[[Any], None]) -> Queries:
        """The `Queries` of a data set, or those of an equal one if there was one.

        ``data`` are the labels and the other arguments of `Queries`, by name; ``goals`` the labels of further goals.
        ``check(labels)`` raises for labels that are wrong.
        """
        arrays = {name: None if values is None else to_numpy(values, name) for name, values in data.items()}
        key = (*arrays.values(), *goals.values())
        for known, queries in self._entries:
            if all(map(_equal, known, key)):
                return queries
        labels: Any = arrays.pop("labels")
        check(labels)
        queries = Queries(by_goal(labels, goals), **arrays)
        copies = queries.labels, *(None if a is None else a.copy() for a in key[1:])  # labels are already a copy
        self._entries = ((copies, queries), *self._entries)[:KEPT]
        return queries

    def is_new(self, queries: Queries) -> bool:
        """True in the first call for these queries, because we warn once for a data set."""
        new = queries not in self._asked
        self._asked.add(queries)
        return new

    def stream(self, training: Any) -> Stream:
        """The random numbers of a training, known by the library's model or else by its queries."""
        return self._streams.setdefault(training, Stream())


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def no_check(labels: np.ndarray) -> None:
    """Accept the labels of a library that reads them rightly."""


def read_labels(labels: ByGoal | None, name: str = "labels") -> dict[str, np.ndarray]:
    """Copies of labels by goal, as numbers; ``name`` is that of the argument."""
    good = labels is None or isinstance(labels, Mapping)
    given = type(labels).__name__
    require(good, f"{name} must be a mapping of goals to arrays, such as {{'revenue': array}}, got {given}")
    found = {}
    for goal, values in (labels or {}).items():
        check_goal(goal)
        found[goal] = vector(f"{name}[{goal!r}]", values).copy()
    return found


def labels_for(objective: Objective, labels: ByGoal | None) -> dict[str, np.ndarray]:
    """The labels of every goal that the objective reads; raises if one is missing, or not read."""
    found = read_labels(labels)
    check_read(found, objective.facts.goals, objective.name)
    missing = next((goal for goal in objective.facts.goals if goal not in found), None)
    require(
        missing is None,
        f"{objective.name} reads labels {missing!r}; pass labels={{{missing!r}: array}} with one number for each row "
        "of the training set",
    )
    return found


class ObjectiveCallable:
    """The base of what a library calls for gradients.

    Weights, propensities and positions given here replace those of the library's data sets, and ``labels`` by goal come
    beside theirs. The estimators know the queries, and call ``gradients`` alone.
    """

    library: ClassVar[Library]
    check_labels = staticmethod(no_check)
    no_jit = True  # else CatBoost tries to compile the method, and warns

    def __init__(
        self,
        objective: Objective,
        *,
        n_threads: int | None = None,
        weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: ByGoal | None = None,
    ) -> None:
        self.objective = objective
        self.labels = labels_for(objective, labels)
        self.n_threads = n_threads
        self.weight = weight
        self.propensity = propensity
        self.position = position
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"{self.library.name}_objective({self.objective!r})"

    def queries(self, labels: Any, group: Any, weight: Any, position: Any = None) -> Queries:
        """The queries of one of the library's data sets."""
        if self.propensity is not None or self.position is not None:
            position = self.position
        data = {
            "labels": labels,
            "group": group,
            "weight": weight if self.weight is None else self.weight,
            "propensity": self.propensity,
            "position": position,
        }
        return self._memo.find(data, self.labels, self.check_labels)

    def gradients(
        self,
        queries: Queries,
        scores: Any,
        params: Params | None = None,
        *,
        training: Any = None,
        new_tree: bool = True,
        all_zero: str = "",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute gradient and Hessian in the library's type, for a ``training`` with ``params``.

        The random numbers are those of the tree. If ``training`` is None, calls with the same queries count as one.
        Once a data set, warns of lists that take long, of zero gradients (``all_zero`` is a further reason for these)
        and of Hessians too small for any split.
        """
        s, n_threads = to_numpy(scores, "scores").reshape(-1), self.library.n_threads(params, self.n_threads)
        new = self._memo.is_new(queries)
        if new:
            refuse_unread(self.library, params or {})
            warn_if_long(self.objective, queries)
        how: dict[str, Any] = {"n_threads": n_threads, "dtype": self.library.dtype}
        checked = queries.check_scores(s, n_threads)
        if self.objective.facts.random:
            stream = self._memo.stream(queries if training is None else training)
            how["iteration"] = stream.iteration(checked, queries, n_threads, new_tree)
        grad, hess = self.objective.compute(queries, checked, **how)
        if not self.library.negative_hessians and hess.min() < 0:
            inner = self.objective.inner
            remedy = "choose another hessian=, such as 'absolute'" if hasattr(inner, "hessian") else "change its fill"
            raise LTRError(
                f"{inner.name} has negative second derivatives, from which {self.library.name} learns nothing or "
                f"diverges: {remedy}"
            )
        if new:
            warn_if_useless(self.objective, queries, s, grad, n_threads, all_zero)
            if training is not None and params is not None and self.library.least_hessian and grad.any():
                _warn_if_no_split(hess, *self.library.leaf_limit(params))
        return grad, hess


def _warn_if_no_split(hess: np.ndarray, name: str, least: float) -> None:
    """Warn if the Hessian cannot fill two leaves: the library then grows no tree."""
    total = float(hess.sum(dtype=np.float64))
    if total < 2 * least:
        warn(
            f"{name}={least:g} forbids every split, because the Hessian of all rows together is {total:.3g}; "
            "set it to a small part of that sum, or to 0"
        )


def refuse_goals(metrics: Iterable[Metric]) -> None:
    """Raise for a metric of a goal: a library's data set has its own labels only."""
    of_goal = next((metric for metric in metrics if metric.goal is not None), None)
    require(
        of_goal is None,
        f"{of_goal} reads the labels of a goal; give it to eval_metric= of an estimator, or to evaluate",
    )


class MetricCallable:
    """The base of what XGBoost and LightGBM call for metrics."""

    library: ClassVar[Library]
    check_labels = staticmethod(no_check)
    no_jit = True  # as of an objective

    def __init__(self, metrics: tuple[Metric, ...], n_threads: int | None = None) -> None:
        refuse_goals(metrics)
        self.metrics = metrics
        self.n_threads = n_threads
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"{self.library.name}_metric({', '.join(map(repr, self.metrics))})"

    def queries(self, labels: Any, group: Any, weight: Any) -> Queries:
        """The queries of one of the library's data sets."""
        data = {"labels": labels, "group": group, "weight": weight}
        return self._memo.find(data, {}, self.check_labels)

    def means(self, queries: Queries, scores: Any, params: Params | None) -> list[tuple[Metric, float]]:
        """Each metric and its mean over queries. Once a data set, warns of metrics that no order changes."""
        s, n_threads = to_numpy(scores, "scores").reshape(-1), self.library.n_threads(params, self.n_threads)
        if self._memo.is_new(queries):
            warn_of_equal_orders(self.metrics, queries, f"a data set with {len(queries)} queries", n_threads)
        return [(m, m.mean(queries, s, n_threads=n_threads)) for m in self.metrics]

    def sums(self, queries: Queries, scores: Any, params: Params | None) -> np.ndarray:
        """For each metric the weighted sum over queries and the sum of the weights, to be added over the workers."""
        s, n_threads = to_numpy(scores, "scores").reshape(-1), self.library.n_threads(params, self.n_threads)
        values = (m.values(queries, s, n_threads=n_threads) for m in self.metrics)
        return np.array([m.sums(v, queries.weight_by_query) for m, v in zip(self.metrics, values, strict=True)])

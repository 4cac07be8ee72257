"""Gradients, metrics and the `Queries` of data sets, as the callables of all libraries need them."""

import weakref
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.diagnostics import warn_if_goals_agree, warn_if_long, warn_if_useless
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.goals import check_goal, check_read
from ltr_objectives.kernels.scores import Scores, content_stream
from ltr_objectives.libraries import LIBRARIES, Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.equal_orders import warn_of_equal_orders
from ltr_objectives.objectives.around import UnitHessian, innermost
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.composite import leaves
from ltr_objectives.queries import Queries, labels_by_goal, to_numpy, vector

INSTEAD = {  # of parameters of the libraries' own objectives
    "label_gain": ", and give gains to the metric, as in NDCG(gain_type=(0, 1, 3))",
    "ndcg_exp_gain": ", and name them in the metric: ndcg(gain_type=exp) or ndcg(gain_type=linear)",
    "lambdarank_truncation_level": ", and write lambdamart:truncation={value}",
}
KEPT = 8  # data sets remembered at a time: one training set and some evaluation sets
Params = Mapping[str, Any]  # of a training, by the library's names
ByGoal = Mapping[str, ArrayLike]


class Training:
    """One training: its parameters, its random numbers, and whether its first gradient is still to come.

    The scores select the numbers, not a count of the calls: an object that was used before, copied, pickled or
    continued from a saved model draws alike at equal scores. If a round changes no score, the next one still draws
    other numbers.
    """

    def __init__(self) -> None:
        self.first = True
        self.params: Params | None = None
        self._content: int | None = None  # of the scores at the last tree
        self._repeats = 0  # trees before this one with the same scores

    def iteration(self, scores: Scores, queries: Queries, n_threads: int | None, new_tree: bool) -> int:
        """Select the random numbers at these scores; a step within a tree has those of the tree."""
        if new_tree or self._content is None:
            content = content_stream(scores, queries.ptr, n_threads)
            self._repeats = self._repeats + 1 if content == self._content else 0
            self._content = content
        return self._content + self._repeats


class Memo:
    """The trainings that go on, and the validated `Queries` of their data sets, found again by content.

    Comparing labels, groups and weights takes far less time than preparing them anew. Content, unlike an address,
    cannot mistake one data set for another if the user changes or frees arrays between two calls. Copies and pickles
    start empty.
    """

    def __init__(self) -> None:
        self._known: tuple[tuple[dict[str, np.ndarray | None], Queries], ...] = ()
        self._trainings: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()

    def __reduce__(self) -> tuple[Any, ...]:
        return Memo, ()

    def queries(self, labels: Any, goals: Mapping[str, np.ndarray], **others: Any) -> Queries:
        """Return the `Queries` of a data set, or those of an equal one if there was one; arguments as in `Queries`."""
        arrays = {name: None if x is None else to_numpy(x, name) for name, x in {"labels": labels, **others}.items()}
        key = {**arrays, **{f"labels[{goal}]": values for goal, values in goals.items()}}
        for known, queries in self._known:
            if known.keys() == key.keys() and all(equal(known[name], key[name]) for name in key):
                return queries
        first: Any = arrays.pop("labels")
        queries = Queries(labels_by_goal(first, goals), **arrays)
        copies = {name: None if values is None else values.copy() for name, values in key.items() if name != "labels"}
        self._known = (({"labels": queries.labels, **copies}, queries), *self._known)[:KEPT]  # already a copy
        return queries

    def training(self, by: Any) -> Training:
        """Return the training, known by the library's model or else by its queries."""
        return self._trainings.setdefault(by, Training())


def equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    """Return True for two arrays of equal content, and for twice None."""
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def read_labels(labels: ByGoal | None) -> dict[str, np.ndarray]:
    """Return the labels by goal, as numbers."""
    good, given = labels is None or isinstance(labels, Mapping), type(labels).__name__
    require(good, f"labels must be a mapping of goals to arrays, such as {{'revenue': array}}, got {given}")
    for goal in labels or {}:
        check_goal(goal)
    return {goal: vector(f"labels[{goal!r}]", values) for goal, values in (labels or {}).items()}


class OfLibrary:
    """The base of the callables."""

    of: str  # the name of the library
    role: ClassVar[str]
    no_jit = True  # else CatBoost tries to compile the method, and warns

    @property
    def library(self) -> Library:
        """The library."""
        return LIBRARIES[self.of]

    @property
    def __name__(self) -> str:
        return f"{self.of}_{self.role}"

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise, because CatBoost calls methods of the object. It must be callable, else LightGBM would ignore it."""
        raise LTRError(f"{self.__name__} is for {self.of} alone, which calls its methods; make that of another library")


class ObjectiveCallable(OfLibrary):
    """The base of what a library calls for gradients.

    Weights given here replace those of the library's data sets, and propensities and ``labels`` by goal come beside
    theirs. The estimators know the queries, and call ``gradients`` alone.
    """

    role = "objective"

    def __init__(
        self, objective: Objective, *, n_threads: int | None = None, labels: ByGoal | None = None, **by_row: Any
    ) -> None:
        self.objective = objective
        self.n_threads = n_threads
        self.labels = read_labels(labels)
        check_read(self.labels, objective.facts.goals, objective.name)
        self.by_row = {name: values for name, values in by_row.items() if values is not None}
        self._memo = Memo()

    def __repr__(self) -> str:
        return f"{self.__name__}({self.objective!r})"

    def queries(self, labels: Any, group: Any, weight: Any) -> Queries:
        """Return the queries of one of the library's data sets."""
        return self._memo.queries(labels, self.labels, **{"group": group, "weight": weight} | self.by_row)

    def gradients(
        self, queries: Queries, scores: Any, params: Params | None = None, *, training: Any = None,
        new_tree: bool = True,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Compute gradient and Hessian in the library's type, for a ``training`` with ``params``.

        The random numbers are those of the tree. If ``training`` is None, calls with the same queries count as one. The
        first gradient of a training warns of lists that take long, and of zero gradients and Hessians too small for any
        split.
        """
        state = self._memo.training(queries if training is None else training)
        n_threads = self.library.n_threads(params, self.n_threads)
        if state.first:
            refuse_unread(self.library, params or {})
            warn_if_long(self.objective, queries)
            warn_if_goals_agree(self.objective, queries, n_threads)
        s = queries.check_scores(to_numpy(scores, "scores").reshape(-1), n_threads)
        iteration = state.iteration(s, queries, n_threads, new_tree) if self.objective.facts.random else 0
        grad, hess = self.objective.compute(
            queries, s, iteration=iteration, n_threads=n_threads, dtype=self.library.dtype
        )
        if not self.library.negative_hessians and hess.min() < 0:
            raise LTRError(
                f"{innermost(self.objective).name} has negative second derivatives, from which {self.library.name} "
                "learns nothing or diverges: choose another hessian=, such as 'absolute', or change its fill"
            )
        if state.first:
            learner = self.objective
            if isinstance(learner, UnitHessian):  # whose constant makes no gradient zero
                learner = learner.objective
            warn_if_useless(learner, queries, s.values, grad, n_threads)
            if training is not None and params is not None and self.library.least_hessian and grad.any():
                _warn_if_no_split(hess, *self.library.leaf_limit(params))
            state.first = False
        return grad, hess


def refuse_unread(library: Library, params: Params) -> None:
    """Raise for parameters of the library's own objectives and their gains, beside our objective."""
    for name in library.unread:
        for given, value in library.given(name, params).items():
            of_its_own, instead = f"{given}={value!r} is read by {library.name}'s own objectives", INSTEAD.get(name, "")
            raise LTRError(f"{of_its_own}, and changes nothing in ours; leave it out{instead.format(value=value)}")


def pairs_of_rows(objective: Objective) -> bool:
    """Return True if a part of the objective has pairs, by number of row."""
    return not objective.facts.reads_labels or any(not leaf.facts.reads_labels for leaf in leaves(objective))


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
    of_goal = next((metric for metric in metrics if metric.goals), None)
    require(
        of_goal is None,
        f"{of_goal} reads the labels of a goal; pass lightgbm_metric and xgboost_metric labels={{dvalid: {{'goal': "
        "array}}, or give it to eval_metric= of an estimator, or to evaluate",
    )


class MetricCallable(OfLibrary):
    """The base of what XGBoost and LightGBM call for metrics. ``labels`` by goal are those of each data set."""

    role = "metric"

    def __init__(
        self,
        metrics: tuple[Metric, ...],
        n_threads: int | None = None,
        labels: Mapping[Any, ByGoal] | None = None,
    ) -> None:
        if labels is None:
            refuse_goals(metrics)
        read = [goal for metric in metrics for goal in metric.goals]
        by_data = labels is None or (isinstance(labels, Mapping) and not any(isinstance(data, str) for data in labels))
        require(by_data, "labels must have the goals of each data set, as in {dvalid: {'revenue': array}}")
        self.labels = [(data, read_labels(by_goal)) for data, by_goal in (labels or {}).items()]
        for _, given in self.labels:
            check_read(given, read, self.__name__)
        self.metrics = metrics
        self.n_threads = n_threads
        self._memo = Memo()

    def __repr__(self) -> str:
        return f"{self.__name__}({', '.join(map(repr, self.metrics))})"

    def queries(self, data: Any, labels: Any, group: Any, weight: Any) -> Queries:
        """Return the queries of ``data``, one of the library's data sets."""
        goals = next((given for known, given in self.labels if known is data), {})
        return self._memo.queries(labels, goals, group=group, weight=weight)

    def means(self, queries: Queries, scores: Any, params: Params | None) -> list[tuple[Metric, float]]:
        """Return each metric and its mean over queries. Warn once a data set of metrics that no order changes."""
        s, n_threads = to_numpy(scores, "scores").reshape(-1), self.library.n_threads(params, self.n_threads)
        where = f"a data set with {len(queries)} queries"
        key = "equal orders", self.metrics
        queries.cached(key, lambda: warn_of_equal_orders(self.metrics, queries, where, n_threads))
        return [(m, m.mean(queries, s, n_threads=n_threads)) for m in self.metrics]

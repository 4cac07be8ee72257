"""The base class of metrics."""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require, shown
from ltr_objectives.extensible import Named
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR
from ltr_objectives.kernels.threads import run
from ltr_objectives.kernels.values import AVERAGE_TIES, BEST_TIES, INPUT_TIES, RELEVANT, WORST_TIES, metric_values
from ltr_objectives.metrics.options import Options
from ltr_objectives.queries import Labels, Queries

CHECK = "ltr_objectives.check_metric(metric) checks all methods of a metric of your own"
LEARNED = LINEAR, CASCADE, AVERAGE  # the kinds whose changes kernels know, so that objectives train for them
LEAST_WEIGHT = 2.0**-500  # a weight of 0 counts as this if a query adds to the sum without its weight
TIES = {"average": AVERAGE_TIES, "input": INPUT_TIES, "worst": WORST_TIES, "best": BEST_TIES}
GAINS: dict[int, tuple[Callable[[np.ndarray], np.ndarray], str]] = {  # by kind: which are right, and what they must be
    LINEAR: (lambda gain: (gain >= 0) & (gain < np.inf), "not negative"),
    CASCADE: (lambda gain: (gain >= 0) & (gain <= 1), "a probability"),
    AVERAGE: (lambda gain: (gain == 0) | (gain == 1), "0 or 1"),
    RELEVANT: (lambda gain: (gain == 0) | (gain == 1), "0 or 1"),
}

Convention = Literal["lightgbm", "xgboost", "catboost", "sklearn", "trec_eval"]


@dataclass(frozen=True)
class Metric(Options, abc.ABC):
    """A ranking metric. Every metric has the options below, in which libraries differ.

    Parameters
    ----------
    k : int, optional
        Cutoff: ranks beyond it do not count. None is the whole list.
    ties : "average", "input", "worst" or "best"
        How documents with equal scores are ordered. "average" takes the expected value over a random order, "input" the
        order of the rows. "worst" ranks the less relevant document first, "best" the more relevant one.
    empty : float or "skip"
        The value of a query without a relevant document. With "skip" it is NaN, and the mean leaves the query out.
    query_weights : "mean", "rows", "relevant" or "ignore"
        "mean" weighs a query by the mean weight of its rows, "rows" by the sum of its rows' weights, or by their number
        without weights; "ignore" weighs all queries the same. "relevant" is "mean", but a query without a relevant
        document adds ``empty`` to the sum without its weight, as in the NDCG of LightGBM and XGBoost: its own value is
        ``empty`` over its weight, or over 2^-500 if that is 0.
    goal : str, optional
        The labels that the metric reads, if a data set has several; by default the first. As text ``"ndcg@10[goal]"``.

    Raises
    ------
    LTRError
        For other values of the parameters; from an evaluation, for labels that the metric does not take.

    See Also
    --------
    check_metric : Whether a metric of one's own agrees with its ``reference``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from ltr_objectives import Metric, evaluate
    >>> @dataclass(frozen=True)
    ... class Clicked(Metric):
    ...     name, kind, maximum = "clicked", Metric.LINEAR, None
    ...     def gain(self, labels):
    ...         return labels
    ...     def discount(self, ranks):
    ...         return 1 / ranks
    ...     def reference(self, labels):
    ...         return sum(y / rank for rank, y in enumerate(labels, 1))
    >>> evaluate(Clicked(), [0.9, 0.5], [0, 1], group=[2])
    0.5
    """

    named = Named("metrics")
    LINEAR, CASCADE, AVERAGE = LEARNED
    kind: ClassVar[int]
    maximum: ClassVar[float | None] = 1.0
    lower_is_better: ClassVar[bool] = False  # such metrics are only evaluated
    _beyond_limit: ClassVar[str] = "map the labels first"  # what to do with labels above label_limit
    _not_read: ClassVar[dict[str, str]] = {
        "per_query": "override values instead",
        "terms": "override gain, discount, scale or offset instead",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        require(hasattr(self, "kind"), f"{self.name} has no kind; write kind, such as Metric.LINEAR")

    @property
    def parts(self) -> tuple[tuple[float, "Metric"], ...]:
        """The weights and metrics of a sum; the metric itself if it is none."""
        return ((1.0, self),)

    def of_parts(self, value: Callable[["Metric"], Any], of: Callable[[str | None], Queries] | None = None) -> Any:
        """Return the ``value`` of the metric; of a sum, of its parts in their units on queries ``of`` their goals."""
        return value(self)

    @property
    def label_limit(self) -> float | None:
        """The largest label allowed; None without a limit."""
        return None

    @abc.abstractmethod
    def gain(self, labels: np.ndarray) -> np.ndarray:
        """Return gain, probability or 0/1 relevance of each label."""

    @abc.abstractmethod
    def discount(self, ranks: np.ndarray) -> np.ndarray:
        """Return the discount at 1-based ``ranks``, without the cutoff: non-increasing, not negative."""

    @abc.abstractmethod
    def reference(self, labels: np.ndarray) -> float:
        """Compute the textbook value of one list with labels in rank order; slow, and the oracle of the tests."""

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        """Return the factor of each query; 0 marks an empty one. By default 1 if any gain is positive."""
        return (np.add.reduceat(gain, queries.ptr[:-1]) > 0).astype(np.float64)

    def offset(self, queries: Queries, gain: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the number that is added to the value of each query that is not empty."""
        return np.zeros(len(queries))

    def check_labels(self, labels: np.ndarray) -> None:
        """Raise for labels without a gain in this metric."""
        low, high = labels.min(), labels.max()
        if low < 0:
            swapped = "" if (labels % 1 == 0).all() else ", or pass scores first if they were swapped"
            raise LTRError(f"{self} needs labels of at least 0, got {low:g}; shift or map them{swapped}")
        limit = self.label_limit
        if limit is not None and high > limit:
            raise LTRError(f"{self} takes labels up to {limit:g}, got {high:g}; {self._beyond_limit}")

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        """Return this metric on ``queries`` as one or more terms that add up to it; computed once for these queries."""
        queries = queries.for_goal(self.goal)
        return queries.cached(self, lambda: self._layers(queries))

    def terms(self, queries: Queries) -> Terms:
        """Return this metric on ``queries`` as one term; raise if it is a sum of several."""
        layers = self.layers(queries)
        if len(layers) > 1:
            raise LTRError(f"{self} is a sum of {len(layers)} metrics, but must be one here; choose another")
        return layers[0]

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        self.check_labels(queries.labels)
        gain = self._each("gain", "label", queries.labels)
        test, must = GAINS[self.kind]
        good = test(gain)
        if not good.all():
            at = int(np.argmin(good))
            found = f"{self}: gain of label {queries.labels[at]:g} is {gain[at]:g}"
            raise LTRError(f"{found}, but must be finite and {must}; {CHECK}")
        return (self._terms(queries, gain),)

    def _terms(self, queries: Queries, gain: np.ndarray) -> Terms:
        ranks = np.arange(1, queries.longest + 1)
        discount = self._each("discount", "rank", ranks)
        good = np.isfinite(discount).all() and (np.diff(discount) <= 0).all() and discount[-1] >= 0
        if not good:
            must = "finite and not negative, and must not increase with the rank"
            raise LTRError(f"{self}: discount must be {must}, but is {shown(discount.tolist())}; {CHECK}")
        if self.k is not None:
            discount = np.where(ranks <= self.k, discount, 0.0)
        scale = self.scale(queries, gain, discount)
        empty: Any = np.nan if self.empty == "skip" else float(self.empty)
        weight = queries.weight_by_query
        if self.query_weights == "relevant" and weight is not None:
            empty = empty / np.where(weight > 0, weight, LEAST_WEIGHT)
        offset = np.where(scale > 0, self.offset(queries, gain, scale), empty)
        return Terms(self.kind, gain, discount, scale, offset)

    def _each(self, name: str, of: str, values: np.ndarray) -> np.ndarray:
        """Call ``self.gain`` or ``self.discount``; raise unless it returns one number per entry."""
        try:
            found = np.require(getattr(self, name)(values), np.float64, ["C", "A", "W"])
        except (TypeError, ValueError) as error:
            if isinstance(error, LTRError) or "array" not in str(error):
                raise
            instead = "write NumPy's functions, such as np.where for if and np.maximum for max"
            raise LTRError(f"{self}: {name} gets an array with a number for each {of}; {instead} ({error})") from error
        if found.shape != values.shape:
            must = f"must return one number for each {of}, but returned shape {found.shape}"
            raise LTRError(f"{self}: {name} {must}; {CHECK}")
        return found

    def per_query(
        self, scores: ArrayLike, labels: Labels, group: ArrayLike | None = None, *, qid: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the value of each query, shape (queries,), float64."""
        return self.values(Queries(labels, group, qid=qid), scores, n_threads=n_threads)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        """Compute :meth:`per_query` of validated queries."""
        s = queries.check_scores(scores, n_threads).values
        total = np.zeros(len(queries))
        for terms in self.layers(queries):
            out = np.empty(len(queries))
            run(metric_values, queries.ptr, (queries.ptr, s, terms, TIES[self.ties], out), n_threads)
            total += out
        return total

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        """Return the mean over queries, weighted as ``query_weights`` says."""
        queries = queries.for_goal(self.goal)
        values = self.values(queries, scores, n_threads=n_threads)
        return self.average(*self.sums(values, self.weight_by_query(queries)))

    def unit(self, queries: Queries | None) -> float:
        """Return the mean that counts as 1 in a sum of metrics: 1, or without a maximum the best of these queries."""
        if self.maximum is not None:
            return 1.0
        if queries is None:
            raise LTRError(
                f"{self} has no maximum and counts in a sum as a share of its best value, which several workers do not "
                "compute; name it alone"
            )
        gain = np.sum([terms.gain for terms in self.layers(queries)], axis=0)
        return queries.cached(("unit", self), lambda: self.mean(queries, gain)) or 1.0

    def _same_for_every_order(self, queries: Queries, n_threads: int | None = None) -> bool:
        """Return True if the best and the worst order of the documents have the same value."""
        queries = queries.for_goal(self.goal)
        gain = np.sum([terms.gain for terms in self.layers(queries)], axis=0)
        best, worst = (self.values(queries, scores, n_threads=n_threads) for scores in (gain, -gain))
        return np.allclose(best, worst, 1e-12, 1e-12, equal_nan=True)

    def weight_by_query(self, queries: Queries) -> np.ndarray | None:
        """Return the weight of each query in the mean; None if all count the same."""
        weight = queries.weight_by_query
        if self.query_weights == "rows":
            return np.diff(queries.ptr) * (1.0 if weight is None else weight)
        return None if self.query_weights == "ignore" else weight

    def sums(self, values: np.ndarray, weight: np.ndarray | None = None) -> tuple[float, float]:
        """Return the weighted sum of the values of queries that are not skipped, and the sum of their weights."""
        if weight is None:
            weight = np.ones(len(values))
        counted = ~np.isnan(values)
        factor = np.where(weight > 0, weight, LEAST_WEIGHT) if self.query_weights == "relevant" else weight
        return float((values[counted] * factor[counted]).sum()), float(weight[counted].sum())

    def average(self, total: float, weight: float) -> float:
        """Return the mean over queries from :meth:`sums`. For a data set in parts, add up their sums first."""
        if weight <= 0:
            raise LTRError(
                f"{self}: every query is skipped as empty or has weight 0, so the mean is not defined; give empty a "
                "number, or some query a weight"
            )
        return total / weight

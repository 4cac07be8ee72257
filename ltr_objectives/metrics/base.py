"""What every metric offers, and what its family provides."""

import abc
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, choice, is_number, require, whole
from ltr_objectives.kernels.moves import move_matrix
from ltr_objectives.kernels.swaps import CASCADE, NEGLIGIBLE, SMALL, swap_matrix
from ltr_objectives.kernels.threads import run
from ltr_objectives.kernels.values import metric_values
from ltr_objectives.queries import Queries, to_numpy

TIES = ("average", "input", "worst", "best")


class Terms(NamedTuple):
    """A metric on one data set, as the kernels see it (families: :mod:`ltr_objectives.kernels.swaps`)."""

    kind: int
    gain: np.ndarray  # by row
    discount: np.ndarray  # by rank, as long as the longest list
    scale: np.ndarray  # by query; 0 where nothing can be learned
    offset: np.ndarray  # by query; added to the value
    cap: float = np.inf  # gain differences count for at most this

    @property
    def ranks(self) -> int:
        """How many ranks have a discount above zero."""
        return int(np.count_nonzero(self.discount))

    def reach(self, ptr: np.ndarray) -> np.ndarray:
        """About how many ranks matter, by query: a cascade ends where hardly anybody looks any further."""
        ranks = np.full(len(ptr) - 1, float(self.ranks))
        if self.kind == CASCADE:
            going_on = np.log(np.maximum(1.0 - self.gain, SMALL))
            mean = np.add.reduceat(going_on, ptr[:-1]) / np.diff(ptr)
            ranks = np.minimum(ranks, np.divide(np.log(NEGLIGIBLE), mean, out=ranks.copy(), where=mean < 0))
        return np.ceil(ranks)


@dataclass(frozen=True)
class Metric(abc.ABC):
    """A ranking metric with all its conventions.

    Parameters
    ----------
    k : int, optional
        Cutoff: ranks beyond it do not count. None is no cutoff.
    ties : "average", "input", "worst" or "best"
        How equal scores are ordered: the expected value over a random order, the order of the rows, the less relevant
        document first, the more relevant one first.
    empty : float or "skip"
        The value of a query in which nothing is relevant. With "skip" it is NaN per query and left out of the mean.
    query_weights : "mean" or "ignore"
        In the mean over queries each counts by the mean weight of its rows, or all count the same.
    """

    k: int | None = None
    ties: str = "average"
    empty: float | str = 0.0
    query_weights: str = "mean"

    name: ClassVar[str]
    kind: ClassVar[int]
    maximum: ClassVar[float | None] = 1.0
    cutoff: ClassVar[str] = "optional"  # or "required", or "none"
    conventions: ClassVar[dict[str, dict[str, Any]]] = {}

    def __post_init__(self) -> None:
        mine = type(self).__name__
        require(hasattr(self, "name"), f"{mine} has no name; add one, such as name: ClassVar[str] = 'mine'")
        require(self.cutoff != "none" or self.k is None, f"{self.name} has no cutoff; leave k out")
        require(
            self.cutoff != "required" or self.k is not None,
            f"{self.name} of the whole list is the same for every ranking; give a cutoff, such as {self.name}@10",
        )
        if self.k is not None:
            whole("k", self.k)
            object.__setattr__(self, "k", int(self.k))
        choice("ties", self.ties, TIES)
        choice("query_weights", self.query_weights, ("mean", "ignore"))
        threshold = getattr(self, "threshold", 0.0)
        require(is_number(threshold), f"threshold={threshold!r} must be a finite number")
        require(
            self.empty == "skip" or is_number(self.empty),
            f"empty={self.empty!r} must be a number or 'skip'",
        )

    def __str__(self) -> str:
        """The field's notation, such as ``ndcg@10``."""
        return self.name if self.k is None else f"{self.name}@{self.k}"

    @classmethod
    def examples(cls) -> "tuple[Metric, ...]":
        """Instances that between them use every option; the tests run over them."""
        some = (cls(k=3), cls(k=1), cls(k=10), cls(k=5, ties="worst"), cls(k=2, ties="input"), cls(k=8, ties="best"))
        return some if cls.cutoff == "required" else (cls(), *some)

    @property
    def label_limit(self) -> float | None:
        """The largest label allowed, None where there is no limit."""
        return None

    @abc.abstractmethod
    def gain(self, labels: np.ndarray) -> np.ndarray:
        """Gain, probability or 0/1 relevance of each label."""

    @abc.abstractmethod
    def discount(self, ranks: np.ndarray) -> np.ndarray:
        """Discount at 1-based ``ranks``, without the cutoff: non-increasing, not negative."""

    @abc.abstractmethod
    def reference(self, labels: np.ndarray) -> float:
        """The textbook value of one list whose labels stand in rank order; slow, and the oracle of the tests."""

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        """The factor of each query; 0 marks an empty one. By default 1 where any gain is positive."""
        return (np.add.reduceat(gain, queries.ptr[:-1]) > 0).astype(np.float64)

    def offset(self, queries: Queries, gain: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """What is added to the value of each query that is not empty."""
        return np.zeros(len(queries))

    def check_labels(self, labels: np.ndarray) -> None:
        """Raise for labels that this metric has no gain for."""
        low, high = labels.min(), labels.max()
        require(
            low >= 0, f"{self} needs labels of at least 0, got {low:g}; shift them, or map them to gains of your own"
        )
        limit = self.label_limit
        if limit is not None:
            require(high <= limit, f"{self} takes labels up to {limit:g}, got {high:g}; {self.beyond_limit}")

    beyond_limit: ClassVar[str] = "map the labels first"

    def terms(self, queries: Queries) -> Terms:
        """This metric on ``queries``, computed once."""
        return queries.once(self, lambda: self._terms(queries))

    def _terms(self, queries: Queries) -> Terms:
        require(
            hasattr(self, "kind"),
            f"{self} has no kind; add kind: ClassVar[int] = LINEAR, or another family of ltr_objectives.kernels.swaps",
        )
        self.check_labels(queries.labels)
        gain = np.require(self.gain(queries.labels), np.float64, ["C", "A", "W"])
        ranks = np.arange(1, queries.longest + 1)
        discount = np.array(self.discount(ranks), np.float64)
        require(
            discount.shape == ranks.shape and (np.diff(discount) <= 0).all() and discount[-1] >= 0,
            f"{self}: discount must give each rank a number that is not negative and does not increase with the rank",
        )
        if self.k is not None:
            discount[self.k :] = 0.0
        scale = self.scale(queries, gain, discount)
        empty = np.nan if self.empty == "skip" else float(self.empty)
        offset = np.where(scale > 0, self.offset(queries, gain, scale), empty)
        return Terms(self.kind, gain, discount, scale, offset)

    def per_query(
        self, scores: ArrayLike, labels: ArrayLike, group: ArrayLike | None = None, *, qid: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The value of each query, shape (queries,), float64."""
        return self.values(Queries(labels, group, qid=qid), scores, n_threads=n_threads)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        """As :meth:`per_query`, on a data set already validated."""
        s = queries.check_scores(scores)
        out = np.empty(len(queries))
        run(
            metric_values,
            queries.ptr,
            (queries.ptr, s, *self.terms(queries)[:5], TIES.index(self.ties), out),
            n_threads,
        )
        return out

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        """The mean over queries, weighted by query weight where there is one."""
        values = self.values(queries, scores, n_threads=n_threads)
        return self.average(*self.sums(values, queries.weight_by_query))

    def sums(self, values: np.ndarray, weight: np.ndarray | None = None) -> tuple[float, float]:
        """The weighted sum of the values of queries, and the sum of the weights of those that count."""
        if weight is None or self.query_weights == "ignore":
            weight = np.ones(len(values))
        counted = ~np.isnan(values)
        return float((values[counted] * weight[counted]).sum()), float(weight[counted].sum())

    def average(self, total: float, weight: float) -> float:
        """The mean that :meth:`sums`, of one data set or added over the parts of one, stand for."""
        require(weight > 0, f"{self}: every query is empty and skipped, or has weight 0; there is no mean")
        return total / weight

    def swap_changes(self, labels: ArrayLike) -> np.ndarray:
        """Exact signed change for each pair of ranks that trades places; ``labels`` stand in rank order.

        Returns
        -------
        array of shape (n, n)
            ``out[d, e]`` for 0-based ``d < e``; zero elsewhere. Labels stay a query of their own, so that an empty
            query has no changes.
        """
        queries = Queries(labels, group=[to_numpy(labels).size])
        terms = self.terms(queries)
        out = np.zeros((queries.rows, queries.rows))
        swap_matrix(terms.kind, terms.gain, terms.discount, terms.scale[0], out)
        return out

    def move_changes(self, labels: ArrayLike) -> np.ndarray:
        """Exact signed change for each document that moves to each rank; ``labels`` stand in rank order.

        Returns
        -------
        array of shape (n, n)
            ``out[d, q]`` when the document at rank ``d`` moves to rank ``q``, both 0-based, and the others keep their
            order; zero on the diagonal.
        """
        queries = Queries(labels, group=[to_numpy(labels).size])
        terms = self.terms(queries)
        out = np.zeros((queries.rows, queries.rows))
        move_matrix(terms.kind, terms.gain, terms.discount, terms.scale[0], out)
        return out

    def with_convention(self, library: str) -> "Metric":
        """This metric with the conventions of a library, such as "lightgbm"; what differs from our default stays."""
        known = {name for c in all_metric_classes() for name in c.conventions}
        choice("convention", library, tuple(sorted(known)))
        if library not in self.conventions:
            having = ", ".join(sorted(self.conventions)) or "no library"
            raise LTRError(f"{library} has no {self.name}; conventions for {self.name}: {having}")
        default = {f.name: f.default for f in fields(self)}
        stated = self.conventions[library].items()
        return replace(self, **{name: value for name, value in stated if getattr(self, name) == default[name]})

    def settings(self) -> dict[str, Any]:
        """Parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def all_metric_classes() -> tuple[type[Metric], ...]:
    """Every registered metric class."""
    from ltr_objectives.registry import metric_class, metrics

    return tuple(metric_class(name) for name in metrics())

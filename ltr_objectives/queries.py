"""The validated queries of a data set: labels, groups, weights, propensities, and what is computed from them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sized
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, did_you_mean, require, warn
from ltr_objectives.goals import check_goal
from ltr_objectives.kernels.scores import Scores, read_scores
from ltr_objectives.kernels.sorting import sort_lists
from ltr_objectives.kernels.threads import run

T = TypeVar("T")
Labels = ArrayLike | Mapping[str, ArrayLike] | Mapping[str | None, ArrayLike]  # one array, or several by goal
MOST_RESULTS = 100  # that a data set keeps
SIZES_OR_IDS = "group holds the sizes of consecutive queries; for one id per row use qid="
REMEDIES = {
    "labels": "; remove such rows, as evaluate(..., unjudged='drop') does",
    "group": f"; leave queries without documents out; {SIZES_OR_IDS}",
    "propensity": "; remove documents that nobody can see",
}
TO_HOST = ("to_numpy", "get", "copy_to_host", "cpu")  # methods of cuDF, CuPy, numba and PyTorch


def to_numpy(values: Any, name: str = "an array") -> np.ndarray:
    """Convert to a NumPy array. Values on a GPU are copied to the host; masked values raise."""
    if hasattr(values, "__cuda_array_interface__"):
        values = next((getattr(values, way)() for way in TO_HOST if hasattr(values, way)), values)
    refuse_masked(values, name)
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise LTRError(f"{name} must be an array: {error}") from None


def refuse_masked(values: Any, name: str) -> None:
    """Raise for an array with a masked value, because NumPy and the libraries would read what is under the mask."""
    require(not np.ma.is_masked(values), f"{name} has a masked value; remove such rows, or fill them by .filled()")


def vector(name: str, values: ArrayLike, keep: Any = np.float64, copy: bool = False) -> np.ndarray:
    """Convert to a one-dimensional float64 array, unless it has the type ``keep``. Dates and text raise."""
    given = to_numpy(values, name)
    got = f"shape {given.shape}" if given.shape else type(values).__name__
    require(given.ndim == 1, f"{name} must be one-dimensional, got {got}")
    require(given.dtype.kind in "biufO", f"{name} must be numbers, got {given.dtype}")
    dates = given.dtype.kind == "O" and any(isinstance(x, np.datetime64 | np.timedelta64) for x in given.tolist())
    require(not dates, f"{name} must be numbers, got dates or spans of time")  # NumPy counts the years from 1970
    try:
        return given.astype(keep if given.dtype == keep else np.float64, order="C", copy=copy)
    except (TypeError, ValueError, OverflowError) as error:
        raise LTRError(f"{name} must be numbers that float64 can hold: {error}") from None


def refuse_merged(labels: np.ndarray, ptr: np.ndarray) -> None:
    """Raise if float32, in which the libraries store labels, makes labels of a query equal that are not ties.

    Labels that differ by a relative 1e-6 or less are ties. If all labels of a query become equal, only differences of
    rounding, up to 1e-12, are ties.
    """
    with np.errstate(over="ignore"):
        stored = labels.astype(np.float32)
    if (stored == labels).all():
        return
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order = np.lexsort((labels, query))
    low, high = labels[order][:-1], labels[order][1:]
    merged = (np.diff(query[order]) == 0) & (np.diff(stored[order]) == 0)
    alone = np.minimum.reduceat(stored, ptr[:-1]) == np.maximum.reduceat(stored, ptr[:-1])
    tolerance = np.where(alone[query[order][1:]], 1e-12, 1e-6) * np.maximum(abs(low), abs(high))
    wrong = np.flatnonzero(merged & (high - low > tolerance))
    if len(wrong):
        raise LTRError(
            f"labels {low[wrong[0]].item()!r} and {high[wrong[0]].item()!r} of one query are equal in float32, which "
            "the libraries store; rank the labels within each query, or pass them as float32 if such differences do "
            "not matter"
        )


def check_rows(name: str, values: Sized, rows: int) -> None:
    """Raise unless there is one value per row."""
    require(len(values) == rows, f"{name} has {len(values)} entries; pass one per row ({rows})")


def _check_each(name: str, values: np.ndarray, good: np.ndarray, must: str, one: str = "row") -> None:
    """Raise unless all values are ``good``; the error names the first that is not."""
    if not good.all():
        at = int(np.argmin(good))
        raise LTRError(f"{name} must be {must}, but {one} {at} is {values[at]:g}{REMEDIES.get(name, '')}")


def labels_by_goal(labels: ArrayLike, goals: Mapping[str, Any]) -> dict[str | None, Any]:
    """Return ``labels`` and those of ``goals`` as :class:`Queries` takes them."""
    named: list[tuple[str | None, Any]] = [(None, labels), *goals.items()]
    return dict(named)


def read_labels(labels: Labels) -> list[tuple[str | None, np.ndarray]]:
    """Return float64 copies of the labels of each goal, the default labels first."""
    if not isinstance(labels, Mapping):
        return [(None, vector("labels", labels, copy=True))]
    require(labels, "labels is empty; pass at least one array, as in {'relevance': array}")
    found: list[tuple[str | None, np.ndarray]] = []
    for goal, values in labels.items():
        if goal is not None or found:  # None can only name the first
            check_goal(goal)
        found.append((goal, vector(f"labels[{goal!r}]" if found else "labels", values, copy=True)))
    return found


def _sizes(group: ArrayLike) -> np.ndarray:
    sizes = vector("group", group)
    good = (sizes >= 1) & (sizes == np.floor(sizes))
    _check_each("group", sizes, good, "sizes of at least one document", "query")
    return sizes


def ids_of(qid: Any, name: str = "qid") -> np.ndarray:
    """Convert ids to an array; raise if one is missing or was rounded."""
    ids = to_numpy(qid, name)
    if isinstance(qid, list | tuple) and ids.dtype.kind in "US":
        ids = np.array(qid, object)  # NumPy would make text of 1 and of NaN
    require(ids.ndim == 1, f"{name} must be one-dimensional, got shape {ids.shape}")
    try:
        missing = (ids != ids) | ((ids == np.array(None)) if ids.dtype.kind == "O" else False)  # NaN and None
    except TypeError:  # pandas.NA has no truth value
        missing = np.array([x is None or type(x).__name__ == "NAType" or x != x for x in ids.tolist()])
    if missing.any():
        raise LTRError(f"{name} has no id in row {missing.argmax()}; remove such rows, or give each row an id")
    if ids.dtype.kind == "f":
        limit = 2.0 ** (np.finfo(ids.dtype).nmant + 1)
        require(
            (np.abs(ids) < limit).all(),
            f"{name} is {ids.dtype}, which cannot tell ids of {limit:.0f} and more apart; pass whole numbers or text",
        )
    return ids


def codes_of(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different ids, sorted unless they are text and numbers, and which of them each entry is."""
    try:
        return np.unique(ids, return_inverse=True)
    except TypeError:
        number = {name: i for i, name in enumerate(dict.fromkeys(ids.tolist()))}
        return np.array([*number], object), np.array([number[name] for name in ids.tolist()])


def sizes_of(qid: Any, rows: int | None = None) -> np.ndarray:
    """Return the group sizes of query ids, one for each of ``rows``; rows of one query must be consecutive.

    >>> sizes_of([7, 7, 3, 3, 3])
    array([2, 3])
    """
    ids = ids_of(qid)
    require(len(ids) > 0, "qid is empty; pass one query id per row")
    n = len(ids)
    require(rows in (None, n), f"qid has {n} rows, but there are {rows}; sizes of queries belong to group=")
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    again = next((name for name, count in Counter(ids[starts].tolist()).items() if count > 1), None)
    require(
        again is None,
        f"qid is not sorted: query {again} occurs in several places; "
        "sort the rows by qid, for example with order = np.argsort(qid, kind='stable'), and give tools that shuffle "
        "columns a table without qid",
    )
    return np.diff(np.append(starts, n))


class Queries:
    """Labels, groups and weights of one data set, checked once; results computed from them are kept here.

    Parameters
    ----------
    labels : array of shape (rows,), or mapping of goals to such arrays
        Relevance, finite. The first array of a mapping, such as ``{"relevance": y, "revenue": r}``, has the default
        labels, which an objective or metric without a goal reads. Its key may be None.
    group : array of shape (queries,), optional
        Group sizes, in the order of the rows. Pass either this or ``qid``.
    qid : array of shape (rows,), optional
        Query id of each row; rows of one query are consecutive.
    weight : array of shape (queries,) or (rows,), optional
        At least 0. The weight of a query multiplies the gradients and Hessians of all its rows; the weight of a row
        multiplies its own. A metric weighs each query by the mean of its rows' weights.
    propensity : array of shape (rows,), optional
        For labels that are clicks: the probability that each document was examined where it was shown, above 0. The
        pairwise objectives divide the weight of a pair by the propensity of the clicked document; others raise. A
        common factor divides all weights, but values above 1 cause a warning, because they may be inverse weights. Only
        the default labels are clicks.

    Raises
    ------
    LTRError
        For sizes that do not add up, an unsorted ``qid``, or values that are not finite. For weights or propensities of
        a wrong length or sign.

    Examples
    --------
    >>> queries = Queries([1, 0, 2], group=[1, 2])
    >>> len(queries), queries.rows, queries.ptr
    (2, 3, array([0, 1, 3]))
    """

    def __init__(
        self,
        labels: Labels,
        group: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
    ) -> None:
        read = read_labels(labels)
        self.labels = read[0][1]
        self.rows = len(self.labels)
        require(self.rows > 0, "there are no rows, but a data set needs at least one")
        for goal, values in read:
            name = "labels" if values is self.labels else f"labels[{goal!r}]"
            check_rows(name, values, self.rows)
            _check_each(name, values, np.isfinite(values), "finite")
            values.flags.writeable = False
        self.goals = {goal: values for goal, values in read if goal is not None}
        require(group is not None or qid is not None, "pass group= (sizes) or qid= (one id per row)")
        require(group is None or qid is None, "pass group= or qid=, not both")
        sizes = sizes_of(qid, self.rows) if group is None else _sizes(group)
        total = f"group adds up to {sizes.sum():g} rows, but there are {self.rows}"
        require(sizes.sum() == self.rows, f"{total}; {SIZES_OR_IDS}")
        self.ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        self.longest = int(sizes.max())
        self.weight_by_row = None if weight is None else self._weights(weight)
        self.propensity = None if propensity is None else self._propensities(propensity)
        self.of_clicks = propensity is not None  # queries without a click are usual
        self._orders: dict[int, tuple[str, Any]] = {}
        self.check_order({"labels": labels, "qid": qid, "group": group, "weight": weight, "propensity": propensity})
        self._computed: dict[Hashable, tuple[Any]] = {}
        self._zeros: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getstate__(self) -> dict[str, Any]:
        return {
            **vars(self),
            "_computed": {},
            "_zeros": [],
            "_orders": {},
        }  # results depend on labels, which `with_labels` replaces

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for labels in (self.labels, *self.goals.values()):
            labels.flags.writeable = False  # as before pickling, or kernels would be compiled for another type

    def __repr__(self) -> str:
        return f"Queries({len(self)} queries, {self.rows} rows, longest {self.longest})"

    def _weights(self, weight: ArrayLike) -> np.ndarray:
        w = vector("weight", weight, copy=True)
        _check_each("weight", w, (w >= 0) & (w < np.inf), "finite and not negative", "entry")
        if len(w) == len(self):
            return np.repeat(w, np.diff(self.ptr))
        there = f"one per query ({len(self)}) or one per row ({self.rows})"
        require(len(w) == self.rows, f"weight has {len(w)} entries; pass {there}")
        return w

    def _propensities(self, propensity: ArrayLike) -> np.ndarray:
        given = vector("propensity", propensity, copy=True)
        check_rows("propensity", given, self.rows)
        _check_each("propensity", given, (given > 0) & (given < np.inf), "finite and above 0")
        return given

    def check_order(self, arrays: Mapping[str, Any], where: str = "") -> None:
        """Warn of a table or Series of pandas whose index has the rows, or the queries, in another order than others.

        Entries count by position. The first index of each length is the order of all others, also in later calls;
        without one by query it is that of the ids in ``arrays["qid"]``.
        """
        several = {
            f"{name}[{key!r}]": x for name, of in arrays.items() if isinstance(of, Mapping) for key, x in of.items()
        }
        indexed = {name: x for name, x in {**arrays, **several}.items() if hasattr(x, "iloc")}
        if any(len(x) == len(self) < self.rows for x in indexed.values()) and arrays.get("qid") is not None:
            self._orders.setdefault(len(self), ("qid.unique()", ids_of(arrays["qid"])[self.ptr[:-1]]))
        for name, values in indexed.items():
            index = values.index
            first, order = self._orders.setdefault(len(index), (f"{name}.index", index))
            if not (index.equals(order) or np.array_equal(index, order)) and index.isin(order).all():
                warn(
                    f"{where}{name} has the entries of {first} in another order, but they count by position; reorder "
                    f"it by .loc[{first}], or if it is right as it is, pass it by .to_numpy()"
                )

    def for_goal(self, goal: str | None) -> Queries:
        """Return these queries with the labels of a goal, without propensities; for None, themselves.

        >>> Queries({"relevance": [1, 0], "revenue": [0, 7]}, group=[2]).for_goal("revenue").labels
        array([0., 7.])
        """
        if goal is None:
            return self
        known = ", ".join(map(repr, self.goals)) or "none"
        require(
            goal in self.goals,
            f"there are no labels {goal!r} (by name there are {known}); pass them as labels={{{goal!r}: array}}, those "
            f"of eval sets as eval_labels=[...], one number a row{did_you_mean(goal, self.goals)}",
        )
        labels = self.goals[goal]
        return self if labels is self.labels else self.cached(("goal", goal), lambda: self.with_labels(labels))

    def with_labels(self, labels: np.ndarray) -> Queries:
        """Return a copy with other labels, finite float64, and without propensities."""
        check_rows("labels", labels, self.rows)
        if labels.flags.writeable:
            labels = labels.copy()
            labels.flags.writeable = False
        other = copy.copy(self)
        other.labels, other.propensity = labels, None
        return other

    @property
    def query_by_row(self) -> np.ndarray:
        """The number of the query of each row, from 0."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    @property
    def weight_by_query(self) -> np.ndarray | None:
        """The mean of each query's row weights, or None."""
        weight = self.weight_by_row
        if weight is None:
            return None
        return self.cached("weight by query", lambda: np.add.reduceat(weight, self.ptr[:-1]) / np.diff(self.ptr))

    @property
    def by_label(self) -> np.ndarray:
        """The documents of each query, counted from its first row, in stable descending order of label; int32."""
        return self.cached("by label", self._by_label)

    def _by_label(self) -> np.ndarray:
        order = np.empty(self.rows, np.int32)
        run(sort_lists, self.ptr, (self.ptr, self.labels, order), n_threads=1)
        return order

    def _condensed(self, kept: np.ndarray) -> tuple[Queries, np.ndarray]:
        """Return the queries with the rows ``kept`` and these labels alone, and the old number of each query.

        >>> queries, old = Queries([1, 0, 2], group=[1, 2])._condensed(np.array([False, True, True]))
        >>> len(queries), queries.labels, old
        (1, array([0., 2.]), array([1]))
        """
        query = self.query_by_row[kept]
        weight = None if self.weight_by_row is None else self.weight_by_row[kept]
        return Queries(self.labels[kept], qid=query, weight=weight), np.unique(query)

    def _borrow_zeros(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two zeroed arrays of shape (rows,) from a pool; new ones would take half the time of a gradient."""
        try:
            return self._zeros.pop()
        except IndexError:  # the first call, or another thread has them
            return np.zeros(self.rows), np.zeros(self.rows)

    def _give_back_zeros(self, first: np.ndarray, second: np.ndarray) -> None:
        """Return two arrays to the pool. They must be zeros again; after an error, do not return them."""
        self._zeros.append((first, second))

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return ``compute()``, which is called once for each of the last ``MOST_RESULTS`` keys."""
        found = self._computed.pop(key, None) or (compute(),)  # in a tuple, because the result may be None
        self._computed[key] = found  # the last used is the last
        for old in list(self._computed)[:-MOST_RESULTS]:  # a copy in one step, because other threads add results
            self._computed.pop(old, None)
        value: T = found[0]
        return value

    def longer_than(self, documents: int) -> list[int]:
        """Return the queries of at least so many documents."""
        if self.longest < documents:
            return []
        found: list[int] = np.flatnonzero(np.diff(self.ptr) >= documents).tolist()
        return found

    def in_longest(self, values: np.ndarray) -> np.ndarray:
        """Return the entries of the longest query."""
        q = np.diff(self.ptr).argmax()
        return values[self.ptr[q] : self.ptr[q + 1]]

    def check_scores(
        self, scores: ArrayLike | Scores, n_threads: int | None = 1, name: str = "scores"
    ) -> Scores:  # fmt: skip
        """Return scores as kernels take them; raise unless there is one finite number per row.

        Scores that this method returned are not checked again.
        """
        given = scores.values if isinstance(scores, Scores) else vector(name, scores, keep=np.float32)
        check_rows(name, given, self.rows)
        if isinstance(scores, Scores):
            return scores
        self.check_order({name: scores})
        read = read_scores(given, self.ptr, n_threads)
        if not np.isfinite(read.largest):
            _check_each(name, read.values, np.isfinite(read.values), "finite")
        return read

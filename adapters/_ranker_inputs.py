"""The data of the estimators: tables, queries and weights, in the form that all three libraries read."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

try:
    from scipy.sparse import csr_matrix, issparse
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import clone as clone
    from sklearn.utils import check_array
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
except ModuleNotFoundError:
    raise ImportError("the rankers need scikit-learn: pip install scikit-learn") from None

from ltr_objectives.adapters._callables import ByGoal, read_labels
from ltr_objectives.checks import check_list
from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import Queries, by_goal, refuse_masked, refuse_merged, to_numpy, vector

QID = "qid"  # the column that may hold the query ids, as in XGBoost's own ranker
PAGE = "see 'Train with the estimators' in the documentation"
# scikit-learn 1.6 renamed the argument; missing and infinite values are the library's business
RENAMED = "ensure_all_finite" in inspect.signature(check_array).parameters
ANY_VALUE: dict[str, Any] = {"ensure_all_finite" if RENAMED else "force_all_finite": False}


class Part(NamedTuple):
    """A table and its queries, whose labels and weights are float32 numbers, as the libraries store them."""

    X: Any
    queries: Queries

    @property
    def labels(self) -> np.ndarray:
        """One a row."""
        return self.queries.labels.astype(np.float32)

    @property
    def group(self) -> np.ndarray:
        """Number of rows of each query."""
        return np.diff(self.queries.ptr)

    @property
    def qid(self) -> np.ndarray:
        """Query of each row, counted from 0."""
        return np.repeat(np.arange(len(self.queries)), self.group)

    @property
    def weight(self) -> np.ndarray | None:
        """One a row."""
        weight = self.queries.weight_by_row
        return None if weight is None else weight.astype(np.float32)

    @property
    def weight_by_query(self) -> np.ndarray | None:
        """One a query, if the rows of each query have equal weights; else None."""
        weight = self.weight
        if weight is None:
            return None
        first = weight[self.queries.ptr[:-1]]
        return first if np.array_equal(np.repeat(first, self.group), weight) else None

    def take(self, rows: np.ndarray, sizes: np.ndarray, weight: np.ndarray | None = None) -> "Part":
        """These rows, in queries of these sizes; ``weight`` has new weights of all rows."""

        def of_rows(values: np.ndarray | None) -> Any:
            return None if values is None else values[rows]

        given = self.queries
        queries = Queries(
            by_goal(given.labels[rows], {goal: labels[rows] for goal, labels in given.goals.items()}),
            sizes,
            weight=of_rows(given.weight_by_row if weight is None else weight),
            propensity=of_rows(given.propensity),
            position=of_rows(given.position),
        )
        return Part(self.X.iloc[rows] if is_frame(self.X) else self.X[rows], queries)

    def shuffled(self) -> "Part":
        """The rows of each query in random order."""
        order = np.random.default_rng(0).random(self.queries.rows)
        return self.take(np.lexsort((order, self.qid)), self.group)


def is_frame(X: Any) -> bool:
    """True for a pandas DataFrame."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def native(X: np.ndarray) -> np.ndarray:
    """``X`` in the byte order of this machine, which XGBoost assumes and pandas requires.

    The result is never ``X`` itself, because CatBoost leaves arrays in Fortran order read-only.
    """
    return X.view() if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def refuse_data_sets(X: Any, name: str = "X", instead: str = "give the features themselves") -> None:
    """Raise for a data set of a library."""
    require(
        type(X).__name__ not in ("Pool", "DMatrix", "QuantileDMatrix", "Dataset"),
        f"{name} is a {type(X).__name__}; {instead}, or train it by the library's own functions with the callables of "
        "ltr_objectives.adapters",
    )


def read_table(X: Any) -> tuple[Any, np.ndarray | None]:
    """The features as a DataFrame, NumPy array or CSR matrix, and the column of query ids if there is one."""
    refuse_data_sets(X)
    if hasattr(X, "to_pandas"):  # polars and pyarrow
        X = X.to_pandas()
    if not is_frame(X):
        refuse_masked(X, "X")
        try:
            X = check_array(X, accept_sparse="csr", input_name="X", **ANY_VALUE)
        except ValueError as error:  # its TypeError for objects passes: scikit-learn's tests demand it
            raise LTRError(f"X must be a table of numbers of shape (rows, features): {error}") from None
        require(X.dtype.kind not in "mM", f"X holds dates or spans of time ({X.dtype}); convert them to numbers")
        if not issparse(X):
            return native(X), None
        # all versions of the libraries read the older sparse type, with indices of 32 bits if they suffice
        return csr_matrix((native(X.data), native(X.indices), native(X.indptr)), X.shape), None
    changed = {c: d.newbyteorder("=") for c, d in X.dtypes.items() if isinstance(d, np.dtype) and not d.isnative}
    # LightGBM reads ordered categories as numbers
    changed |= {c: type(d)(d.categories) for c, d in X.dtypes.items() if getattr(d, "ordered", False)}
    X = X.astype(changed) if changed else X
    if QID in X.columns:
        return X.drop(columns=QID), X[QID].to_numpy()
    require(min(X.shape) > 0, f"X has shape {X.shape}; it needs at least one row and one column")
    return X, None


def read_part(
    X: Any,
    y: ArrayLike,
    group: ArrayLike | None,
    qid: ArrayLike | None,
    weight: ArrayLike | None,
    labels: ByGoal | None = None,
    of: str = "",
    **clicks: ArrayLike | None,
) -> Part:
    """One data set, checked before training; errors name the arguments with ``of`` before them."""
    table, column = read_table(X)
    require(y is not None, "a ranker requires y to be passed, but the target y is None; y holds the labels")
    goals = read_labels(labels, f"{of}labels")
    _refuse_leaks(table, by_goal(y, labels or {}))
    given = (group is not None) + (qid is not None)
    require(column is None or given == 0, f"X has a column {QID!r}; drop it, or leave {of}qid= and {of}group= out")
    one = f"pass {of}group= (sizes) or {of}qid= (one id per row)"
    as_column = f", or X as a table with a column {QID!r}, which cross_val_score keeps: {PAGE}"
    require(column is not None or given == 1, one + (", not both" if given else as_column))
    by_name = by_goal(_as_stored("labels", y), goals)
    weight = None if weight is None else _as_stored("weight", weight)
    queries = Queries(by_name, group, qid=qid if column is None else column, weight=weight, **clicks)
    require(table.shape[0] == queries.rows, f"X has {table.shape[0]} rows, but y has {queries.rows}")
    refuse_merged(vector("labels", y), queries.ptr)
    return Part(table, queries)


def _as_stored(name: str, values: ArrayLike) -> np.ndarray:
    """The values in float32; raises for finite ones beyond its range."""
    given = vector(name, values)
    with np.errstate(over="ignore"):
        stored = given.astype(np.float32)
    many = name.removesuffix("s") + "s"
    beyond = np.isinf(stored) & np.isfinite(given)
    require(not beyond.any(), f"{many} are beyond float32, which the libraries store; scale them down")
    return stored


def _refuse_leaks(X: Any, labels: Mapping[str | None, Any]) -> None:
    """Raise if a column of ``X`` is called like a goal, or is the Series that was given as labels."""
    for goal, values in labels.items() if is_frame(X) else ():
        name = getattr(values, "name", None)
        same = name in X and np.array_equal(to_numpy(values), X[name])
        column = name if same else goal
        require(column not in X, f"X has a column {column!r}, which holds labels and would be a feature; drop it")


def read_eval_sets(eval_set: Any, lists: Mapping[str, Any]) -> tuple[Part, ...]:
    """The parts to evaluate on.

    ``lists`` are the arguments with one entry for each pair, by name: sizes, ids, weights under two names, and labels.
    """
    form, pairs = "write eval_set=[(X, y)], eval_qid=[qid]", []
    refuse_data_sets(eval_set, "eval_set", form)
    for i, pair in enumerate(check_list("eval_set", eval_set, "pairs (X, y)")):
        refuse_data_sets(pair, f"eval_set[{i}]", form)
        pairs.append(check_list("eval_set", pair, "pairs (X, y)"))
        require(
            len(pairs[-1]) == 2,
            f"eval_set must be a list of pairs (X, y), but eval_set[{i}] has {len(pairs[-1])} entries; write "
            "eval_set=[(X, y)], also for one pair",
        )
    require(
        lists["eval_sample_weight"] is None or lists["sample_weight_eval_set"] is None,
        "eval_sample_weight and sample_weight_eval_set are two names of one argument; pass one of them",
    )
    entries = []
    for name, given in lists.items():
        arrays = f"{'mappings' if name == 'eval_labels' else 'arrays'}, one for each pair of eval_set"
        entries.append([None] * len(pairs) if given is None else check_list(name, given, arrays))
        n = len(entries[-1])
        must = f"{name} must be a list with one entry for each of the {len(pairs)} pairs of eval_set"
        require(n == len(pairs), f"{must}, but has {n}" + (f": eval_set[{n}] has none" if n < len(pairs) else ""))
    parts = []
    for i, ((X, y), group, qid, first, second, labels) in enumerate(zip(pairs, *entries, strict=True)):
        try:
            parts.append(read_part(X, y, group, qid, first if second is None else second, labels, "eval_"))
        except LTRError as error:
            raise LTRError(f"eval_set[{i}]: {error}") from None
    return tuple(parts)


def check_features(estimator: Any, X: Any, *, reset: bool = False) -> None:
    """Note number and names of the features with ``reset``; else raise unless they are the same."""
    strings = [isinstance(name, str) for name in X.columns] if is_frame(X) else []
    require(
        all(strings) or not any(strings),
        "X has columns whose names are strings, and others; name all by strings: X.columns = X.columns.astype(str)",
    )
    if is_frame(X) and not reset:
        stored = [estimator._stored_name(c) for c in X.columns]
        if estimator.nameless_:  # any names are right
            X = np.empty((1, X.shape[1]))
        elif stored == list(getattr(estimator, "feature_names_in_", ())):  # names as the library writes them
            X = X.iloc[:1].set_axis(stored, axis=1)
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        BaseEstimator._check_feature_names(estimator, X, reset=reset)
        BaseEstimator._check_n_features(estimator, X, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)


def categories(X: Any) -> dict[Any, Any]:
    """The dtype of each categorical column of a frame."""
    return {c: dtype for c, dtype in X.dtypes.items() if dtype == "category"} if is_frame(X) else {}


def named(X: Any) -> Any:
    """``X`` with strings as names of its columns, because the libraries take numbers for positions.

    A frame is a shallow copy, because older versions of LightGBM set the categories of the caller's columns.
    """
    if not is_frame(X):
        return X
    if all(isinstance(name, str) for name in X.columns):
        return X.copy(deep=False)
    return X.set_axis([str(name) for name in X.columns], axis=1)


def require_same_categories(before: list[list[Any]], X: Any) -> None:
    """Raise unless ``X`` has the categories ``before`` in the same order: trees store only their numbers."""
    now = [list(dtype.categories) for dtype in categories(X).values()]
    require(now == before, f"X has the categories {now}, but init_model was trained on {before}; make them the same")

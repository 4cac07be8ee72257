"""The data of the estimators: tables, queries and weights, in the form that all three libraries read."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

try:
    from scipy.sparse import csr_matrix, issparse
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import clone as clone
    from sklearn.utils import RegressorTags as RegressorTags
    from sklearn.utils import check_array, column_or_1d
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
    from sklearn.utils.validation import validate_data as validate_data
except ModuleNotFoundError as error:
    raise ImportError(f"the rankers need scikit-learn: pip install scikit-learn ({error})") from None

from ltr_objectives.adapters._callables import ByGoal, read_labels
from ltr_objectives.adapters._catboost_fit import has_group_weight, rows_of
from ltr_objectives.adapters._tables import Part, is_frame, is_pool, with_numbers
from ltr_objectives.checks import check_list
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.position_bias import check_positions
from ltr_objectives.queries import (
    Queries,
    check_rows,
    ids_of,
    labels_by_goal,
    refuse_masked,
    refuse_merged,
    to_numpy,
    vector,
)

Named = tuple[str, Any]  # an argument of fit
QID = "qid"  # the column that may hold the query ids, as in XGBoost's own ranker
LOST = (
    "query ids are missing: pass qid= (one id per row) or group= (sizes). In scikit-learn's tools groups= only makes "
    "folds: call set_fit_request(qid=True) and set_score_request(qid=True), or keep a column "
    f"{QID!r} in X through every step, not as 'remainder__{QID}'"
)
LOST_EVAL = "query ids are missing: pass eval_qid= or eval_group=, with an array for each pair"


def in_our_byte_order(X: np.ndarray) -> np.ndarray:
    """Return ``X`` in the byte order of this machine, which XGBoost assumes and pandas requires.

    The result is never ``X`` itself, because CatBoost leaves arrays in Fortran order read-only.
    """
    return X.view() if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def read_table(X: Any) -> tuple[Any, np.ndarray | None]:
    """Return the features as a DataFrame, NumPy array or CSR matrix, and the column of query ids if there is one."""
    require(not hasattr(X, "collect_schema") or hasattr(X, "to_pandas"), "X is a LazyFrame; pass X.collect()")
    if hasattr(X, "to_pandas"):  # polars and pyarrow
        X = X.to_pandas()
    if not is_frame(X):
        refuse_masked(X, "X")
        # missing and infinite values are the library's business
        X = check_array(X, accept_sparse="csr", input_name="X", ensure_all_finite=False)
        require(X.dtype.kind not in "mM", f"X holds dates or spans of time ({X.dtype}); convert them to numbers")
        if not issparse(X):
            return in_our_byte_order(X), None
        # all versions of the libraries read the older sparse type, with indices of 32 bits if they suffice
        return csr_matrix(tuple(map(in_our_byte_order, (X.data, X.indices, X.indptr))), X.shape), None
    names = ["", *sorted(str(name) for name in X.columns)]  # with "" a column without a name counts as a second one
    twice = next((one for one, other in pairwise(names) if one == other), None)
    require(twice is None, f"X has two columns called {twice!r}, or one without a name; name each by itself")
    changed = {c: d.newbyteorder("=") for c, d in X.dtypes.items() if isinstance(d, np.dtype) and not d.isnative}
    # LightGBM reads ordered categories as numbers
    changed |= {c: type(d)(d.categories) for c, d in X.dtypes.items() if getattr(d, "ordered", False)}
    X = X.astype(changed) if changed else X
    X, qid = (X.drop(columns=QID), X[QID].to_numpy()) if QID in X.columns else (X, None)
    dates = [c for c, d in X.dtypes.items() if getattr(d, "kind", "") in ("m", "M")]
    require(not dates, f"X has dates or spans of time in {dates}; convert them to numbers")
    require(all(X.shape), f"X has {X.shape[0]} rows and {X.shape[1]} columns of features, but needs both")
    return with_numbers(X), qid


def either(**given: Any) -> Named:
    """Return the name and the value of the one that was given of several arguments of one meaning."""
    named = [(name, value) for name, value in given.items() if value is not None]
    require(len(named) < 2, f"{' and '.join(f'{name}=' for name, _ in named)} are names of one argument; give one")
    return named[0] if named else (next(iter(given)), None)


def read_part(
    X: Any, y: ArrayLike | None, *, group: ArrayLike | None = None, qid: ArrayLike | None = None,
    weight: ArrayLike | None = None, labels: ByGoal | None = None, margin: Named = ("baseline", None), where: str = "",
    propensity: ArrayLike | None = None, position: ArrayLike | None = None,
) -> Part:  # fmt: skip
    """Read one data set, called ``where`` in warnings. A pool has its own labels, queries, weights and baseline."""
    if is_pool(X):
        beside = [value for value in (y, group, qid, weight, margin[1]) if value is not None]
        require(not beside, "a Pool has its own labels, queries, weights and baseline; give none of them beside it")
        require(
            position is None,
            "position= needs the features, which a Pool does not give back; pass the table, or make the Pool with "
            "baseline=position_offsets(X, clicks, position, qid=...).at(position)",
        )
        return _read_pool(X, read_labels(labels), propensity)
    table, column = read_table(X)
    if y is None:
        raise LTRError("a ranker requires y to be passed, but the target y is None; y holds the labels")
    goals = read_labels(labels)
    _refuse_leaks(table, labels_by_goal(y, labels or {}), where)
    if column is not None:
        require(group is None and qid is None, f"X has a column {QID!r}; drop it, or leave qid= and group= out")
        qid = column
    require(group is not None or qid is not None, LOST_EVAL if where else LOST)
    _warn_of_counts(group, where)
    given = vector("labels", _of_a_column(y))
    require(table.shape[0] == len(given), f"X has {table.shape[0]} rows, but y has {len(given)}")
    stored = _as_stored(given)
    queries = Queries(
        labels_by_goal(stored, goals),
        group,
        qid=None if qid is None else ids_of(qid),
        weight=None if weight is None else _as_stored(vector("weight", weight)),
        propensity=None if propensity is None else to_numpy(propensity, "propensity"),
    )
    require(propensity is None or position is None, "pass propensity= or position=, not both: each corrects the clicks")
    shown = None if position is None else check_positions(position, queries.rows)
    by_row = {"labels": labels, **dict([margin]), "propensity": propensity, "position": position}
    queries.check_order({"X": X, "y": y, "qid": qid, "group": group, "sample_weight": weight, **by_row}, where)
    refuse_merged(given, queries.ptr)
    return Part(table, queries, stored, _read_margin(margin, queries.rows), column is not None, shown)


def _warn_of_counts(group: Any, where: str) -> None:
    """Warn of sizes in the order of ``value_counts``."""
    if getattr(group, "name", None) == "count" and np.ptp(group) > 0 and (np.diff(group) <= 0).all():
        warn(
            f"{where}group is counted by value_counts(), largest query first, but sizes must be in the order of the "
            "rows; pass table.groupby('query', sort=False).size(), or the ids as qid="
        )


def _read_pool(pool: Any, goals: ByGoal, propensity: ArrayLike | None) -> Part:
    rows = rows_of(pool)
    require(
        not has_group_weight(pool, rows.group),
        "the pool has group_weight, which CatBoost does not give back, and which catboost_objective sets too; make a "
        "new pool without, or give fit the table of the pool, with group_weight=",
    )
    queries = Queries(labels_by_goal(rows.labels, goals), rows.group, weight=rows.weight, propensity=propensity)
    return Part(pool, queries, rows.labels, _read_margin(("baseline", rows.baseline), queries.rows))


def _of_a_column(values: Any, warn: bool = True) -> Any:
    """Return the values of a column vector, with scikit-learn's warning of ``y``; others as they are."""
    return column_or_1d(values, warn=warn) if getattr(values, "shape", ())[1:] == (1,) else values


def _as_stored(values: np.ndarray) -> np.ndarray:
    """Return the values in float32; `Queries` refuses those that are infinite there."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _read_margin(margin: Named, rows: int) -> np.ndarray | None:
    """Return the initial scores, which may be a column vector."""
    name, values = margin
    if values is None:
        return None
    scores = vector(name, _of_a_column(values, warn=False))
    check_rows(name, scores, rows)
    require(np.isfinite(scores).all(), f"{name} must be finite in each row")  # LightGBM would read NaN as 0
    return scores


def _refuse_leaks(X: Any, labels: Mapping[str | None, Any], where: str) -> None:
    """Raise if a column of ``X`` has the labels of a goal under its name or that of the Series; warn of the name."""
    for goal, values in labels.items() if is_frame(X) else ():
        for column in dict.fromkeys((goal, getattr(values, "name", None))):
            if column is None or column not in X:
                continue
            same = np.array_equal(to_numpy(values), X[column])
            require(not same, f"X has a column {column!r}, which holds labels and would be a feature; drop it")
            if column == goal:
                warn(
                    f"{where}X has a column {column!r}, a feature with other numbers than the labels of this name; "
                    "drop it unless it is known before users see the documents"
                )


def read_parts(eval_set: Any, **lists: Named) -> tuple[Part, ...]:
    """Return the parts to evaluate on; ``lists`` have arguments of `read_part`, one entry a pair."""
    several = isinstance(eval_set, tuple) and all(isinstance(each, tuple) or is_pool(each) for each in eval_set)
    one = is_pool(eval_set) or (isinstance(eval_set, tuple) and not several)
    pairs = [
        (pair, None) if is_pool(pair) else pair
        for pair in check_list("eval_set", [eval_set] if one else eval_set, "pairs (X, y)")
    ]
    require(
        all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs),
        "eval_set must be a list of pairs (X, y)",
    )
    for name, given in lists.values():
        n = len(pairs) if given is None else len(check_list(name, given, "arrays"))
        wanted = f"{name} must have one entry for each of the {len(pairs)} pairs of eval_set"
        require(n == len(pairs), f"{wanted}, got {n}; for one pair pass {name}=[...]")
    parts = []
    for i, (X, y) in enumerate(pairs):
        try:
            of_pair: dict[str, Any] = {role: None if x is None else x[i] for role, (_, x) in lists.items()}
            if "margin" in lists:
                of_pair["margin"] = lists["margin"][0], of_pair["margin"]
            parts.append(read_part(X, y, where=f"eval_set[{i}]: ", **of_pair))
        except LTRError as error:
            raise LTRError(f"eval_set[{i}]: {error}") from None
    return tuple(parts)

"""Tables of features: their columns and categories, and a table with its queries."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.checks import is_number
from ltr_objectives.errors import require, warn
from ltr_objectives.queries import Queries, labels_by_goal

NUMBERS = ("boolean", "decimal", "empty", "floating", "integer", "mixed-integer-float")  # in pandas' words


class Part(NamedTuple):
    """A table and its queries. Labels and weights are float32 numbers, as the libraries store them."""

    X: Any
    queries: Queries
    labels: np.ndarray
    margin: np.ndarray | None = None  # the scores that training starts from, one a row
    had_ids: bool = False  # the table had a column of query ids, which the libraries do not see
    position: np.ndarray | None = None  # where each row was shown, if labels are clicks
    offset: np.ndarray | None = None  # that of its position, which the training adds to the scores

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
        """Weight of each row."""
        weight = self.queries.weight_by_row
        return None if weight is None else weight.astype(np.float32)

    @property
    def weight_by_query(self) -> np.ndarray | None:
        """Weight of each query, if its rows have equal weights; else None."""
        weight = self.weight
        if weight is None:
            return None
        first = weight[self.queries.ptr[:-1]]
        return first if np.array_equal(np.repeat(first, self.group), weight) else None

    def take(self, rows: np.ndarray, sizes: np.ndarray, weight: np.ndarray | None = None) -> "Part":
        """Return these rows, in queries of these sizes; ``weight`` has new weights of all rows."""

        def of_rows(values: np.ndarray | None) -> Any:
            return None if values is None else values[rows]

        given, labels = self.queries, self.labels[rows]
        queries = Queries(
            labels_by_goal(labels, {goal: values[rows] for goal, values in given.goals.items()}),
            sizes,
            weight=of_rows(given.weight_by_row if weight is None else weight),
            propensity=of_rows(given.propensity),
        )
        queries.of_clicks = given.of_clicks
        X = self.X.iloc[rows] if is_frame(self.X) else self.X[rows]
        return self._replace(
            X=X, queries=queries, labels=labels, margin=of_rows(self.margin), position=of_rows(self.position),
            offset=of_rows(self.offset),
        )  # fmt: skip


def is_frame(X: Any) -> bool:
    """Return True for a pandas DataFrame."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def layout_of(X: Any) -> list[Any] | None:
    """Return names and types of columns of a frame that libraries read as it is: named by text, plain numbers, rows."""
    if not is_frame(X) or len(X) == 0:
        return None
    names, kinds = [*X.columns], [*X.dtypes]
    plain = all(isinstance(kind, np.dtype) and kind.kind in "fiub" and kind.isnative for kind in kinds)
    return names + kinds if plain and all(isinstance(name, str) for name in names) else None


def orders_rows(X: Any, ptr: np.ndarray) -> bool:
    """Return False if each column of a table has one value in each query, whose rows ``ptr`` bounds."""
    first = np.repeat(ptr[:-1], np.diff(ptr))
    for some in (slice(i, i + 10_000) for i in range(0, len(first), 10_000)):  # of most data one slice is enough
        if is_frame(X):
            alike = X.iloc[some].equals(X.iloc[first[some]].set_axis(X.index[some]))
        elif isinstance(X, np.ndarray):
            alike = np.array_equal(X[some], X[first[some]], equal_nan=True)
        else:  # a pool does not give its features back
            alike = not is_pool(X) and (X[some] != X[first[some]]).nnz == 0
        if not alike:
            return True
    return len(first) < len(ptr)  # queries of one row need no order


def is_pool(X: Any) -> bool:
    """Return True for a ``catboost.Pool``."""
    return hasattr(X, "get_group_id_hash")


def names_of(X: Any) -> list[str] | None:
    """Return the names of the columns as text; None if there are none."""
    if is_pool(X):
        given: list[str] = X.get_feature_names()
        return given if any(given) else None
    if not is_frame(X):
        return None
    strings = [isinstance(name, str) for name in X.columns]
    require(
        all(strings) or not any(strings),
        "X has columns whose names are strings, and others; name all by strings: X.columns = X.columns.astype(str)",
    )
    return [str(name) for name in X.columns]


def require_same_columns(X: Any, training: Any, name: str) -> None:
    """Raise unless ``X``, called ``name``, has the columns of the training table in their order."""
    here, there = names_of(X), names_of(training)
    require(
        X.shape[1] == training.shape[1] and (here is None or there is None or here == there),
        f"{name} has {X.shape[1]} columns, and X has {training.shape[1]}, or names or order differ; give the same",
    )


def categories(X: Any) -> dict[Any, Any]:
    """Return the dtype of each categorical column of a frame."""
    return {c: dtype for c, dtype in X.dtypes.items() if dtype == "category"} if is_frame(X) else {}


def categorical(X: Any) -> list[int]:
    """Return the numbers of the categorical columns of a frame."""
    return [i for i, dtype in enumerate(X.dtypes) if dtype == "category"] if is_frame(X) else []


def as_categories(X: Any, known: Collection[int]) -> Any:
    """Return ``X`` with the dtype category in those of the columns ``known`` that have no value."""
    numbers = [i for i, dtype in enumerate(X.dtypes) if i in known and dtype != "category"] if is_frame(X) else ()
    empty = {X.columns[i]: "category" for i in numbers if X.iloc[:, i].isna().all()}
    return X.astype(empty) if empty else X


def require_same_kinds(X: Any, known: Collection[int], name: str = "X") -> None:
    """Raise unless the categorical columns of a frame are those ``known``."""
    for i, (column, dtype) in enumerate(X.dtypes.items() if is_frame(X) else ()):
        require(
            (dtype == "category") == (i in known),
            f"{name}: the column {column!r} has the dtype {dtype} here, and {'' if i in known else 'no '}categories in "
            "the training; give it the dtype of the training",
        )


def with_numbers(X: Any) -> Any:
    """Return a frame with numbers in columns of dtype object that hold nothing else: Decimal, or bool and None."""
    import pandas as pd

    objects = [c for c, dtype in X.dtypes.items() if dtype == "object" and pd.api.types.infer_dtype(X[c]) in NUMBERS]
    if objects:
        X = X.copy(deep=False)
        X[objects] = X[objects].apply(pd.to_numeric)
    return X


def refuse_text(X: Any) -> None:
    """Raise for columns of a frame that are neither numbers nor categories."""
    if is_frame(X):
        from pandas.api.types import is_numeric_dtype

        wrong = [c for c, dtype in X.dtypes.items() if not (is_numeric_dtype(dtype) or dtype == "category")]
        require(
            not wrong,
            f"X has columns {wrong}, neither numbers nor categories; give text the dtype category, in polars "
            "Categorical, and drop the others",
        )


def refuse_categories(X: Any, readable: Callable[[Any], bool], kinds: str) -> None:
    """Raise for columns of a frame whose categories the library cannot read; it reads ``kinds``."""
    for column, dtype in categories(X).items():
        require(
            readable(dtype.categories),
            f"the column {column!r} has categories that are not {kinds}; convert them by "
            "astype(str).astype('category') in pandas",
        )


def read_columns(given: Any, names: Collection[str], n: int, name: str) -> list[str | int]:
    """Read names or numbers of columns in any form that a library has for the parameter ``name``.

    >>> read_columns("name:a,b", ["a", "b"], 2, "categorical_feature"), read_columns((1,), ["a", "b"], 2, "")
    (['a', 'b'], [1])
    """
    if isinstance(given, str):
        given = [given] if given in names else given.removeprefix("name:").split(",")
    elif not isinstance(given, Iterable):
        given = [given]
    text = [str(c).strip() if isinstance(c, str) else c for c in given]
    found = [int(c) if c not in names and (str(c).isdigit() or isinstance(c, np.integer)) else c for c in text]
    wrong = [c for c in found if not (c in names if isinstance(c, str) else type(c) is int and 0 <= c < n)]
    require(not wrong, f"{name} has {wrong}, which are no columns of X; name columns, or number them from 0")
    return found


def warn_of_unknown(X: Any, known: Mapping[Any, Sequence[Any]], name: str) -> None:
    """Warn of categorical columns that have values, but none of the categories ``known`` to a model, by column."""
    found = categories(X)
    for column, values in known.items():
        present = X[column].dropna().unique().tolist() if column in found else ()
        of_training, here = ({(isinstance(x, bool), x) for x in some} for some in (values, present))  # True == 1
        if here and not of_training & here:
            warn(
                f"{name}: the training had no value of the categorical column {column!r}, so all of them count as "
                "missing; give the values the type of the training, such as text instead of numbers"
            )


def named(X: Any) -> Any:
    """Return ``X`` with strings as names of its columns, because the libraries take numbers for positions.

    A frame is a shallow copy, so that the caller's keeps its names.
    """
    if not is_frame(X):
        return X
    X = X.copy(deep=False)
    X.columns = [str(name) for name in X.columns]
    return X


def counts_columns(value: Any, names: Collection[str]) -> bool:
    """Return True for a parameter that numbers columns, or has an entry for each of them, instead of naming some."""
    if isinstance(value, str | os.PathLike):  # such as "0,2", "(1,0,-1)", or a file of splits
        number = re.match(r"[\s(\[]*-?[\d.]+\s*([-,:)\]]|$)", str(value))
        return str(value) not in names and (os.path.isfile(value) or number is not None)
    return any(counts_columns(x, names) for x in value) if isinstance(value, Iterable) else is_number(value)


def require_same_categories(before: Sequence[Sequence[Any]], X: Any) -> None:
    """Raise unless ``X`` has the categories ``before`` in the same order: trees store only their numbers."""
    found = categories(X)
    message = f"X has categories in {[*found]}, but init_model was trained on {len(before)} such columns"
    require(len(found) == len(before), f"{message}; make them the same")
    for (column, dtype), known in zip(found.items(), before, strict=True):
        now = dtype.categories.tolist()
        new = sorted({*now} - {*known}, key=now.index)
        other = f"{len(new)} new categories, such as {new[:3]}" if new else "fewer categories, or another order"
        require(
            now == [*known],
            f"the column {column!r} has {other}, and init_model knows categories by their number; make them the same "
            "by X[column].cat.set_categories(those of its training) in pandas, which makes others missing",
        )

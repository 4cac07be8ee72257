"""Parquet and CSV files: labels, query ids and weights in named columns, features in all others."""

import csv
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ltr_objectives._files import NOT_UTF8, UNREADABLE, replacing
from ltr_objectives.adapters._tables import with_numbers
from ltr_objectives.errors import LTRError, did_you_mean, require, warn
from ltr_objectives.queries import ids_of, sizes_of
from ltr_objectives.workbench.data import RankingData, together
from ltr_objectives.workbench.letor import TABLES

PAIRS = 200_000  # of documents, that are drawn to compare columns with the labels
NEARLY = 0.95  # Goodman and Kruskal's gamma, beyond which a column is nearly the label
OFTEN = 0.05  # the share of pairs in which such a column differs


class Columns(NamedTuple):
    """The columns that are not features."""

    label: str = "label"
    qid: str = "qid"
    weight: str | None = None
    ignore: Sequence[str] = ()
    categorical: Sequence[str] = ()  # features, but not numbers; CSV reads them as text
    folds_by: str | None = None
    goals: Sequence[str] = ()  # labels of further goals, which metrics name

    @property
    def read(self) -> list[str]:
        """The columns of labels, query ids and weights."""
        return [self.label, self.qid, *([] if self.weight is None else [self.weight]), *self.goals]

    @property
    def others(self) -> list[str]:
        """All columns that are not features."""
        return list(dict.fromkeys([*self.read, *self.ignore, *([self.folds_by] if self.folds_by else [])]))

    def refuse(self, path: Path, option: str = "") -> None:
        """Raise for an option, or columns, that a file without names cannot have."""
        given = option or next((name for name in self._fields[2:] if getattr(self, name)), "").replace("_", "-")
        given = {"goals": "metric"}.get(given, given)
        require(not given, f"--{given} names columns of Parquet and CSV, and {path} has none; {TABLES}")


class Table(NamedTuple):
    """The contents of a file, with the rows of each query together.

    Queries are in the order in which the file names them first, rows of a query in the order of the file.
    """

    data: RankingData
    rows: np.ndarray  # of the file, in the order of the data
    folds_by: np.ndarray | None = None  # of each query


def is_table(path: Path) -> bool:
    """Return True if the name ends as that of a Parquet or CSV file, perhaps a compressed one."""
    return path.suffix.lower() == ".parquet" or ".csv" in map(str.lower, path.suffixes)


@contextmanager
def naming(option: str, path: Path) -> Iterator[None]:
    """Add to errors about a file the option that named it."""
    try:
        yield
    except UNREADABLE as error:
        plain = {FileNotFoundError: f"there is no such file; {TABLES}", UnicodeDecodeError: NOT_UTF8}
        raise LTRError(f"--{option} {path}: {plain.get(type(error), error)}") from None


def read_frame(
    path: Path, must: Sequence[str], *, only: bool = False, text: Sequence[str] = (), categorical: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a file that has the columns ``must`` and ``categorical``; with ``only``, the columns ``must``.

    CSV reads ``text`` and ``categorical`` as they stand; only an empty cell is missing.
    """
    if path.suffix.lower() == ".parquet":
        try:
            frame = pd.read_parquet(path, columns=list(must) if only else None, engine="pyarrow")
        except ValueError:  # pyarrow's words for a column that is missing, of which the loop below raises
            frame = pd.read_parquet(path, engine="pyarrow")
    else:  # all columns, because usecols= skips the check of the number of fields
        known = pd.read_csv(path, nrows=1, header=None, dtype=str, keep_default_na=False).iloc[0]
        twice = next((name for name in known[known.duplicated()] if name), None)
        require(twice is None, f"there are several columns {twice!r}, which pandas would rename; keep one")
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = pd.read_csv(path, index_col=False, low_memory=False)
            except pd.errors.ParserWarning:
                raise LTRError("rows have more fields than the header; put texts with commas in quotes") from None
        if written := sorted({*known} & {*text, *categorical}):
            as_text = pd.read_csv(
                path, usecols=written, index_col=False, dtype=str, keep_default_na=False, na_values=[""]
            )
            frame = frame.assign(**as_text)
    index = [name for name in frame.index.names if name is not None]  # Parquet may hold columns as an index
    frame = frame.reset_index(index or None, drop=not index)
    for name in (*must, *categorical):
        if name not in frame:
            raise LTRError(f"there is no column {name!r}, only {list(frame)}{did_you_mean(name, list(frame))}")
    require(len(frame) > 0, "it is empty")
    return frame[list(must)] if only else frame.astype(dict.fromkeys(categorical, "category"))


def read_table(option: str, path: Path, columns: Columns, *, features: bool = True, unjudged: bool = False) -> Table:
    """Read labels, query ids, weights and, unless told otherwise, features; with ``unjudged`` a label may be NaN."""
    names = columns.read
    with naming(option, path):
        require(len(set(names)) == len(names), f"labels, query id and weight must be different columns, got {names}")
        must = columns.others if features else names
        frame = read_frame(path, must, only=not features, text=[columns.qid], categorical=columns.categorical)
        ids = ids_of(frame[columns.qid].to_numpy())
        rows = together(ids)
        y = numbers(frame, columns.label, unjudged)[rows]
        weight = numbers(frame, columns.weight)[rows] if columns.weight else None
        labels = {goal: numbers(frame, goal)[rows] for goal in columns.goals} or None
        frame, ids = frame.iloc[rows].reset_index(drop=True), ids[rows]
        group = sizes_of(ids)
        X = features_in(frame.drop(columns=must)) if features else frame[[]]
        by = _by_query(frame[columns.folds_by], ids, group) if columns.folds_by else None
    return Table(RankingData(X, y, group, ids, weight, labels), rows, by)


def select(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the features with these names, in this order."""
    lacks = [name for name in names if name not in frame]
    require(not lacks, f"it lacks {lacks}, which the model needs; columns of --ignore and --item are no features")
    return frame[[*names]]


def features_in(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert all columns to numbers, except those of dtype category; raise for text and dates."""
    frame = with_numbers(frame)
    kinds: dict[Any, Any] = {name: kind for name, kind in frame.dtypes.items() if kind != "category"}
    wrong = ",".join(str(name) for name, kind in kinds.items() if not is_numeric_dtype(kind))
    require(
        not wrong,
        f"{wrong} must hold numbers, as features do; name categories in --categorical, other columns in --ignore",
    )
    require(frame.shape[1] > 0, "it has no columns of features")
    # pandas' own types may hold pandas.NA, which becomes NaN
    changed = {name: np.float64 for name, kind in kinds.items() if not isinstance(kind, np.dtype)}
    changed |= {name: np.int8 for name, kind in kinds.items() if kind == np.dtype(bool)}
    return frame.astype(changed).set_axis([str(name) for name in frame.columns], axis=1)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a frame; the file appears only when it is complete."""
    text = table.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # which readers take for the end of a line, and pandas does not quote
        text = table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    with replacing(path) as new:
        new.write_text(text, "utf8", newline="")


def features_of(X: Any) -> list[str]:
    """Return the names of the features; of LETOR text their numbers."""
    return [str(name) for name in getattr(X, "columns", range(1, X.shape[1] + 1))]


def show_features(X: Any) -> str:
    """Describe the features: their number, and the names if they have any.

    >>> show_features(np.zeros((1, 3)))
    '3 features'
    """
    names = features_of(X) if hasattr(X, "columns") else []
    listed = f": {', '.join(names[:50])}{', ...' if len(names) > 50 else ''}" if names else ""
    return f"{X.shape[1]:,} features{listed}"


def warn_of_labels(data: RankingData, ignored: Sequence[str]) -> None:
    """Warn of features that order the documents of a query as the labels do, or in reverse."""
    if not hasattr(data.X, "columns"):
        return
    rng = np.random.default_rng(0)
    query = rng.choice(len(data.group), PAIRS, p=data.group / data.group.sum())
    start, size = (np.cumsum(data.group) - data.group)[query], data.group[query]
    a, b = (start + (rng.random(PAIRS) * size).astype(np.int64) for _ in range(2))
    better = np.sign(data.y[a] - data.y[b])
    a, b, better = (pair[better != 0] for pair in (a, b, better))

    def is_label(name: str) -> bool:
        rank = pd.factorize(data.X[name], sort=True)[0]  # -1 for NaN
        order = np.sign(rank[a] - rank[b])
        different = np.count_nonzero(order)
        return bool(different > OFTEN * len(a) and abs(order @ better) >= NEARLY * different)

    found = [name for name in data.X.columns if is_label(name)]
    if found:
        warn(
            f"{', '.join(map(repr, found))} nearly always order the documents of a query as the labels do, or in "
            "reverse; if this is not known before users see the documents, add "
            f"--ignore {shlex.quote(','.join([*ignored, *found]))}"
        )


def _by_query(column: pd.Series, ids: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the value of each query in a column of its rows; text unless the column holds numbers or dates."""
    require(not column.isna().any(), f"the column {column.name!r} has no value in some rows")
    values = column.to_numpy() if column.dtype.kind in "biufM" else column.astype(str).to_numpy(object)
    first = np.cumsum(group) - group
    same = values == np.repeat(values[first], group)
    require(same.all(), f"the column {column.name!r} has several values in query {ids[np.argmin(same)]}")
    return np.asarray(values[first])


def numbers(frame: pd.DataFrame, name: str, unjudged: bool = False) -> np.ndarray:
    """Return a column of finite numbers; with ``unjudged`` a missing one is NaN."""
    column = with_numbers(frame[[name]])[name]
    require(is_numeric_dtype(column), f"the column {name!r} must hold numbers, but its type is {column.dtype}")
    found = np.asarray(column.to_numpy(np.float64, na_value=np.nan))
    good = np.isfinite(found) | (unjudged & np.isnan(found))
    require(good.all(), f"the column {name!r} has no finite number in row {np.argmin(good)}")
    return found

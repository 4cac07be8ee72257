"""Parquet and CSV files: labels, query ids and weights in named columns, features in all others."""

import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from ltr_objectives._files import UNREADABLE, replacing
from ltr_objectives.errors import LTRError, did_you_mean, require, warn
from ltr_objectives.queries import ids_of, sizes_of
from ltr_objectives.workbench.data import RankingData

MISSING = (  # numbers in CSV, as pandas reads them
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
PAIRS = 200_000  # of documents, that are drawn to compare columns with the labels
NEARLY = 0.95  # Goodman and Kruskal's gamma, beyond which a column is nearly the label
OFTEN = 0.05  # the share of pairs in which such a column differs


class Columns(NamedTuple):
    """The columns that are not features."""

    label: str = "label"
    qid: str = "qid"
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()  # features, but not numbers; CSV reads them as text
    folds_by: str | None = None

    @property
    def read(self) -> list[str]:
        """The columns of labels, query ids and weights."""
        return [self.label, self.qid, *([] if self.weight is None else [self.weight])]

    @property
    def others(self) -> list[str]:
        """All columns that are not features."""
        return list(dict.fromkeys([*self.read, *self.ignore, *([self.folds_by] if self.folds_by else [])]))

    def refuse(self, path: Path) -> None:
        """Raise for columns that a file without names cannot have."""
        given = next((name for name in self._fields[2:] if getattr(self, name)), "").replace("_", "-")
        require(not given, f"--{given} names columns of Parquet and CSV files; {path} has none")


class Table(NamedTuple):
    """The contents of a file, with the rows of each query together.

    Queries are in the order in which the file names them first, rows of a query in the order of the file.
    """

    data: RankingData
    rows: np.ndarray  # the place of each row in the file
    folds_by: np.ndarray | None = None  # of each query


def is_table(path: Path) -> bool:
    """Return True if the name ends as that of a Parquet or CSV file, perhaps a compressed one."""
    return path.suffix == ".parquet" or ".csv" in path.suffixes


def names_in_table(path: Path) -> list[str]:
    """The names of the columns; raise for a name that two columns have, which pandas would rename."""
    if path.suffix == ".parquet":
        from pyarrow import parquet  # which CSV files do not need

        names = parquet.read_schema(path).names
    else:
        names = pd.read_csv(path, nrows=1, header=None, dtype=str, keep_default_na=False).to_numpy()[0].tolist()
    twice = next((name for name, count in Counter(names).items() if count > 1 and name), None)
    require(twice is None, f"there are several columns {twice!r}; rename them, or leave all but one out")
    return list(names)


@contextmanager
def naming(option: str, path: Path) -> Iterator[None]:
    """Add to errors about a file the option that named it."""
    try:
        yield
    except UNREADABLE as error:
        raise LTRError(f"--{option} {path}: {error}") from None


def read_frame(
    path: Path, must: Sequence[str], *, only: bool = False, text: Sequence[str] = (), categorical: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a file that has the columns ``must`` and ``categorical``; with ``only``, the columns ``must``.

    CSV reads ``text`` and ``categorical`` as they stand; only an empty cell is missing.
    """
    known = names_in_table(path)
    for name in (*must, *categorical):
        if name not in known:
            meant = did_you_mean(name, known) or "; options such as --label and --qid name the columns"
            raise LTRError(f"there is no column {name!r}, only {known}{meant}")
    if path.suffix == ".parquet":
        frame = pd.read_parquet(path, columns=list(must) if only else None, engine="pyarrow")
    else:  # all columns, because usecols= skips the check of the number of fields
        written = {*text, *categorical}
        missing = {name: [""] if name in written else MISSING for name in known}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            try:
                frame = pd.read_csv(
                    path, index_col=False, dtype=dict.fromkeys(written, str), keep_default_na=False, na_values=missing,
                    low_memory=False,
                )  # fmt: skip
            except pd.errors.ParserWarning:
                raise LTRError("rows have more fields than the header; put texts with commas in quotes") from None
        frame = frame[list(must)] if only else frame
    require(len(frame) > 0, "it is empty")
    index = [name for name in frame.index.names if name is not None]  # Parquet may hold columns as an index
    return frame.astype(dict.fromkeys(categorical, "category")).reset_index(index or None, drop=not index)


def read_table(option: str, path: Path, columns: Columns, *, features: bool = True, unjudged: bool = False) -> Table:
    """Read labels, query ids, weights and, unless told otherwise, features; with ``unjudged`` labels may be missing."""
    names = columns.read
    with naming(option, path):
        require(len(set(names)) == len(names), f"label, query id and weight must be different columns, got {names}")
        must = columns.others if features else names
        frame = read_frame(path, must, only=not features, text=[columns.qid], categorical=columns.categorical)
        ids = ids_of(frame[columns.qid].to_numpy())
        rows = np.argsort(pd.factorize(ids)[0], kind="stable")
        group = sizes_of(ids[rows])
        y = _finite(frame, columns.label, unjudged)[rows]
        weight = _finite(frame, columns.weight)[rows] if columns.weight else None
        X = features_in(frame.drop(columns=must)) if features else frame[[]]
        by = _by_query(frame[columns.folds_by].iloc[rows], ids[rows], group) if columns.folds_by else None
    return Table(RankingData(X.take(rows).reset_index(drop=True), y, group, ids[rows], weight), rows, by)


def select(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The features with these names, in this order."""
    missing = [name for name in names if name not in frame.columns]
    require(not missing, f"it does not have the features {', '.join(missing)}")
    return frame[list(names)]


def features_in(frame: pd.DataFrame, remedy: str = ", or list what is not a feature in --ignore") -> pd.DataFrame:
    """All columns as numbers, except those of dtype category; raise for text and dates."""
    numbers: dict[Any, Any] = {name: kind for name, kind in frame.dtypes.items() if kind != "category"}
    wrong = {str(name): kind for name, kind in numbers.items() if not is_numeric_dtype(kind)}
    require(
        not wrong,
        f"{', '.join(f'{name!r} ({kind})' for name, kind in wrong.items())} must hold numbers, as features do; name "
        f"categories in --categorical {shlex.quote(','.join(wrong))}{remedy}{_first_text(frame[[*wrong]])}",
    )
    require(frame.shape[1] > 0, "it has no columns of features")
    plain = frame.astype({name: _plain(kind) for name, kind in numbers.items()})
    return plain.set_axis([str(name) for name in frame.columns], axis=1)


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a frame; the file appears only when it is complete."""
    with replacing(path) as new:
        table.to_csv(new, index=False)


def features_of(X: Any) -> list[str]:
    """The names of the features; of LETOR text their numbers."""
    return [str(name) for name in getattr(X, "columns", range(1, X.shape[1] + 1))]


def show_features(X: Any) -> str:
    """The number of features, and the names if they have any.

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
    """The value of each query in a column of its rows; text unless the column holds numbers or dates."""
    require(not column.isna().any(), f"the column {column.name!r} has no value in some rows")
    values = column.to_numpy() if column.dtype.kind in "biufM" else column.astype(str).to_numpy(object)
    first = np.cumsum(group) - group
    same = values == np.repeat(values[first], group)
    require(same.all(), f"the column {column.name!r} has several values in query {ids[np.argmin(same)]}")
    return np.asarray(values[first])


def _first_text(frame: pd.DataFrame) -> str:
    """For a message: the first entry that is no number."""
    try:
        frame.apply(pd.to_numeric)
    except (ValueError, TypeError) as error:
        return f": {error}"
    return ""


def _plain(kind: Any) -> Any:
    """NumPy's type for a column; pandas' own types may hold pandas.NA, which becomes NaN."""
    if not isinstance(kind, np.dtype):
        return np.float64
    return np.int8 if kind.kind == "b" else kind


def _finite(frame: pd.DataFrame, name: str, gaps: bool = False) -> np.ndarray:
    """A column with a number in every row, or with ``gaps`` NaN."""
    values = frame[name]
    text = f"the column {name!r} must hold numbers, but its type is {values.dtype}{_first_text(frame[[name]])}"
    require(is_numeric_dtype(values.dtype), text)
    found = np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    bad = np.flatnonzero(~(np.isfinite(found) | (gaps & np.isnan(found))))
    require(len(bad) == 0, f"the column {name!r} has no finite number in row {bad.min(initial=len(found))}")
    return found

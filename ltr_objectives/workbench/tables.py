"""Parquet and CSV files: labels, query ids and weights in named columns, features in all others."""

import importlib
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives._files import UNREADABLE, replacing
from ltr_objectives.errors import LTRError, did_you_mean, require, warn
from ltr_objectives.queries import ids_of, sizes_of
from ltr_objectives.workbench.data import RankingData

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
    def others(self) -> list[str]:
        """All columns that are not features."""
        return list(dict.fromkeys([*self.read, *self.ignore, *([self.folds_by] if self.folds_by else [])]))

    @property
    def read(self) -> list[str]:
        """Those with values that are used."""
        return [self.label, self.qid, *([] if self.weight is None else [self.weight])]

    def refuse(self, path: Path) -> None:
        """Raise for columns that a file without names cannot have."""
        given = next((name for name in self._fields[2:] if getattr(self, name)), "").replace("_", "-")
        require(not given, f"--{given} names columns of Parquet and CSV files; {path} has none")


class Keys(NamedTuple):
    """Labels, query ids and weights of a file, with the rows of each query together.

    Queries are in the order in which the file names them first, rows of a query in the order of the file.
    """

    labels: np.ndarray
    ids: np.ndarray
    weight: np.ndarray | None
    rows: np.ndarray  # where each of them is in the file


def is_table(path: Path) -> bool:
    """Return True if the name ends as that of a Parquet or CSV file, perhaps a compressed one."""
    return path.suffix == ".parquet" or ".csv" in path.suffixes


def import_pandas() -> Any:
    """Import pandas; the error says what to install."""
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise ImportError(f"this file needs {error.name}: pip install {error.name}") from None


def names_in_table(path: Path) -> list[str]:
    """The names of the columns; raise for a name that two columns have, which pandas would rename."""
    if path.suffix != ".parquet":
        read_csv = import_pandas().read_csv
        names = [str(name) for name in read_csv(path, nrows=0).columns]
        written = read_csv(path, nrows=1, header=None, dtype=str, keep_default_na=False).to_numpy()[0].tolist()
    else:
        try:
            parquet = importlib.import_module("pyarrow.parquet")
        except ModuleNotFoundError:
            raise ImportError(f"{path}: Parquet files need pyarrow: pip install pyarrow") from None
        written = names = [str(name) for name in parquet.read_schema(path).names]
    twice = next((name for name, count in Counter(written).items() if count > 1 and name), None)
    require(twice is None, f"there are several columns {twice!r}; rename them, or leave all but one out")
    return names


@contextmanager
def naming(option: str, path: Path) -> Iterator[None]:
    """Add to errors about a file the option that named it."""
    try:
        yield
    except UNREADABLE as error:
        raise LTRError(f"--{option} {path}: {error}") from None


def read_frame(
    path: Path, must: Sequence[str], *, only: bool = False, text: Sequence[str] = (), categorical: Sequence[str] = ()
) -> Any:
    """The frame of a file that has the columns ``must`` and ``categorical``, or the columns ``must`` only.

    CSV reads ``text`` and ``categorical`` as they stand; only an empty cell is missing.
    """
    pandas = import_pandas()
    known = names_in_table(path)
    for name in (*must, *categorical):
        if name not in known:
            meant = did_you_mean(name, known) or "; options such as --label and --qid name the columns"
            raise LTRError(f"there is no column {name!r}, only {known}{meant}")
    if path.suffix == ".parquet":
        frame = pandas.read_parquet(path, columns=list(must) if only else None, engine="pyarrow")
    else:  # all columns, because usecols= skips the check of the number of fields
        written, empty = dict.fromkeys([*text, *categorical], str), {"keep_default_na": False, "na_values": [""]}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                frame = pandas.read_csv(path, index_col=False, dtype=written, low_memory=False)
            except pandas.errors.ParserWarning:
                raise LTRError("rows have more fields than the header; put texts with commas in quotes") from None
        if written:
            frame = frame.assign(**pandas.read_csv(path, index_col=False, usecols=[*written], dtype=str, **empty))
        frame = frame[list(must)] if only else frame
    require(len(frame) > 0, "it is empty")
    frame = frame.astype(dict.fromkeys(categorical, "category"))
    index = [name for name in frame.index.names if name is not None]  # Parquet may hold columns as an index
    return frame.reset_index(index) if index else frame


def read_keys(option: str, path: Path, columns: Columns, *, unjudged: bool = False) -> Keys:
    """Labels, query ids and weights of a file; without a label NaN if ``unjudged``."""
    with naming(option, path):
        return _keys(read_frame(path, columns.read, only=True, text=[columns.qid]), columns, unjudged)


def read_table(option: str, path: Path, columns: Columns) -> RankingData:
    """Labels, query ids, weights and features of a file."""
    with naming(option, path):
        frame = read_frame(path, columns.others, text=[columns.qid], categorical=columns.categorical)
        y, ids, weight, rows = _keys(frame, columns)
        X = features_in(frame.drop(columns=columns.others))
        return RankingData(X.take(rows).reset_index(drop=True), y, sizes_of(ids), ids, weight)


def read_tables(files: dict[str, Path], columns: Columns) -> dict[str, RankingData]:
    """:func:`read_table` of each, with the features of the first in all of them."""
    parts = {option: read_table(option, path, columns) for option, path in files.items()}
    X: Any = next(iter(parts.values())).X
    for option, part in parts.items():
        with naming(option, files[option]):
            parts[option] = replace(part, X=select(part.X, X.columns))
    return parts


def select(frame: Any, names: Sequence[str]) -> Any:
    """The features with these names, in this order."""
    missing = [name for name in names if name not in frame.columns]
    require(not missing, f"it does not have the features {', '.join(missing)}")
    return frame[list(names)]


def values_by_query(option: str, path: Path, columns: Columns, name: str) -> np.ndarray:
    """The value of each query in a column; text unless the column holds numbers or dates."""
    keys = read_keys(option, path, columns)
    with naming(option, path):
        found = read_frame(path, [name], only=True)[name].iloc[keys.rows]
        require(not found.isna().any(), f"the column {name!r} has no value in some rows")
        first = np.cumsum(np.append(0, sizes_of(keys.ids)))[:-1]
        values = found.to_numpy() if found.dtype.kind in "biufM" else found.astype(str).to_numpy(object)
        same = values == np.repeat(values[first], sizes_of(keys.ids))
        require(same.all(), f"the column {name!r} has several values in query {keys.ids[np.argmin(same)]}")
        return np.asarray(values[first])


def features_in(frame: Any) -> Any:
    """All columns as numbers, except those of dtype category; raise for text and dates."""
    numeric = import_pandas().api.types.is_numeric_dtype
    numbers = {name: kind for name, kind in frame.dtypes.items() if kind != "category"}
    wrong = {str(name): kind for name, kind in numbers.items() if not numeric(kind)}
    named = ", ".join(f"{name!r} ({kind})" for name, kind in wrong.items())
    require(
        not wrong,
        f"{named} must hold numbers, as features do; name categories in --categorical {shlex.quote(','.join(wrong))}, "
        f"or list what is not a feature in --ignore{_first_text(frame[[*wrong]])}",
    )
    require(frame.shape[1] > 0, "it has no columns of features")
    plain = frame.astype({name: _plain(kind) for name, kind in numbers.items()})
    return plain.set_axis([str(name) for name in frame.columns], axis=1)


def write_csv(table: Any, path: Path) -> None:
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
        rank = import_pandas().factorize(data.X[name], sort=True)[0]  # -1 for NaN
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


def _keys(frame: Any, columns: Columns, unjudged: bool = False) -> Keys:
    names = columns.read
    require(len(set(names)) == len(names), f"label, query id and weight must be different columns, got {names}")
    ids = ids_of(frame[columns.qid].to_numpy())
    y, *weights = (_finite(frame, name, unjudged and name == columns.label) for name in (columns.label, *names[2:]))
    rows = np.argsort(import_pandas().factorize(ids)[0], kind="stable")
    return Keys(y[rows], ids[rows], weights[0][rows] if weights else None, rows)


def _first_text(frame: Any) -> str:
    """For a message: the first entry that is no number."""
    for column in (frame[name] for name in frame):
        wrong = import_pandas().to_numeric(column, errors="coerce").isna() & column.notna()
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            return f"; row {row} has {column.iloc[row]!r}"
    return ""


def _plain(kind: Any) -> Any:
    """NumPy's type for a column; pandas' own types may hold pandas.NA, which becomes NaN."""
    if not isinstance(kind, np.dtype):
        return np.float64
    return np.int8 if kind.kind == "b" else kind


def _finite(frame: Any, name: str, gaps: bool = False) -> np.ndarray:
    """A column with a number in every row, or with ``gaps`` NaN."""
    values = frame[name]
    number = import_pandas().api.types.is_numeric_dtype(values.dtype)
    kind = values.dtype
    require(number, f"the column {name!r} must hold numbers, but its type is {kind}{_first_text(frame[[name]])}")
    found = np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    bad = np.flatnonzero(~(np.isfinite(found) | (gaps & np.isnan(found))))
    require(len(bad) == 0, f"the column {name!r} has no finite number in row {bad.min(initial=len(found))}")
    return found

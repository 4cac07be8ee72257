"""Ranking data in Parquet and CSV files: labels, query ids and weights in named columns, features in all others."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.datasets import RankingData
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.queries import ids_of, sizes_of


class Columns(NamedTuple):
    """The columns that are no features."""

    label: str = "label"
    qid: str = "qid"
    weight: str | None = None
    ignore: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """All of them."""
        return [self.label, self.qid, *([] if self.weight is None else [self.weight]), *self.ignore]


def is_table(path: Path) -> bool:
    """Whether the name ends as that of a Parquet or CSV file, perhaps a compressed one."""
    return path.suffix == ".parquet" or ".csv" in path.suffixes


def import_pandas() -> Any:
    """Import pandas; the error says what to install."""
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise ImportError(f"this file needs {error.name}: pip install ltr-objectives[cli]") from None


def read_frame(path: Path, columns: Sequence[str] | None = None, kinds: dict[str, type] | None = None) -> Any:
    """The frame of a file, or some columns of it. ``kinds`` are of columns of CSV files, which have no types.

    Raises
    ------
    LTRError
        Where the file cannot be read or does not have the columns.
    ImportError
        Without pandas, or without pyarrow for Parquet.
    """
    pandas = import_pandas()
    try:
        if path.suffix == ".parquet":
            if importlib.util.find_spec("pyarrow") is None:
                raise ImportError(f"{path}: Parquet files need pyarrow: pip install ltr-objectives[parquet]")
            frame = pandas.read_parquet(path, engine="pyarrow")
        else:
            frame = pandas.read_csv(path, dtype=kinds, low_memory=False)
    except (ValueError, OSError, EOFError) as error:
        raise LTRError(f"{path} cannot be read: {error}") from None
    require(len(frame) > 0, f"{path} has no rows")
    if columns is None:
        return frame
    for name in columns:
        known = list(map(str, frame.columns))
        require(name in frame.columns, f"{path} has no column {name!r}, only {known}{did_you_mean(name, known)}")
    return frame[list(columns)]


def features_of(frame: Any, path: Path, leave_out: Sequence[str] = ()) -> Any:
    """The features as numbers; raise for text and dates."""
    pandas = import_pandas()
    frame = frame.drop(columns=[name for name in leave_out if name in frame.columns])
    wrong = [f"{name!r} ({kind})" for name, kind in frame.dtypes.items() if not pandas.api.types.is_numeric_dtype(kind)]
    require(
        not wrong,
        f"{path} has columns that are not numbers: {', '.join(wrong)}; make them numbers, or leave them out with --ignore",
    )
    require(frame.shape[1] > 0, f"{path} has no columns of features")
    kinds = {name: _plain(kind) for name, kind in frame.dtypes.items()}
    return frame.astype(kinds).set_axis(list(map(str, frame.columns)), axis=1)


def _plain(kind: Any) -> Any:
    """The NumPy type for a column; pandas' own types may hold pandas.NA, which becomes NaN."""
    if not isinstance(kind, np.dtype):
        return np.float64
    return np.int8 if kind.kind == "b" else kind


def load_table(path: Path, columns: Columns) -> tuple[RankingData, np.ndarray]:
    """The data with the rows of each query together, and the row of the file that each of them was.

    Queries are in the order in which the file names them first, rows of a query in the order of the file.
    """
    frame = read_frame(path, kinds={columns.qid: str})
    wanted = [name for name in columns.names() if name not in columns.ignore]
    require(
        len(set(wanted)) == len(wanted),
        f"the label, the query id and the weight must be columns of their own, got {wanted}",
    )
    for name in columns.names():
        known = list(map(str, frame.columns))
        require(name in frame.columns, f"{path} has no column {name!r}, only {known}{did_you_mean(name, known)}")
    X = features_of(frame, path, columns.names())
    y = _numbers(frame, columns.label, path)
    weight = None if columns.weight is None else _numbers(frame, columns.weight, path)
    try:
        ids = ids_of(frame[columns.qid].to_numpy())
    except LTRError as error:
        raise LTRError(f"{path}, column {columns.qid!r}: {error}") from None
    order = np.argsort(import_pandas().factorize(ids)[0], kind="stable")
    together = ids[order]
    taken = X.take(order).reset_index(drop=True)
    data = RankingData(taken, y[order], sizes_of(together), together, None if weight is None else weight[order])
    return data, order


def _numbers(frame: Any, name: str, path: Path) -> np.ndarray:
    """A column that has a number in every row."""
    pandas = import_pandas()
    values = frame[name]
    require(
        pandas.api.types.is_numeric_dtype(values.dtype),
        f"{path}: column {name!r} must hold numbers, got {values.dtype}",
    )
    found = values.to_numpy(np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(found))
    require(len(bad) == 0, f"{path}: column {name!r} has no finite number in row {bad.min(initial=len(found))}")
    return np.asarray(found)

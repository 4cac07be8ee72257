"""Read data, scores, labels and query ids for the commands, from files of several kinds."""

import os
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives._files import replacing, require_readable
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.data import RankingData, load_letor, load_parts
from ltr_objectives.workbench.tables import (
    Columns,
    Table,
    features_of,
    is_table,
    names_in_table,
    naming,
    read_frame,
    read_table,
    select,
)


class Lists(NamedTuple):
    """Scored documents by query.

    Attributes
    ----------
    queries : Queries
    scores : float64 array of shape (rows,)
    ids : list
        Query ids, in the order of the queries.
    retrieved : bool array of shape (rows,), optional
        False for judged documents that the run does not have; these have the lowest scores.
    notes : tuple of str
        Sentences about what was left out.
    """

    queries: Queries
    scores: np.ndarray
    ids: list[Any]
    retrieved: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def values(self, metric: Metric) -> np.ndarray:
        """The value of each query. A document that was not retrieved counts in the metric's scale, but has gain 0.

        >>> from ltr_objectives import get_metric
        >>> lists = Lists(Queries([1, 0, 1], [3]), np.array([2.0, 1.0, 0.0]), ["a"], np.array([True, True, False]))
        >>> float(lists.values(get_metric("map"))[0])
        0.5
        """
        retrieved = self.retrieved
        if retrieved is None:
            return metric.values(self.queries, self.scores)
        require(metric.cutoff != "none", f"{metric} needs the rank of every document, which a run does not have")
        layers = metric.layers(self.queries)
        ranked = Queries(self.queries.labels, np.diff(self.queries.ptr))
        ranked.once(metric, lambda: tuple(t._replace(gain=np.where(retrieved, t.gain, 0.0)) for t in layers))
        return metric.values(ranked, self.scores)

    def mean(self, metric: Metric) -> float:
        """The mean over queries, or over rows of errors by row."""
        if self.retrieved is None:
            return metric.mean(self.queries, self.scores)
        return metric.average(*metric.sums(self.values(metric)))


def read_data(option: str, path: Path, columns: Columns, **how: bool) -> Table:
    """Read a Parquet or CSV file as :func:`read_table` does, or a LETOR file."""
    if is_table(existing(option, path)):
        return read_table(option, path, columns, **how)
    columns.refuse(path)
    data = load_letor(path)
    require(isinstance(data, RankingData), f"--{option} {path} is a folder; pass one LETOR file")
    assert isinstance(data, RankingData)
    return Table(data, np.arange(len(data.y)))


def read_parts(files: dict[str, Path], columns: Columns) -> dict[str, RankingData]:
    """Read the parts of a fold, all tables or all LETOR text, with the features of the first in all of them."""
    tables = [path for path in files.values() if is_table(path)]
    first, others = next(iter(files.values())), [path for path in files.values() if path not in tables]
    if not tables:
        columns.refuse(first)
        return load_parts(files)
    require(not others, f"{tables[0]} has columns by name, and LETOR text such as {(others or tables)[0]} does not")
    parts = {option: read_table(option, path, columns).data for option, path in files.items()}
    names = features_of(next(iter(parts.values())).X)
    for option, part in parts.items():
        with naming(option, files[option]):
            parts[option] = replace(part, X=select(part.X, names))
    return parts


def read_lists(
    data: Path | None, labels: str | None, scores: str, qid: str | None, columns: Columns, *, drop_unjudged: bool
) -> Lists:
    """Read labels and query ids from one file or from separate files, and scores.

    ``columns`` are those of Parquet and CSV files; ``qid`` then replaces the name of the column. ``drop_unjudged``
    leaves out rows whose label is NaN.
    """
    one_file = data is not None and is_table(data)
    fits = (data is None) == (labels is not None) and (one_file or (labels is None) == (qid is None))
    require(fits, "pass either --data, or --labels and --qid")
    found = read_column("scores", scores)
    if data is None:
        columns.refuse(Path(str(labels)))
        y, ids = read_column("labels", str(labels)), read_column("qid", str(qid), float_numbers=False)
        s, weight = found, None
    else:
        table = read_data(
            "data", data, columns._replace(qid=qid or columns.qid), features=False, unjudged=drop_unjudged
        )
        (_, y, _, ids), weight = table.data, table.data.weight
        require(len(found) == len(y), f"scores has {len(found)} entries, but labels has {len(y)}")
        s = found[table.rows]
    judged = ~np.isnan(y)
    queries = Queries(np.where(judged, y, 0.0) if drop_unjudged else y, qid=ids, weight=weight)
    s, ids = queries.check_scores(s).values, ids[queries.ptr[:-1]]
    if drop_unjudged and not judged.all():
        (queries, of), s = queries._condensed(judged), s[judged]
        ids = ids[of]
    return Lists(queries, s, ids.tolist())


def read_column(option: str, text: str, *, float_numbers: bool = True) -> np.ndarray:
    """Read one column: numbers, or ids as they are written."""
    named = None if Path(text).exists() else re.fullmatch(r"(.+\.(?:parquet|csv(?:\.\w+)?)):(.+)", text)
    path = existing(option, Path(named[1] if named else text))
    kind = float if float_numbers else str
    with naming(option, path):
        if path.suffix == ".npy":
            array = np.load(path)
        elif is_table(path):
            name = named[2] if named else _only_column(path)
            column = read_frame(path, [name], only=True, text=[] if float_numbers else [name])[name]
            array = np.asarray(column.to_numpy(float) if float_numbers else column.to_numpy())
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # NumPy warns of an empty file
                table = np.loadtxt(path, kind, comments=None, ndmin=2)
            require(table.shape[1] == 1 or table.size == 0, f"it has {table.shape[1]} columns; write one value a line")
            array = table.reshape(-1)
        require(array.ndim == 1, f"it has shape {array.shape}; it must be one-dimensional")
        require(len(array) > 0, "it is empty")
    return array


def _only_column(path: Path) -> str:
    columns = names_in_table(path)
    require(len(columns) == 1, f"name one of its columns, as in {path}:{columns[-1]}; there are {columns}")
    return columns[0]


def existing(option: str, path: Path) -> Path:
    """Return ``path``; raise if it does not exist, is a device, or is a pipe in place of a table."""
    require(path.exists(), f"--{option} {path} does not exist")
    require_readable(path, f"--{option} {path}")
    require(not (is_table(path) and path.is_fifo()), f"--{option} {path} is a pipe; tables are read from files")
    return path


def writable(out: Path, endings: tuple[str, ...], what: str, *read: Path, option: str = "out") -> None:
    """Raise, before the work, if ``out`` cannot be written, or is one of the files to be read."""
    require(out.suffix in endings, f"--{option} {out} must end with {' or '.join(endings)} for {what}")
    require(out.parent.is_dir(), f"--{option} {out}: the folder {out.parent} does not exist")
    require(not out.is_dir() and (not out.exists() or os.access(out, os.W_OK)), f"--{option} {out} cannot be written")
    folder = out.resolve().parent
    beside = out.is_file() or not out.exists()  # a pipe or a device is written itself, not replaced
    require(not beside or os.access(folder, os.W_OK), f"--{option} {out}: the folder {folder} cannot be written")
    for path in read:
        same = path.exists() and out.exists() and path.samefile(out)
        also = "" if path.resolve() == out.resolve() else f", {path}"
        require(not same, f"--{option} {out} is also an input{also}; name another file")


def save_model(ranker: Any, out: Path) -> None:
    """Write a model whole or not at all: on a full disk XGBoost and CatBoost lose the end of it without an error."""
    with replacing(out) as new:
        try:
            ranker.save_model(new)
            if new.is_file():  # a pipe cannot be read again
                type(ranker)().load_model(new)
        except Exception as error:
            message = f"{out} could not be written whole, perhaps the disk is full; nothing has changed"
            raise OSError(f"{message}: {error}") from None

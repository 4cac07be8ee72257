"""Read scores, labels and query ids for the commands, from files of several kinds."""

import os
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives._files import require_readable
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.data import RankingData, load_letor
from ltr_objectives.workbench.tables import Columns, is_table, names_in_table, naming, read_frame, read_keys


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

    @property
    def group(self) -> np.ndarray:
        """Rows of each query."""
        return np.diff(self.queries.ptr)

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
        ranked = Queries(self.queries.labels, self.group)
        ranked.once(metric, lambda: tuple(t._replace(gain=np.where(retrieved, t.gain, 0.0)) for t in layers))
        return metric.values(ranked, self.scores)

    def mean(self, metric: Metric) -> float:
        """The mean over queries, or over rows of errors by row."""
        if self.retrieved is None:
            return metric.mean(self.queries, self.scores)
        return metric.average(*metric.sums(self.values(metric)))


def read_lists(
    data: Path | None, labels: str | None, scores: str | None, qid: str | None, columns: Columns, *,
    drop_unjudged: bool = False,
) -> Lists:  # fmt: skip
    """Read labels and query ids from one file or from separate files; without ``scores`` all scores are 0.

    ``columns`` are those of Parquet and CSV files; ``qid`` then replaces the name of the column. ``drop_unjudged``
    leaves out rows whose label is NaN.
    """
    if data is not None and is_table(data):
        require(labels is None, "pass either --data, or --labels and --qid")
        columns = columns if qid is None else columns._replace(qid=qid)
        found = read_keys("data", existing("data", data), columns, unjudged=drop_unjudged)
        rows = len(found.rows)
        s = np.zeros(rows) if scores is None else _all_rows(read_column("scores", scores), rows)[found.rows]
        return _lists(found.labels, found.ids, s, found.weight, drop_unjudged)
    columns.refuse(Path(str(data or labels)))
    require(
        (data is None) != (labels is None) and (labels is None) == (qid is None),
        "pass either --data, or --labels and --qid",
    )
    if data is not None:
        letor = read_letor("data", data)
        y, ids = letor.y, letor.qid
    else:
        y, ids = read_column("labels", str(labels)), read_column("qid", str(qid), float_numbers=False)
    s = np.zeros(len(y)) if scores is None else read_column("scores", scores)
    return _lists(y, ids, s, None, drop_unjudged)


def _lists(y: np.ndarray, ids: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, drop: bool) -> Lists:
    judged = ~np.isnan(y)
    queries = Queries(np.where(judged, y, 0.0) if drop else y, qid=ids, weight=weight)
    s, ids = queries.check_scores(scores).values, ids[queries.ptr[:-1]]
    if drop and not judged.all():
        (queries, of), s = queries._condensed(judged), s[judged]
        ids = ids[of]
    return Lists(queries, s, ids.tolist())


def read_letor(option: str, path: Path) -> RankingData:
    """Read one LETOR file."""
    existing(option, path)
    found = load_letor(path)
    require(isinstance(found, RankingData), f"--{option} {path} is a folder; pass one LETOR file")
    assert isinstance(found, RankingData)
    return found


def _all_rows(scores: np.ndarray, rows: int) -> np.ndarray:
    require(len(scores) == rows, f"scores has {len(scores)} entries, but labels has {rows}")
    return scores


def read_column(option: str, text: str, *, float_numbers: bool = True) -> np.ndarray:
    """Read one column: numbers, or ids as they are written."""
    named = None if Path(text).exists() else re.fullmatch(r"(.+\.(?:parquet|csv(?:\.\w+)?)):(.+)", text)
    path = existing(option, Path(named[1] if named else text))
    kind = float if float_numbers else str
    with naming(option, path):
        if path.suffix == ".npy":
            array = np.load(path)
        elif is_table(path):
            array = _column_of(path, named and named[2], kind)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # NumPy warns of an empty file
                table = np.loadtxt(path, kind, comments=None, ndmin=2)
            require(table.shape[1] == 1 or table.size == 0, f"it has {table.shape[1]} columns; write one value a line")
            array = table.reshape(-1)
        require(array.ndim == 1, f"it has shape {array.shape}; it must be one-dimensional")
        require(len(array) > 0, "it is empty")
    return array


def _column_of(path: Path, name: str | None, kind: type) -> np.ndarray:
    if name is None:
        columns = names_in_table(path)
        require(len(columns) == 1, f"name one of its columns, as in {path}:{columns[-1]}; there are {columns}")
        name = columns[0]
    column = read_frame(path, [name], only=True, text=[name] if kind is str else [])[name]
    return np.asarray(column.to_numpy() if kind is str else column.to_numpy(kind))


def existing(option: str, path: Path) -> Path:
    """Return ``path``; raise if it does not exist, is a device, or is a pipe in place of a table."""
    require(path.exists(), f"--{option} {path} does not exist")
    require_readable(path, f"--{option} {path}")
    require(not (is_table(path) and path.is_fifo()), f"--{option} {path} is a pipe; tables are read from files")
    return path


def writable(out: Path, endings: tuple[str, ...], what: str, option: str = "out") -> None:
    """Raise if ``out`` cannot be written; called before the work, not after it."""
    require(out.suffix in endings, f"--{option} {out} must end with {' or '.join(endings)} for {what}")
    require(out.parent.is_dir(), f"--{option} {out}: the folder {out.parent} does not exist")
    require(not out.is_dir() and (not out.exists() or os.access(out, os.W_OK)), f"--{option} {out} cannot be written")
    folder = out.resolve().parent
    beside = out.is_file() or not out.exists()  # a pipe or a device is written itself, not replaced
    require(not beside or os.access(folder, os.W_OK), f"--{option} {out}: the folder {folder} cannot be written")


def require_apart(out: Path, *read: Path, option: str = "out") -> None:
    """Raise if ``out`` is one of the files to be read, perhaps under another name."""
    for path in read:
        same = path.exists() and out.exists() and path.samefile(out)
        also = "" if path.resolve() == out.resolve() else f", {path}"
        require(not same, f"--{option} {out} is also an input{also}; name another file")

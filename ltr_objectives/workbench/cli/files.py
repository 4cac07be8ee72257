"""Read data, scores, labels and query ids for the commands, from files of several kinds."""

import os
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives._files import open_text, replacing
from ltr_objectives.errors import require
from ltr_objectives.evaluation import of_a_run
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.data import RankingData, load_parts
from ltr_objectives.workbench.tables import Columns, Table, is_table, naming, numbers, read_frame, read_table, select


class Lists(NamedTuple):
    """Scored documents by query."""

    queries: Queries
    scores: np.ndarray
    ids: list[Any]  # of the queries, in their order
    retrieved: np.ndarray | None = None  # False for judged documents that the run lacks; these have the lowest scores
    notes: tuple[str, ...] = ()  # about what was left out

    def values(self, metric: Metric) -> np.ndarray:
        """Return the value of each query. A document not retrieved counts in the metric's scale, but has gain 0.

        >>> from ltr_objectives import get_metric
        >>> lists = Lists(Queries([1, 0, 1], [3]), np.array([2.0, 1.0, 0.0]), ["a"], np.array([True, True, False]))
        >>> float(lists.values(get_metric("map"))[0])
        0.5
        """
        return np.asarray(metric.of_parts(lambda part: part.values(self._of(part), self.scores), self.queries.for_goal))

    def mean(self, metric: Metric) -> float:
        """Return the mean over queries, or over rows of errors by row."""
        return float(metric.of_parts(lambda part: part.mean(self._of(part), self.scores), self.queries.for_goal))

    def _of(self, metric: Metric) -> Queries:
        return self.queries if self.retrieved is None else of_a_run(metric, self.queries, self.retrieved)


def read_data(option: str, path: Path, columns: Columns, *, features: bool = True, unjudged: bool = False) -> Table:
    """Read a Parquet or CSV file as :func:`read_table` does, or a LETOR file."""
    if is_table(path):
        return read_table(option, path, columns, features=features, unjudged=unjudged)
    data = read_parts({option: path}, columns)[option]
    return Table(data, np.arange(len(data.y)))


def read_parts(files: dict[str, Path], columns: Columns) -> dict[str, RankingData]:
    """Read the parts of a fold, all tables or all LETOR text, with the features of the first in all of them."""
    first, tables = next(iter(files.values())), [path for path in files.values() if is_table(path)]
    if not tables:
        columns.refuse(first)
        return load_parts(files)
    require(
        len(tables) == len(files), f"{tables[0]} has columns by name, and LETOR text does not; give all parts alike"
    )
    parts = {option: read_table(option, path, columns).data for option, path in files.items()}
    names = list(next(iter(parts.values())).X)  # a DataFrame
    for option, part in parts.items():
        with naming(option, files[option]):
            parts[option] = replace(part, X=select(part.X, names))
    return parts


def read_lists(
    data: Path | None, labels: str | None, found: np.ndarray, qid: str | None, columns: Columns, *, drop_unjudged: bool
) -> Lists:
    """Read labels and query ids from one file or from separate files, beside the scores ``found``.

    ``columns`` are those of Parquet and CSV files; ``qid`` then replaces the name of the column. ``drop_unjudged``
    leaves out rows whose label is NaN.
    """
    one_file = data is not None and is_table(data)
    fits = (data is None) == (labels is not None) and (one_file or (labels is None) == (qid is None))
    if data is not None and labels is None and not fits:
        columns.refuse(data, "qid")
    require(fits, "pass either --data, or --labels and --qid")
    if data is None:
        columns.refuse(Path(str(labels)))
        y, ids = read_column("labels", str(labels)), read_column("qid", str(qid), float_numbers=False)
        s, weight = found, None
    else:
        columns = columns._replace(qid=qid or columns.qid)
        table = read_data("data", data, columns, features=False, unjudged=drop_unjudged)
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
    """Read one column, of a file or as ``table.csv:column``: numbers, or ids as they are written."""
    table, _, name = text.rpartition(":")
    path, name = (Path(table), name) if is_table(Path(table)) else (Path(text), "")
    with naming(option, path):
        require(name or not is_table(path), f"name the column, as in --{option} {path}:{option}")
        if path.suffix.lower() == ".npy":
            return np.asarray(np.load(path))
        if is_table(path):
            frame = read_frame(path, [name], only=True, text=[] if float_numbers else [name])
            return numbers(frame, name, unjudged=True) if float_numbers else np.asarray(frame[name])
        with open_text(path) as file, TextIOWrapper(file, "utf-8") as rows:
            lines = np.loadtxt(rows, float if float_numbers else str, comments=None, ndmin=2)
        require(lines.shape[1] == 1, f"it has {lines.shape[1]} columns; write one value a line")
        return lines.ravel()


def writable(out: Path | None, endings: tuple[str, ...], what: str, *read: Path, option: str = "out") -> str:
    """Return the ending of ``out``, if given; raise, before the work, if it cannot be written, or is one to read."""
    if out is None:
        return ""
    require(out.suffix.lower() in endings, f"--{option} {out} must end with {' or '.join(endings)} for {what}")
    folder = out.resolve().parent
    require(os.access(folder, os.W_OK) and not out.is_dir(), f"--{option} {out} cannot be written in {folder}")
    same = any(path.exists() and out.exists() and path.samefile(out) for path in read)
    require(not same, f"--{option} {out} is also an input; name another file")
    return out.suffix.lower()


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


def canvas(picture: Path | None, *data: Path) -> Any:
    """Return an empty figure for the picture, if its file can be written; raise without Matplotlib."""
    if picture is None:
        return None
    writable(picture, (".png", ".svg", ".pdf"), "pictures", *data, option="picture")
    from matplotlib.figure import Figure

    return Figure((7, 5), layout="constrained")


def save_figure(figure: Any, picture: Path) -> None:
    """Write the picture; the file appears only when it is complete."""
    with replacing(picture) as new:
        figure.savefig(new, dpi=130)

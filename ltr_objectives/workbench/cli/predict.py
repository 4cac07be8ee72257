"""``ltr-objectives predict``: scores of the rows of a file."""

from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option, echo

from ltr_objectives._files import replacing
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import read_data, writable
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.letor import TABLES
from ltr_objectives.workbench.tables import Columns, features_in, is_table, naming, read_frame, select, write_csv
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import estimator


def predict(
    model: Annotated[Path, Option(metavar="FILE", exists=True, help="The model, in the format that train writes.")],
    data: Annotated[Path, Option(metavar="FILE", exists=True, help="LETOR, Parquet or CSV; labels are not used.")],
    out: Annotated[
        Path, Option(metavar="FILE", help="The scores: .npy, .txt with one a line, or .csv or .parquet with ids.")
    ],
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    item: Annotated[options.Names, Option(metavar="COLUMNS", help="Columns to write beside the scores.")] = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    as_json: options.AsJson = False,
) -> None:
    """Score the rows of a file with a trained model.

    There is one score for each row, in the order of the rows. A CSV or Parquet file has it in the column score, beside
    the query ids of the data and the columns --item, which are not features. In LETOR text a feature that the file does
    not have is 0, because LETOR text leaves zeros out. Features of the file that the model does not have are ignored:
    they were 0 in its training.
    In Parquet and CSV, features are found by their names. If the model has no names, all columns but the label, the
    query id, the weight, --item and those to ignore are its features. Name the same --categorical as in training.
    """
    name = next((name for name, facts in LIBRARIES.items() if model.suffix.lower() in facts.endings), "")
    endings = ", ".join(ending for facts in LIBRARIES.values() for ending in facts.endings)
    require(name, f"--model {model}: its ending does not show which library wrote it; use one of {endings}")
    writable(out, (".npy", ".txt", ".csv", ".parquet"), "scores", model, data)
    items = names_in(item)
    require("score" not in (qid, *items), "a column 'score' cannot be written beside the scores; rename it")
    columns = Columns(label, qid, weight, [*names_in(ignore), *items], names_in(categorical))

    with estimator(name) as ranker_class:
        ranker = ranker_class().load_model(model)
        X, ids, queries, notes = _read(ranker, data, columns, items)
        scores = ranker.predict(X).astype(np.float64)
    require(scores.ndim == 1, f"--model {model} has several outputs a row; a ranker has one")
    with replacing(out) as new:
        _write(scores, ids, new, out.suffix.lower())
    if out.suffix.lower() in (".csv", ".parquet") and qid not in ids:
        notes.append(f"{out} has no query ids, because {data} has no column {qid!r}; name another one in --qid")

    trees = ranker.best_iteration_
    if as_json:
        options.print_json({
            "library": name, "model": str(model), "trees": trees, "rows": len(scores), "queries": queries,
            "scores": str(out), "notes": notes,
        })  # fmt: skip
        return
    in_queries = "" if queries is None else f" in {queries:,} queries"
    line = f"{name}, {trees} trees: {len(scores):,} rows{in_queries}, scores written to {out}"
    terminal().print(line, markup=False, soft_wrap=True)
    for note in notes:
        echo(f"note: {note}", err=True)


def _read(
    ranker: Any, data: Path, columns: Columns, items: list[str]
) -> tuple[Any, pd.DataFrame, int | None, list[str]]:
    """Return the features of the model, ids and items beside them, the number of queries, and notes."""
    n, names = ranker.n_features_in_, getattr(ranker, "feature_names_in_", None)
    if is_table(data):
        with naming("data", data):
            frame = read_frame(data, items, text=[columns.qid, *items], categorical=columns.categorical)
            ids = frame[[name for name in dict.fromkeys([columns.qid, *items]) if name in frame]]
            X = frame.drop(columns=columns.others, errors="ignore").rename(columns=ranker.library.stored)
            return features_in(X).to_numpy() if names is None else features_in(select(X, names)), ids, None, []
    require(names is None, f"the model finds features by name, and --data {data} has none; {TABLES}")
    columns.refuse(data, "item" if items else "")
    X, _, group, of_row = read_data("data", data, columns).data
    width = X.shape[1]
    does = "those beyond are left out" if width > n else "those missing are 0"
    notes = [f"the model has {n} features, the data {width}: {does}"] if width != n else []
    X = np.pad(X[:, :n], ((0, 0), (0, max(0, n - width))))
    return X, pd.DataFrame({columns.qid: of_row}), len(group), notes


def _write(scores: np.ndarray, ids: pd.DataFrame, path: Path, ending: str) -> None:
    """Write the scores in the format of an ending, in tables beside the ids."""
    if ending == ".csv":
        write_csv(ids.assign(score=scores), path)
    elif ending == ".parquet":
        ids.assign(score=scores).to_parquet(path, index=False)
    elif ending == ".npy":
        content = BytesIO()  # on a full disk np.save to a file loses the end without an error
        np.save(content, scores)
        path.write_bytes(content.getvalue())
    else:
        np.savetxt(path, scores, "%.17g")

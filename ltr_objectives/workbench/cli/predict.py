"""``ltr-objectives predict``: scores of the rows of a file."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Option, echo

from ltr_objectives._files import replacing
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.cli import options

if TYPE_CHECKING:
    from ltr_objectives.workbench.tables import Columns


def predict(
    model: Annotated[Path, Option(metavar="FILE", help="The model, in the format that train writes.")],
    data: Annotated[Path, Option(metavar="FILE", help="LETOR text, Parquet or CSV; its labels are not used.")],
    out: Annotated[Path, Option(metavar="FILE", help="The scores: .npy, or .txt with one a line.")],
    library: Annotated[
        options.Library | None,
        Option(metavar="NAME", help="Needed if the ending of the model does not show it.", show_default=False),
    ] = None,
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = "",
    categorical: options.Categorical = "",
    as_json: options.AsJson = False,
) -> None:
    """Score the rows of a file with a trained model.

    There is one score for each row, in the order of the rows. In LETOR text a feature that the file does not have is 0,
    because LETOR text leaves zeros out. A feature that the model does not have was 0 in its training, and is not used.
    In Parquet and CSV, features are found by their names. If the model has no names, all columns but the label, the
    query id, the weight and those to ignore are its features. Name the same --categorical as in training.
    """
    from ltr_objectives.workbench.cli.files import existing, require_apart, writable
    from ltr_objectives.workbench.tables import Columns

    by_ending = (name for name, facts in LIBRARIES.items() if model.suffix in facts.endings)
    name = library.value if library else next(by_ending, "")
    require(name, f"--model {model}: its ending does not show which library wrote it; pass --library")
    existing("model", model)
    require_apart(out, model, data)
    writable(out, (".npy", ".txt"), "scores")
    columns = Columns(label, qid, weight, tuple(options.names_in(ignore)), tuple(options.names_in(categorical)))
    found = _read(data, columns)
    with LIBRARIES[name].estimator() as estimator:
        ranker = estimator().load_model(model)
        X, queries, width = _features(ranker, name, data, found, columns)
        scores = ranker.predict(X).astype(np.float64)
    require(scores.ndim == 1, f"--model {model} has several outputs a row; a ranker has one")
    with replacing(out) as new:
        if out.suffix == ".npy":
            content = BytesIO()  # on a full disk np.save to a file loses the end without an error
            np.save(content, scores)
            new.write_bytes(content.getvalue())
        else:
            np.savetxt(new, scores, "%.17g")
    trees, features = ranker.best_iteration_, ranker.n_features_in_
    does = "those beyond are left out" if width > features else "those missing are 0"
    notes = [f"the model has {features} features, the data {width}: {does}"] if width != features else []
    if as_json:
        options.print_json(
            {
                "library": name, "model": str(model), "trees": trees, "rows": len(scores), "queries": queries,
                "scores": str(out), "notes": notes,
            }
        )  # fmt: skip
        return
    in_queries = "" if queries is None else f" in {queries:,} queries"
    line = f"{name}, {trees} trees: {len(scores):,} rows{in_queries}, scores written to {out}"
    options.console().print(line, markup=False, soft_wrap=True)
    for note in notes:
        echo(f"note: {note}", err=True)


def _read(data: Path, columns: "Columns") -> Any:
    """The frame of a table, or LETOR data."""
    from ltr_objectives.workbench.cli.files import existing, read_letor
    from ltr_objectives.workbench.tables import is_table, naming, read_frame

    if is_table(existing("data", data)):
        with naming("data", data):
            return read_frame(data, [], categorical=columns.categorical)
    columns.refuse(data)
    return read_letor("data", data)


def _features(ranker: Any, library: str, data: Path, found: Any, columns: "Columns") -> tuple[Any, int | None, int]:
    """The features for the model, the number of queries in LETOR text, and that of features in the file."""
    from ltr_objectives.workbench.tables import features_in, is_table, naming, select

    features, names = ranker.n_features_in_, getattr(ranker, "feature_names_in_", None)
    if not is_table(data):
        require(names is None, f"the model finds features by name, and --data {data} has none; give Parquet or CSV")
        width = found.X.shape[1]
        X = np.pad(found.X[:, :features], ((0, 0), (0, max(0, features - width))))
        return X, len(found.group), width
    frame = found
    with naming("data", data):
        if names is not None:
            if library == "lightgbm":  # whose models have no spaces in names
                frame = frame.rename(columns=lambda name: str(name).replace(" ", "_"))
            return features_in(select(frame, list(names))), None, features
        X = features_in(frame.drop(columns=columns.others, errors="ignore")).to_numpy()
        require(
            X.shape[1] == features,
            f"the model has {features} features without names, and the file {X.shape[1]} columns beside those for "
            "labels, query ids and weights; name the others in --ignore",
        )
    return X, None, features

"""``ltr-objectives predict``: scores of the rows of a file."""

from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option, echo

from ltr_objectives._files import replacing
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import existing, read_data, writable
from ltr_objectives.workbench.tables import Columns, features_in, is_table, naming, read_frame, select
from ltr_objectives.workbench.texts import terminal


def predict(
    model: Annotated[Path, Option(metavar="FILE", help="The model, in the format that train writes.")],
    data: Annotated[Path, Option(metavar="FILE", help="LETOR, Parquet or CSV; labels are not used.")],
    out: Annotated[Path, Option(metavar="FILE", help="The scores: .npy, or .txt with one a line.")],
    library: Annotated[options.Library | None, Option(metavar="NAME", help="If the ending does not show it.")] = None,
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
    by_ending = (name for name, facts in LIBRARIES.items() if model.suffix in facts.endings)
    name = library.value if library else next(by_ending, "")
    require(name, f"--model {model}: its ending does not show which library wrote it; pass --library")
    existing("model", model)
    writable(out, (".npy", ".txt"), "scores", model, data)
    columns = options.read_columns(label, qid, weight, ignore, categorical)
    frame, queries, width = _read(data, columns)
    with LIBRARIES[name].estimator() as estimator:
        ranker = estimator().load_model(model)
        features, names = ranker.n_features_in_, getattr(ranker, "feature_names_in_", None)
        if queries is None:
            with naming("data", data):
                X, width = _of_table(frame, columns, name, features, names), features
        else:
            require(names is None, f"the model finds features by name, and --data {data} has none; give Parquet or CSV")
            X = np.pad(frame[:, :features], ((0, 0), (0, max(0, features - width))))
        scores = ranker.predict(X).astype(np.float64)
    require(scores.ndim == 1, f"--model {model} has several outputs a row; a ranker has one")
    with replacing(out) as new:
        if out.suffix == ".npy":
            content = BytesIO()  # on a full disk np.save to a file loses the end without an error
            np.save(content, scores)
            new.write_bytes(content.getvalue())
        else:
            np.savetxt(new, scores, "%.17g")
    trees = ranker.best_iteration_
    does = "those beyond are left out" if width > features else "those missing are 0"
    notes = [f"the model has {features} features, the data {width}: {does}"] if width != features else []
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


def _read(data: Path, columns: Columns) -> tuple[Any, int | None, int]:
    """All columns of a table, or the features of LETOR text with the numbers of its queries and features."""
    if is_table(existing("data", data)):
        with naming("data", data):
            return read_frame(data, [], categorical=columns.categorical), None, 0
    X, _, group, _ = read_data("data", data, columns).data
    return X, len(group), X.shape[1]


def _of_table(frame: Any, columns: Columns, library: str, features: int, names: Any) -> Any:
    """The features of a table: those with the names of the model, or all in their order."""
    if names is None:
        X = features_in(frame.drop(columns=columns.others, errors="ignore")).to_numpy()
        remedy = "name the others in --ignore" if X.shape[1] > features else "name fewer in --ignore"
        require(
            X.shape[1] == features,
            f"the model has {features} features without names, and the file {X.shape[1]} columns beside those for "
            f"labels, query ids, weights and --ignore; {remedy}",
        )
        return X

    def stored(name: Any) -> Any:
        return str(name).replace(" ", "_") if library == "lightgbm" else name  # its models have no spaces in names

    kept = [name for name in frame if name not in columns.others]
    by_name = {stored(name): name for name in kept}
    needed = ", ".join(repr(name) for name in columns.ignore if stored(name) in {*names} - by_name.keys())
    require(not needed, f"--ignore names {needed}, which the model needs; leave it out of --ignore")
    require(len(by_name) == len(kept), "two columns have one name in LightGBM; name one of them in --ignore")
    own = [by_name.get(name, name) for name in names]
    return features_in(select(frame, own), remedy="").set_axis(list(names), axis=1)

"""``ltr-objectives train``: from files to a model in the library's own format."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Option

from ltr_objectives.candidates import labels_for
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require
from ltr_objectives.evaluation import evaluate
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import read_parts, save_model, writable
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.data import RankingData
from ltr_objectives.workbench.letor import find_parts
from ltr_objectives.workbench.tables import Columns, features_of, show_features, warn_of_labels
from ltr_objectives.workbench.texts import p_of, signed, table, terminal
from ltr_objectives.workbench.trials import fit

FILE = options.FILE
ENDINGS = ", ".join(f"{' or '.join(facts.endings)} ({name})" for name, facts in LIBRARIES.items())


def train(
    out: Annotated[Path, Option(metavar="FILE", help=f"The model: {ENDINGS}.")],
    library: Annotated[str, Option(metavar="NAME", help=f"{', '.join(LIBRARIES)}.")],
    data: Annotated[
        Path | None, Option(metavar="FOLDER", help="With the train, vali and test files of one fold.")
    ] = None,
    train: Annotated[Path | None, Option(help="Or each part by itself: LETOR, Parquet or CSV.", **FILE)] = None,
    vali: Annotated[Path | None, Option(help="For early stopping.", **FILE)] = None,
    test: Annotated[Path | None, Option(help="For the table.", **FILE)] = None,
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    objective: Annotated[str | None, Option(metavar="NAME", help="Default: ours for the metric.")] = None,
    metric: Annotated[options.Names, Option(metavar="NAMES", help=f"{options.METRICS}.")] = None,
    convention: options.Convention = None,
    trees: options.Trees = 500,
    learning_rate: options.LearningRate = 0.1,
    patience: options.Patience = 50,
    threads: options.Threads = 0,
    param: options.Param = None,
    own: options.Own = None,
    as_json: options.AsJson = False,
) -> None:
    """Train on LETOR, Parquet or CSV files, and write the model in the library's own format.

    The objective is one of this package, such as yetiloss:map, or the library's own, such as lambdarank, or auto: the
    one of several that validation chooses. Early stopping uses the first metric; without validation data all trees are
    trained. Metrics of validation and test are printed; by default what the objective optimises, and more.
    """
    check_choice("--library", library, tuple(LIBRARIES))
    files = _files(data, {"train": train, "vali": vali, "test": test})
    writable(out, LIBRARIES[library].endings, library, *files.values())
    require(objective != "auto" or "vali" in files, "--objective auto chooses on vali; pass --vali, or a fold with it")
    metrics = options.read_metrics(metric or _usual(objective, library), convention)
    params = options.params_of(library, trees, learning_rate, threads, param)
    columns = Columns(label, qid, weight, names_in(ignore), names_in(categorical))
    parts = read_parts(files, columns)
    learn = parts["train"]
    warn_of_labels(learn, columns.ignore)
    y, note = labels_for(library, objective or "", learn.y, metrics[0])
    with Console(stderr=True).status(f"{library} trains {objective or f'for {metrics[0]}'}"):
        ranker, seconds = fit(library, objective, metrics[:1], params, replace(learn, y=y), parts.get("vali"), patience)
    save_model(ranker, out)
    values, notes = _values(ranker, parts, metrics)
    kept, tried = ranker.best_iteration_, getattr(ranker, "report_", [])
    if "vali" in parts and kept == trees:
        notes.append(f"validation {metrics[0]} was best at the last of all {trees} trees; try more --trees")
    found = {
        "library": library, "objective": tried[0].objective if tried else objective or str(ranker.objective_),
        "trees": kept, "seconds": seconds, "model": str(out), "convention": convention,
        "features": features_of(learn.X), "notes": [note, *notes] if note else notes, **values,
    }  # fmt: skip
    if tried:
        found["tried"] = [each._asdict() for each in tried]
    if as_json:
        options.print_json(found)
    else:
        _show(found, parts, metrics[0])


def _values(
    ranker: Any, parts: Mapping[str, RankingData], metrics: Sequence[Metric]
) -> tuple[dict[str, Any], list[str]]:
    """Return the metrics of validation and test by name, and notes about queries that are in train too."""
    values, notes, known = {}, [], {*parts["train"].qid.tolist()}
    for part in ("vali", "test"):
        if part in parts:
            X, y, group, ids = parts[part]
            if both := known & {*ids.tolist()}:
                notes.append(f"{len(both)} query ids of {part} are in train too; known queries get too good values")
            scores = ranker.predict(X)
            values[part] = {str(m): float(evaluate(m, scores, y, group, parts[part].weight)) for m in metrics}
    return values, notes


def _show(found: Mapping[str, Any], parts: Mapping[str, RankingData], metric: Metric) -> None:
    """Print what was found; ``metric`` stopped the training."""
    screen = terminal()
    for part, rows in parts.items():
        screen.print(f"{part:5} {len(rows.y):,} rows in {len(rows.group):,} queries")
    screen.print(show_features(parts["train"].X), markup=False, soft_wrap=True)
    for x in found.get("tried", ()):
        gap = "" if x["se"] is None else f", {signed(x['difference'], x['se'])}, p {p_of(x['p'])}"
        said = x["left_out"] or f"{x['value']:.4f}, {x['rounds']} rounds{gap}"
        screen.print(f"{x['objective']}: {said}", markup=False, soft_wrap=True)
    values = {part: found[part] for part in parts if part in found}
    if values:
        made = table(["", *next(iter(values.values()))])
        for part, of in values.items():
            made.add_row(part, *(f"{v:.4f}" for v in of.values()), style="bold" if part == "test" else "")
        screen.print(made)
    stopped = f"kept by validation {metric}" if "vali" in parts else "no validation data to stop by"
    line = "{library}, {objective}: {trees} trees ({stopped}) in {seconds:.1f} s, written to {model}"
    text = "\n".join([line.format(**found, stopped=stopped), *found["notes"]])
    screen.print(text, markup=False, soft_wrap=True)


def _files(folder: Path | None, files: Mapping[str, Path | None]) -> dict[str, Path]:
    """Return the file of each part that was given or found."""
    named = {part: file for part, file in files.items() if file is not None}
    if folder is None:
        require("train" in named, "pass --data with the folder of a fold, or --train and perhaps --vali and --test")
        return named
    require(not named, "pass --data, or --train, --vali and --test, not both")
    require(not folder.is_file(), f"--data {folder} is a file; pass it as --train")
    found = find_parts(folder.expanduser())
    return {part: found[part] for part in files if part in found}


def _usual(objective: str | None, library: str) -> list[str]:
    """Return the metrics for an objective: first that by which our estimators stop for our objectives."""
    first = ""
    if objective not in (None, "auto") and not LIBRARIES[library].knows(objective):
        with suppress(LTRError):  # the estimator will refuse the name
            first = f"{getattr(get_objective(objective), 'metric', None) or 'ndcg'},"
    return [f"{first}ndcg@10,map,mrr"]

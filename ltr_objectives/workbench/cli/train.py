"""``ltr-objectives train``: from files to a model in the library's own format."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from rich import box
from rich.console import Console
from rich.table import Table
from typer import Option

from ltr_objectives.errors import LTRError, require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.evaluation import evaluate
from ltr_objectives.objectives.base import get_objective
from ltr_objectives.registry import objective_for
from ltr_objectives.workbench.cli import options

if TYPE_CHECKING:
    from ltr_objectives.workbench.data import RankingData
    from ltr_objectives.workbench.tables import Columns

OWN_OR_NATIVE = (
    "Ours, such as yetiloss:map or lambdamart, or the library's own, such as lambdarank, or auto: several, of which "
    "vali chooses. Default: ours for the metric."
)
METRIC = f"{options.METRICS}. Default: what the objective optimises, and more."
PART = {"metavar": "FILE", "show_default": False}


def train(
    out: Annotated[Path, Option(metavar="FILE", help="The model: .json or .ubj (XGBoost), .txt (LightGBM), .cbm.")],
    library: Annotated[options.Library, Option(metavar="NAME", help="xgboost, lightgbm or catboost.")],
    data: Annotated[Path | None, Option(metavar="FOLDER", help="With train, vali and test of one fold.")] = None,
    train: Annotated[Path | None, Option(help="Or each part by itself: LETOR, Parquet or CSV.", **PART)] = None,
    vali: Annotated[Path | None, Option(help="For early stopping.", **PART)] = None,
    test: Annotated[Path | None, Option(help="For the table.", **PART)] = None,
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = "",
    categorical: options.Categorical = "",
    objective: Annotated[str | None, Option(help=OWN_OR_NATIVE)] = None,
    metric: Annotated[str | None, Option(help=METRIC)] = None,
    convention: options.Convention = None,
    trees: options.Trees = 500,
    learning_rate: options.LearningRate = 0.1,
    patience: options.Patience = 50,
    threads: options.Threads = 0,
    param: options.Param = None,
    as_json: options.AsJson = False,
) -> None:
    """Train on LETOR, Parquet or CSV files, and write the model.

    Metrics of vali and test are printed. Early stopping uses the first metric; without a vali part all trees are
    trained. The model is in the library's own format, so that the library alone can predict with it.
    """
    from ltr_objectives.workbench.candidates import labels_for
    from ltr_objectives.workbench.cli.files import require_apart, writable
    from ltr_objectives.workbench.tables import Columns, features_of, show_features, warn_of_labels

    name, facts = library.value, LIBRARIES[library.value]
    writable(out, facts.endings, name)
    ours = _ours(objective, name)
    options.refuse_goals("objective", getattr(ours, "goals", ()))
    if metric is None:  # what our estimators stop by, then others to compare by
        first = "" if ours is None else f"{getattr(ours, 'metric', None) or 'ndcg'},"
        metric = f"{first}ndcg@10,map,mrr"
    metrics = options.read_metrics(metric, convention)
    if objective is None:
        objective = str(objective_for(metrics[0]))
    params: dict[str, Any] = {"n_estimators": trees, "learning_rate": learning_rate}
    params |= {facts.threads: threads} if threads else {}
    params |= options.read_parameters(param or [])
    files = _files(data, {"train": train, "vali": vali, "test": test})
    require_apart(out, *files.values())
    require(objective != "auto" or "vali" in files, "--objective auto chooses on vali; pass --vali, or a fold with it")
    columns = Columns(label, qid, weight, tuple(options.names_in(ignore)), tuple(options.names_in(categorical)))
    parts = _read(files, columns)
    learn = parts["train"]
    warn_of_labels(learn, columns.ignore)
    y, note = labels_for(name, objective, learn.y, metrics[0])
    params |= {"objective": objective, "eval_metric": metrics[0]}
    ranker, seconds = _fit(name, params, replace(learn, y=y), parts.get("vali"), patience)
    with facts.estimator():
        ranker.save_model(out)
    decision = getattr(ranker, "report_", None)
    objective = objective if decision is None else decision.chosen
    scored = {part: (ranker.predict(parts[part].X), parts[part]) for part in ("vali", "test") if part in parts}
    values: dict[str, Any] = {part: {str(m): _mean(m, *of) for m in metrics} for part, of in scored.items()}
    kept = ranker.best_iteration_
    if as_json:
        options.print_json({
            "library": name, "objective": objective, "trees": kept, "seconds": seconds, "model": str(out),
            "convention": convention, "features": features_of(learn.X), "notes": [note] if note else [],
            **values, **({} if decision is None else {"tried": decision.as_dicts(), "left_out": decision.left_out}),
        })  # fmt: skip
        return
    screen = options.console()
    for part, rows in parts.items():
        screen.print(f"{part:5} {len(rows.y):,} rows in {len(rows.group):,} queries")
    screen.print(show_features(learn.X), markup=False, soft_wrap=True)
    if decision is not None:
        screen.print(f"\n{decision}", markup=False, soft_wrap=True)
    if values:
        screen.print(_table(values))
    stopped = f"kept by vali {metrics[0]}" if "vali" in parts else "no vali part to stop by"
    line = f"{name}, {objective}: {kept} trees ({stopped}) in {seconds:.1f} s, written to {out}"
    screen.print(line + (f"\n{note}" if note else ""), markup=False, soft_wrap=True)


def _fit(
    library: str, params: dict[str, Any], data: "RankingData", vali: "RankingData | None", patience: int
) -> tuple[Any, float]:
    """The ranker, stopped early on ``vali`` if there is one, and the seconds of its training."""
    stopping: dict[str, Any] = {}
    if vali is not None:
        stopping = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "eval_sample_weight": [vali.weight],
                    "early_stopping_rounds": patience}  # fmt: skip
    status = Console(stderr=True).status(f"{library} trains {params['objective']}")
    with status, LIBRARIES[library].estimator() as estimator:
        start = perf_counter()
        ranker = estimator(**params).fit(data.X, data.y, qid=data.qid, sample_weight=data.weight, **stopping)
    return ranker, perf_counter() - start


def _table(values: dict[str, dict[str, float]]) -> Table:
    """A line for each part, a column for each metric."""
    table = Table("", box=box.SIMPLE_HEAD)
    for metric in next(iter(values.values())):
        table.add_column(metric, justify="right", no_wrap=True)
    for part, found in values.items():
        table.add_row(part, *(f"{v:.4f}" for v in found.values()), style="bold" if part == "test" else "")
    return table


def _mean(metric: Any, scores: Any, part: "RankingData") -> float:

    return float(evaluate(metric, scores, part.y, part.group, part.weight))


def _ours(objective: str | None, library: str) -> Any:
    """The objective if it is ours; None for the library's own, and for a name that the estimator will refuse."""
    if objective is None or LIBRARIES[library].knows(objective):
        return None
    try:
        return get_objective(objective)
    except LTRError:
        return None


def _files(folder: Path | None, files: dict[str, Path | None]) -> dict[str, Path]:
    """The file of each part that was given or found."""
    from ltr_objectives.workbench.cli.files import existing
    from ltr_objectives.workbench.letor import find_parts

    named = {part: existing(part, file) for part, file in files.items() if file is not None}
    if folder is None:
        require("train" in named, "pass --data with the folder of a fold, or --train and perhaps --vali and --test")
        return named
    require(not named, "pass --data, or --train, --vali and --test, not both")
    require(folder.is_dir() or not folder.exists(), f"--data {folder} is a file; pass it as --train")
    found = find_parts(folder.expanduser())
    return {part: found[part] for part in ("train", "vali", "test") if part in found}


def _read(files: dict[str, Path], columns: "Columns") -> "dict[str, RankingData]":
    """All files as tables, or all of them as LETOR text."""
    from ltr_objectives.workbench.data import load_parts
    from ltr_objectives.workbench.tables import is_table, read_tables

    tables = [path for path in files.values() if is_table(path)]
    if not tables:
        columns.refuse(next(iter(files.values())))
        return load_parts(files)
    others = [path for path in files.values() if path not in tables]
    require(not others, f"{tables[0]} has columns by name, and LETOR text such as {(others or tables)[0]} does not")
    return read_tables(files, columns)

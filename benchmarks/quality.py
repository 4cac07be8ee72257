"""``python -m benchmarks quality``: a study over data sets, folds, seeds, libraries and objectives."""

import itertools
import json
import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typer import Context, Exit, Option

from benchmarks.folds import Fold, folds_of, preset_folds
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import get_metric
from ltr_objectives.objectives.base import get_objective
from ltr_objectives.workbench.candidates import natives_for
from ltr_objectives.workbench.cli.options import names_in, python_value
from ltr_objectives.workbench.texts import terminal

DATA = (
    "Folder of one or several folds in LETOR format, or generated:TRAIN,VALI,TEST[:SEED] queries, or "
    "generated-binary:... or generated-calibrated:...; may be repeated."
)
DRAWS = (
    "Settings of learning rate, leaves, least Hessian and L2, both in documents, the same for every objective; "
    "the best on vali counts, metric by metric. Not with options that set one of these."
)
DOCUMENTS = "L2 in documents; --min-child-weight then is in documents, too. 0 leaves both in each objective's units."
SMOOTH = "Metrics whose vali value is the mean over slightly noisy scores, such as mrr."
PRESET = "web10k, web30k, yahoo or istella, found in --data: its folds, and settings as published."
PARAM = (
    "A parameter of a library by its own name, such as catboost:random_strength=0,1; of several values the best on "
    "vali counts; may be repeated."
)
OF_THE_STUDY = (
    "objective", "loss_function", "metric", "eval_metric", "custom_metric", "learning_rate", "eta", "shrinkage_rate",
    "iterations", "num_iterations", "num_boost_round", "n_estimators", "num_trees", "seed", "random_seed",
    "random_state", "nthread", "n_jobs", "num_threads", "thread_count", "early_stopping_rounds", "od_wait",
)  # fmt: skip
# Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", section 4.1: 1000 trees without early stopping, cut
# to the best number on vali.
AS_PUBLISHED: dict[str, object] = {
    "metrics": "ndcg@10,mrr,map,err",
    "objectives": "queryrmse,lambdamart:{metric},stochasticrank:{metric},yetirank,yetiloss:{metric}",
    "natives": "lambdarank,rank:ndcg,rank:map,QueryRMSE,LambdaMart:metric={metric},StochasticRank:metric={metric},"
    "YetiRank,YetiRank:mode={metric}",
    "seeds": "0", "trees": 1000, "patience": 1000,
}  # fmt: skip
SHARED = {"learning_rate": (0.03, 0.3), "leaves": (6, 48), "min_child_weight": (1.0, 50.0), "documents": (1.0, 300.0)}
COLUMNS = (
    TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
    TimeRemainingColumn(elapsed_when_finished=False),
)  # fmt: skip


def drawn(count: int) -> list[dict[str, Any]]:
    """``count`` settings within ``SHARED``, log-uniform and spread evenly (Halton); a longer list extends a shorter."""
    from scipy.stats import qmc

    least, most = np.log(np.array(list(SHARED.values()))).T
    points = qmc.Halton(len(SHARED), seed=0).random(count)
    found = [dict(zip(SHARED, map(float, np.exp(point)), strict=True)) for point in least + points * (most - least)]
    return [{**each, "leaves": round(each["leaves"])} for each in found]


def _refuse_with_draws(context: Context, *drawn: str) -> None:
    """Raise for options on the command line whose values --draws would replace."""
    sources = {name: context.get_parameter_source(name) for name in drawn}
    given = [name.replace("_", "-") for name, source in sources.items() if source and source.name == "COMMANDLINE"]
    named = " and ".join(f"--{name}" for name in given)
    require(not given, f"--draws tries settings of its own for {named}; leave out either --draws or {named}")


def _preset(context: Context, value: str | None) -> str | None:
    """A preset replaces the defaults, so that given options override it."""
    if value is not None:
        context.default_map = {**(context.default_map or {}), **AS_PUBLISHED}
    return value


def quality(
    context: Context,
    data: Annotated[list[str] | None, Option(help=DATA)] = None,
    preset: Annotated[str | None, Option(help=PRESET, callback=_preset, is_eager=True)] = None,
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    objectives: Annotated[
        str, Option(help="Ours; {metric} in a name is replaced by each of --metrics in turn.")
    ] = "lambdamart,yetirank,yetiloss,yetiloss:{metric}",
    natives: Annotated[str, Option(help="'usual', 'none', or names; {metric} as above.")] = "usual",
    metrics: Annotated[str, Option(help="Each stops the trainings by itself.")] = "ndcg@10,map,mrr,err",
    seeds: Annotated[str, Option(help="Of objectives and libraries, and of generated data.")] = "0",
    draws: Annotated[int, Option(min=0, help=DRAWS)] = 0,
    learning_rates: Annotated[str, Option(help="Of several the best on vali counts.")] = "0.1",
    param: Annotated[list[str] | None, Option(help=PARAM)] = None,
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 300,
    leaves: Annotated[int, Option(min=2, help="Of a tree; CatBoost's have the nearest depth.")] = 31,
    patience: Annotated[int, Option(min=1, help="Trees without a better vali value before a stop.")] = 30,
    min_child_weight: Annotated[float, Option(min=0, help="Least Hessian sum of a leaf; not in CatBoost.")] = 1e-3,
    l2: Annotated[float, Option(min=0, help="L2 regularisation of leaf values, in all libraries.")] = 0.0,
    documents: Annotated[float, Option(min=0, help=DOCUMENTS)] = 0.0,
    smooth: Annotated[str, Option(help=SMOOTH)] = "",
    jobs: Annotated[int, Option(min=1, help="Trainings at a time.")] = 1,
    threads: Annotated[int, Option(min=0, help="Of each training; 0 shares all processors among the jobs.")] = 0,
    alpha: Annotated[float, Option(min=0, max=1, help="Level of the significance marks.")] = 0.05,
    plots: Annotated[bool, Option(help="Draw the results beside the tables.")] = True,
    out: Annotated[Path, Option(help="Folder of the study. Trainings with a result there are not repeated.")] = Path(
        "results/quality"
    ),
) -> None:
    """Compare objectives over many trainings.

    Differences come with their significance over test queries. Each metric has its own column, its own early stopping
    and its own choice on vali: among several learning rates, and for the libraries' own objectives between these
    settings and their library's defaults. An interrupted study goes on where it stopped. It writes
    tables as markdown, CSV and parquet, and plots.
    """
    from benchmarks import cells, report
    from benchmarks.provenance import provenance, versions_of
    from ltr_objectives.workbench.trials import Budget

    console = terminal(140)
    each = threads or max(1, available_threads() // jobs)
    smoothed, stated = (tuple(str(get_metric(m)) for m in names_in(names)) for names in (smooth, metrics))
    for name in smoothed:
        check_choice("smooth", name, stated)
    budget = Budget(trees, 0.1, leaves, patience, min_child_weight, l2, each, 0, documents=documents, smooth=smoothed)
    whole = [number(seed, int, "seeds") for seed in names_in(seeds)]
    require(preset is None or data, f"--preset {preset} needs --data, the folder where it was unpacked")
    places = data or ["generated:600,200,400"]
    folds = [f for d in places for f in (folds_of(d, whole) if preset is None else preset_folds(preset, d, whole))]
    rates = [number(r, float, "learning-rates") for r in names_in(learning_rates)]
    if draws:
        _refuse_with_draws(context, "learning_rates", "leaves", "min_child_weight", "documents", "l2")
    require(not draws or len(rates) == 1, "--draws searches the learning rate; give --learning-rates or --draws")
    settings: list[dict[str, Any]] = drawn(draws) or [{"learning_rate": rate} for rate in rates]
    wanted = plan(
        folds, names_in(libraries), names_in(objectives), names_in(natives), names_in(metrics),
        [replace(budget, **found) for found in settings], param or (),
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in wanted if not cell.path(out).exists()]
    console.print(f"{len(wanted)} trainings, {len(wanted) - len(todo)} of them done before; {jobs} at a time")
    failed = train(todo, out, jobs, console)
    done = (cell for cell in wanted if cell.path(out).exists())
    records = [{**json.loads(cell.path(out).read_text()), "fold": list(cell.fold)} for cell in done]
    require(records, "nothing could be trained")
    cells.write_whole(out / "study.json", provenance() | {"versions": versions_of(records)}, indent=1)
    written = report.write(records, out, alpha, console, plots=plots)
    for path in written:
        if path.suffix != ".png":
            console.print(f"written: {os.fspath(path)}")
    if pictures := sum(path.suffix == ".png" for path in written):
        console.print(f"written: {pictures} pictures beside them")
    if failed:
        console.print(f"[red]{len(failed)} trainings failed[/]; run the same command again to try only these")
        raise Exit(1)


def plan(
    folds: Sequence[Fold], libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str],
    metrics: Sequence[str], budgets: Sequence[Any], param: Sequence[str] = (),
) -> list[Any]:  # fmt: skip
    """Every training of the study; those on the same data come together."""
    from benchmarks.cells import CONSTANT, Cell
    from ltr_objectives.workbench import trials

    for library in libraries:
        check_choice("libraries", library, tuple(LIBRARIES))
    tried = {library: list(itertools.product(*values)) for library, values in _params(param, libraries).items()}
    names = tuple(dict.fromkeys(str(get_metric(m)) for m in metrics))
    require(libraries and names and folds and budgets, "name libraries, metrics, seeds and learning rates")
    usual, none = natives == ["usual"], natives == ["none"]
    unknown = [n for n in natives if not (usual or none or any(kind.knows(n) for kind in LIBRARIES.values()))]
    require(not unknown, f"--natives: {', '.join(unknown)} is known to no library")
    of_metric = natives_for if usual else lambda *_: natives
    for label, name in itertools.product(objectives, names):
        try:
            get_objective(label.replace("{metric}", name))
        except LTRError as error:
            if not any(LIBRARIES[library].knows(label) for library in libraries):
                raise LTRError(f"{label} is not an objective of {libraries[0]}, nor one of ours: {error}") from None
    sources: dict[Any, str] = {}
    planned = []
    for fold in folds:
        one = fold.data, Path(fold.source).name, fold.seed
        require(
            sources.setdefault(one, fold.source) == fold.source,
            f"{sources.get(one)} and {fold.source} have the same names; rename one, or their results are mixed up",
        )
        planned.append(Cell("", CONSTANT, CONSTANT, names, replace(budgets[0], trees=0, seed=fold.seed), fold=fold))
        for library in libraries:
            at = [replace(b, seed=fold.seed, params=params) for b in budgets for params in tried[library]]
            own = list(of_metric(library, get_metric(names[0])))
            for t in trials.plan([library], objectives, own, names, at):
                planned.append(Cell(t.library, t.objective, t.label, t.metrics, t.budget, fold=fold))
    return list(dict.fromkeys(planned))


def train(todo: Sequence[Any], out: Path, jobs: int, console: Console) -> list[Any]:
    """Train what is still without a record; print the errors, and return the cells that failed."""
    from benchmarks.cells import run
    from benchmarks.workers import workers
    from ltr_objectives.workbench.summary import settings_of

    failed = []
    with Progress(*COLUMNS, console=console, speed_estimate_period=3600) as progress, workers(jobs) as pool:
        task = progress.add_task("trainings", total=len(todo))
        futures = {pool.submit(run, cell, out): cell for cell in todo}
        for future in as_completed(futures):
            cell = futures[future]
            progress.advance(task)
            try:
                record = future.result()
                first = cell.metrics[0]
                vali = f"{record['vali'][first]:.4f}" if record["vali"] else "-"
                text = f"vali {first} {vali}, {record['seconds']:.1f} s"
            except LTRError as error:
                failed.append(cell)
                text = f"failed: {error}"
            rate = f"lr {cell.budget.learning_rate:g}"
            rate = " ".join([rate, *(f"{name}={value}" for name, value in settings_of(asdict(cell.budget)))])
            place = f"{cell.fold.data} {Path(cell.fold.source).name} seed {cell.fold.seed}"
            progress.console.print(f"  {place}  {cell.library}  {cell.objective}  {rate}  {text}", markup=False)
    return failed


def _params(given: Sequence[str], libraries: Sequence[str]) -> dict[str, list[list[tuple[str, Any]]]]:
    """By library, the values to try of each of its parameters, each with the name."""
    found: dict[str, dict[str, list[tuple[str, Any]]]] = {library: {} for library in libraries}
    for text in given:
        library, _, rest = text.partition(":")
        name, _, values = rest.partition("=")
        require(name and names_in(values), f"--param {text!r} must look like catboost:random_strength=0,1")
        require(library in found, f"--param {text!r}: {library} is not in --libraries")
        require(name not in found[library], f"--param {text!r}: {name} is given twice; put commas between values")
        require(name not in OF_THE_STUDY, f"--param {text!r}: the study sets {name} itself")
        found[library][name] = [(name, python_value(value)) for value in names_in(values)]
        plain = all(isinstance(value, (bool, int, float, str)) for _, value in found[library][name])
        require(plain, f"--param {text!r}: values must be numbers, true, false or words")
    return {library: [values for _, values in sorted(names.items())] for library, names in found.items()}


def number(text: str, kind: Any, option: str) -> Any:
    """The number that an option holds, above 0, or at least 0 if it is whole."""
    try:
        value = kind(text)
    except ValueError:
        value = -1
    require(value >= 0 if kind is int else value > 0, f"--{option}: {text!r} is not a valid number")
    return value

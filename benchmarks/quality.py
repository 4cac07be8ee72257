"""``python -m benchmarks quality``: a study over data sets, folds, seeds, libraries and objectives."""

import itertools
import json
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typer import Exit, Option

from benchmarks import cells, report
from benchmarks.cells import CONSTANT, Cell
from benchmarks.folds import Fold, folds_of
from benchmarks.provenance import provenance, versions_of
from benchmarks.summary import settings_of
from ltr_objectives.candidates import natives_for
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.options import names_in, python_value
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import Budget

DATA = (
    "Folder of one or several folds in LETOR format, or generated:TRAIN,VALI,TEST[:SEED] queries, or "
    "generated-binary:... or generated-calibrated:...; may be repeated."
)
DRAWS = (
    "Settings of learning rate, leaves, least Hessian and L2, the same for every objective, in place of the options; "
    "the best on validation counts, metric by metric."
)
DEFAULTS = "Train every objective at its library's defaults too, but for trees and learning rate; validation chooses."
SHARED_TOO = "Train every objective at the settings of the options or draws, which all objectives share."
SMOOTH = "Metrics whose validation value is the mean over slightly noisy scores, such as mrr."
PARAM = (
    "A parameter of a library by its own name, such as catboost:random_strength=0,1; of several values the best on "
    "validation counts; may be repeated."
)
SHARED = {"learning_rate": (0.03, 0.3), "leaves": (6, 48), "min_child_weight": (1.0, 50.0), "documents": (1.0, 300.0)}
COLUMNS = (
    TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
    TimeRemainingColumn(elapsed_when_finished=False),
)  # fmt: skip


def drawn(count: int) -> list[dict[str, Any]]:
    """Draw ``count`` settings within ``SHARED``, log-uniform, spread evenly (Halton); longer lists extend shorter."""
    from scipy.stats import qmc

    least, most = np.log(np.array(list(SHARED.values()))).T
    points = qmc.Halton(len(SHARED), seed=0).random(count)
    found = [dict(zip(SHARED, map(float, np.exp(point)), strict=True)) for point in least + points * (most - least)]
    return [{**each, "leaves": round(each["leaves"])} for each in found]


def quality(
    data: Annotated[list[str] | None, Option(help=DATA)] = None,
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    objectives: Annotated[
        str, Option(help="Ours; {metric} in a name is replaced by each of --metrics in turn.")
    ] = "lambdamart,yetirank,yetiloss,yetiloss:{metric}",
    natives: Annotated[str, Option(help="'usual', 'none', or names; {metric} as above.")] = "usual",
    metrics: Annotated[str, Option(help="Each stops the trainings by itself.")] = "ndcg@10,map,mrr,err",
    seeds: Annotated[str, Option(help="Of objectives and libraries, and of generated data.")] = "0",
    draws: Annotated[int, Option(min=0, help=DRAWS)] = 0,
    defaults: Annotated[bool, Option(help=DEFAULTS)] = True,
    shared: Annotated[bool, Option(help=SHARED_TOO)] = True,
    learning_rates: Annotated[str, Option(help="Of several the best on validation counts.")] = "0.1",
    param: Annotated[list[str] | None, Option(help=PARAM)] = None,
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 300,
    leaves: Annotated[int, Option(min=2, help="Of a tree; CatBoost's have the nearest depth.")] = 31,
    patience: Annotated[int, Option(min=1, help="Trees without a better validation value before a stop.")] = 30,
    min_child_weight: Annotated[float, Option(min=0, help="Least documents of a leaf; not in CatBoost.")] = 1.0,
    documents: Annotated[float, Option(min=0, help="L2 regularisation of leaf values.")] = 20.0,
    smooth: Annotated[str, Option(help=SMOOTH)] = "",
    own: options.Own = None,
    jobs: Annotated[int, Option(min=1, help="Trainings at a time.")] = 1,
    threads: Annotated[int, Option(min=0, help="Of each training; 0 shares all processors among the jobs.")] = 0,
    out: Annotated[Path, Option(help="Folder of the study. Trainings with a result there are not repeated.")] = Path(
        "results/quality"
    ),
) -> None:
    """Compare objectives over many trainings.

    Differences come with their significance over test queries. Each metric has its own column, its own early stopping
    and its own choice on validation: among several learning rates, and between these settings and the library's
    defaults. An interrupted study goes on where it stopped. It writes tables as markdown, CSV and parquet.
    """
    console = terminal(140)
    each = threads or max(1, available_threads() // jobs)
    budget = Budget(trees, 0.1, leaves, patience, min_child_weight, documents, each)
    settings = drawn(draws) or [{"learning_rate": float(rate)} for rate in names_in(learning_rates)]
    kinds = [own for own, asked in ((True, defaults), (False, shared)) if asked]
    require(kinds, "--no-defaults and --no-shared leave no setting to train with")
    whole = [int(seed) for seed in names_in(seeds)]
    folds = [fold for place in data or ["generated:600,200,400"] for fold in folds_of(place, whole)]
    wanted = plan(
        folds, names_in(libraries), names_in(objectives), names_in(natives), names_in(metrics),
        [replace(budget, **found, defaults=own) for own in kinds for found in settings], param or (), names_in(smooth),
    )  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in wanted if not cell.path(out).exists()]
    console.print(f"{len(wanted)} trainings, {len(wanted) - len(todo)} of them done before; {jobs} at a time")
    failed = train(todo, out, jobs, console, own)
    done = (cell for cell in wanted if cell.path(out).exists())
    records = [{**json.loads(cell.path(out).read_text()), "fold": list(cell.fold)} for cell in done]
    require(records, "nothing could be trained")
    cells.write_whole(out / "study.json", provenance() | {"versions": versions_of(records)}, indent=1)
    for path in report.write(records, out, console):
        console.print(f"written: {os.fspath(path)}")
    if failed:
        console.print(f"[red]{len(failed)} trainings failed[/]; run the same command again to try only these")
        raise Exit(1)


def plan(
    folds: Sequence[Fold], libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str],
    metrics: Sequence[str], budgets: Sequence[Budget], param: Sequence[str] = (), smooth: Sequence[str] = (),
) -> list[Cell]:  # fmt: skip
    """Plan every training of the study; those on the same data come together."""
    for library in libraries:
        check_choice("libraries", library, tuple(LIBRARIES))
    tried = {library: list(itertools.product(*values)) for library, values in _params(param, libraries).items()}
    names = tuple(dict.fromkeys(str(get_metric(m)) for m in metrics))
    noisy = tuple(str(get_metric(m)) for m in smooth)
    for name in noisy:
        check_choice("smooth", name, names)
    require(libraries and names and folds and budgets, "name libraries, metrics, seeds and learning rates")
    known = [n for n in natives if n in ("usual", "none") or any(kind.knows(n) for kind in LIBRARIES.values())]
    require(len(known) == len(natives), f"--natives: {', '.join({*natives} - {*known})} is known to no library")
    sources: dict[Any, str] = {}
    planned = []
    for fold in folds:
        one = fold.data, Path(fold.source).name, fold.seed
        require(
            sources.setdefault(one, fold.source) == fold.source,
            f"{sources.get(one)} and {fold.source} have the same names; rename one, or their results are mixed up",
        )
        of_fold = [replace(b, seed=fold.seed) for b in budgets]
        planned.append(Cell("", CONSTANT, CONSTANT, names, replace(of_fold[0], trees=0), fold, noisy))
        for library in libraries:
            at = [replace(b, params=params) for b in of_fold for params in tried[library]]
            own = natives_for(library, get_metric(names[0])) if natives == ["usual"] else natives
            for label in (*filter(LIBRARIES[library].knows, own), *objectives):
                planned += labelled(library, label, names, at, fold, noisy)
    return list(dict.fromkeys(planned))


def labelled(
    library: str, label: str, names: tuple[str, ...], budgets: Sequence[Budget], fold: Fold, smooth: tuple[str, ...]
) -> list[Cell]:
    """Return the trainings of a label: one for all metrics, or with ``{metric}`` one for each that the library has."""
    kind, found = LIBRARIES[library], []
    native = kind.knows(label)
    for targets in [(name,) for name in names] if "{metric}" in label else [names]:
        objective = label.replace("{metric}", kind.spelled(targets[0]) if native else targets[0])
        if kind.knows(objective) == native:  # else the library does not have it for this metric
            tried = [b for b in budgets if b.defaults or kind.twin(objective) is not None]
            found += [Cell(library, objective, label, targets, budget, fold, smooth) for budget in tried]
    return found


def train(todo: Sequence[Cell], out: Path, jobs: int, console: Console, own: options.Names = None) -> list[Cell]:
    """Train what is still without a record; print the errors, and return the cells that failed."""
    failed = []
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), options.load_own, (own,))
    with Progress(*COLUMNS, console=console, speed_estimate_period=3600) as progress, pool:
        task = progress.add_task("trainings", total=len(todo))
        futures = {pool.submit(cells.run, cell, out): cell for cell in todo}
        for future in as_completed(futures):
            cell = futures[future]
            progress.advance(task)
            try:
                record = future.result()
                vali = next(iter(record["vali"].values()), np.nan)
                text = f"validation {cell.metrics[0]} {vali:.4f}, {record['seconds']:.1f} s"
            except LTRError as error:
                failed.append(cell)
                text = f"failed: {error}"
            settings = " ".join(f"{name}={value}" for name, value in settings_of(asdict(cell.budget)))
            place = f"{cell.fold.data} {Path(cell.fold.source).name} seed {cell.fold.seed}"
            at = f"lr {cell.budget.learning_rate:g} {settings}"
            progress.console.print(f"  {place}  {cell.library}  {cell.objective}  {at}  {text}", markup=False)
    return failed


def _params(given: Sequence[str], libraries: Sequence[str]) -> dict[str, list[list[tuple[str, Any]]]]:
    """Return the values to try of each parameter, with its name, by library."""
    found: dict[str, dict[str, list[tuple[str, Any]]]] = {library: {} for library in libraries}
    for text in given:
        library, _, rest = text.partition(":")
        name, _, values = rest.partition("=")
        require(name and names_in(values), f"--param {text!r} must look like catboost:random_strength=0,1")
        require(library in found, f"--param {text!r}: {library} is not in --libraries")
        require(name not in found[library], f"--param {text!r}: {name} is given twice; put commas between values")
        found[library][name] = [(name, python_value(value)) for value in names_in(values)]
    return {library: [values for _, values in sorted(names.items())] for library, names in found.items()}

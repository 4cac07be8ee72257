"""``python -m benchmarks quality``: a study over data sets, folds, seeds, libraries and objectives."""

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
from benchmarks.cells import Cell
from benchmarks.folds import folds_of
from benchmarks.plan import plan
from benchmarks.provenance import provenance, versions_of
from benchmarks.summary import settings_of
from ltr_objectives.errors import LTRError, require
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.options import names_in
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
    natives: Annotated[str, Option(help="'usual', names, or both, or 'none'; {metric} as above.")] = "usual",
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
    budget = Budget(trees, leaves=leaves, patience=patience, threads=each)
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

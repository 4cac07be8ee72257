"""``python -m benchmarks quality``: a study over data sets, folds, seeds, libraries and objectives."""

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from typer import Context, Exit, Option

from ltr_objectives.checks import check_choice
from ltr_objectives.workbench.cli.options import names_in, python_value, refuse_with_draws
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.errors import LTRError, require
from ltr_objectives.registry import get_metric

DATA = (
    "Folder of one or several folds in LETOR format, or generated:TRAIN,VALI,TEST[:SEED] queries, or "
    "generated-binary:... or generated-calibrated:...; may be repeated."
)
OBJECTIVES = "lambdamart,yetirank,yetiloss,yetiloss:{metric}"
OURS = "Ours; {metric} in a name is replaced by each of --metrics in turn."
NATIVES = "'usual', 'none', or names; {metric} as above."
SEEDS = "Of objectives and libraries, and of generated data."
Libraries = Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")]
Leaves = Annotated[int, Option(min=2, help="Of a tree; CatBoost's have the nearest depth.")]
MinChildWeight = Annotated[float, Option(min=0, help="Least Hessian sum of a leaf; not in CatBoost.")]
DOCUMENTS = "L2 in documents; --min-child-weight then is in documents, too. 0 leaves both in each objective's units."
L2 = Annotated[float, Option(min=0, help="L2 regularisation of leaf values, in all libraries.")]
DRAWS = (
    "So many settings of learning rate, leaves, least Hessian and L2, both in documents, the same for every objective; "
    "the best on vali counts, metric by metric. Not with options that set one of these."
)
SMOOTH = "Metrics whose vali value is the mean over slightly noisy scores, such as mrr."
Documents = Annotated[float, Option(min=0, help=DOCUMENTS)]
Alpha = Annotated[float, Option(min=0, max=1, help="Level of the significance marks.")]
PRESET = "web10k, web30k, yahoo or istella, found in --data: its folds, and settings as published."
TUNE = "Trials of hyper-parameters for each training and metric, chosen on vali; 0 takes those below."
PARAM = (
    "A parameter of a library by its own name, such as catboost:random_strength=0,1; of several values the best on "
    "vali counts; may be repeated."
)
OF_THE_STUDY = (
    "objective", "loss_function", "metric", "eval_metric", "custom_metric", "learning_rate", "eta", "shrinkage_rate",
    "iterations", "num_iterations", "num_boost_round", "n_estimators", "num_trees", "seed", "random_seed",
    "random_state", "nthread", "n_jobs", "num_threads", "thread_count", "early_stopping_rounds", "od_wait",
)  # fmt: skip
OUT = "Folder of the study. Trainings with a result there are not repeated."


def _preset(context: Context, value: str | None) -> str | None:
    """A preset replaces the defaults, so that given options override it."""
    if value is not None:
        from benchmarks.presets import OPTIONS

        context.default_map = {**(context.default_map or {}), **OPTIONS}
    return value


def quality(
    context: Context,
    data: Annotated[list[str] | None, Option(help=DATA)] = None,
    preset: Annotated[str | None, Option(help=PRESET, callback=_preset, is_eager=True)] = None,
    libraries: Libraries = "xgboost,lightgbm,catboost",
    objectives: Annotated[str, Option(help=OURS)] = OBJECTIVES,
    natives: Annotated[str, Option(help=NATIVES)] = "usual",
    metrics: Annotated[str, Option(help="Each stops the trainings by itself.")] = "ndcg@10,map,mrr,err",
    seeds: Annotated[str, Option(help=SEEDS)] = "0",
    tune: Annotated[int, Option(min=0, help=TUNE)] = 0,
    draws: Annotated[int, Option(min=0, help=DRAWS)] = 0,
    learning_rates: Annotated[str, Option(help="Of several the best on vali counts.")] = "0.1",
    param: Annotated[list[str] | None, Option(help=PARAM)] = None,
    trees: Annotated[int, Option(min=1, help="At most so many.")] = 300,
    leaves: Leaves = 31,
    patience: Annotated[int, Option(min=1, help="Stop after so many trees without a better vali value.")] = 30,
    min_child_weight: MinChildWeight = 1e-3,
    l2: L2 = 0.0,
    documents: Documents = 0.0,
    smooth: Annotated[str, Option(help=SMOOTH)] = "",
    jobs: Annotated[int, Option(min=1, help="Trainings at a time.")] = 1,
    threads: Annotated[int, Option(min=0, help="Of each training; 0 shares all processors among the jobs.")] = 0,
    alpha: Alpha = 0.05,
    plots: Annotated[bool, Option(help="Draw the results beside the tables.")] = True,
    out: Annotated[Path, Option(help=OUT)] = Path("results/quality"),
) -> None:
    """Compare objectives over many trainings.

    Differences come with their significance over test queries. Each metric has its own column, its own early stopping
    and its own choice on vali among several learning rates. An interrupted study goes on where it stopped. It writes
    tables as markdown, CSV and parquet, and plots.
    """
    from benchmarks import cells, report
    from benchmarks.provenance import provenance, versions_of
    from ltr_objectives.workbench.trials import Budget, drawn
    from ltr_objectives.kernels.threads import available_threads

    console = terminal(140)
    each = threads or max(1, available_threads() // jobs)
    smoothed, stated = (tuple(str(get_metric(m)) for m in names_in(names)) for names in (smooth, metrics))
    for name in smoothed:
        check_choice("smooth", name, stated)
    budget = Budget(trees, 0.1, leaves, patience, min_child_weight, l2, each, 0, documents=documents, smooth=smoothed)
    folds = _folds(data, preset, [number(s, int, "seeds") for s in names_in(seeds)])
    rates = [number(r, float, "learning-rates") for r in names_in(learning_rates)]
    if draws:
        refuse_with_draws(context, "learning_rates", "leaves", "min_child_weight", "documents", "l2")
    searched = [bool(tune), bool(draws), len(rates) > 1]
    require(sum(searched) <= 1, "--tune and --draws search the learning rate; give one of these and --learning-rates")
    budgets = [replace(budget, **found) for found in drawn(draws)] if draws else [
        replace(budget, learning_rate=rate) for rate in rates
    ]  # fmt: skip
    wanted = plan(
        folds, names_in(libraries), names_in(objectives), names_in(natives), names_in(metrics), budgets, tune,
        param or (),
    )  # fmt: skip
    cells.check(wanted)
    out.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in wanted if not cell.path(out).exists()]
    console.print(f"{len(wanted)} trainings, {len(wanted) - len(todo)} of them done before; {jobs} at a time")
    failed = train(todo, wanted, out, jobs, console)
    found = ((cell, cell.result(out)) for cell in wanted)
    results = [{**result, "fold": list(cell.fold)} for cell, result in found if result is not None]
    require(results, "nothing could be trained")
    cells.write_whole(out / "study.json", provenance() | {"versions": versions_of(results)}, indent=1)
    written = report.write(results, out, alpha, console, plots=plots)
    for path in written:
        if path.suffix != ".png":
            console.print(f"written: {os.fspath(path)}")
    if pictures := sum(path.suffix == ".png" for path in written):
        console.print(f"written: {pictures} pictures beside them")
    if failed:
        console.print(f"[red]{len(failed)} trainings failed[/]; run the same command again to try only these")
        raise Exit(1)


def _folds(data: Sequence[str] | None, preset: str | None, seeds: Sequence[int]) -> list[Any]:
    from benchmarks.cells import folds_of
    from benchmarks.presets import PRESETS, preset_folds

    if preset is None:
        return [fold for d in data or ["generated:600,200,400"] for fold in folds_of(d, seeds)]
    check_choice("preset", preset, tuple(PRESETS))
    require(data, f"--preset {preset} needs --data, the folder where it was unpacked")
    return [fold for d in data or () for fold in preset_folds(preset, d, seeds)]


def plan(
    folds: Sequence[Any], libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str],
    metrics: Sequence[str], budgets: Sequence[Any], tune: int = 0, param: Sequence[str] = (),
) -> list[Any]:  # fmt: skip
    """Every training of the study; those on the same data come together."""
    from benchmarks.cells import CONSTANT, Cell
    from benchmarks.libraries import LIBRARIES
    from benchmarks.tuning import TunedCell

    for library in libraries:
        check_choice("libraries", library, tuple(LIBRARIES))
    tried = {library: list(itertools.product(*values)) for library, values in _params(param, libraries).items()}
    names = tuple(dict.fromkeys(str(get_metric(m)) for m in metrics))
    if tuple(natives) not in (("usual",), ("none",)):
        unknown = [n for n in natives if not any(kind.knows(n) for kind in LIBRARIES.values())]
        require(not unknown, f"--natives: {', '.join(unknown)} is known to no library")
    sources: dict[Any, str] = {}
    for fold in folds:
        one = fold.data, Path(fold.source).name, fold.seed
        require(
            sources.setdefault(one, fold.source) == fold.source,
            f"{sources.get(one)} and {fold.source} have the same names; rename one, or their results are mixed up",
        )
    require(libraries and names and folds and budgets, "name libraries, metrics, seeds and learning rates")
    planned = []
    for fold in folds:
        planned.append(Cell(fold, "", CONSTANT, CONSTANT, names, replace(budgets[0], trees=0, seed=fold.seed)))
        for library in libraries:
            kind = LIBRARIES[library]
            own = kind.usual if tuple(natives) == ("usual",) else [n for n in natives if kind.knows(n)]
            for label, budget, params in itertools.product([*own, *objectives], budgets, tried[library]):
                at = replace(budget, seed=fold.seed, params=params)
                for targets in [(m,) for m in names] if tune or "{metric}" in label else [names]:
                    native = kind.knows(label)
                    objective = label.replace("{metric}", kind.spelled(targets[0]) if native else targets[0])
                    if native and not kind.knows(objective):  # the library does not have it for this metric
                        continue
                    cell = fold, library, objective, label, targets, at
                    planned.append(TunedCell(*cell, tune) if tune else Cell(*cell))
    return list(dict.fromkeys(planned))


def train(todo: Sequence[Any], wanted: Sequence[Any], out: Path, jobs: int, console: Console) -> list[Any]:
    """Train what is still without a result; print the errors, and return the cells that failed."""
    from benchmarks.cells import run
    from benchmarks.estimate import announce
    from benchmarks.pooled import settings_of
    from benchmarks.workers import workers

    failed = []
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False),
    )  # fmt: skip
    with Progress(*columns, console=console, speed_estimate_period=3600) as progress, workers(jobs) as pool:
        if left := announce(todo, wanted, out, jobs, pool):
            console.print(left)
        task = progress.add_task("trainings", total=len(todo))
        futures = {pool.submit(run, cell, out): cell for cell in todo}
        for future in as_completed(futures):
            cell = futures[future]
            progress.advance(task)
            try:
                result = future.result()
                first = cell.metrics[0]
                vali = f"{result['vali'][first]:.4f}" if result["vali"] else "-"
                text = f"vali {first} {vali}, {result['seconds']:.1f} s"
            except LTRError as error:
                failed.append(cell)
                text = f"failed: {error}"
            rate = f"{cell.trials} trials" if hasattr(cell, "trials") else f"lr {cell.budget.learning_rate:g}"
            rate = " ".join([rate, *(f"{name}={value}" for name, value in settings_of(asdict(cell.budget)))])
            place = f"{cell.fold.data} {Path(cell.fold.source).name} seed {cell.fold.seed}"
            progress.console.print(f"  {place}  {cell.library}  {cell.objective}  {rate}  {text}", markup=False)
    return failed


def _params(given: Sequence[str], libraries: Sequence[str]) -> dict[str, list[list[tuple[str, Any]]]]:
    """By library, the values to try of each of its parameters, each with the name."""
    from ltr_objectives.adapters._lightgbm_ranker import refuse_misspelt

    found: dict[str, dict[str, list[tuple[str, Any]]]] = {library: {} for library in libraries}
    for text in given:
        library, _, rest = text.partition(":")
        name, _, values = rest.partition("=")
        require(name and names_in(values), f"--param {text!r} must look like catboost:random_strength=0,1")
        require(library in found, f"--param {text!r}: {library} is not in --libraries")
        require(name not in found[library], f"--param {text!r}: {name} is given twice; put commas between values")
        require(name not in OF_THE_STUDY, f"--param {text!r}: the study sets {name} itself")
        if library == "lightgbm":
            refuse_misspelt({name: None})
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

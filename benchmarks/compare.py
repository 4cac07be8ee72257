"""``python -m benchmarks compare``: a study of one fold with a short report. One metric stops every training."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from typer import Option

from benchmarks.quality import L2, Alpha, Documents, Leaves, Libraries, MinChildWeight, plan
from ltr_objectives.workbench.letor import find_parts
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.datasets import RankingData, RankingFold
from ltr_objectives.errors import require
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_metric, get_objective

METRICS = "ndcg@10,map,mrr,err"
NATIVES = (
    "'usual', 'none', or names such as rank:ndcg,lambdarank,YetiRank:mode=NDCG;top=10. "
    "The first of each library is the reference of its marks."
)
OBJECTIVES = "lambdamart,yetirank,yetiloss:ndcg,yetiloss:gap"


def compare(
    data: Annotated[Path | None, Option(help="Folder of a fold in LETOR format. Without it data is generated.")] = None,
    queries: Annotated[str, Option(help="Train, vali and test queries of generated data.")] = "600,200,400",
    libraries: Libraries = "xgboost,lightgbm,catboost",
    objectives: Annotated[str, Option(help="Ours, such as lambdamart:ndcg@10 or yetiloss:map.")] = OBJECTIVES,
    natives: Annotated[str, Option(help=NATIVES)] = "usual",
    metrics: Annotated[str, Option(help="Test metrics; the first also stops every training early.")] = METRICS,
    trees: Annotated[int, Option(min=1, help="At most so many.")] = 500,
    learning_rate: Annotated[float, Option(min=1e-6)] = 0.1,
    leaves: Leaves = 31,
    patience: Annotated[int, Option(min=1, help="Stop after so many trees without a better vali metric.")] = 50,
    min_child_weight: MinChildWeight = 1.0,
    l2: L2 = 0.0,
    documents: Documents = 20.0,
    threads: Annotated[int, Option(min=0, help="0: all processors.")] = 0,
    seed: Annotated[int, Option(min=0, help="Of data, splits, objectives and libraries.")] = 0,
    alpha: Alpha = 0.05,
    out: Annotated[Path, Option(help="Folder for CSV, JSON and PNG.")] = Path("results"),
    name: Annotated[str, Option(help="Of these files.")] = "compare",
) -> None:
    """Compare native objectives and ours on the test queries.

    All trainings of a library get the same trees, learning rate and regularisation, and all stop early on OUR
    definition of the first metric. Hessians of losses differ in scale, so regularisation is in documents: an L2 of 20
    counts as much as 20 documents in every objective.
    """
    from benchmarks import cells, short_report
    from ltr_objectives.workbench.trials import Budget
    from ltr_objectives.kernels.threads import available_threads

    console = terminal()
    targets = [str(get_metric(m)) for m in _names(metrics, "metrics")]
    chosen, known = _names(libraries, "libraries"), _names(natives, "natives")
    ours = names_in(objectives.lower())  # get_objective ignores case; CatBoost knows no name in lower case
    for label in ours:
        get_objective(label)
    _check_natives(known, chosen)
    budget = Budget(
        trees, learning_rate, leaves, patience, min_child_weight, l2, threads or available_threads(), seed,
        documents=documents,
    )  # fmt: skip
    fold = _fold(data, queries, seed)
    study = plan([fold], chosen, ours, known, targets, [budget])
    planned = [replace(cell, stop=targets[0]) for cell in study if cell.library]
    require(planned, "nothing to train; name at least one library, and objectives or natives")
    parts = cells.load(fold)
    assert parts.vali is not None
    if data is not None and "vali" not in find_parts(data):
        split = len(parts.vali.group)
        console.print(f"{fold.data} has no vali part: {split} of its train queries are split off (seed {seed})")
    sizes = f"train {_size(parts.train)}, vali {_size(parts.vali)}, test {_size(parts.test)}"
    console.print(f"[bold]{fold.data}[/]: {sizes}")
    regularised = f"of {documents:g} documents" if documents else f"{l2:g}"
    console.print(
        f"up to {trees} trees of {leaves} leaves, learning rate {learning_rate:g}, l2 {regularised}, "
        f"min_child_weight {min_child_weight:g}, stopped by vali {targets[0]} after {patience} trees without a "
        f"better one, {budget.threads} threads, seed {seed}"
    )
    out.mkdir(parents=True, exist_ok=True)  # so that it cannot fail after the trainings
    rehearse(planned, parts)
    results = train(planned, console)
    settings = {"data": fold.data, "metrics": targets, "alpha": alpha, **asdict(budget)}
    files = short_report.write(results, settings, out, name, console)
    console.print("written: " + ", ".join(os.fspath(file) for file in files))


def _names(text: str, option: str) -> list[str]:
    names = names_in(text)
    require(names, f"--{option} is empty")
    return names


def _check_natives(natives: Sequence[str], libraries: Sequence[str]) -> None:
    """Refuse patterns and natives of libraries that are left out, which a study allows."""
    from ltr_objectives.adapters._libraries import LIBRARIES

    kinds = [LIBRARIES[name] for name in libraries if name in LIBRARIES]
    lost = [n for n in natives if "{metric}" in n or not any(kind.knows(n) for kind in kinds)]
    known = "; ".join(f"{kind.name}: {', '.join(kind.natives)}" for kind in kinds)
    unknown = ", ".join(map(repr, lost))
    require(
        tuple(natives) in (("usual",), ("none",)) or not lost,
        f"natives: {unknown} is not known in --libraries; there are {known}",
    )


def _fold(data: Path | None, queries: str, seed: int) -> Any:
    from benchmarks.cells import Fold

    if data is not None:
        folder = data.resolve()
        return Fold("/".join(folder.parts[-2:]), str(folder), seed, split=seed)
    sizes = [int(q) if q.strip().isdigit() else 0 for q in queries.split(",")]
    require(len(sizes) == 3 and all(sizes), f"--queries {queries!r} must be three numbers, such as 600,200,400")
    return Fold("generated-calibrated data", queries, seed)


def _size(part: RankingData) -> str:
    return f"{len(part.y):,} rows in {len(part.group):,} queries"


def rehearse(cells: Sequence[Any], fold: RankingFold) -> None:
    """Run all metrics and our objectives once, so that errors come early and compilation is not timed."""
    from benchmarks.cells import objective_of

    threads = cells[0].budget.threads
    for part in (fold.vali, fold.test, fold.train):
        assert part is not None
        queries, zeros = Queries(part.y, part.group), np.zeros(len(part.y))
        for metric in cells[0].metrics:
            get_metric(metric).values(queries, zeros, n_threads=threads)
    for objective in {objective_of(cell) for cell in cells}:
        if isinstance(objective, Objective):
            objective.compute(queries, zeros, n_threads=threads)  # on the train part, the last


def train(cells: Sequence[Any], console: Console) -> list[dict[str, Any]]:
    """Train one after the other in this process, and show the vali metric of each tree; stop at the first error."""
    from benchmarks.cells import run

    columns = (
        TextColumn("{task.description:<38}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[value]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    results = []
    with Progress(*columns, console=console, transient=True) as progress:
        total = progress.add_task("[bold]trainings", total=len(cells), value="")
        for cell in cells:
            task = progress.add_task(f"{cell.library}  {cell.label}", total=cell.budget.trees, value="")
            best = [-np.inf]

            def show(value: float, task: Any = task, best: list[float] = best, stop: str = cell.stop) -> None:
                best[0] = max(best[0], value)
                progress.update(task, advance=1, value=f"vali {stop} {value:.4f}, best {best[0]:.4f}")

            result = run(cell, None, show)
            results.append(result)
            progress.remove_task(task)
            progress.advance(total)
            vali, trees = result["vali"][cell.stop], result["trees"][cell.stop]
            progress.console.print(
                f"  {cell.library:<9} {cell.label:<26} vali {cell.stop} {vali:.4f} at tree {trees}, "
                f"{result['seconds']:.1f} s"
            )
    return results

"""``python -m benchmarks subsample``: quality and seconds of trainings on a share of the queries in each iteration."""

import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import folds_of, per_query, seeded
from benchmarks.libraries import LIBRARIES, Library
from benchmarks.quality import number
from ltr_objectives.checks import check_choice
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.trials import Budget
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.datasets import RankingFold
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.subsample import Subsample
from ltr_objectives.objectives.unit import UnitHessian
from ltr_objectives.registry import get_metric, get_objective

DATA = "As of `quality`."


class Measured(NamedTuple):
    """One training."""

    seconds: float  # of a processor, for each tree
    trees: int  # the best number by the vali queries
    values: list[Any]  # of the test queries


def measure(library: Library, objective: Objective, fold: RankingFold, metric: str) -> Measured:
    """Train with early stopping."""
    start = time.process_time()
    training = library.run(objective)
    seconds = (time.process_time() - start) / len(training.curves[metric])
    values = per_query(get_metric(metric), fold.test, training.scores(fold.test, metric), library.budget.threads)
    return Measured(seconds, training.best(metric), list(values))


def subsample(
    data: Annotated[str, Option(help=DATA)] = "generated-calibrated:300,100,600",
    seeds: Annotated[str, Option(help="Of data, objectives and draws.")] = "0",
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    objectives: Annotated[str, Option(help="Ours.")] = "yetiloss:ndcg@10,lambdamart",
    shares: Annotated[str, Option(help="Of the queries; the first is what the others are compared with.")] = (
        "1,.5,.2,.1"
    ),
    metric: Annotated[str, Option(help="Of the test queries.")] = "ndcg@10",
    trees: Annotated[int, Option(min=1, help="At most.")] = 500,
    patience: Annotated[int, Option(min=1, help="Trees without a better vali value.")] = 50,
    documents: Annotated[float, Option(min=0, help="L2 in documents.")] = 20.0,
    threads: Annotated[int, Option(min=1)] = 1,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Train on a share of the queries in each iteration.

    Trainings stop early. Seconds are processor time by tree, on data that are prepared before. A first training of two
    trees, which compiles the kernels, does not count.
    """
    console = terminal()
    names, wanted = names_in(libraries), [number(share, float, "shares") for share in names_in(shares)]
    for name in names:
        check_choice("libraries", name, tuple(LIBRARIES))
    found: dict[Any, list[Measured]] = {}
    for place in folds_of(data, [number(seed, int, "seeds") for seed in names_in(seeds)]):
        fold = place.load()
        for name in names:
            budget = Budget(trees, patience=patience, min_child_weight=1.0, l2=documents, threads=threads,
                            seed=place.seed)  # fmt: skip
            library = LIBRARIES[name](fold, [get_metric(metric)], budget)
            for label in names_in(objectives):
                whole = UnitHessian(seeded(get_objective(label), place.seed))
                library.budget = Budget(2, threads=threads)
                measure(library, Subsample(whole, 0.5), fold, metric)
                library.budget = budget
                for share in track(wanted, f"{name} {label}", console=console, transient=True):
                    objective = Subsample(whole, share, seed=place.seed) if share < 1 else whole
                    found.setdefault((name, label, share), []).append(measure(library, objective, fold, metric))
    results = []
    for (name, label, share), trainings in found.items():
        here, there = (np.concatenate([t.values for t in found[name, label, s]]).astype(float)
                       for s in (share, wanted[0]))  # fmt: skip
        seconds = [t.seconds for t in trainings]
        results.append({
            "library": name, "objective": label, "share": share, "value": float(np.nanmean(here)),
            "difference": float(np.nanmean(here - there)),
            "se": standard_error(here - there) if share != wanted[0] else 0.0,
            "trees": [t.trees for t in trainings], "seconds": seconds,
            "ratio": sum(seconds) / sum(t.seconds for t in found[name, label, wanted[0]]),
        })  # fmt: skip
    speed_tables.save("subsample", {"metric": metric, "trees": trees, "results": results}, out, console)

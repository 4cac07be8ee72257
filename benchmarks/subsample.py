"""``python -m benchmarks subsample``: quality and seconds of trainings on a share of the queries in each iteration."""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import folds_of, per_query, seeded
from benchmarks.libraries import LIBRARIES, Library
from benchmarks.quality import number
from ltr_objectives.checks import check_choice
from ltr_objectives.cli.options import names_in
from ltr_objectives.comparison.budget import Budget
from ltr_objectives.comparison.statistics import standard_error
from ltr_objectives.comparison.texts import terminal
from ltr_objectives.datasets import RankingFold
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.subsample import Subsample
from ltr_objectives.objectives.unit import UnitHessian
from ltr_objectives.registry import get_metric, get_objective

DATA = "As of `quality`; the vali queries are not used, so one is enough."


def measure(library: Library, objective: Objective, fold: RankingFold, metric: str) -> tuple[float, list[Any]]:
    """Processor seconds of a training, and the metric of each test query with all trees."""
    start = time.process_time()
    training = library.run(objective)
    seconds = time.process_time() - start
    scores = np.asarray(training.predict(fold.test.X, library.budget.trees), np.float64)
    return seconds, per_query(get_metric(metric), fold.test, scores, library.budget.threads)


def subsample(
    data: Annotated[str, Option(help=DATA)] = "generated-calibrated:300,1,600",
    seeds: Annotated[str, Option(help="Of data, objectives and draws.")] = "0",
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    objectives: Annotated[str, Option(help="Ours.")] = "yetiloss:ndcg@10,lambdamart",
    shares: Annotated[str, Option(help="Of the queries; the first is what the others are compared with.")] = (
        "1,.5,.2,.1"
    ),
    metric: Annotated[str, Option(help="Of the test queries.")] = "ndcg@10",
    trees: Annotated[int, Option(min=1, help="Of each training; none stops early.")] = 100,
    documents: Annotated[float, Option(min=0, help="L2 in documents.")] = 20.0,
    threads: Annotated[int, Option(min=1)] = 1,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Train on a share of the queries in each iteration.

    Seconds are processor time of whole trainings, on data that are prepared before. A first training of two trees,
    which compiles the kernels, does not count.
    """
    console = terminal()
    names, wanted = names_in(libraries), [number(share, float, "shares") for share in names_in(shares)]
    for name in names:
        check_choice("libraries", name, tuple(LIBRARIES))
    seconds: dict[Any, list[float]] = {}
    values: dict[Any, list[Any]] = {}
    for place in folds_of(data, [number(seed, int, "seeds") for seed in names_in(seeds)]):
        fold = place.load()
        for name in names:
            budget = Budget(trees, patience=trees, min_child_weight=1.0, l2=documents, threads=threads, seed=place.seed)
            library = LIBRARIES[name](fold, [get_metric(metric)], budget)
            for label in names_in(objectives):
                whole = UnitHessian(seeded(get_objective(label), place.seed))
                library.budget = Budget(2, threads=threads)
                measure(library, Subsample(whole, 0.5), fold, metric)
                library.budget = budget
                for share in track(wanted, f"{name} {label}", console=console, transient=True):
                    objective = Subsample(whole, share, seed=place.seed) if share < 1 else whole
                    took, found = measure(library, objective, fold, metric)
                    seconds.setdefault((name, label, share), []).append(took)
                    values.setdefault((name, label, share), []).extend(found)
    results = []
    for (name, label, share), found in values.items():
        base = name, label, wanted[0]
        here, there = (np.array(each, float) for each in (found, values[base]))
        results.append({
            "library": name, "objective": label, "share": share, "value": float(np.nanmean(here)),
            "difference": float(np.nanmean(here - there)),
            "se": standard_error(here - there) if share != wanted[0] else 0.0,
            "seconds": seconds[name, label, share],
            "ratio": sum(seconds[name, label, share]) / sum(seconds[base]),
        })  # fmt: skip
    speed_tables.save("subsample", {"metric": metric, "trees": trees, "results": results}, out, console)

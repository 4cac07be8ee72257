"""``python -m benchmarks subsample``: quality and seconds of trainings on a share of the queries in each iteration."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.folds import folds_of
from benchmarks.quality import number
from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import RankingFold
from ltr_objectives.objectives.around import Subsample
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_metric
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.libraries import LIBRARIES
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import Budget, Trial, measure, objective_of, train

DATA = "As of `quality`."


class Measured(NamedTuple):
    """One training."""

    seconds: float  # of a processor, for each tree after the first
    trees: int  # the best number by the vali queries
    values: list[Any]  # of the test queries


def measured(trial: Trial, objective: Objective, fold: RankingFold) -> Measured:
    """Train with early stopping; a training of one tree separates the cost of the trees from that of the data."""
    one, whole = replace(trial, budget=replace(trial.budget, trees=1)), trial
    start = time.process_time()
    train(one, fold.train, fold.vali, objective)
    middle = time.process_time()
    training = train(whole, fold.train, fold.vali, objective)
    seconds = (time.process_time() - middle) - (middle - start)
    [metric] = trial.metrics
    record = measure(trial, fold, training)
    return Measured(seconds / max(1, len(training.curves[metric]) - 1), record["trees"][metric], record["test"][metric])


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

    Trainings stop early. Seconds are processor time by tree, without the preparation of the data. A first training,
    which compiles the kernels, does not count.
    """
    console = terminal()
    names, wanted = names_in(libraries), [number(share, float, "shares") for share in names_in(shares)]
    for name in names:
        check_choice("libraries", name, tuple(LIBRARIES))
    found: dict[Any, list[Measured]] = {}
    metric = str(get_metric(metric))
    for place in folds_of(data, [number(seed, int, "seeds") for seed in names_in(seeds)]):
        fold = place.load()
        budget = Budget(trees, patience=patience, min_child_weight=1.0, documents=documents, threads=threads,
                        seed=place.seed)  # fmt: skip
        for name in names:
            for label in names_in(objectives):
                trial = Trial(name, label, label, (metric,), budget)
                whole = objective_of(trial)
                assert isinstance(whole, Objective)
                train(replace(trial, budget=replace(budget, trees=2)), fold.train, fold.vali, Subsample(whole, 0.5))
                for share in track(wanted, f"{name} {label}", console=console, transient=True):
                    objective = Subsample(whole, share, seed=place.seed) if share < 1 else whole
                    found.setdefault((name, label, share), []).append(measured(trial, objective, fold))
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

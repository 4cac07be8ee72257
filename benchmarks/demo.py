"""``python -m benchmarks demo``: ``ltr-objectives compare`` on generated data, in a minute or two, with a picture."""

import os
from pathlib import Path
from typing import Annotated

import pandas as pd
from typer import Option

from benchmarks.figures import learning_curves, write
from benchmarks.folds import KINDS
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import get_metric
from ltr_objectives.workbench.contest import compete, print_table, table_of, winner_of
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import Budget, trials

METRICS = "ndcg@10", "map", "mrr", "err"
OURS = "lambdamart", "yetirank", "yetiloss:ndcg", "yetiloss:gap"
NATIVES = "rank:ndcg", "rank:map", "lambdarank", "rank_xendcg", "YetiRank", "YetiRank:mode=NDCG;top=10"
DATA = "generated data"


def demo(
    queries: Annotated[str, Option(help="Train, vali and test queries.")] = "150,60,150",
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 100,
    out: Annotated[Path, Option(help="Folder for demo.csv and demo.png.")] = Path("results"),
) -> None:
    """Compare all libraries on small generated data.

    A table and learning curves, in under two minutes on two cores.
    """
    console, metrics = terminal(), [get_metric(name) for name in METRICS]
    train, vali, test = (int(number) for number in queries.split(","))
    fold = make_ranking_fold((train, vali, test), 0, **KINDS["generated-calibrated"])
    budget = Budget(trees, 0.15, patience=30, threads=available_threads())
    planned = [
        trial for kind in LIBRARIES.values() if kind.name in libraries
        for objective in (*filter(kind.knows, NATIVES), *OURS) for trial in trials(kind.name, objective, [budget])
    ]  # fmt: skip
    console.print(", ".join(f"{name} {part!r}" for name, part in vars(fold).items()), markup=False)
    console.print(
        f"up to {trees} trees of {budget.leaves} leaves, learning rate {budget.learning_rate}, L2 of "
        f"{budget.documents:g} documents, native objectives also at their library's defaults; stopped by vali "
        f"{METRICS[0]} after {budget.patience} without a better one"
    )
    out.mkdir(parents=True, exist_ok=True)  # so that it cannot fail after the trainings
    found, _ = compete(planned, [lambda: fold], metrics, console, required=True)
    lines = table_of(found, DATA, metrics)
    print_table(console, lines, METRICS, f"test metrics of {test:,} queries")
    console.print(f"best by {METRICS[0]}: {winner_of(lines)[1]}")
    write_csv(pd.DataFrame(lines), out / "demo.csv")
    files = [out / "demo.csv", write(learning_curves(found, METRICS[0]), out / "demo.png")]
    console.print("written: " + ", ".join(os.fspath(file) for file in files))

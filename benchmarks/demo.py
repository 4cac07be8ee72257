"""``python -m benchmarks demo``: ``ltr-objectives compare`` on real search data, in a minute or two, with a picture."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import pandas as pd
from typer import Option

from benchmarks.figures import lead_dots, write
from ltr_objectives.datasets import load_example
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.registry import objective_for
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.contest import compete, print_table, table_of, winner_of
from ltr_objectives.workbench.data import joined
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import Budget, cross_validation, trials

METRICS = "ndcg@10", "map", "mrr", "err"
OURS = tuple(dict.fromkeys(str(objective_for(metric)) for metric in METRICS))
NATIVES = "rank:ndcg", "rank:map", "lambdarank", "rank_xendcg", "YetiRank", "YetiRank:mode=NDCG;top=10"
DATA = "search data"


def demo(
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    trees: Annotated[int, Option(min=1, help="The most trees.")] = 100,
    out: Annotated[Path, Option(help="Folder for demo.csv and demo.png.")] = Path("results"),
) -> None:
    """Compare the default objectives with the libraries' own on 251 queries of a search engine.

    A table and a picture, in under two minutes on two cores.
    """
    console, metrics, data = terminal(), [get_metric(name) for name in METRICS], joined(load_example())
    folds = [partial(split.of, data) for split in cross_validation(data, 3, seed=0)]
    budget = Budget(trees, 0.15, patience=30, threads=available_threads())
    planned = [
        trial for kind in (LIBRARIES[name] for name in names_in(libraries))
        for objective in (*filter(kind.knows, NATIVES), *OURS) for trial in trials(kind.name, objective, [budget])
    ]  # fmt: skip
    console.print(
        f"{data!r} in {len(folds)} folds; up to {trees} trees of {budget.leaves} leaves, learning rate "
        f"{budget.learning_rate}, L2 of {budget.documents:g} documents, native objectives also at their library's "
        f"defaults; stopped by vali {METRICS[0]} after {budget.patience} without a better one"
    )
    out.mkdir(parents=True, exist_ok=True)  # so that it cannot fail after the trainings
    found, _ = compete(planned, folds, metrics, console, required=True)
    lines = table_of(found, DATA, metrics)
    print_table(console, lines, METRICS, f"test metrics of {len(data.group):,} queries")
    console.print(f"best by {METRICS[0]}: {winner_of(lines)[1]}")
    table = pd.DataFrame(lines)
    write_csv(table, out / "demo.csv")
    ours = table[table["objective"] == table["metric"].map(lambda metric: str(objective_for(metric)))]
    picture = lead_dots(ours.assign(ours=ours["objective"], se=ours["difference_se"]))
    files = [out / "demo.csv", write(picture, out / "demo.png")]
    console.print("written: " + ", ".join(os.fspath(file) for file in files))

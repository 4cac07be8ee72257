"""``python -m benchmarks bags``: models of eight bags beside a single model, on the same queries."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import write_whole
from benchmarks.folds import Fold, folds_of
from ltr_objectives.registry import get_metric
from ltr_objectives.workbench.cli.options import names_in
from ltr_objectives.workbench.libraries import LIBRARIES
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.summary import POOLED
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import numbers, queries_of

METRIC, BAGS, TREES, PATIENCE, RATE = "ndcg@10", 8, 200, 30, 0.1
SHAPES: dict[str, dict[str, Any]] = {  # trees of about 31 leaves; all else is as the estimators have it
    "lightgbm": {},
    "xgboost": {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide"},
    "catboost": {"depth": 5},
}
ARMS = ("one model", "bags of train", "bags of train and vali", "one model of train and vali", "slow")


def measured(fold: Fold, library: str) -> dict[str, Any]:
    """Seconds, trees and values of the test queries of each arm."""
    train, vali, test = fold.load()
    alone = train.X, train.y, train.group
    both = tuple(np.concatenate(parts) for parts in zip(alone, (vali.X, vali.y, vali.group), strict=True))
    on_vali: dict[str, Any] = {"eval_set": [(vali.X, vali.y)], "eval_group": [vali.group]}
    stop = {"early_stopping_rounds": PATIENCE}
    found: dict[str, Any] = {}
    with LIBRARIES[library].estimator() as estimator:

        def fit(arm: str, data: Any, rate: float = RATE, trees: int = TREES, bags: int | None = None, **of: Any) -> int:
            params = {**SHAPES[library], LIBRARIES[library].threads: 1, "learning_rate": rate, "n_estimators": trees}
            ranker = estimator(objective="yetiloss:ndcg", eval_metric=METRIC, bags=bags, **params)
            start = time.perf_counter()
            ranker.fit(data[0], data[1], group=data[2], **of)
            seconds = time.perf_counter() - start
            values = get_metric(METRIC).values(queries_of(test), ranker.predict(test.X), n_threads=1)
            found[arm] = {"seconds": seconds, "trees": ranker.best_iteration_, "values": numbers(values)}
            return int(ranker.best_iteration_)

        trees = fit(ARMS[0], alone, **stop, **on_vali)
        fit(ARMS[1], alone, bags=BAGS, **stop)
        fit(ARMS[2], both, bags=BAGS, **stop)
        fit(ARMS[3], both, trees=trees)
        fit(ARMS[4], alone, RATE / BAGS, BAGS * TREES, early_stopping_rounds=BAGS * PATIENCE, **on_vali)
    return found


def summary(found: dict[tuple[str, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """By data set, library and arm: the mean difference from one model, its error, trees and seconds."""
    gaps: dict[tuple[str, str, str], list[np.ndarray]] = {}
    lines = []
    for (data, library), folds in found.items():
        for arm in ARMS:
            one, other = (np.concatenate([fold[a]["values"] for fold in folds]).astype(float) for a in (ARMS[0], arm))
            gap = other - one
            gaps.setdefault((POOLED, library, arm), []).append(gap)
            trees, seconds = (np.array([fold[arm][key] for fold in folds]) for key in ("trees", "seconds"))
            lines.append(_line(data, library, arm, gap) | {"trees": trees.mean(), "seconds": seconds.sum()})
    return [*lines, *(_line(*key, np.concatenate(parts)) for key, parts in gaps.items())]


def _line(data: str, library: str, arm: str, gap: np.ndarray) -> dict[str, Any]:
    error = standard_error(gap) if gap.any() else 0.0
    of = {"data": data, "library": library, "arm": arm, "queries": int((~np.isnan(gap)).sum())}
    return {**of, "difference": float(np.nanmean(gap)), "se": error}


def bags(
    data: Annotated[list[str], Option(help="As of `quality`; may be repeated.")],
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "lightgbm,xgboost,catboost",
    out: Annotated[Path, Option(help="Folder for the JSON file, and of trainings that are not repeated.")] = Path(
        "results"
    ),
) -> None:
    """Compare models of eight bags with a single model.

    One stops early on vali. Bags stop on the queries that they leave out, and can train on vali too. A single model
    trained on both takes the trees of the first. The slow one has an eighth of the learning rate.
    """
    console = terminal()
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    cells = [(fold, library) for place in data for fold in folds_of(place, [0]) for library in names_in(libraries)]
    for fold, library in track(cells, "trainings", console=console, transient=True):
        path = out / "bags" / f"{fold.data} {Path(fold.source).name} {library}.json"
        if not path.exists():
            write_whole(path, measured(fold, library))
        found.setdefault((fold.data, library), []).append(json.loads(path.read_text()))
    document = {"metric": METRIC, "bags": BAGS, "results": summary(found)}
    speed_tables.save("bags", document, out, console)

"""``python -m benchmarks training``: seconds of whole trainings, native objectives against ours, in turn."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from typer import Option

from ltr_objectives import adapters
from ltr_objectives.datasets import RankingData, make_ranking
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_objective

Train = Callable[[str | Objective, int], float]  # objective, trees -> seconds


def xgboost(data: RankingData, threads: int) -> Train:
    """Depth 6, hist; the data set is prepared here and reused."""
    import xgboost as xgb

    dtrain = xgb.QuantileDMatrix(data.X, data.y, qid=data.qid)

    def train(objective: str | Objective, trees: int) -> float:
        params: dict[str, Any] = {"max_depth": 6, "eta": 0.1, "nthread": threads, "min_child_weight": 1e-3}
        obj = None
        if isinstance(objective, str):
            params["objective"] = objective
        else:
            obj = adapters.xgboost_objective(objective, n_threads=threads)
        start = time.perf_counter()
        xgb.train(params, dtrain, trees, obj=obj)
        return time.perf_counter() - start

    return train


def lightgbm(data: RankingData, threads: int) -> Train:
    """31 leaves; the data set is prepared here and reused."""
    import lightgbm as lgb

    dtrain = lgb.Dataset(data.X, data.y, group=data.group, params={"verbose": -1, "force_col_wise": True}).construct()

    def train(objective: str | Objective, trees: int) -> float:
        if not isinstance(objective, str):
            objective = adapters.lightgbm_objective(objective, n_threads=threads)
        params = {"objective": objective, "num_threads": threads, "force_col_wise": True, "verbose": -1}
        start = time.perf_counter()
        lgb.train(params, dtrain, trees)
        return time.perf_counter() - start

    return train


LIBRARIES = {"xgboost": (xgboost, "rank:ndcg"), "lightgbm": (lightgbm, "lambdarank")}


def training(
    rows: Annotated[int, Option(min=1000, help="About so many generated rows, 136 features.")] = 200_000,
    trees: Annotated[int, Option(min=1)] = 100,
    rounds: Annotated[int, Option(min=1, help="Repetitions; the ratio is the median of theirs.")] = 5,
    objective: Annotated[
        str, Option(help="Ours; also tried with the library's preset where it has one.")
    ] = "lambdamart",
    threads: Annotated[int, Option(min=1)] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time whole trainings with the native objective and with ours, one after the other, and print the ratio.

    Nothing is evaluated during a training. A first training of two trees, which compiles and warms, does not count.
    """
    console = Console()
    data = make_ranking(max(1, rows // 118), seed=0)
    console.print(f"{data!r}, {trees} trees, {threads} threads")
    table = Table("library", "objective", "native s", "ours s", "ours / native", "least to most")
    results = []
    for name, (make, native) in LIBRARIES.items():
        train = make(data, threads)
        ours: dict[str, Objective] = {objective: get_objective(objective)}
        if "preset" in ours[objective].parameters():
            ours[f"{objective}, preset {name}"] = type(ours[objective])(preset=name)  # type: ignore[call-arg]
        contenders: dict[str, str | Objective] = {native: native, **ours}
        seconds: dict[str, list[float]] = {label: [] for label in contenders}
        for contender in contenders.values():
            train(contender, 2)
        for _ in track(range(rounds), name, console=console, transient=True):
            for label, contender in contenders.items():
                seconds[label].append(train(contender, trees))
        for label in ours:
            ratio = np.array(seconds[label]) / np.array(seconds[native])
            results.append({"library": name, "native": native, "objective": label, "ratio": float(np.median(ratio)),
                            "seconds": seconds[label], "native_seconds": seconds[native]})  # fmt: skip
            middle = [f"{np.median(x):.2f}" for x in (seconds[native], seconds[label], ratio)]
            table.add_row(name, label, *middle, f"{ratio.min():.2f} to {ratio.max():.2f}")
    console.print(table)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "training.json"
    settings = {"rows": len(data.y), "trees": trees, "threads": threads}
    path.write_text(json.dumps({**settings, "results": results}, indent=1))
    console.print(f"written: {path}")

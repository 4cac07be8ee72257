"""``python -m benchmarks training``: seconds of whole trainings, native objectives and ours in turn."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.iteration import TRIVIAL
from ltr_objectives import adapters
from ltr_objectives.datasets import RankingData, make_ranking
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_objective
from ltr_objectives.workbench.texts import terminal

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
        own = None if isinstance(objective, str) else adapters.lightgbm_objective(objective, n_threads=threads)
        params = {"objective": own or objective, "num_threads": threads, "force_col_wise": True, "verbose": -1}
        start = time.perf_counter()
        lgb.train(params, dtrain, trees)
        return time.perf_counter() - start

    return train


def catboost(data: RankingData, threads: int) -> Train:
    """Depth 6; the pool is prepared here and reused. Native objectives have CatBoost's own defaults."""
    import catboost as cb

    pool = cb.Pool(data.X, data.y, group_id=data.qid, thread_count=threads)

    def train(objective: str | Objective, trees: int) -> float:
        params: dict[str, Any] = {
            "iterations": trees, "depth": 6, "learning_rate": 0.1, "thread_count": threads, "random_seed": 0,
            "bootstrap_type": "No", "loss_function": objective, "allow_writing_files": False, "verbose": False,
            "eval_metric": "NDCG", "metric_period": 10_000,
        }  # fmt: skip
        if not isinstance(objective, str):
            params["loss_function"] = adapters.catboost_objective(objective, pool, n_threads=threads)
            params |= {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
        start = time.perf_counter()
        cb.CatBoost(params).fit(pool)
        return time.perf_counter() - start

    return train


class Case(NamedTuple):
    """The contenders of one library."""

    library: str
    make: Callable[[RankingData, int], Train]
    natives: tuple[str, ...]
    twin: str  # our objective with the Hessians of the first native one


OURS = "lambdamart", "yetiloss:ndcg@10", "yetiloss:ndcg", "yetiloss:gap"
CASES = (
    Case("xgboost", xgboost, ("rank:ndcg",), "lambdamart:preset=xgboost"),
    Case("lightgbm", lightgbm, ("lambdarank",), "lambdamart:preset=lightgbm"),
    Case("catboost", catboost, ("YetiRank:mode=NDCG;top=10", "YetiRank", "QueryRMSE"), "yetiloss:ndcg@10;neighbors=1"),
)


def training(
    rows: Annotated[int, Option(min=1000, help="About so many generated rows, 136 features.")] = 200_000,
    trees: Annotated[int, Option(min=1)] = 100,
    rounds: Annotated[int, Option(min=1, help="Repetitions; the ratio is the median of theirs.")] = 3,
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")] = "xgboost,lightgbm,catboost",
    threads: Annotated[int, Option(min=1)] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time whole trainings with native objectives and with ours.

    They take turns with squared error, whose gradients cost nothing: what the trees alone take. Nothing is evaluated
    during a training. A first training of two trees, which compiles the kernels, does not count.
    """
    console = terminal()
    data = make_ranking(max(1, rows // 118), seed=0)
    console.print(f"{data!r}, {trees} trees, {threads} threads")
    results: list[dict[str, Any]] = []
    for case in (c for c in CASES if c.library in libraries.split(",")):
        train = case.make(data, threads)
        floor = TRIVIAL[case.library]
        contenders: dict[str, str | Objective] = {name: name for name in (floor, *case.natives)}
        contenders |= {name: get_objective(name) for name in (*OURS, case.twin)}
        seconds: dict[str, list[float]] = {label: [] for label in contenders}
        for contender in contenders.values():
            train(contender, 2)
        for _ in track(range(rounds), case.library, console=console, transient=True):
            for label, contender in contenders.items():
                seconds[label].append(train(contender, trees))
        results += [
            {"library": case.library, "objective": label, "seconds": seconds[label],
             "over": {base: _ratio(seconds[label], seconds[base]) for base in (floor, *case.natives)}}
            for label in contenders
        ]  # fmt: skip
    settings = {"rows": len(data.y), "trees": trees, "threads": threads}
    speed_tables.save("training", {**settings, "results": results}, out, console)


def _ratio(some: list[float], others: list[float]) -> list[float]:
    """Least, median and most of the ratios by round."""
    return [float(q) for q in np.quantile(np.array(some) / np.array(others), (0, 0.5, 1))]

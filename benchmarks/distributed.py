"""``python -m benchmarks distributed``: seconds, memory and quality of Dask workers against one process."""

import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from typer import Option

from benchmarks import speed_tables
from benchmarks.workers import workers
from ltr_objectives import adapters, evaluate
from ltr_objectives.datasets import RankingData, make_ranking, make_ranking_fold
from ltr_objectives.workbench.texts import terminal

GIB = 2**30
FEW = 50  # queries, to train on once before the clock starts: every process has then imported and compiled its code
PARAMS = {"max_depth": 6, "eta": 0.1, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1}


class Run(NamedTuple):
    """A training: seconds to bring the data into the library's form and to train; peak GiB of each process; scores."""

    prepare: float
    train: float
    memory: list[float]
    scores: np.ndarray


def peak() -> float:
    """The most memory that this process has had, in GiB (on Linux)."""
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB


def alone(objective: str, queries: tuple[int, int, int], features: int, trees: int, threads: int) -> Run:
    """In this process."""
    import xgboost as xgb

    def fit(data: RankingData, trees: int) -> tuple[Any, float, float]:
        start = time.perf_counter()
        dtrain = xgb.QuantileDMatrix(data.X, data.y, group=data.group, nthread=threads)
        ready = time.perf_counter()
        params = {**PARAMS, "nthread": threads}
        booster = xgb.train(params, dtrain, trees, obj=adapters.xgboost_objective(objective))
        return booster, ready - start, time.perf_counter() - ready

    fit(make_ranking(FEW, features=features), 1)
    train, _, test = make_ranking_fold(queries, features=features)
    booster, prepare, seconds = fit(train, trees)
    return Run(prepare, seconds, [peak()], booster.predict(xgb.DMatrix(test.X)))


def dask(objective: str, queries: tuple[int, int, int], features: int, trees: int, threads: int) -> Run:
    """On ``threads`` Dask workers of one thread each; the data are cut and sent by this process."""
    import xgboost as xgb
    import xgboost.dask as dxgb
    from distributed import Client, LocalCluster

    def fit(client: Any, data: RankingData, trees: int) -> tuple[Any, float, float]:
        start = time.perf_counter()
        spread = adapters.dask_by_query(data.X, data.y, data.qid)
        dtrain = dxgb.DaskQuantileDMatrix(client, spread.X, spread.y, qid=spread.qid)
        ready = time.perf_counter()
        booster = dxgb.train(client, PARAMS, dtrain, trees, obj=adapters.xgboost_objective(objective))["booster"]
        return booster, ready - start, time.perf_counter() - ready

    with LocalCluster(n_workers=threads, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as c:
        fit(c, make_ranking(FEW, features=features), 1)
        train, _, test = make_ranking_fold(queries, features=features)
        booster, prepare, seconds = fit(c, train, trees)
        memory = [peak(), *c.run(peak).values()]
    return Run(prepare, seconds, memory, booster.predict(xgb.DMatrix(test.X)))


def distributed(
    rows: Annotated[int, Option(min=1000, help="About so many generated rows.")] = 4_000_000,
    features: Annotated[int, Option(min=1)] = 20,
    trees: Annotated[int, Option(min=1)] = 30,
    objectives: Annotated[str, Option(help="Ours.")] = "lambdamart:ndcg@10",
    metric: Annotated[str, Option(help="Of test queries, a tenth as many.")] = "ndcg@10",
    threads: Annotated[int, Option(min=1, help="Of the one process; as many workers have one each.")] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Train in one process and on Dask workers.

    In XGBoost, on this machine; the table has seconds, memory and quality."""
    console = terminal()
    count = max(20, rows // 118)
    queries = count, 1, count // 10
    _, _, test = make_ranking_fold(queries, features=features)
    results: list[dict[str, Any]] = []
    for objective in objectives.split(","):
        for name, run in (("one process", alone), ("Dask", dask)):
            with workers(1) as pool:  # a new process, so that nothing else adds to its memory
                found = pool.submit(run, objective, queries, features, trees, threads).result()
            value = evaluate(metric, found.scores, test.y, test.group)
            results.append({"objective": objective, "trained": name, "prepare": found.prepare, "train": found.train,
                            "memory": found.memory, "value": value})  # fmt: skip
    settings = {"rows": rows, "features": features, "trees": trees, "metric": metric, "threads": threads}
    speed_tables.save("distributed", {**settings, "results": results}, out, console)

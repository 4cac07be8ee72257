"""Time of one iteration's gradients, of native objectives and of our objectives."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.datasets import RankingData
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.queries import Queries

Timer = Callable[[], float]  # seconds

FEW = 4  # features, so that trees of one split cost next to nothing
IDLE_SECONDS = 0.03  # for so long the idle threads of a library may still wait busily; here some 4 ms
TRIVIAL = {"lightgbm": "regression", "xgboost": "reg:squarederror", "catboost": "RMSE"}


def seconds(function: Callable[[], Any], clock: Timer = time.perf_counter) -> float:
    """Time one call, by wall time or by another clock."""
    start = clock()
    function()
    return clock() - start


def ours(objective: str, data: RankingData, threads: int, iterations: int) -> Timer:
    """Time the gradients of an adapter, with other scores in each iteration."""
    queries, made = Queries(data.y, data.group), lightgbm_objective(objective, n_threads=threads)
    rng = np.random.default_rng(0)
    scores = [(data.y * 0.3 + rng.standard_normal(len(data.y))).astype(np.float32) for _ in range(4)]
    made.gradients(queries, scores[0])
    return lambda: _each(lambda i: made.gradients(queries, scores[i % 4]), iterations)


def ours_metric(metric: str, data: RankingData, threads: int, iterations: int) -> Timer:
    """Time one evaluation."""
    queries, made = Queries(data.y, data.group), get_metric(metric)
    scores = np.random.default_rng(0).standard_normal(len(data.y)).astype(np.float32)
    made.mean(queries, scores, n_threads=threads)
    return lambda: _each(lambda i: made.mean(queries, scores, n_threads=threads), iterations)


def _each(update: Callable[[int], Any], iterations: int) -> float:
    """Time an iteration in the mean, without the first ones: idle threads of the library before take the processors."""
    start, first = time.perf_counter(), 0
    while first == 0 or time.perf_counter() - start < IDLE_SECONDS:
        update(first)
        first += 1
    start = time.perf_counter()
    for i in range(first, first + iterations):
        update(i)
    return (time.perf_counter() - start) / iterations


def lightgbm(params: dict[str, Any], data: RankingData, threads: int, iterations: int) -> Timer:
    """Time an iteration of tiny trees."""
    import lightgbm as lgb

    dtrain = lgb.Dataset(data.X[:, :FEW], data.y, group=data.group, params={"verbose": -1, "force_col_wise": True})
    dtrain.construct()
    common = {"num_leaves": 2, "num_threads": threads, "force_col_wise": True, "verbose": -1, "metric": "None"}

    def call() -> float:
        booster = lgb.Booster({**common, **params}, dtrain)
        return _each(lambda i: booster.update(), iterations)

    return call


def xgboost(params: dict[str, Any], data: RankingData, threads: int, iterations: int) -> Timer:
    """Time an iteration of tiny trees."""
    import xgboost as xgb

    dtrain = xgb.QuantileDMatrix(data.X[:, :FEW], data.y, qid=data.qid)
    common = {"max_depth": 1, "nthread": threads, "tree_method": "hist", "disable_default_eval_metric": 1}

    def call() -> float:
        booster = xgb.Booster({**common, **params}, [dtrain])
        return _each(lambda i: booster.update(dtrain, i), iterations)

    return call


def catboost(params: dict[str, Any], data: RankingData, threads: int, iterations: int) -> Timer:
    """Time an iteration of tiny trees, by the difference between a long and a short training."""
    from catboost import CatBoost, Pool

    pool = Pool(data.X[:, :FEW], data.y, group_id=data.qid)
    pool.quantize(border_count=8)
    common = {
        "depth": 1, "thread_count": threads, "verbose": False, "allow_writing_files": False, "metric_period": 10**6,
        "leaf_estimation_iterations": 1, "leaf_estimation_backtracking": "No", "bootstrap_type": "No",
        "boosting_type": "Plain", "learning_rate": 0.1,
    }  # fmt: skip

    def train(trees: int) -> float:
        return seconds(lambda: CatBoost({**common, **params, "iterations": trees}).fit(pool))

    return lambda: (train(1 + iterations) - train(1)) / iterations


NATIVE = {
    "lightgbm": (lightgbm, "objective"),
    "xgboost": (xgboost, "objective"),
    "catboost": (catboost, "loss_function"),
}


def native(
    library: str, objective: str, options: dict[str, Any], data: RankingData, threads: int, iterations: int
) -> Timer:
    """Time an iteration with the library's objective, minus one with squared error."""
    make, name = NATIVE[library]
    with_it = make({name: objective, **options}, data, threads, iterations)
    without = make({name: TRIVIAL[library]}, data, threads, iterations)
    return lambda: with_it() - without()


def native_metric(data: RankingData, threads: int, iterations: int) -> Timer:
    """Evaluate NDCG@10 by LightGBM."""
    import lightgbm as lgb

    dtrain = lgb.Dataset(data.X[:, :FEW], data.y, group=data.group, params={"verbose": -1}).construct()
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": 10, "num_threads": threads, "verbose": -1}
    booster = lgb.Booster({**params, "num_leaves": 2}, dtrain)
    booster.update()
    return lambda: _each(lambda i: booster.eval_train(), iterations)


def sklearn_metric(data: RankingData) -> Timer:
    """Compute scikit-learn's NDCG@10, query by query, on a twentieth of the queries; the time is scaled to all."""
    from sklearn.metrics import ndcg_score

    scores = np.random.default_rng(0).standard_normal(len(data.y))
    ends = np.cumsum(data.group)
    some = [slice(b - n, b) for b, n in zip(ends, data.group, strict=True) if n > 1][::20]
    share = sum(s.stop - s.start for s in some) / len(data.y)
    gain = np.exp2(data.y) - 1
    return lambda: seconds(lambda: [ndcg_score([gain[s]], [scores[s]], k=10) for s in some]) / share

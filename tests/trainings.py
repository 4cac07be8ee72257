"""Small trainings in each library, which other processes can import too."""

from typing import Any

import numpy as np

LIBRARIES = ("xgboost", "lightgbm", "catboost")


def small_data(queries: int = 30, size: int = 12, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels 0 to 3 and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [0.0, 0.7, 1.4]).astype(float)
    return X, y, np.repeat(np.arange(queries), size)


def train(library: str, objective: Any = "yetiloss:ndcg@10", *, rounds: int = 6, threads: int = 1, after: Any = None,
          native: Any = None, data: Any = None) -> bytes:  # fmt: skip
    """Train with one of our objectives, or with ``native`` parameters; the predictions as bytes.

    ``after(iteration)`` is called after each iteration.
    """
    X, y, qid = small_data() if data is None else data
    in_library = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost}[library]
    return in_library(objective, rounds, threads, after, native, X, y, qid).tobytes()


def _xgboost(objective, rounds, threads, after, native, X, y, qid):
    import xgboost as xgb

    from ltr_objectives.adapters import xgboost_objective

    class After(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            after(epoch)
            return False

    params = {"max_depth": 3, "nthread": threads, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
    data = xgb.DMatrix(X, y, qid=qid, nthread=threads)
    how = {} if native else {"obj": xgboost_objective(objective)}
    booster = xgb.train({**params, **(native or {})}, data, rounds, callbacks=[After()] if after else None, **how)
    return booster.predict(data)


def _lightgbm(objective, rounds, threads, after, native, X, y, qid):
    import lightgbm as lgb

    from ltr_objectives.adapters import lightgbm_objective

    loss = native or {"objective": lightgbm_objective(objective)}
    params = {"num_leaves": 7, "num_threads": threads, "verbose": -1, "metric": "None", "deterministic": True,
              "force_col_wise": True, "min_sum_hessian_in_leaf": 1e-3, **loss}  # fmt: skip
    data = lgb.Dataset(X, y, group=np.unique(qid, return_counts=True)[1])
    callbacks = [lambda env: after(env.iteration)] if after else None
    return lgb.train(params, data, rounds, callbacks=callbacks).predict(X, num_threads=threads)


def _catboost(objective, rounds, threads, after, native, X, y, qid):
    from catboost import CatBoost, Pool

    from ltr_objectives.adapters import catboost_objective

    class After:
        def after_iteration(self, info):
            after(info.iteration)
            return True

    pool = Pool(X, y, group_id=qid, thread_count=threads)
    loss = native or {"loss_function": catboost_objective(objective, pool), "eval_metric": "NDCG"}
    params = {"iterations": rounds, "depth": 3, "thread_count": threads, "verbose": False, "random_seed": 0,
              "allow_writing_files": False, "bootstrap_type": "Bernoulli", **loss}  # fmt: skip
    return CatBoost(params).fit(pool, callbacks=[After()] if after else None).predict(pool, thread_count=threads)

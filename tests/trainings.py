"""Small trainings in each library, which other processes can import too."""

from typing import Any

import numpy as np

from ltr_objectives import adapters

LIBRARIES = ("xgboost", "lightgbm", "catboost")


def small_data(queries: int = 30, size: int = 12, seed: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels 0 to 3 and query ids."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * size, 4)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=len(X)), [0.0, 0.7, 1.4]).astype(float)
    return X, y, np.repeat(np.arange(queries), size)


def fit(library, objective, X, y, group, rounds=8, *, threads=1, params=(), weight=None, start=None, after=None,
        native=None, **given):  # fmt: skip
    """Train with one of our objectives, or with ``native`` parameters; return the function that predicts for features.

    ``weight`` is by query, ``start`` are scores, ``after(iteration)`` is called after each iteration, and ``given``
    goes to the adapter.
    """
    ours, params = getattr(adapters, f"{library}_objective"), {**dict(params), **(native or {})}
    by_row = None if weight is None else np.repeat(weight, group)
    if library == "xgboost":
        import xgboost as xgb

        class AfterRound(xgb.callback.TrainingCallback):
            def after_iteration(self, model, epoch, evals_log):
                after(epoch)
                return False

        data = xgb.DMatrix(X, y, group=group, base_margin=start, nthread=threads)
        if weight is not None:
            data.set_weight(weight)
        params = {"max_depth": 3, "nthread": threads, "min_child_weight": 1e-3, "disable_default_eval_metric": 1,
                  **params}  # fmt: skip
        how = {} if native else {"obj": ours(objective, **given)}
        booster = xgb.train(params, data, rounds, callbacks=[AfterRound()] if after else None, **how)
        return lambda X: booster.predict(xgb.DMatrix(X, nthread=threads), output_margin=True)
    if library == "lightgbm":
        import lightgbm as lgb

        params = {"num_leaves": 7, "num_threads": threads, "verbose": -1, "metric": "None", "deterministic": True,
                  "force_col_wise": True, "min_sum_hessian_in_leaf": 1e-3, **params}  # fmt: skip
        params |= {} if native else {"objective": ours(objective, **given)}
        callbacks = [lambda env: after(env.iteration)] if after else None
        data = lgb.Dataset(X, y, weight=by_row, group=group, init_score=start)
        model = lgb.train(params, data, rounds, callbacks=callbacks)
        return lambda X: model.predict(X, num_threads=threads)
    from catboost import CatBoost, Pool

    class AfterTree:
        def after_iteration(self, info):
            after(info.iteration)
            return True

    qid = np.repeat(np.arange(len(group)), group)
    pool = Pool(X, y, group_id=qid, weight=by_row, baseline=start, thread_count=threads)
    params = {"iterations": rounds, "depth": 3, "thread_count": threads, "verbose": False, "random_seed": 0,
              "allow_writing_files": False, "bootstrap_type": "Bernoulli", **params}  # fmt: skip
    params |= {} if native else {"loss_function": ours(objective, pool, **given), "eval_metric": "NDCG"}
    model = CatBoost(params).fit(pool, callbacks=[AfterTree()] if after else None)
    return lambda X: model.predict(X, thread_count=threads)


def train(library: str, objective: Any = "yetiloss:ndcg@10", *, rounds: int = 6, data: Any = None, **how: Any) -> bytes:
    """The predictions of :func:`fit` as bytes, on ``data`` or on small data."""
    X, y, qid = small_data() if data is None else data
    return fit(library, objective, X, y, np.unique(qid, return_counts=True)[1], rounds, **how)(X).tobytes()

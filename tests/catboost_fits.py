"""Data and trainings in CatBoost, for the tests."""

import numpy as np
from catboost import CatBoost, Pool

TREES = 20
NEWTON = {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
GRADIENT = {"leaf_estimation_method": "Gradient", "leaf_estimation_iterations": 1}
QUIET = {"verbose": 0, "thread_count": 2, "allow_writing_files": False, "eval_metric": "NDCG"}


def arrays(rows, seed=0):
    """Return features, labels that depend on them, and query ids; queries of 1 to 40 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows)), 0, 4)
    return X, y, np.repeat(np.arange(rows), rng.integers(1, 41, rows))[:rows]


def make_pool(rows=1500, seed=0, **arguments):
    X, y, qid = arrays(rows, seed)
    return Pool(X, y, group_id=qid, **arguments)


def fit(loss, pool, *, params=None, **arguments):
    common = {"iterations": TREES, "depth": 4, "learning_rate": 0.1, **QUIET, **GRADIENT}
    return CatBoost({**common, "loss_function": loss, **(params or {})}).fit(pool, **arguments)


def raw(model, pool):
    return model.predict(pool, prediction_type="RawFormulaVal")


def leaf_values(params, labels, group, start, **of_pool):
    """Return the values of a tree in which each of 64 documents has its own leaf; None if the tree is too small."""
    X = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(float)
    pool = Pool(X, labels, group_id=np.repeat(np.arange(len(group)), group), baseline=start, **of_pool)
    model = CatBoost({
        "iterations": 1, "depth": 6, "learning_rate": 1, "l2_leaf_reg": 1.0, "random_strength": 0,
        "bootstrap_type": "No", "verbose": 0, "allow_writing_files": False, "thread_count": 1, **params,
    }).fit(pool)  # fmt: skip
    return model.predict(X) if len(np.unique(model.calc_leaf_indexes(Pool(X)))) == 64 else None

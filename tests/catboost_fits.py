"""Trainings in CatBoost with our QueryRMSE and with its own, for the tests."""

import numpy as np
import pytest
from catboost import CatBoost, Pool

from ltr_objectives import Objective
from ltr_objectives.adapters import catboost_objective

TREES = 20
NEWTON = {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
GRADIENT = {"leaf_estimation_method": "Gradient", "leaf_estimation_iterations": 1}
DEFAULTS = {
    "iterations": TREES, "depth": 4, "learning_rate": 0.1, "eval_metric": "NDCG", "verbose": 0, "thread_count": 2,
    "allow_writing_files": False,
}  # fmt: skip

queryrmse = Objective.named["queryrmse"]()


def sampled(cases, step=5):
    """Every ``step``-th case, and all of them before a release."""
    each = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=pytest.mark.release if i % step else ()) for i, case in enumerate(each)]


def arrays(rows, seed=0):
    """Features, labels that depend on them, and query ids; queries of 1 to 40 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6))
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=rows)), 0, 4)
    return X, y, np.repeat(np.arange(rows), rng.integers(1, 41, rows))[:rows]


def make_pool(rows=1500, seed=0, **arguments):
    X, y, qid = arrays(rows, seed)
    return Pool(X, y, group_id=qid, **arguments)


def fit(loss, pool, *, params=None, **arguments):
    return CatBoost({**DEFAULTS, **GRADIENT, "loss_function": loss, **(params or {})}).fit(pool, **arguments)


def raw(model, pool):
    return model.predict(pool, prediction_type="RawFormulaVal")


def assert_native(pool, *, params=None, group_weight=None, other=None, **arguments):
    """Assert that our QueryRMSE and CatBoost's give the same model; return both.

    Splits are left to CatBoost, so that the models agree to the last digits.
    """
    native = fit("QueryRMSE", pool, params=params, **arguments)
    ours = fit(
        catboost_objective(queryrmse, pool, group_weight=group_weight, newton_splits=False),
        pool,
        params=params,
        **arguments,
    )
    assert ours.tree_count_ == native.tree_count_ > 0
    for data in (pool, other or pool):
        assert np.ptp(raw(native, data)) > 0.1
        np.testing.assert_allclose(raw(ours, data), raw(native, data), rtol=0, atol=1e-10)
    return native, ours

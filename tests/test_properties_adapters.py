"""With any data that a library takes, a training has finite predictions or raises our own exception."""

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoost, CatBoostError, Pool
from conftest import METRICS, OBJECTIVES
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import data_sets

from ltr_objectives import LTRError, adapters

pytestmark = [
    # drawn data often have zero gradients, which is a warning; the tests are about what else goes wrong
    pytest.mark.filterwarnings("ignore::ltr_objectives.errors.LTRWarning"),
    pytest.mark.filterwarnings("ignore:.*Empty dataset at worker:UserWarning"),  # XGBoost, of no rows
]
BY_THE_LIBRARY = (
    ValueError, TypeError, AttributeError, OverflowError, KeyError, RuntimeWarning, CatBoostError,
    xgb.core.XGBoostError, lgb.basic.LightGBMError,
)  # fmt: skip
OF_CATBOOST = "LTRError", "All features are either constant", "All train targets are equal"  # in a CatBoostError
objectives, metrics = st.sampled_from(OBJECTIVES), st.sampled_from(METRICS)
# every example is a training
few = settings(max_examples=30) if settings.default.derandomize else settings()


def features(data):
    """Return features and query ids, as many as the groups say."""
    sizes = data["group"] if "group" in data else np.unique(data["qid"], return_counts=True)[1]
    if not (np.abs(sizes) <= 1000).all():  # else these features would fill the memory
        raise ValueError
    qid = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(0).normal(size=(len(qid), 2)), qid


def outcome(build, train):
    """Train on what the library makes of the data, unless it refuses them itself, or our code does."""
    try:
        built = build()
    except BY_THE_LIBRARY:
        return
    try:
        train(*built)
    except LTRError:
        return
    except CatBoostError as error:
        if not any(message in str(error) for message in OF_CATBOOST):
            raise


@few
@given(objectives, metrics, data_sets())
def test_xgboost(objective, metric, data):
    obj, evaluation = adapters.xgboost_objective(objective), adapters.xgboost_metric(metric)
    params = {"max_depth": 2, "nthread": 1, "min_child_weight": 0, "disable_default_eval_metric": 1}

    def build():
        X, qid = features(data)
        d = xgb.DMatrix(X, data["labels"], qid=qid, nthread=1)
        if data.get("weight") is not None:
            d.set_weight(data["weight"])
        xgb.Booster(params, [d]).predict(d)
        return (d,)

    def train(d):
        how = {"obj": obj, "custom_metric": evaluation, "evals": [(d, "learn")], "verbose_eval": False}
        assert np.isfinite(xgb.train(params, d, 2, **how).predict(d)).all()
        assert np.isfinite(obj(data["scores"], d)).all()
        assert all(np.isfinite(value) for _, value in evaluation(data["scores"], d))

    outcome(build, train)


@few
@given(objectives, metrics, data_sets())
def test_lightgbm(objective, metric, data):
    obj, evaluation = adapters.lightgbm_objective(objective), adapters.lightgbm_metric(metric)
    params = {"metric": "None", "num_threads": 1, "verbose": -1, "min_data_in_leaf": 1,
              "min_data_in_bin": 1, "num_leaves": 3, "min_sum_hessian_in_leaf": 1e-3}  # fmt: skip
    # with min_sum_hessian_in_leaf=0 LightGBM, which counts rows by Hessians, may stop with an error of its own

    def build():
        X, qid = features(data)
        sizes = np.unique(qid, return_counts=True)[1]
        d = lgb.Dataset(X, data["labels"], group=sizes, weight=data.get("weight"), params=params).construct()
        flat = np.zeros(len(X)), np.ones(len(X))
        lgb.Booster({**params, "objective": "none"}, d).update(fobj=lambda *_: flat)
        return X, d

    def train(X, d):
        model = lgb.train({**params, "objective": obj}, d, 2, valid_sets=[d], feval=evaluation)
        assert np.isfinite(model.predict(X, num_threads=1)).all()
        assert all(np.isfinite(value) for _, value, _ in evaluation(data["scores"], d))

    given = data["labels"], data["scores"], data.get("weight"), data.get("group")
    outcome(tuple, lambda: obj(*given))
    outcome(build, train)


@few
@given(objectives, metrics, data_sets(), st.booleans())
def test_catboost(objective, metric, data, by_row):
    def build():
        X, qid = features(data)
        weight = {} if data.get("weight") is None else {"weight" if by_row else "group_weight": data["weight"]}
        return (Pool(X, data["labels"], group_id=qid, thread_count=1, **weight),)

    def train(pool):
        loss = adapters.catboost_objective(objective, pool, group_weight=None if by_row else data.get("weight"))
        params = {"loss_function": loss, "eval_metric": adapters.catboost_metric(metric, pool), "iterations": 2,
                  "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": 0,
                  "bootstrap_type": "No"}  # fmt: skip
        assert np.isfinite(CatBoost(params).fit(pool).predict(pool, thread_count=1)).all()

    outcome(build, train)

"""With any data that a library takes, a training has finite predictions or raises our own exception."""

from collections.abc import Iterator
from contextlib import contextmanager

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoost, CatBoostError, Pool
from conftest import METRICS, OBJECTIVES
from hypothesis import event, example, given
from hypothesis import strategies as st
from strategies import data_sets

from ltr_objectives import LTRError, adapters

pytestmark = [
    # drawn data often have zero gradients, which is a warning; the tests are about what else goes wrong
    pytest.mark.filterwarnings("ignore::ltr_objectives.errors.LTRWarning"),
    pytest.mark.filterwarnings("ignore:.*Empty dataset at worker:UserWarning"),  # XGBoost, of no rows
]
NO_SCORES = {"scores": None, "labels": np.zeros(1), "group": [1]}
NO_LABELS = {"scores": np.zeros(1), "labels": None, "group": [1]}
objectives, metrics = st.sampled_from(OBJECTIVES), st.sampled_from(METRICS)


class Refused(Exception):
    """The library itself refuses such data, so it never reaches our code."""


@contextmanager
def by_the_library() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, AttributeError, OverflowError, KeyError, RuntimeWarning, CatBoostError,
            xgb.core.XGBoostError, lgb.basic.LightGBMError) as error:  # fmt: skip
        raise error if isinstance(error, LTRError) else Refused from None


@contextmanager
def known_outcome() -> Iterator[None]:
    """Allow and count refusals; CatBoost wraps our message in its own error."""
    try:
        yield
    except Refused:
        event("refused by the library")
    except LTRError:
        event("refused")
    except CatBoostError as error:
        known = "LTRError", "All features are either constant", "All train targets are equal"
        if not any(message in str(error) for message in known):
            raise
        event("refused")


def rows_of(data) -> tuple[np.ndarray, np.ndarray]:
    """Features and query ids, as many as the groups say."""
    sizes = data["group"] if "group" in data else np.unique(data["qid"], return_counts=True)[1]
    if not (np.abs(sizes) <= 1000).all():  # else these features would fill the memory
        raise Refused
    qid = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(0).normal(size=(len(qid), 2)), qid


def check(grad, hess, rows) -> None:
    for x in (grad, hess):
        assert x.dtype == np.float32
        assert x.shape == (rows,)
        assert np.isfinite(x).all()
    assert (hess >= 0).all()


@given(objectives, metrics, data_sets())
@example(OBJECTIVES[0], METRICS[0], NO_SCORES)
@example(OBJECTIVES[0], METRICS[0], NO_LABELS)
def test_xgboost(objective, metric, data):
    obj, evaluation = adapters.xgboost_objective(objective), adapters.xgboost_metric(metric)
    params = {"max_depth": 2, "nthread": 1, "min_child_weight": 0, "disable_default_eval_metric": 1}
    with known_outcome():
        with by_the_library():
            X, qid = rows_of(data)
            d = xgb.DMatrix(X, data["labels"], qid=qid, nthread=1)
            if data.get("weight") is not None:
                d.set_weight(data["weight"])
            xgb.Booster(params, [d]).predict(d)
        how = {"obj": obj, "custom_metric": evaluation, "evals": [(d, "learn")], "verbose_eval": False}
        booster = xgb.train(params, d, 2, **how)
        assert np.isfinite(booster.predict(d)).all()
        check(*obj(data["scores"], d), d.num_row())
        assert all(np.isfinite(value) for _, value in evaluation(data["scores"], d))


@given(objectives, metrics, data_sets())
@example(OBJECTIVES[0], METRICS[0], NO_SCORES)
@example(OBJECTIVES[0], METRICS[0], NO_LABELS)
def test_lightgbm(objective, metric, data):
    obj, evaluation = adapters.lightgbm_objective(objective), adapters.lightgbm_metric(metric)
    params = {"metric": "None", "num_threads": 1, "verbose": -1, "min_data_in_leaf": 1,
              "min_data_in_bin": 1, "num_leaves": 3, "min_sum_hessian_in_leaf": 1e-3}  # fmt: skip
    # with min_sum_hessian_in_leaf=0 LightGBM, which counts rows by Hessians, may stop with an error of its own
    with known_outcome():
        check(*obj(data["labels"], data["scores"], data.get("weight"), data.get("group")), len(data["labels"]))
    with known_outcome():
        with by_the_library():
            X, qid = rows_of(data)
            sizes = np.unique(qid, return_counts=True)[1]
            d = lgb.Dataset(X, data["labels"], group=sizes, weight=data.get("weight"), params=params).construct()
            flat = np.zeros(len(X)), np.ones(len(X))
            lgb.Booster({**params, "objective": "none"}, d).update(fobj=lambda *_: flat)
        model = lgb.train({**params, "objective": obj}, d, 2, valid_sets=[d], feval=evaluation)
        assert np.isfinite(model.predict(X, num_threads=1)).all()
        assert all(np.isfinite(value) for _, value, _ in evaluation(data["scores"], d))


@given(objectives, metrics, data_sets(), st.booleans())
def test_catboost(objective, metric, data, by_row):
    with known_outcome():
        with by_the_library():
            X, qid = rows_of(data)
            weight = {} if data.get("weight") is None else {"weight" if by_row else "group_weight": data["weight"]}
            pool = Pool(X, data["labels"], group_id=qid, thread_count=1, **weight)
        loss = adapters.catboost_objective(objective, pool, group_weight=None if by_row else data.get("weight"))
        params = {"loss_function": loss, "eval_metric": adapters.catboost_metric(metric, pool), "iterations": 2,
                  "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": 0,
                  "bootstrap_type": "No"}  # fmt: skip
        model = CatBoost(params).fit(pool)
        assert np.isfinite(model.predict(pool, thread_count=1)).all()

"""A continued training gives the model of an uninterrupted one, if the library's own objectives do so."""

import numpy as np
import pytest
from generated import ranking

from ltr_objectives.adapters import catboost_objective, lightgbm_objective, xgboost_objective

X, LABELS, QID = ranking(5, queries=40)
GROUP = np.bincount(QID)
LABELS = LABELS / 3
XGB = {"max_depth": 3, "nthread": 1, "min_child_weight": 1e-6}
LGB = {"num_leaves": 7, "verbose": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True,
       "metric": "None"}  # fmt: skip
CAT = {"depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False, "eval_metric": "NDCG"}
CAT |= {"leaf_estimation_method": "Newton", "learning_rate": 0.1, "boost_from_average": False}


def in_xgboost(objective, *rounds, native=None, **params):
    xgb = pytest.importorskip("xgboost")
    params |= {"objective": native} if native else {}
    labels, booster = LABELS if native is None else LABELS * 3, None
    for n in rounds:
        d = xgb.DMatrix(X, labels, qid=QID)
        obj = None if native else xgboost_objective(objective)
        booster = xgb.train({**XGB, **params}, d, n, obj=obj, xgb_model=booster)
        booster = xgb.Booster(model_file=bytearray(booster.save_raw("ubj")))  # as after a restart
    return booster.predict(d)


def in_lightgbm(objective, *rounds, native=None, **params):
    lgb = pytest.importorskip("lightgbm")
    model = None
    for n in rounds:
        chosen = {"objective": native or lightgbm_objective(objective), "min_sum_hessian_in_leaf": 1e-6}
        labels = LABELS if native is None else LABELS * 3
        model = lgb.train({**LGB, **chosen, **params}, lgb.Dataset(X, labels, group=GROUP), n, init_model=model)
        model = lgb.Booster(model_str=model.model_to_string())
    return model.predict(X)


def in_catboost(objective, *rounds, native=None, **params):
    catboost = pytest.importorskip("catboost")
    pool, model = catboost.Pool(X, LABELS, group_id=QID), None
    for n in rounds:
        chosen = {"loss_function": native or catboost_objective(objective, pool), "iterations": n}
        model = catboost.CatBoost({**CAT, **chosen, **params}).fit(pool, init_model=model)
    return model.predict(X)


@pytest.mark.parametrize("train", [in_xgboost, in_lightgbm, in_catboost])
@pytest.mark.parametrize("name", ["lambdamart", "yetiloss", "stochasticrank", "xendcg", "queryrmse"])
def test_continued_training_is_the_same_training(name, train):
    whole = train(name, 8)
    assert np.ptp(whole) > 1e-3
    np.testing.assert_array_equal(train(name, 3, 5), whole)


def test_catboost_s_own_randomness_goes_on():
    options = {"random_strength": 5, "bootstrap_type": "Bernoulli", "subsample": 0.6, "random_seed": 1}
    for how in ({"native": "QueryRMSE"}, {}):
        whole = in_catboost("queryrmse", 8, **options, **how)
        assert not np.array_equal(in_catboost("queryrmse", 8, **how), whole)
        np.testing.assert_array_equal(in_catboost("queryrmse", 3, 5, **options, **how), whole)


@pytest.mark.parametrize(
    ("train", "native", "options"),
    [
        (in_xgboost, "rank:ndcg", {"subsample": 0.6, "seed": 1}),
        (in_lightgbm, "lambdarank", {"bagging_fraction": 0.6, "bagging_freq": 1, "seed": 1}),
    ],
)
def test_samples_of_rows_start_anew_in_xgboost_and_lightgbm(train, native, options):
    """The same holds with a native objective."""
    for how in ({"native": native}, {}):
        whole = train("lambdamart", 8, **options, **how)
        assert np.array_equal(train("lambdamart", 8, **options, **how), whole)
        assert np.abs(train("lambdamart", 3, 5, **options, **how) - whole).max() > 1e-3

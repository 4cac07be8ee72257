"""Refusals of the CatBoost adapter that are no single call, and what it takes."""

import pickle
import sys

import numpy as np
import pytest
from catboost import CatBoost, CatBoostError, Pool, cv
from catboost_pools import BASE, QID, ROWS, WEIGHTS, features, make_pool, rich, train

from ltr_objectives import LTRError
from ltr_objectives.adapters import catboost_metric, catboost_objective

CUTS = {
    "cv": lambda model, params, pool: cv(pool, params, fold_count=3),
    "grid_search": lambda model, params, pool: model.grid_search({"depth": [2, 3]}, pool, verbose=False),
    "grid_search with cv": lambda model, params, pool: model.grid_search(
        {"depth": [2, 3]}, pool, verbose=False, search_by_train_test_split=False
    ),
    "randomized_search": lambda model, params, pool: model.randomized_search({"depth": [2, 3]}, pool, verbose=False),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("what", ["objective", "metric"])
def test_functions_that_cut_the_pool(what, cut, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # cv writes files
    pool = make_pool()
    ours = {
        "objective": {"loss_function": catboost_objective("queryrmse", pool)},
        "metric": {"loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg", pool)},
    }[what]
    params = {**BASE, **ours}
    with pytest.raises(CatBoostError, match="only a training started by fit"):
        CUTS[cut](CatBoost(params), params, pool)


def test_objects_not_in_a_training():
    loss = pickle.loads(pickle.dumps(catboost_objective("queryrmse", make_pool())))
    with pytest.raises(LTRError, match="started by fit"):
        loss.calc_ders_range(np.zeros(3), np.zeros(3, np.float32), None)


def test_unknown_group_weight():
    pool = make_pool(group_weight=WEIGHTS)
    for trained_on, given in ((pool, None), (pool, 2 * WEIGHTS), (make_pool(), WEIGHTS)):
        with pytest.raises(CatBoostError, match="group_weight"):
            train(catboost_objective("queryrmse", trained_on, group_weight=given), trained_on)
    assert train(catboost_objective("queryrmse", pool, group_weight=WEIGHTS), pool).tree_count_ == 8


def test_another_pool_or_the_same_with_other_rows():
    pool = make_pool()
    loss = catboost_objective("queryrmse", pool)
    assert train(loss, Pool(features()[:, :2], rich(), group_id=QID)).tree_count_ == 8  # other features of these rows
    pool.set_baseline(np.linspace(0, 1, ROWS))
    with pytest.raises(LTRError, match="differ in baseline"):
        train(loss, pool)


def test_without_catboost(monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    for make in (catboost_objective, catboost_metric):
        with pytest.raises(ImportError, match=r"pip install catboost"):
            make("ndcg", None)

"""Refusals of the CatBoost adapter, so that nothing goes wrong silently."""

import pickle
import sys

import numpy as np
import pytest
from catboost import CatBoost, CatBoostError, Pool, cv
from catboost_pools import BASE, QID, ROWS, WEIGHTS, categorical_pool, features, make_pool, rich, sparse, train

from ltr_objectives.adapters._catboost import catboost_metric, catboost_objective
from ltr_objectives.errors import LTRError


@pytest.mark.parametrize(
    "params",
    [
        {"boosting_type": "Ordered"},
        {"task_type": "GPU"},
        {"eval_fraction": 0.2},
        {"dev_leafwise_approxes": True},
        {"leaf_estimation_backtracking": "AnyImprovement"},
    ],
    ids=str,
)
def test_parameters_are_refused_beside_our_metric_too(params):
    pool = make_pool()
    with pytest.raises(LTRError, match=next(iter(params))):
        train("QueryRMSE", pool, **{**params, "eval_metric": catboost_metric("ndcg", pool)})


@pytest.mark.parametrize(
    "declared", [{}, {"has_time": False}, {"one_hot_max_size": 100}, {"ignored_features": [4]}], ids=str
)
def test_categorical_features_need_has_time(declared):
    pool = categorical_pool()
    with pytest.raises(LTRError, match=r"categorical features.*add has_time=True"):
        train(catboost_objective("queryrmse", pool), pool, **declared)
    with pytest.raises(LTRError, match=r"categorical features.*add has_time=True"):
        train("QueryRMSE", pool, **{**declared, "eval_metric": catboost_metric("ndcg", pool)})


OTHER_POOLS = {
    "other labels": (lambda: make_pool(sparse), "labels"),
    "other groups": (lambda: make_pool(qid=np.arange(ROWS) // 15), "group"),
    "other order of groups": (lambda: make_pool(qid=np.sort(np.random.default_rng(0).integers(0, 150, ROWS))), "group"),
    "weights": (lambda: make_pool(weight=np.linspace(1, 2, ROWS)), "weight"),
    "baseline": (lambda: make_pool(baseline=np.linspace(1, 2, ROWS)), "baseline"),
    "slice": (lambda: make_pool().slice(np.arange(1000)), "labels"),
    "slice in another order": (lambda: make_pool().slice(np.arange(ROWS).reshape(-1, 10)[::-1].ravel()), "labels"),
    "longer": (
        lambda: Pool(np.tile(features(), (2, 1)), np.tile(rich(), 2), group_id=np.arange(2 * ROWS) // 10),
        "labels",
    ),
    "arrays": (lambda: features(), "catboost.Pool"),
}


@pytest.mark.parametrize("other", OTHER_POOLS)
def test_another_pool(other):
    make, what = OTHER_POOLS[other]
    pool = make_pool()
    model = CatBoost({**BASE, "loss_function": catboost_objective("queryrmse", pool)})
    with pytest.raises(LTRError, match=what):
        model.fit(make(), **({"y": rich(), "group_id": QID} if other == "arrays" else {}))


def test_equal_labels_in_another_order_of_queries():
    one = Pool(features(), np.tile([1.0, 0.0], ROWS // 2), group_id=np.repeat([1, 2, 3], [500, 400, 600]))
    two = Pool(features(), np.tile([1.0, 0.0], ROWS // 2), group_id=np.repeat([2, 1, 3], [400, 500, 600]))
    with pytest.raises(LTRError, match="differ in group"):
        train(catboost_objective("queryrmse", one), two)


def test_pool_changed_after_the_object_was_made():
    pool = make_pool()
    loss = catboost_objective("queryrmse", pool)
    pool.set_baseline(np.linspace(0, 1, ROWS))
    with pytest.raises(LTRError, match="differ in baseline"):
        train(loss, pool)


def test_other_features_for_the_same_rows_are_fine():
    loss = catboost_objective("queryrmse", make_pool())
    fewer = Pool(features()[:, :2], rich(), group_id=QID)
    assert train(loss, fewer).tree_count_ == 8


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


def test_unknown_group_weight():
    pool = make_pool(group_weight=WEIGHTS)
    with pytest.raises(CatBoostError, match=r"pass the same values to catboost_objective\(\.\.\., group_weight"):
        train(catboost_objective("queryrmse", pool), pool)
    with pytest.raises(CatBoostError, match="group_weight"):
        train(catboost_objective("queryrmse", pool, group_weight=2 * WEIGHTS), pool)
    assert train(catboost_objective("queryrmse", pool, group_weight=WEIGHTS), pool).tree_count_ == 8
    with pytest.raises(CatBoostError, match="group_weight"):
        train(catboost_objective("queryrmse", make_pool(), group_weight=WEIGHTS), make_pool())
    with pytest.raises(LTRError, match="weights by row"):
        catboost_objective("queryrmse", make_pool(weight=WEIGHTS), group_weight=WEIGHTS)


@pytest.mark.parametrize("weights", [{"class_weights": np.array([1, 2])}, {"auto_class_weights": "Balanced"}], ids=str)
def test_weights_by_class(weights):
    pool = make_pool(sparse)
    with pytest.raises(LTRError, match=r"class_weights=.*give the pool weights by row"):
        train(catboost_objective("queryrmse", pool), pool, **weights)


@pytest.mark.parametrize("ours", ["loss_function", "eval_metric"])
@pytest.mark.parametrize("where", ["constructor", "fit"])
def test_snapshots(ours, where, tmp_path):
    pool = make_pool()
    made = {"loss_function": catboost_objective, "eval_metric": catboost_metric}[ours]
    params = {**BASE, "loss_function": "QueryRMSE", "allow_writing_files": True, "train_dir": str(tmp_path)}
    params[ours] = made({"loss_function": "queryrmse", "eval_metric": "ndcg"}[ours], pool)
    given = [{}, {"save_snapshot": True}]
    of_constructor, of_fit = given[::-1] if where == "constructor" else given
    with pytest.raises(LTRError, match="save_snapshot"):
        CatBoost({**params, **of_constructor}).fit(pool, **of_fit)
    assert CatBoost(params).fit(pool).tree_count_


def test_without_catboost(monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(ImportError, match=r"pip install catboost"):
        catboost_objective("queryrmse", None)
    with pytest.raises(ImportError, match=r"pip install catboost"):
        catboost_metric("ndcg", None)


def test_objects_not_in_a_training():
    pool = make_pool()
    loss, metric = catboost_objective("queryrmse", pool), catboost_metric("ndcg", pool)
    for obj in (loss, pickle.loads(pickle.dumps(loss))):
        with pytest.raises(LTRError, match="only a training started by fit"):
            obj.calc_ders_range(np.zeros(3), np.zeros(3, np.float32), None)
    with pytest.raises(LTRError, match="only a training started by fit"):
        metric.evaluate([np.zeros(3)], np.zeros(3, np.float32), None)

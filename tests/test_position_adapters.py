"""Weights by row, propensities and positions reach the gradient through every adapter."""

import pickle

import numpy as np
import pytest
from clicks import click_log, some_queries
from rankers import LIBRARIES, ranker, through_the_adapter

from ltr_objectives import LambdaMART, LTRError, LTRWarning
from ltr_objectives.adapters import catboost_objective, lightgbm_metric, lightgbm_objective, xgboost_objective
from ltr_objectives.datasets import RankingData

LOG = click_log(some_queries(40, 1), 1.0, 1)
WAYS = {"propensity": LOG.propensity, "position": LOG.position}


def same(ours, **how):
    grad, hess = LambdaMART().gradient_hessian(LOG.data.X[:, 0], LOG.clicks, LOG.data.group, **how)
    plain = LambdaMART().gradient_hessian(LOG.data.X[:, 0], LOG.clicks, LOG.data.group)
    assert not np.array_equal(grad, plain[0])
    for a, b in zip(ours, (grad, hess), strict=True):
        assert np.array_equal(a, b.astype(np.float32))


@pytest.mark.parametrize("how", WAYS)
def test_xgboost_and_lightgbm_get_the_corrected_gradient(how):
    xgb, lgb = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    given = {how: WAYS[how]}
    scores = LOG.data.X[:, 0]
    dmatrix = xgb.DMatrix(LOG.data.X, LOG.clicks, qid=LOG.data.qid)
    same(xgboost_objective("lambdamart", **given)(scores, dmatrix), **given)
    same(pickle.loads(pickle.dumps(xgboost_objective("lambdamart", **given)))(scores, dmatrix), **given)
    dataset = lgb.Dataset(LOG.data.X, LOG.clicks, group=LOG.data.group).construct()
    same(lightgbm_objective("lambdamart", **given)(scores, dataset), **given)
    same(lightgbm_objective("lambdamart", **given)(LOG.clicks, scores, None, LOG.data.group), **given)


def test_lightgbm_s_own_positions_are_read():
    lgb = pytest.importorskip("lightgbm")
    if not hasattr(lgb.Dataset, "get_position"):
        pytest.skip("before LightGBM 4.1")
    scores = LOG.data.X[:, 0]
    dataset = lgb.Dataset(LOG.data.X, LOG.clicks, group=LOG.data.group, position=LOG.position).construct()
    grad, hess = LambdaMART().gradient_hessian(scores, LOG.clicks, LOG.data.group, position=LOG.position)
    ours = lightgbm_objective("lambdamart")(scores, dataset)  # LightGBM renumbers positions: another order of sums
    for a, b in zip(ours, (grad, hess), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)
    same(lightgbm_objective("lambdamart", propensity=LOG.propensity)(scores, dataset), propensity=LOG.propensity)
    with pytest.raises(LTRError, match="does not take propensity or position"):
        lightgbm_objective("queryrmse")(scores, dataset)


def test_subsets_that_lose_positions_are_refused():
    lgb = pytest.importorskip("lightgbm")
    if not hasattr(lgb.Dataset, "get_position"):
        pytest.skip("before LightGBM 4.1")
    whole = lgb.Dataset(LOG.data.X, LOG.clicks, group=LOG.data.group, position=LOG.position, free_raw_data=False)
    rows = np.flatnonzero(LOG.data.qid % 2 == LOG.data.qid[0] % 2)
    part, scores = whole.construct().subset(rows).construct(), LOG.data.X[rows, 0]
    assert part.get_position() is None
    for subset in (part, part.subset(np.arange(len(rows))).construct()):
        with pytest.raises(LTRError, match="leaves the positions of a Dataset out of its subsets"):
            lightgbm_objective("lambdamart")(scores, subset)
    lightgbm_metric("map")(scores, part)  # which reads no positions
    own = lightgbm_objective("lambdamart", position=LOG.position[rows])(scores, part)
    group = np.unique(LOG.data.qid[rows], return_counts=True)[1]
    assert np.array_equal(
        own[0],
        LambdaMART().gradient_hessian(scores, LOG.clicks[rows], group, position=LOG.position[rows])[0].astype("f4"),
    )
    params = {"objective": lightgbm_objective("lambdamart"), "verbose": -1, "num_threads": 1, "metric": "None"}
    with pytest.raises(LTRError, match=r"call lgb\.train on Datasets of your own"):
        lgb.cv(params, whole, 2, folds=[(rows, np.setdiff1d(np.arange(len(LOG.clicks)), rows))])


@pytest.mark.parametrize("how", WAYS)
def test_catboost_trains_on_the_corrected_gradient(how):
    catboost = pytest.importorskip("catboost")
    pool = catboost.Pool(LOG.data.X, LOG.clicks, group_id=LOG.data.qid)
    params = {"iterations": 1, "learning_rate": 1.0, "depth": 2, "verbose": False, "allow_writing_files": False,
              "eval_metric": "NDCG", "bootstrap_type": "No", "leaf_estimation_method": "Newton", "l2_leaf_reg": 0,
              "leaf_estimation_iterations": 1, "thread_count": 1}  # fmt: skip
    loss = catboost_objective("lambdamart", pool, **{how: WAYS[how]})
    for objective in (loss, pickle.loads(pickle.dumps(loss))):
        model = catboost.CatBoost({"loss_function": objective, **params}).fit(pool)
        grad, hess = LambdaMART().gradient_hessian(
            np.zeros(len(LOG.clicks)), LOG.clicks, LOG.data.group, **{how: WAYS[how]}
        )
        leaf = model.calc_leaf_indexes(pool).reshape(-1)
        expected = -np.bincount(leaf, grad) / np.bincount(leaf, hess)
        np.testing.assert_allclose(model.predict(pool), expected[leaf], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("how", WAYS)
def test_the_rankers_train_on_the_corrected_gradient(library, how):
    pytest.importorskip(library)
    data, given = LOG.data, {how: WAYS[how]}
    fitted = ranker(library, "lambdamart").fit(data.X, LOG.clicks, qid=data.qid, **given)
    plain = ranker(library, "lambdamart").fit(data.X, LOG.clicks, qid=data.qid)
    assert not np.array_equal(fitted.predict(data.X), plain.predict(data.X))
    assert np.array_equal(fitted.predict(data.X), through_the_adapter(library, "lambdamart", data, LOG.clicks, **given))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("how", WAYS)
def test_grades_instead_of_clicks_are_warned_of(library, how):
    pytest.importorskip(library)
    data, given = LOG.data, {how: WAYS[how]}
    with pytest.warns(LTRWarning, match=f"with {how}, labels are clicks, 0 or 1") as caught:
        through_the_adapter(library, "lambdamart", data, data.y, **given)
    assert len(caught) == 1
    with pytest.warns(LTRWarning, match=f"with {how}, labels are clicks, 0 or 1") as caught:
        ranker(library, "lambdamart").fit(data.X, data.y, qid=data.qid, **given)
    assert len({(str(each.message), each.filename, each.lineno) for each in caught}) == 1  # Python shows it once


def test_xgboost_takes_weights_by_row_beside_the_data():
    xgb = pytest.importorskip("xgboost")
    weight = np.random.default_rng(0).uniform(0.5, 2, len(LOG.clicks))
    dmatrix = xgb.DMatrix(LOG.data.X, LOG.clicks, qid=LOG.data.qid)
    same(xgboost_objective("lambdamart", weight=weight)(LOG.data.X[:, 0], dmatrix), weight=weight)
    dmatrix.set_weight(np.arange(1.0, 41))  # which a metric reads
    same(xgboost_objective("lambdamart", weight=weight)(LOG.data.X[:, 0], dmatrix), weight=weight)


def test_arrays_of_another_data_set_are_refused():
    xgb, lgb, catboost = (pytest.importorskip(x) for x in ("xgboost", "lightgbm", "catboost"))
    part: RankingData = LOG.data.select(range(5))
    scores, labels = part.X[:, 0], part.y
    for how, message in (("propensity", "propensity has"), ("position", "position has"), ("weight", "weight has")):
        values = WAYS.get(how, np.ones(len(LOG.clicks)))
        with pytest.raises(LTRError, match=message):
            xgboost_objective("lambdamart", **{how: values})(scores, xgb.DMatrix(part.X, labels, qid=part.qid))
        if how == "weight":
            continue
        with pytest.raises(LTRError, match=message):
            lightgbm_objective("lambdamart", **{how: values})(
                scores, lgb.Dataset(part.X, labels, group=part.group).construct()
            )
        with pytest.raises(LTRError, match=message):
            catboost_objective("lambdamart", catboost.Pool(part.X, labels, group_id=part.qid), **{how: values})


def test_a_training_with_positions_goes_on_as_if_never_interrupted():
    """The estimate has no state between iterations, so a restart does not change it."""
    xgb = pytest.importorskip("xgboost")
    dmatrix = xgb.DMatrix(LOG.data.X, LOG.clicks, qid=LOG.data.qid)
    params = {"max_depth": 2, "nthread": 1, "base_score": 0, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}

    def train(rounds, before=None):
        objective = xgboost_objective("lambdamart", position=LOG.position)
        return xgb.train(params, dmatrix, rounds, obj=objective, xgb_model=before)

    assert train(3, train(3)).get_dump() == train(6).get_dump()

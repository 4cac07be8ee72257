"""Refit moves leaves as the libraries do: from their own functions, their own trainings, and the mean of labels."""

import lightgbm
import numpy as np
import pytest
import xgboost
from generated import ranking, shop
from rankers import NATIVE, SUFFIX, TEST, TRAIN, VALI, everywhere, fit, query_weights, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning
from ltr_objectives.adapters import LGBMRanker, bagged, refit, xgboost_objective

LEAVES = {"catboost": {"depth": 3}, "lightgbm": {"min_child_samples": 2}, "xgboost": {"min_child_weight": 0}}
OWN = {"lightgbm": {"reg_alpha": 2.0}, "xgboost": {"reg_alpha": 2.0}, "catboost": {"l2_leaf_reg": 7.0}}


def moved(model, data=VALI, **options):
    return refit(model, data.X, data.y, **{"qid": data.qid, **options})


@everywhere
@pytest.mark.parametrize("objective", ["lambdamart", "ordinal", "rmse", "lambdamart:map"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_moved_to_their_own_data_stay(library, objective, weighted):
    weight = {"sample_weight": query_weights(TRAIN.group)} if weighted else {}
    model = fit(library, objective, weight, **LEAVES[library], **OWN[library])
    again = moved(model, TRAIN, decay_rate=0.0, **weight)
    np.testing.assert_allclose(again.predict(TEST.X), model.predict(TEST.X), atol=1e-5)


def test_lightgbm_s_own_refit_gives_the_same():
    X, y, qid = ranking(0, queries=30)
    new, labels, ids = ranking(8, queries=6)  # so few that some leaves are empty
    params = {"num_leaves": 7, "n_jobs": 1, "n_estimators": 5}
    model = LGBMRanker(objective="lambdamart:preset=lightgbm", reg_lambda=3.0, **params).fit(X, y, qid=qid)
    own = {"objective": "lambdarank", "lambda_l2": 3.0, "num_leaves": 7, "verbose": -1, "num_threads": 1}
    theirs = lightgbm.train(own, lightgbm.Dataset(X, y, group=np.bincount(qid)), 5)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-5)
    expected = theirs.refit(new, labels, decay_rate=0.8, group=np.bincount(ids)).predict(X)
    found = refit(model, new, labels, qid=ids, decay_rate=0.8).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - model.predict(X)).max() > 1e-3


def test_xgboost_s_own_refresh_gives_the_same():
    model = fit("xgboost", "lambdamart:preset=xgboost", min_child_weight=0, reg_lambda=3.0)
    data = xgboost.DMatrix(VALI.X, VALI.y, qid=VALI.qid)
    params = {"process_type": "update", "updater": "refresh", "verbosity": 0, "eta": 0.3, "lambda": 3.0}
    params |= {"min_child_weight": 0, "nthread": 1}
    loss = xgboost_objective("lambdamart:preset=xgboost")
    updated = xgboost.train(params, data, 8, xgb_model=model.booster_, obj=loss)
    expected = updated.predict(xgboost.DMatrix(TEST.X))
    np.testing.assert_allclose(moved(model, decay_rate=0.0).predict(TEST.X), expected, atol=1e-5)
    assert np.abs(expected - model.predict(TEST.X)).max() > 1e-3


@everywhere
@pytest.mark.parametrize("objective", ["rmse", "rmse + 0.5*lambdamart:ndcg(gain_type=linear)"])
def test_the_mean_follows_the_labels(library, objective):
    model = ranker(library, objective, n_estimators=40, eval_metric="spearman").fit(
        TRAIN.X, TRAIN.y + 50, qid=TRAIN.qid
    )
    for mean in (50, 90):
        found = refit(model, TRAIN.X, TRAIN.y + mean, qid=TRAIN.qid, decay_rate=0.5).predict(TRAIN.X)
        np.testing.assert_allclose(found.mean(), TRAIN.y.mean() + mean, atol=0.5)


@everywhere
def test_the_ranker_itself_and_a_decay_of_one_change_nothing(library, tmp_path):
    model = fit(library, n_estimators=9)
    before = model.predict(TEST.X)
    np.testing.assert_allclose(moved(model, decay_rate=1.0).predict(TEST.X), before, atol=1e-6)
    new = moved(model, decay_rate=0.5)
    assert np.array_equal(model.predict(TEST.X), before)
    assert np.abs(new.predict(TEST.X) - before).max() > 1e-3
    assert new.best_iteration_ == model.best_iteration_
    path = tmp_path / f"model{SUFFIX[library]}"
    new.save_model(path)
    assert np.array_equal(ranker_class(library)().load_model(path).predict(TEST.X), new.predict(TEST.X))


@everywhere
def test_categories_that_are_new_are_named(library):
    X, y, qid = shop()
    X = X.assign(brand=X.brand.astype(str).astype("category"))
    other, labels, ids = shop(1)
    newer = other.assign(brand=other.brand.astype(str).replace({"a": "brand new"}).astype("category"))
    model = ranker(library).fit(X, y, qid=qid)
    if library == "catboost":  # which has hashes instead of names
        refit(model, newer, labels, qid=ids)
        return
    with pytest.warns(LTRWarning, match="'brand new'"):
        found = refit(model, newer, labels, qid=ids)
    missing = other.assign(brand=other.brand.astype(object).where(newer.brand != "brand new").astype("category"))
    assert np.array_equal(refit(model, missing, labels, qid=ids).predict(X), found.predict(X))


@everywhere
def test_what_cannot_be_moved_is_refused(library):
    wrong = {"lightgbm": {"linear_tree": True}, "xgboost": {"booster": "dart"}, "catboost": {"langevin": True}}
    for model in (fit(library, NATIVE[library]), fit(library, **wrong[library])):
        with pytest.raises(LTRError, match=r"objective=|linear_tree|booster|langevin"):
            moved(model)
    with pytest.raises(LTRError, match="bags"):
        moved(bagged(ranker(library), TRAIN.X, TRAIN.y, qid=TRAIN.qid, bags=2))
    with pytest.raises(LTRError, match="decay_rate"):
        moved(fit(library), decay_rate=2)

"""Rankers that continue from a model, or start from initial scores under the names of each library."""

import numpy as np
import pytest
from rankers import EVAL, NATIVE, TEST, TRAIN, VALI, everywhere, fit, ranker
from trainings import through_the_callable

from ltr_objectives import evaluate
from ltr_objectives.adapters import bagged

NAMES = {"lightgbm": ("init_score", "eval_init_score"), "xgboost": ("base_margin", "base_margin_eval_set")}
by_scores = pytest.mark.parametrize("library", NAMES)
SCORES = np.random.default_rng(0).normal(size=len(TRAIN.y))


@everywhere
def test_a_continued_training_goes_on_with_the_objective_of_before(library):
    first = ranker(library, None, eval_metric="map").fit(TRAIN.X, 7.5 * TRAIN.y, qid=TRAIN.qid)
    second = fit(library, None, given={"init_model": first}, eval_metric="map")
    assert second.objective_ == first.objective_ != fit(library, None, eval_metric="map").objective_


@everywhere
def test_the_base_score_or_bias_of_the_model_is_kept(library):
    native = {**NATIVE, "catboost": "QueryRMSE"}[library]
    first = fit(library, native, n_estimators=3, **({"base_score": 0.7} if library == "xgboost" else {}))
    second = fit(library, given={"init_model": first}, n_estimators=3, learning_rate=1e-6)
    np.testing.assert_allclose(second.predict(TEST.X), first.predict(TEST.X), atol=1e-4)


@everywhere
def test_after_early_stopping_the_best_rounds_are_gone_on_from(library):
    stop, fast = {**EVAL, "early_stopping_rounds": 4}, {"n_estimators": 60, "learning_rate": 1.0}
    first = fit(library, given=stop, **fast)
    best = first.best_iteration_
    assert best < 56
    second = fit(library, given={"init_model": first}, n_estimators=2, learning_rate=1e-6)
    assert second.best_iteration_ == best + 2
    np.testing.assert_allclose(second.predict(TEST.X), first.predict(TEST.X), atol=1e-4)
    third = fit(library, given={**stop, "init_model": first}, **fast)
    values = third.evals_result_["validation_0"]["map"]
    assert third.best_iteration_ == best + np.argmax(values) + 1 < best + 60
    score = evaluate("map", third.predict(VALI.X), VALI.y, qid=VALI.qid)
    assert score == pytest.approx(max(values), abs=1e-5)


@by_scores
def test_gradients_are_those_at_the_initial_scores(library):
    found = fit(library, given={NAMES[library][0]: SCORES}).predict(TRAIN.X)
    of_the_adapter = through_the_callable(library, "yetiloss:map", TRAIN, TRAIN.y, start=SCORES)
    np.testing.assert_allclose(found, of_the_adapter, atol=1e-6)
    assert not np.allclose(found, fit(library).predict(TRAIN.X), atol=0.01)


@by_scores
@pytest.mark.parametrize("ours", [True, False])
def test_a_training_from_the_scores_of_a_model_goes_on_from_it(library, ours):
    objective, (train, vali) = "yetiloss:map" if ours else NATIVE[library], NAMES[library]
    whole, first = (fit(library, objective, EVAL, eval_metric="map", n_estimators=rounds) for rounds in (6, 3))
    starts = {train: first.predict(TRAIN.X), vali: [first.predict(VALI.X)]}
    second = fit(library, objective, {**EVAL, **starts}, eval_metric="map", n_estimators=3)
    np.testing.assert_allclose(first.predict(TEST.X) + second.predict(TEST.X), whole.predict(TEST.X), atol=1e-5)
    of = [model.evals_result_["validation_0"]["map"] for model in (whole, second)]
    np.testing.assert_allclose(of[0][3:], of[1], atol=1e-6)


@by_scores
def test_a_regression_and_its_bags_start_from_them_and_not_from_the_mean(library):
    labels = 100.0 + SCORES
    start = labels + 0.01 * TRAIN.X[:, 0]
    given = {"qid": TRAIN.qid, NAMES[library][0]: start}
    alone = ranker(library, "rmse").fit(TRAIN.X, labels, **given)
    metric = {"xgboost": "rmse", "lightgbm": "l2"}[library]
    many = bagged(ranker(library, "rmse", eval_metric=metric), TRAIN.X, labels, bags=2, **given)
    for model in (alone, many):
        np.testing.assert_allclose(model.predict(TEST.X), -0.01 * TEST.X[:, 0], atol=0.02)


@by_scores
def test_auto_chooses_by_the_sums(library):
    train, vali = NAMES[library]
    given = {**EVAL, train: SCORES, vali: [10 * VALI.y]}
    model = fit(library, "auto", given, eval_metric="map", n_estimators=2)
    value = evaluate("map", model.predict(VALI.X) + 10 * VALI.y, VALI.y, qid=VALI.qid)
    assert model.report_[0].value == pytest.approx(value)

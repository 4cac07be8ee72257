"""Rankers that continue from a model, or start from initial scores under the names of each library."""

import numpy as np
import pandas as pd
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker
from trainings import through_the_callable

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import _bags, bagged
from ltr_objectives.adapters._data import read_part

for name in LIBRARIES:
    pytest.importorskip(name)
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
NAMES = {"lightgbm": ("init_score", "eval_init_score"), "xgboost": ("base_margin", "base_margin_eval_set")}
by_scores = pytest.mark.parametrize("library", NAMES)
SCORES = np.random.default_rng(0).normal(size=len(TRAIN.y))
FAR = 100.0 + SCORES  # labels far from 0
NEAR = FAR + 0.01 * TRAIN.X[:, 0]  # scores near them


def fit(library, rounds, objective="yetiloss:map", given=None, **params):
    """Train with these parameters; ``given`` goes to `fit`."""
    untrained = ranker(library, objective, n_estimators=rounds, **params)
    return untrained.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **(given or {}))


@everywhere
def test_three_rounds_and_three_more_are_six(library):
    whole, first = fit(library, 6).predict(TEST.X), fit(library, 3)
    before = first.predict(TEST.X)
    assert not np.array_equal(before, whole)
    for model in (first, first.booster_):
        second = fit(library, 3, eval_metric="map", given={**EVAL, "init_model": model})
        assert second.best_iteration_ == 6
        np.testing.assert_array_equal(second.predict(TEST.X), whole)
        np.testing.assert_array_equal(first.predict(TEST.X), before)
        worth = second.score(VALI.X, VALI.y, qid=VALI.qid)
        assert second.best_score_["validation_0"]["map"] == pytest.approx(worth, abs=2e-6)


@everywhere
def test_the_base_score_or_bias_of_the_model_is_kept(library):
    native = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "QueryRMSE"}[library]
    first = fit(library, 3, native, eval_metric="map", **({"base_score": 0.7} if library == "xgboost" else {}))
    for rounds in (1, 3):
        second = fit(library, rounds, given={"init_model": first}, learning_rate=1e-6)
        np.testing.assert_allclose(second.predict(TEST.X), first.predict(TEST.X), atol=1e-4)


@everywhere
def test_after_early_stopping_the_best_rounds_are_gone_on_from(library):
    stop = {**EVAL, "early_stopping_rounds": 4}
    first = fit(library, 60, learning_rate=1.0, given=stop)
    best = first.best_iteration_
    assert best < 56
    second = fit(library, 2, learning_rate=1e-6, given={"init_model": first})
    assert second.best_iteration_ == best + 2
    np.testing.assert_allclose(second.predict(TEST.X), first.predict(TEST.X), atol=1e-4)
    third = fit(library, 60, learning_rate=1.0, given={**stop, "init_model": first})
    assert best < third.best_iteration_ < 60 + best or library == "catboost"
    score = evaluate("map", third.predict(VALI.X), VALI.y, qid=VALI.qid)
    assert score == pytest.approx(max(third.evals_result_["validation_0"]["map"]), abs=1e-5)


def test_xgboost_takes_no_early_stopping_of_another_training_for_its_own():
    first = fit("xgboost", 3).booster_
    first.set_attr(best_iteration="1", best_score="0.5")
    assert fit("xgboost", 3, given={"init_model": first}).best_iteration_ == 6
    assert first.attr("best_iteration") == "1"


@everywhere
def test_an_unfitted_ranker_is_no_model(library):
    with pytest.raises(ValueError, match="not fitted"):
        fit(library, 3, given={"init_model": ranker(library)})


def test_columns_that_would_be_mixed_up_are_refused():
    table = pd.DataFrame(TRAIN.X, columns=[f"column {i}" for i in range(TRAIN.X.shape[1])])
    given = {"y": TRAIN.y, "qid": TRAIN.qid}
    model = ranker("lightgbm", n_estimators=2).fit(table, **given)
    assert ranker("lightgbm", n_estimators=2).fit(table, **given, init_model=model).best_iteration_ == 4
    with pytest.raises(LTRError, match="in this order"):
        ranker("lightgbm").fit(table[table.columns[::-1]], **given, init_model=model)


@by_scores
def test_gradients_are_those_at_the_initial_scores(library):
    model = fit(library, 8, given={NAMES[library][0]: SCORES})
    of_the_adapter = through_the_callable(library, "yetiloss:map", TRAIN, TRAIN.y, start=SCORES)
    np.testing.assert_allclose(model.predict(TRAIN.X), of_the_adapter, atol=1e-6)
    assert not np.allclose(model.predict(TEST.X), fit(library, 8).predict(TEST.X), atol=0.01)


@by_scores
@pytest.mark.parametrize("ours", [True, False])
def test_a_training_from_the_scores_of_a_model_goes_on_from_it(library, ours):
    objective, (train, vali) = "yetiloss:map" if ours else NATIVE[library], NAMES[library]
    whole, first = (fit(library, rounds, objective, EVAL, eval_metric="map") for rounds in (6, 3))
    starts = {train: first.predict(TRAIN.X), vali: [first.predict(VALI.X)]}
    second = fit(library, 3, objective, {**EVAL, **starts}, eval_metric="map")
    np.testing.assert_allclose(first.predict(TEST.X) + second.predict(TEST.X), whole.predict(TEST.X), atol=1e-5)
    of = [model.evals_result_["validation_0"]["map"] for model in (whole, second)]
    np.testing.assert_allclose(of[0][3:], of[1], atol=1e-6)


@by_scores
def test_a_regression_and_its_bags_start_from_them_and_not_from_the_mean(library):
    alone = ranker(library, "rmse").fit(TRAIN.X, FAR, qid=TRAIN.qid, **{NAMES[library][0]: NEAR})
    many = bagged(ranker(library, "rmse", eval_metric="dcg"), TRAIN.X, FAR, qid=TRAIN.qid, margin=NEAR, bags=2)
    for model in (alone, many):
        np.testing.assert_allclose(model.predict(TEST.X), -0.01 * TEST.X[:, 0], atol=0.02)


def test_bags_have_the_scores_of_their_rows():
    X, margin = np.arange(12.0)[:, None], np.arange(12.0) ** 2
    part = read_part(X, np.arange(12) % 2, [4, 3, 5], None, None, margin=margin)
    for bag in _bags.resampled(part, np.random.default_rng(0)):
        np.testing.assert_array_equal(bag.margin, bag.X[:, 0] ** 2)


@by_scores
def test_auto_chooses_by_the_sums(library):
    train, vali = NAMES[library]
    model = fit(library, 2, "auto", {**EVAL, train: SCORES, vali: [10 * VALI.y]}, eval_metric="map")
    value = evaluate("map", model.predict(VALI.X) + 10 * VALI.y, VALI.y, qid=VALI.qid)
    assert model.report_[0].value == pytest.approx(value)

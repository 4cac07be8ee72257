"""Rankers continue from a model: two trainings in sequence give the rounds of a single one."""

import numpy as np
import pytest
from rankers import LIBRARIES, fold, ranker

from ltr_objectives import LTRError, evaluate

for name in LIBRARIES:
    pytest.importorskip(name)
pandas = pytest.importorskip("pandas")
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}


def fit(library, rounds, init_model=None, objective="yetiloss:map", **options):
    data = {k: options.pop(k) for k in (*EVAL, "early_stopping_rounds") if k in options}
    untrained = ranker(library, objective, n_estimators=rounds, **options)
    return untrained.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, init_model=init_model, **data)


@everywhere
@pytest.mark.parametrize("form", ["ranker", "booster"])
def test_three_rounds_and_three_more_are_six(library, form):
    whole = fit(library, 6).predict(TEST.X)
    first = fit(library, 3)
    before = first.predict(TEST.X)
    model = {"ranker": first, "booster": first.booster_}[form]
    second = fit(library, 3, model)
    assert second.best_iteration_ == 6
    np.testing.assert_array_equal(second.predict(TEST.X), whole)
    np.testing.assert_array_equal(first.predict(TEST.X), before)
    assert not np.array_equal(before, whole)


@everywhere
def test_one_objective_after_another(library):
    """The base score or bias of the model is kept."""
    native = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "QueryRMSE"}[library]
    options = {"base_score": 0.7} if library == "xgboost" else {}
    first = fit(library, 3, objective=native, eval_metric="map", **options)
    steps = [fit(library, n, first, learning_rate=1e-6).predict(TEST.X) for n in (1, 3)]
    for scores in steps:
        np.testing.assert_allclose(scores, first.predict(TEST.X), atol=1e-4)


@everywhere
def test_after_early_stopping_the_best_rounds_are_gone_on_from(library):
    options = {"learning_rate": 1.0, **EVAL}
    first = fit(library, 60, early_stopping_rounds=4, **options)
    best = first.best_iteration_
    assert best < 56
    second = fit(library, 2, first, learning_rate=1e-6)
    assert second.best_iteration_ == best + 2
    np.testing.assert_allclose(second.predict(TEST.X), first.predict(TEST.X), atol=1e-4)
    third = fit(library, 60, first, early_stopping_rounds=4, **options)
    assert best < third.best_iteration_ < 60 + best or library == "catboost"
    score = evaluate("map", third.predict(VALI.X), VALI.y, qid=VALI.qid)
    assert score == pytest.approx(max(third.evals_result_["validation_0"]["map"]), abs=1e-5)


def test_xgboost_takes_no_early_stopping_of_another_training_for_its_own():
    first = fit("xgboost", 3).booster_
    first.set_attr(best_iteration="1", best_score="0.5")
    assert fit("xgboost", 3, first).best_iteration_ == 6
    assert first.attr("best_iteration") == "1"


@everywhere
def test_values_that_are_no_models_are_refused(library):
    other = fit("lightgbm" if library == "xgboost" else "xgboost", 1)
    for wrong in (other, other.booster_, 3, TRAIN.X):
        with pytest.raises(LTRError, match=rf"init_model must be a {library}\.\w+ or a fitted"):
            fit(library, 3, wrong)
    with pytest.raises(ValueError, match="not fitted"):
        fit(library, 3, ranker(library))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_categories_that_would_be_mixed_up_are_refused(library):
    y, qid = np.tile([0, 1, 2, 0], 30), np.repeat(np.arange(30), 4)
    first = pandas.DataFrame({"colour": pandas.Categorical(np.tile(["red", "blue", "green", "grey"], 30))})
    small = {"min_child_samples": 2, "min_data_per_group": 2} if library == "lightgbm" else {}
    model = ranker(library, n_estimators=2, **small).fit(first, y, qid=qid)
    again = ranker(library, n_estimators=2, **small).fit(first, y, qid=qid, init_model=model)
    assert again.best_iteration_ == 4
    renumbered = first.assign(colour=first.colour.cat.set_categories(["red", "green", "blue", "grey"]))
    with pytest.raises(LTRError, match=r"X has the categories .* make them the same"):
        ranker(library, **small).fit(renumbered, y, qid=qid, init_model=model)


def test_columns_that_would_be_mixed_up_are_refused():
    table = pandas.DataFrame(TRAIN.X, columns=[f"column {i}" for i in range(TRAIN.X.shape[1])])
    fit = {"y": TRAIN.y, "qid": TRAIN.qid}
    model = ranker("lightgbm", n_estimators=2).fit(table, **fit)
    assert ranker("lightgbm", n_estimators=2).fit(table, **fit, init_model=model).best_iteration_ == 4
    with pytest.raises(LTRError, match=r"but init_model was trained on .* in this order"):
        ranker("lightgbm").fit(table[table.columns[::-1]], **fit, init_model=model)

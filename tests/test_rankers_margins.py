"""Rankers that start from initial scores, under the names of each library."""

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, through_the_adapter

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import _bags, bagged
from ltr_objectives.adapters._data import read_part

for name in LIBRARIES:
    pytest.importorskip(name)
NAMES = {"lightgbm": ("init_score", "eval_init_score"), "xgboost": ("base_margin", "base_margin_eval_set")}
everywhere = pytest.mark.parametrize("library", NAMES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}


def scores(data, seed=0):
    return np.random.default_rng(seed).normal(size=len(data.y))


def fit(library, objective="yetiloss:map", train=None, vali=None, rounds=8, **given):
    """Train from these scores."""
    of_train, of_vali = NAMES[library]
    given |= {} if train is None else {of_train: train}
    given |= {} if vali is None else {of_vali: [vali]}
    untrained = ranker(library, objective, n_estimators=rounds, eval_metric="map")
    return untrained.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **given)


@everywhere
def test_gradients_are_those_at_the_initial_scores(library):
    model = fit(library, train=scores(TRAIN))
    of_the_adapter = through_the_adapter(library, "yetiloss:map", TRAIN, TRAIN.y, start=scores(TRAIN))
    np.testing.assert_allclose(model.predict(TRAIN.X), of_the_adapter, atol=1e-6)
    assert not np.allclose(model.predict(TEST.X), fit(library).predict(TEST.X), atol=0.01)


@everywhere
@pytest.mark.parametrize("ours", [True, False])
def test_a_training_from_the_scores_of_a_model_goes_on_from_it(library, ours):
    objective = "yetiloss:map" if ours else NATIVE[library]
    whole = fit(library, objective, rounds=6, **EVAL)
    first = fit(library, objective, rounds=3, **EVAL)
    second = fit(library, objective, first.predict(TRAIN.X), first.predict(VALI.X), 3, **EVAL)
    np.testing.assert_allclose(first.predict(TEST.X) + second.predict(TEST.X), whole.predict(TEST.X), atol=1e-5)
    of = [model.evals_result_["validation_0"]["map"] for model in (whole, second)]
    np.testing.assert_allclose(of[0][3:], of[1], atol=1e-6)


@everywhere
def test_a_regression_starts_from_them_and_not_from_the_mean(library):
    far = 100.0 + scores(TRAIN)
    near = far + 0.01 * TRAIN.X[:, 0]
    model = ranker(library, "rmse").fit(TRAIN.X, far, qid=TRAIN.qid, **{NAMES[library][0]: near})
    np.testing.assert_allclose(model.predict(TEST.X), -0.01 * TEST.X[:, 0], atol=0.02)


@everywhere
def test_auto_chooses_by_the_sums(library):
    model = ranker(library, "auto", n_estimators=2, eval_metric="map")
    train, vali = NAMES[library]
    model.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **EVAL, **{train: scores(TRAIN), vali: [10 * VALI.y]})
    value = evaluate("map", model.predict(VALI.X) + 10 * VALI.y, VALI.y, qid=VALI.qid)
    assert model.report_[0].value == pytest.approx(value)


def test_bags_have_the_scores_of_their_rows():
    X, margin = np.arange(12.0)[:, None], np.arange(12.0) ** 2
    part = read_part(X, np.arange(12) % 2, [4, 3, 5], None, None, margin=margin)
    for bag in _bags.resampled(part, np.random.default_rng(0)):
        np.testing.assert_array_equal(bag.margin, bag.X[:, 0] ** 2)


@everywhere
def test_bags_start_from_them(library):
    far = 100.0 + scores(TRAIN)
    near = far + 0.01 * TRAIN.X[:, 0]
    model = bagged(ranker(library, "rmse", eval_metric="dcg"), TRAIN.X, far, qid=TRAIN.qid, margin=near, bags=2)
    np.testing.assert_allclose(model.predict(TEST.X), -0.01 * TEST.X[:, 0], atol=0.02)


@everywhere
def test_what_would_be_wrong_is_refused(library):
    start = scores(TRAIN)
    for train, vali, said in (
        (start[1:], None, rf"the initial score has {len(start) - 1} entries; pass one per row \({len(start)}\)"),
        (np.where(start > 2, np.nan, start), None, "the initial score must be finite"),
        (start, None, r"eval_set\[0\] and the training data must both have initial scores, or none"),
        (None, scores(VALI), r"eval_set\[0\] and the training data must both have initial scores, or none"),
        (start, scores(VALI)[1:], r"eval_set\[0\]: the initial score has"),
    ):
        with pytest.raises(LTRError, match=said):
            fit(library, train=train, vali=vali, **EVAL)


def test_lightgbm_would_replace_them_by_a_model():
    with pytest.raises(LTRError, match="LightGBM replaces init_score by what init_model predicts"):
        fit("lightgbm", train=scores(TRAIN), init_model=fit("lightgbm"))

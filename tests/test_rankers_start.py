"""Objectives whose scores are in the units of the labels start at their weighted mean, as a regression does."""

import numpy as np
import pytest
from catalog import OBJECTIVES
from rankers import LIBRARIES, SUFFIX, ranker

from ltr_objectives import LTRWarning, Mixture, Subsample, get_objective, registry
from ltr_objectives.adapters import bagged

for name in LIBRARIES:
    lgb, xgb, catboost = (pytest.importorskip(name) for name in ("lightgbm", "xgboost", "catboost"))
everywhere = pytest.mark.parametrize("library", LIBRARIES)
POINTWISE = [name for name in registry.objectives() if OBJECTIVES[name].facts.label_scale]
KINDS = [
    *POINTWISE, *(Mixture([name, "ranknet"]) for name in POINTWISE), *(Subsample(name, 0.5) for name in POINTWISE),
    *(Mixture([name], labels=["price"]) for name in POINTWISE),
]  # fmt: skip
FAR = 1000.0
METRIC = {"xgboost": "rmse", "lightgbm": "rmse", "catboost": "RMSE"}
RNG = np.random.default_rng(5)
GROUP = np.full(40, 10)
X = RNG.normal(size=(400, 4))
PRICE = X[:, 0] + 0.5 * RNG.normal(size=400)
WEIGHT = RNG.choice([0.5, 1.0, 3.0], 400)


def fit(library, objective, price=PRICE + FAR, rounds=8, **given):
    of_goal = {"labels": {"price": price}} if getattr(objective, "labels", [None]) == ("price",) else {}
    model = ranker(library, objective, n_estimators=rounds, eval_metric=METRIC[library])
    return model.fit(X, price, group=GROUP, **{**of_goal, **given})


def native_scores(library, path):
    """The scores of the saved model by the library alone."""
    if library == "xgboost":
        return xgb.Booster(model_file=path).predict(xgb.DMatrix(X))
    if library == "lightgbm":
        return lgb.Booster(model_file=path).predict(X)
    return catboost.CatBoost().load_model(path).predict(X)


def test_the_fact_is_true(any_objective, rng):
    """A shift of labels and scores by one constant changes no gradient, but a shift of the scores alone does."""
    labels, scores, shift = rng.integers(0, 3, 60).astype(float), rng.normal(size=60), 2.0
    group, facts = np.full(6, 10), any_objective.facts
    if facts.label_limit is not None and facts.label_limit < labels.max() + shift:
        assert not facts.label_scale
    elif not any_objective.members:  # sums and wrappers have the facts of what is inside
        here, there = (any_objective.gradient_hessian(scores + c, labels + c, group)[0] for c in (0.0, shift))
        together = np.allclose(here, there, rtol=1e-9, atol=1e-9)
        assert facts.label_scale == (together and not any_objective.facts.shift_invariant)


@everywhere
@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_the_model_has_the_mean_of_the_labels(library, objective, tmp_path):
    model = fit(library, objective, sample_weight=WEIGHT)
    path = str(tmp_path / f"model{SUFFIX[library]}")
    model.save_model(path)
    scores = native_scores(library, path)
    np.testing.assert_array_equal(scores, model.predict(X))
    np.testing.assert_array_equal(type(model)().load_model(path).predict(X), scores)
    assert abs(np.average(scores, weights=WEIGHT) - FAR) < 0.2
    assert np.corrcoef(scores, PRICE)[0, 1] > 0.75
    if not get_objective(objective).facts.random:  # random numbers are those of the scores
        at_0 = fit(library, objective, PRICE, sample_weight=WEIGHT).predict(X)
        np.testing.assert_allclose(scores - FAR, at_0, atol=5e-3)  # float32 numbers in XGBoost


@everywhere
@pytest.mark.parametrize("objective", KINDS[:-1], ids=str)
def test_early_stopping_and_metrics_see_the_scores_of_predict(library, objective):
    half = {"eval_set": [(X[:200], PRICE[:200] + FAR)], "eval_group": [GROUP[:20]]}
    model = ranker(library, objective, n_estimators=20, eval_metric=METRIC[library])
    model.fit(X[200:], PRICE[200:] + FAR, group=GROUP[20:], early_stopping_rounds=10, **half)
    expected = np.sqrt(np.mean((model.predict(X[:200]) - PRICE[:200] - FAR) ** 2))
    assert model.best_score_["validation_0"][METRIC[library]] == pytest.approx(expected, rel=1e-4)
    assert expected < np.std(PRICE)


@everywhere
def test_a_continued_training_is_not_shifted_again(library):
    whole = fit(library, POINTWISE[0], rounds=6).predict(X)
    first = fit(library, POINTWISE[0], rounds=3)
    np.testing.assert_allclose(fit(library, POINTWISE[0], rounds=3, init_model=first).predict(X), whole, rtol=1e-6)


@everywhere
def test_bags_have_the_mean_too(library):
    given = ranker(library, POINTWISE[0], eval_metric=METRIC[library])
    model = bagged(given, X, PRICE + FAR, group=GROUP, bags=2)
    assert abs(model.predict(X).mean() - FAR) < 0.2


@everywhere
def test_the_library_s_own_parameter_turns_it_off(library):
    off = {"base_score": 0.0} if library == "xgboost" else {"boost_from_average": False}
    off |= {"reg_lambda": 0, "learning_rate": 1e-4, "eval_metric": METRIC[library]}
    model = ranker(library, POINTWISE[0], n_estimators=1, **off).fit(X, PRICE + FAR, group=GROUP)
    assert abs(model.predict(X).mean()) < 1


@everywhere
def test_labels_all_equal_are_the_score(library):
    if library == "catboost":
        pytest.skip("it refuses labels that are all equal")
    with pytest.warns(LTRWarning, match="have a split"):
        model = fit(library, POINTWISE[0], np.full(400, FAR))
    np.testing.assert_allclose(model.predict(X), FAR)


@everywhere
def test_a_ranking_starts_at_0(library):
    scores = fit(library, "queryrmse").predict(X)
    assert abs(scores.mean()) < 1

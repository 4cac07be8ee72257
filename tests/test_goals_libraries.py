"""Weights, goals, propensities and positions reach the gradient in all libraries; scores start at the mean label."""

import pickle

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catalog import OBJECTIVES, PATHS
from catboost import CatBoost
from rankers import LIBRARIES, SUFFIX, ranker
from sklearn.base import clone
from trainings import EVERY_OBJECTIVE, NEWTON, THREADS, data_of, through_the_callable, trained

from ltr_objectives import (
    LTRError,
    LTRWarning,
    Mixture,
    StochasticLabels,
    Subsample,
    evaluate,
    get_objective,
    objective_for,
    registry,
)
from ltr_objectives.adapters import bagged, lightgbm_metric, lightgbm_objective, xgboost_objective
from ltr_objectives.datasets import RankingData
from ltr_objectives.kernels.scores import content_stream

libraries = pytest.mark.parametrize("library", LIBRARIES)
paths = pytest.mark.parametrize("path", PATHS)


def gradient(objective, scores, y, group, weight=None, labels=None, **given):
    """The gradient and Hessian that the callables have to return."""
    labels = {"y": y, **labels} if labels else y
    iteration = content_stream(scores)
    found = objective.gradient_hessian(scores, labels, group, weight, iteration=iteration, **given)
    return [array.astype(np.float32) for array in found]


# what the gradient reads


@paths
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_callables_return_the_gradient_of_all_that_is_given(path, weighted, rng):
    (X, y, group), given = data_of(path)
    objective, scores = PATHS[path], X[:, 0]
    weight = rng.uniform(0.5, 2, len(group)).astype(np.float32) if weighted else None
    by_row = None if weight is None else np.repeat(weight, group)
    expected = gradient(objective, scores, y, group, weight, **given)
    dmatrix = xgb.DMatrix(X, y, group=group, weight=weight)
    dataset = lgb.Dataset(X, y, group=group, weight=by_row).construct()
    for found in (
        xgboost_objective(objective, **given)(scores, dmatrix),
        pickle.loads(pickle.dumps(xgboost_objective(objective, **given)))(scores, dmatrix),
        lightgbm_objective(objective, **given)(scores, dataset),
        lightgbm_objective(objective, **given)(y, scores, by_row, group),
    ):
        assert [array.dtype for array in found] == [np.float32, np.float32]
        np.testing.assert_array_equal(found, expected)


@paths
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_catboost_trains_on_the_gradient_of_all_that_is_given(path, weighted, rng):
    (X, y, group), given = data_of(path)
    weight = rng.uniform(0.5, 2, len(group)).astype(np.float32) if weighted else None
    params = {**NEWTON, "learning_rate": 1.0, "l2_leaf_reg": 0}
    model = trained("catboost", "callable", PATHS[path], X, y, group, 1, params=params, weight=weight, **given)
    grad, hess = gradient(PATHS[path], np.zeros(len(y)), y, group, weight, **given)
    leaf = model.model.calc_leaf_indexes(X).reshape(-1)
    assert len(set(leaf)) > 3
    expected = -(np.bincount(leaf, grad) / np.maximum(np.bincount(leaf, hess), 1e-300))[leaf]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-4, atol=1e-6)


@libraries
@paths
def test_estimators_train_what_the_callables_train(library, path):
    (X, y, group), given = data_of(path)
    data = RankingData(X, y, group, np.repeat(np.arange(len(group)), group))
    found = ranker(library, PATHS[path]).fit(X, y, group=group, **given).predict(X)
    np.testing.assert_allclose(found, through_the_callable(library, PATHS[path], data, y, **given), rtol=1e-5)
    assert np.ptp(found) > 0.1


def test_xgboost_takes_weights_by_row_beside_the_data(rng):
    (X, y, group), _ = data_of("own Hessian")
    weight, objective = rng.uniform(0.5, 2, len(y)), PATHS["own Hessian"]
    dmatrix = xgb.DMatrix(X, y, group=group)
    expected = gradient(objective, X[:, 0], y, group, weight)
    for of_a_metric in (None, np.arange(1.0, len(group) + 1)):
        if of_a_metric is not None:
            dmatrix.set_weight(of_a_metric)
        np.testing.assert_array_equal(xgboost_objective(objective, weight=weight)(X[:, 0], dmatrix), expected)


# positions of LightGBM's own


with_positions = pytest.mark.skipif(not hasattr(lgb.Dataset, "get_position"), reason="before LightGBM 4.1")


@with_positions
def test_lightgbm_s_own_positions_are_read():
    (X, y, group), given = data_of("clicks")
    objective, scores = PATHS["clicks"], X[:, 0]
    dataset = lgb.Dataset(X, y, group=group, **given).construct()
    found = lightgbm_objective(objective)(scores, dataset)  # LightGBM renumbers positions: another order of sums
    np.testing.assert_allclose(found, gradient(objective, scores, y, group, **given), rtol=1e-5, atol=1e-8)
    propensity = 1.0 / (1.0 + given["position"])
    found = lightgbm_objective(objective, propensity=propensity)(scores, dataset)
    np.testing.assert_array_equal(found, gradient(objective, scores, y, group, propensity=propensity))
    with pytest.raises(LTRError, match="does not take propensity or position"):
        lightgbm_objective(PATHS["constant Hessian"])(scores, dataset)


@with_positions
def test_subsets_that_lose_positions_are_refused():
    (X, y, group), given = data_of("clicks")
    ours = lightgbm_objective(PATHS["clicks"])
    whole = lgb.Dataset(X, y, group=group, free_raw_data=False, **given).construct()
    rows = np.arange(group[:30].sum())
    part, scores = whole.subset(rows).construct(), X[rows, 0]
    for subset in (part, part.subset(np.arange(len(rows))).construct()):
        with pytest.raises(LTRError, match="leaves the positions"):
            ours(scores, subset)
    lightgbm_metric("map")(scores, part)  # which reads no positions
    position = given["position"][rows]
    found = lightgbm_objective(PATHS["clicks"], position=position)(scores, part)
    np.testing.assert_array_equal(found, gradient(PATHS["clicks"], scores, y[rows], group[:30], position=position))
    params = {"objective": ours, "verbose": -1, "num_threads": 1, "metric": "None"}
    with pytest.raises(LTRError, match=r"lgb\.train"):
        lgb.cv(params, whole, 2, folds=[(rows, np.arange(len(rows), len(y)))])


# goals


TEXT = "yetiloss:ndcg@10 + .3*lambdamart:map[revenue]"
BY_DOCUMENT = StochasticLabels(PATHS["own Hessian"], labels=[None, "revenue"], weights=[2, 1])


@libraries
@pytest.mark.parametrize("objective", [*list(PATHS)[:3], *EVERY_OBJECTIVE])
def test_a_ranker_on_a_goal_is_the_ranker_of_these_labels(library, objective):
    """The whole training, to the last byte, if both order documents alike: random scores go to them by main label."""
    (X, _, group), given = data_of("goals")
    revenue, objective = given["labels"]["revenue"], PATHS.get(objective, objective)
    on_goal, plain = (Mixture([objective], labels=[goal], normalize=False) for goal in ("revenue", None))
    found = ranker(library, on_goal, n_estimators=3).fit(X, 2 * revenue, group=group, **given).predict(X)
    assert np.array_equal(found, ranker(library, plain, n_estimators=3).fit(X, revenue, group=group).predict(X))
    assert np.ptp(found) > 0


@libraries
@pytest.mark.parametrize("objective", [TEXT, BY_DOCUMENT], ids=["mixture", "stochastic"])
def test_rankers_evaluate_and_score_goals(library, objective):
    (X, y, group), given = data_of("goals")
    (valid, y_valid, valid_group), of_valid = data_of("goals", seed=8)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)).astype(np.float32)

    def fitted(threads):
        metrics, params = ["ndcg@10[revenue]", "ndcg@10"], {THREADS[library]: threads}
        return ranker(library, objective, eval_metric=metrics, **params).fit(
            X, y, group=group, sample_weight=weight, early_stopping_rounds=4, **given,
            eval_set=[(valid, y_valid)], eval_group=[valid_group], eval_labels=[of_valid["labels"]],
        )  # fmt: skip

    model, other, revenue = fitted(1), fitted(2), of_valid["labels"]["revenue"]
    scores = model.predict(valid)
    assert model.evals_result_ == other.evals_result_
    assert np.array_equal(other.predict(valid), scores)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(valid), scores)
    assert clone(model).get_params() == model.get_params()
    scored = model.score(valid, y_valid, group=valid_group, **of_valid)
    assert scored == pytest.approx(evaluate("ndcg@10", scores, revenue, valid_group), abs=1e-12)
    for name, labels in (("ndcg@10[revenue]", revenue), ("ndcg@10", y_valid)):  # at the round that was kept
        value = evaluate("ndcg@10", scores, labels.astype(np.float32), valid_group)
        assert model.best_score_["validation_0"][name] == pytest.approx(value, abs=1e-6)
    values = model.evals_result_["validation_0"]["ndcg@10[revenue]"]
    assert model.best_iteration_ == int(np.argmax(values)) + 1  # early stopping looks at the goal of the first metric


def test_the_default_objective_is_for_the_goal_of_the_metric():
    (X, y, group), given = data_of("goals")
    model = ranker("lightgbm", None, eval_metric="ndcg@5[revenue]").fit(X, y, group=group, **given)
    assert model.objective_ == objective_for("ndcg@5[revenue]")


# objectives whose scores are in the units of the labels start at their weighted mean, as a regression does


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
    return CatBoost().load_model(path).predict(X)


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


@libraries
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


@libraries
@pytest.mark.parametrize("objective", KINDS[:-1], ids=str)
def test_early_stopping_and_metrics_see_the_scores_of_predict(library, objective):
    half = {"eval_set": [(X[:200], PRICE[:200] + FAR)], "eval_group": [GROUP[:20]]}
    model = ranker(library, objective, n_estimators=20, eval_metric=METRIC[library])
    model.fit(X[200:], PRICE[200:] + FAR, group=GROUP[20:], early_stopping_rounds=10, **half)
    expected = np.sqrt(np.mean((model.predict(X[:200]) - PRICE[:200] - FAR) ** 2))
    assert model.best_score_["validation_0"][METRIC[library]] == pytest.approx(expected, rel=1e-4)
    assert expected < np.std(PRICE)


@libraries
def test_a_continued_training_is_not_shifted_again(library):
    whole = fit(library, POINTWISE[0], rounds=6).predict(X)
    first = fit(library, POINTWISE[0], rounds=3)
    np.testing.assert_allclose(fit(library, POINTWISE[0], rounds=3, init_model=first).predict(X), whole, rtol=1e-6)


@libraries
def test_bags_have_the_mean_too(library):
    given = ranker(library, POINTWISE[0], eval_metric=METRIC[library])
    model = bagged(given, X, PRICE + FAR, group=GROUP, bags=2)
    assert abs(model.predict(X).mean() - FAR) < 0.2


@libraries
def test_the_library_s_own_parameter_turns_it_off(library):
    off = {"base_score": 0.0} if library == "xgboost" else {"boost_from_average": False}
    off |= {"reg_lambda": 0, "learning_rate": 1e-4, "eval_metric": METRIC[library]}
    model = ranker(library, POINTWISE[0], n_estimators=1, **off).fit(X, PRICE + FAR, group=GROUP)
    assert abs(model.predict(X).mean()) < 1


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])  # CatBoost refuses such labels
def test_labels_all_equal_are_the_score(library):
    with pytest.warns(LTRWarning, match="have a split"):
        model = fit(library, POINTWISE[0], np.full(400, FAR))
    np.testing.assert_allclose(model.predict(X), FAR)


@libraries
def test_a_ranking_starts_at_0(library):
    scores = fit(library, PATHS["constant Hessian"]).predict(X)
    assert abs(scores.mean()) < 1

"""Weights, goals and propensities reach the gradient in all libraries; scores start at the mean label."""

import pickle
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from catalog import OBJECTIVES, PATHS
from rankers import LIBRARIES, SUFFIX, ranker
from trainings import data_of, through_the_callable, trained

from ltr_objectives import LTRError, LTRWarning, Mixture, Subsample, evaluate, get_objective, registry
from ltr_objectives.adapters import bagged, lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from ltr_objectives.datasets import RankingData
from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.objectives.composite import Composite

libraries = pytest.mark.parametrize("library", LIBRARIES)
paths = pytest.mark.parametrize("path", PATHS)


def gradient(path, scores, y, group, weight=None, labels=None, **given):
    """Return the gradient and Hessian that the callables have to return."""
    labels = {"y": y, **labels} if labels else y
    iteration = content_stream(scores)
    found = PATHS[path].gradient_hessian(scores, labels, group, weight, iteration=iteration, **given)
    return [array.astype(np.float32) for array in found]


def weights(weighted, group):
    """Return weights by query and by row, or twice None."""
    weight = np.random.default_rng(0).uniform(0.5, 2, len(group)).astype(np.float32)
    return (weight, np.repeat(weight, group)) if weighted else (None, None)


# what the gradient reads


@paths
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_callables_return_the_gradient_of_all_that_is_given(path, weighted):
    (X, y, group), given = data_of(path)
    objective, scores = PATHS[path], X[:, 0]
    weight, by_row = weights(weighted, group)
    expected = gradient(path, scores, y, group, weight, **given)
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
def test_catboost_trains_on_the_gradient_of_all_that_is_given(path, weighted):
    (X, y, group), given = data_of(path)
    weight, _ = weights(weighted, group)
    params = {"learning_rate": 1.0, "l2_leaf_reg": 0}
    model = trained("catboost", "callable", PATHS[path], X, y, group, 1, params=params, weight=weight, **given)
    grad, hess = gradient(path, np.zeros(len(y)), y, group, weight, **given)
    leaf = model.model.calc_leaf_indexes(X).reshape(-1)
    assert len(set(leaf)) > 3
    expected = -(np.bincount(leaf, grad) / np.maximum(np.bincount(leaf, hess), 1e-300))[leaf]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-4, atol=1e-6)


@libraries
@paths
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_estimators_train_what_the_callables_train(library, path, weighted):
    (X, y, group), given = data_of(path)
    data = RankingData(X, y, group, np.repeat(np.arange(len(group)), group))
    by_query, by_row = weights(weighted, group)
    expected = through_the_callable(library, PATHS[path], data, y, by_query, **given)
    for weight in (by_query, by_row):
        found = ranker(library, PATHS[path]).fit(X, y, group=group, sample_weight=weight, **given).predict(X)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.ptp(found) > 0.1


def test_xgboost_takes_weights_by_row_beside_the_data(rng):
    (X, y, group), _ = data_of("own Hessian")
    weight, dmatrix = rng.uniform(0.5, 2, len(y)), xgb.DMatrix(X, y, group=group)
    for of_a_metric in (np.ones(len(group)), np.arange(1.0, len(group) + 1)):
        dmatrix.set_weight(of_a_metric)
        found = xgboost_objective(PATHS["own Hessian"], weight=weight)(X[:, 0], dmatrix)
        np.testing.assert_array_equal(found, gradient("own Hessian", X[:, 0], y, group, weight))


def test_positions_of_a_dataset_are_refused():
    (X, y, group), _ = data_of("propensity")
    whole = lgb.Dataset(X, y, group=group, position=np.arange(len(y)) % 5).construct()
    with pytest.raises(LTRError, match="init_score=offsets"):
        lightgbm_objective(PATHS["propensity"])(X[:, 0], whole)
    lightgbm_metric("map")(X[:, 0], whole)  # which reads no positions


SUM = "ndcg@10 + 0.3*ndcg@10[revenue]"


def value_of_sum(scores, y, revenue, group):
    return evaluate("ndcg@10", scores, y, group) + 0.3 * evaluate("ndcg@10", scores, revenue, group)


@libraries
def test_rankers_stop_and_score_by_a_sum_of_goals(library):
    (X, y, group), given = data_of("goals")
    (valid, y_valid, valid_group), of_valid = data_of("goals", seed=8)
    model = ranker(library, None, eval_metric=SUM).fit(
        X, y, group=group, early_stopping_rounds=4, **given,
        eval_set=[(valid, y_valid)], eval_group=[valid_group], eval_labels=[of_valid["labels"]],
    )  # fmt: skip
    assert model.objective_ == get_objective("yetiloss:ndcg + 0.3*yetiloss:ndcg[revenue]")
    value = value_of_sum(model.predict(valid), y_valid, of_valid["labels"]["revenue"], valid_group)
    assert model.score(valid, y_valid, group=valid_group, **of_valid) == pytest.approx(value, abs=1e-12)
    [values] = model.evals_result_["validation_0"].values()
    assert model.best_iteration_ == int(np.argmax(values)) + 1
    assert values[model.best_iteration_ - 1] == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize(("make", "metric_of"), [(lgb.Dataset, lightgbm_metric), (xgb.DMatrix, xgboost_metric)])
def test_goals_of_equal_data_sets_are_told_apart_by_their_names(make, metric_of):
    (X, y, group), _ = data_of("goals")
    first, second, without = (make(X, y, group=group) for _ in range(3))
    for data in (first, second, without):
        data.construct() if make is lgb.Dataset else None
    u, v, scores = (np.random.default_rng(seed).integers(0, 3, len(y)) for seed in range(3))
    by_data = {first: {"a": u, "b": v}, second: {"b": u, "a": v}, without: {"a": u}}
    sum_of = metric_of("ndcg[a] + 0.1*ndcg[b]", labels=by_data)
    for data in (first, second):
        [(name, value, *_)] = sum_of(scores, data)
        expected = evaluate("ndcg[a] + 0.1*ndcg[b]", scores, {"y": y, **by_data[data]}, group)
        assert value == pytest.approx(-expected if name.startswith("-") else expected)
    with pytest.raises(LTRError, match="no labels 'b'"):
        sum_of(scores, without)
    for wrong in ({"a": u}, u):
        with pytest.raises(LTRError, match="goals of each data set"):
            metric_of("ndcg[a]", labels=wrong)


@libraries
def test_goals_whose_labels_do_the_same_are_warned_of(library, rng):
    """With one order a query, NDCG divides its amount away."""
    y, price = np.zeros((2, 40, 5))
    y[:, 0], price[:, 0] = 1, rng.uniform(1, 100, 40)
    order = np.argsort(rng.random((40, 5)), axis=1)
    y, price = (np.take_along_axis(each, order, axis=1).ravel() for each in (y, price))
    given = {"group": np.full(40, 5), "labels": {"revenue": price}}
    for money, agree in (("ndcg(gain_type=linear)", True), ("dcg(gain_type=linear)", False)):
        model = ranker(library, None, eval_metric=f"ndcg@10 + 0.3*{money}@10[revenue]")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(rng.normal(size=(200, 4)), y, **given)
        assert ["labels['revenue']" in str(warning.message) for warning in caught] == [True] * agree


@libraries
def test_a_feature_that_is_called_like_a_goal_is_no_label(library):
    (X, y, group), given = data_of("goals")
    table = pd.DataFrame(X).add_prefix("f").rename(columns={"f0": "revenue"})
    with pytest.warns(LTRWarning, match="'revenue'"):
        named = ranker(library, "lambdamart[revenue]").fit(table, y, group=group, **given)
    assert np.array_equal(
        named.predict(table), ranker(library, "lambdamart[revenue]").fit(X, y, group=group, **given).predict(X)
    )


# objectives whose scores are in the units of the labels start at their weighted mean, as a regression does


POINTWISE = [name for name in registry.objective_names() if OBJECTIVES[name].facts.label_scale]
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


def fit(library, objective=POINTWISE[0], price=PRICE + FAR, rounds=8, params=(), **given):
    of_goal = {"labels": {"price": price}} if getattr(objective, "labels", [None]) == ("price",) else {}
    model = ranker(library, objective, n_estimators=rounds, eval_metric=METRIC[library], **dict(params))
    return model.fit(X, price, group=GROUP, **{**of_goal, **given})


def test_the_fact_is_true(any_objective, rng):
    """A shift of labels and scores by one constant changes no gradient, but a shift of the scores alone does."""
    labels, scores, shift = rng.integers(0, 3, 60).astype(float), rng.normal(size=60), 2.0
    group, facts = np.full(6, 10), any_objective.facts
    if facts.label_limit is not None and facts.label_limit < labels.max() + shift:
        assert not facts.label_scale
    elif not isinstance(any_objective, Composite):  # sums and wrappers have the facts of what is inside
        here, there = (any_objective.gradient_hessian(scores + c, labels + c, group)[0] for c in (0.0, shift))
        together = np.allclose(here, there, rtol=1e-9, atol=1e-9)
        assert facts.label_scale == (together and not any_objective.facts.shift_invariant)


@libraries
@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_the_model_has_the_mean_of_the_labels(library, objective):
    scores = fit(library, objective, sample_weight=WEIGHT).predict(X)
    assert abs(np.average(scores, weights=WEIGHT) - FAR) < 0.2
    assert np.corrcoef(scores, PRICE)[0, 1] > 0.75
    if not get_objective(objective).facts.random:  # random numbers are those of the scores
        at_0 = fit(library, objective, PRICE, sample_weight=WEIGHT).predict(X)
        np.testing.assert_allclose(scores - FAR, at_0, atol=5e-3)  # float32 numbers in XGBoost


@pytest.mark.parametrize("way", ["linear trees", "margin", "model", "no start"])
@pytest.mark.parametrize("objective", KINDS, ids=str)
def test_lightgbm_learns_far_from_the_labels(objective, way):
    """LightGBM ends at a tree without a split, and with an L2 equal gradients far from 0 do not pay for one."""
    params = {"learning_rate": 0.5, **({"linear_tree": True} if way == "linear trees" else {})}
    params |= {"boost_from_average": False} if way == "no start" else {}
    given = {"init_score": 0.1 * X[:, 3]} if way == "margin" else {}
    given |= {"init_model": fit("lightgbm", price=PRICE)} if way == "model" else {}
    scores = fit("lightgbm", objective, rounds=40, params=params, **given).predict(X)
    assert np.corrcoef(scores, PRICE)[0, 1] > 0.5
    assert abs(scores.mean() - FAR) < 1.0


@libraries
def test_early_stopping_files_and_continued_trainings_have_the_mean_once(library, tmp_path):
    valid = {"eval_set": [(X, PRICE + FAR)], "eval_group": [GROUP], "early_stopping_rounds": 10}
    whole, first = fit(library, **valid), fit(library, rounds=3)
    scores = whole.predict(X)
    expected = np.sqrt(np.mean((scores - PRICE - FAR) ** 2))
    assert whole.best_score_["validation_0"][METRIC[library]] == pytest.approx(expected, rel=1e-4)
    assert expected < np.std(PRICE)
    path = tmp_path / f"model{SUFFIX[library]}"
    whole.save_model(path)
    np.testing.assert_array_equal(type(whole)().load_model(path).predict(X), scores)
    np.testing.assert_allclose(fit(library, rounds=5, init_model=first).predict(X), scores, rtol=1e-6)
    bags = bagged(ranker(library, POINTWISE[0], eval_metric=METRIC[library]), X, PRICE + FAR, group=GROUP, bags=2)
    assert abs(bags.predict(X).mean() - FAR) < 0.2


@libraries
def test_a_ranking_and_a_training_whose_parameters_say_so_start_at_0(library):
    off = {"base_score": 0.0} if library == "xgboost" else {"boost_from_average": False}
    off |= {"reg_lambda": 0, "learning_rate": 1e-4}
    for model in (fit(library, rounds=1, params=off), fit(library, PATHS["constant Hessian"])):
        assert abs(model.predict(X).mean()) < 1


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])  # CatBoost refuses such labels
def test_labels_all_equal_are_the_score(library):
    with pytest.warns(LTRWarning, match="have a split"):
        model = fit(library, price=np.full(400, FAR))
    np.testing.assert_allclose(model.predict(X), FAR)

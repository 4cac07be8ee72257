"""Goals reach the gradient, the metrics and early stopping in all three libraries, and in the estimators."""

import pickle

import numpy as np
import pytest
from rankers import LIBRARIES, fold, ranker
from sklearn.base import clone

from ltr_objectives import (
    LTRError,
    Mixture,
    Objective,
    StochasticLabels,
    evaluate,
    get_objective,
    objective_for,
    registry,
)
from ltr_objectives.adapters import (
    catboost_metric,
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

TRAIN, VALID, TEST = fold()
libraries = pytest.mark.parametrize("library", LIBRARIES)
TEXT = "yetiloss:ndcg@10 + .3*lambdamart:map[revenue]"
BY_DOCUMENT = StochasticLabels("lambdamart", labels=[None, "revenue"], weights=[2, 1])


def revenue_of(data):
    """Labels 0 to 2 that the second feature decides."""
    return np.digitize(data.X[:, 1], np.quantile(data.X[:, 1], [0.6, 0.9])).astype(float)


R_TRAIN, R_VALID, R_TEST = map(revenue_of, (TRAIN, VALID, TEST))
WEIGHT = np.random.default_rng(0).uniform(0.5, 2, len(TRAIN.y)).astype(np.float32)


def gradient(objective, labels, weight=None):
    """The gradient of untrained scores, as the adapters compute it."""
    objective = get_objective(objective)
    from ltr_objectives.kernels.scores import content_stream

    scores = np.zeros(len(TRAIN.y))
    return objective.gradient_hessian(scores, labels, TRAIN.group, weight, iteration=content_stream(scores))


def by_parts(weight=None):
    """The gradient and Hessian of the mixture of TEXT, from its parts on their own labels."""
    total = np.zeros((2, len(TRAIN.y)))
    for part, factor, labels in (("yetiloss:ndcg@10", 1.0, TRAIN.y), ("lambdamart:map", 0.3, R_TRAIN)):
        alone = Mixture([part])  # with its size
        total += factor * np.array(gradient(alone, labels, weight))
    return total


def one_round(library, objective, weight=None, raw=None):
    """Predictions after one round of rate 1, and the leaf of each row."""
    if library == "xgboost":
        import xgboost as xgb

        data = xgb.DMatrix(TRAIN.X, TRAIN.y, group=TRAIN.group)
        params = {"max_depth": 3, "eta": 1, "nthread": 1, "reg_lambda": 0, "base_score": 0, "min_child_weight": 0}
        given = {} if weight is None else {"weight": weight}
        obj = raw or xgboost_objective(objective, labels={"revenue": R_TRAIN}, **given)
        return xgb.train(params, data, 1, obj=obj).predict(data)
    if library == "lightgbm":
        import lightgbm as lgb

        params = {"num_leaves": 7, "learning_rate": 1, "num_threads": 1, "deterministic": True, "verbosity": -1}
        params |= {"objective": raw or lightgbm_objective(objective, labels={"revenue": R_TRAIN})}
        return lgb.train(params, lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group, weight=weight), 1).predict(TRAIN.X)
    import catboost

    pool = catboost.Pool(TRAIN.X, TRAIN.y, group_id=TRAIN.qid, weight=weight)
    params = {"iterations": 1, "learning_rate": 1.0, "depth": 3, "verbose": False, "allow_writing_files": False,
              "eval_metric": "NDCG", "bootstrap_type": "No", "leaf_estimation_method": "Newton", "l2_leaf_reg": 0,
              "leaf_estimation_iterations": 1, "thread_count": 1, "random_strength": 0}  # fmt: skip
    loss = catboost_objective(objective, pool, labels={"revenue": R_TRAIN})
    params["loss_function"] = pickle.loads(pickle.dumps(loss))
    model = catboost.CatBoost(params).fit(pool)
    return model.predict(pool), model.calc_leaf_indexes(pool).reshape(-1)


@libraries
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_one_round_is_that_of_the_sum_of_the_parts(library, weight):
    grad, hess = by_parts(weight)
    if library == "catboost":
        predicted, leaf = one_round(library, TEXT, weight)
        expected = -(np.bincount(leaf, grad) / np.maximum(np.bincount(leaf, hess), 1e-300))[leaf]
        np.testing.assert_allclose(predicted, expected, rtol=1e-4, atol=1e-6)
        assert len(set(leaf)) > 3
        return
    raw = one_round(library, TEXT, weight, lambda *_: (grad.astype(np.float32), hess.astype(np.float32)))
    np.testing.assert_allclose(one_round(library, TEXT, weight), raw, rtol=1e-5, atol=1e-7)
    assert len(set(raw)) > 3


@libraries
@pytest.mark.parametrize("name", registry.objectives())
def test_a_ranker_on_a_goal_is_the_ranker_of_these_labels(library, name):
    """The whole training, to the last byte, if both order documents alike: random scores go to them by main label."""
    objective = Objective.named[name]()
    on_goal = Mixture([objective], labels=["revenue"], normalize=False)
    how = {"eval_metric": "ndcg", "n_estimators": 3}
    found = ranker(library, on_goal, **how).fit(TRAIN.X, 2 * R_TRAIN, qid=TRAIN.qid, labels={"revenue": R_TRAIN})
    expected = ranker(library, Mixture([objective], normalize=False), **how).fit(TRAIN.X, R_TRAIN, qid=TRAIN.qid)
    assert np.array_equal(found.predict(TEST.X), expected.predict(TEST.X))
    assert np.ptp(found.predict(TEST.X)) > 0


@libraries
@pytest.mark.parametrize("objective", [TEXT, BY_DOCUMENT], ids=["mixture", "stochastic"])
def test_rankers_evaluate_and_score_goals(library, objective):
    def fitted(threads):
        return ranker(library, objective, eval_metric=["ndcg@10[revenue]", "ndcg@10"]).set_params(
            **{"thread_count" if library == "catboost" else "n_jobs": threads}
        ).fit(
            TRAIN.X, TRAIN.y, qid=TRAIN.qid, labels={"revenue": R_TRAIN}, sample_weight=WEIGHT,
            eval_set=[(VALID.X, VALID.y)], eval_qid=[VALID.qid], eval_labels=[{"revenue": R_VALID}],
            early_stopping_rounds=4,
        )  # fmt: skip

    model, other = fitted(1), fitted(2)
    assert model.evals_result_ == other.evals_result_
    assert np.array_equal(model.predict(TEST.X), other.predict(TEST.X))
    scored = model.score(TEST.X, TEST.y, qid=TEST.qid, labels={"revenue": R_TEST})
    assert scored == pytest.approx(evaluate("ndcg@10", model.predict(TEST.X), R_TEST, TEST.group), abs=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(TEST.X), model.predict(TEST.X))
    assert clone(model).get_params() == model.get_params()
    # metrics of goals, at the round that was kept
    for name, r in (("ndcg@10[revenue]", R_VALID), ("ndcg@10", VALID.y)):
        value = evaluate("ndcg@10", model.predict(VALID.X), r.astype(np.float32), VALID.group)
        assert model.best_score_["validation_0"][name] == pytest.approx(value, abs=1e-6)
    values = model.evals_result_["validation_0"]["ndcg@10[revenue]"]
    assert model.best_iteration_ == int(np.argmax(values)) + 1  # early stopping looks at the goal of the first metric


def test_the_default_objective_is_for_the_goal_of_the_metric():
    model = ranker("lightgbm", None, eval_metric="ndcg@5[revenue]")
    model.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, labels={"revenue": R_TRAIN})
    assert model.objective_ == objective_for("ndcg@5[revenue]")


def fit(library="lightgbm", objective=TEXT, X=TRAIN.X, **how):
    params = {name: how.pop(name) for name in ("eval_metric",) if name in how}
    return ranker(library, objective, **params).fit(X, TRAIN.y, qid=TRAIN.qid, **how)


EVALUATED = {"eval_set": [(VALID.X, VALID.y)], "eval_qid": [VALID.qid]}


@libraries
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "there are no labels 'revenue'"),
        ({"labels": {"revenu": R_TRAIN}}, r"'revenu', which the ranker.*reads 'revenue'\).* did you mean 'revenue'"),
        ({"labels": {"revenue": R_TRAIN[1:]}}, r"labels\['revenue'\] has .* entries; pass one per row"),
        ({"labels": {"revenue": R_TRAIN * np.nan}}, r"labels\['revenue'\] must be finite"),
        ({"labels": {"revenue": -R_TRAIN}}, r"labels\['revenue'\]: map needs labels of at least 0"),
        ({"labels": {"revenue": "revenue"}}, r"labels\['revenue'\] must be one-dimensional, got str"),
        ({"labels": ["revenue"]}, "labels must be a mapping of goals to arrays"),
        ({"labels": {"revenue": R_TRAIN, "x": R_TRAIN}}, "labels has 'x', which the ranker does not read"),
        ({"labels": {"revenue": R_TRAIN}, "objective": "lambdamart"}, "labels has 'revenue', which the ranker"),
        ({"labels": {"revenue": R_TRAIN}, "eval_metric": "map[revenue]", **EVALUATED},
         "there are no labels 'revenue'"),
        ({"labels": {"revenue": R_TRAIN}, "eval_metric": "map[revenue]", "eval_labels": [{"revenue": [1]}],
          **EVALUATED}, r"eval_set\[0\]: labels\['revenue'\] has 1 entries"),
        ({"labels": {"revenue": R_TRAIN}, "eval_labels": [], **EVALUATED}, "eval_labels must have one entry for each"),
        ({"labels": {"revenue": R_TRAIN}, "eval_labels": [[1]], **EVALUATED},
         r"eval_set\[0\]: labels must be a mapping of goals"),
        ({"labels": {"revenue": R_TRAIN}, "eval_metric": "map[revenu]", **EVALUATED}, "there are no labels 'revenu'"),
        ({"labels": {"revenue": R_TRAIN}, "eval_metric": "maps[revenue]", **EVALUATED}, "neither ours"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_are_refused_before_training(library, how, message):
    with pytest.raises(LTRError, match=message):
        fit(library, **how)


def test_adapters_refuse_labels_that_cannot_be():
    xgb, lgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "lightgbm", "catboost"))
    pool = catboost.Pool(TRAIN.X, TRAIN.y, group_id=TRAIN.qid)
    made = (xgboost_objective, lightgbm_objective, lambda objective, **how: catboost_objective(objective, pool, **how))
    for make in made:
        for labels, message in (
            ({"revenue": R_TRAIN, "x": R_TRAIN}, "labels has 'x', which mixture does not read"),
            ({"revenue": ["a"]}, r"labels\['revenue'\] must be numbers"),
            ({"a b": [1]}, "'a b' cannot name labels"),
            ([R_TRAIN], "labels must be a mapping of goals to arrays"),
        ):
            with pytest.raises(LTRError, match=message):
                make(TEXT, labels=labels)
        with pytest.raises(LTRError, match="labels has 'revenue', which lambdamart does not read"):
            make("lambdamart", labels={"revenue": R_TRAIN})
    short = {"labels": {"revenue": R_TRAIN[1:]}}
    scores, message = np.zeros(len(TRAIN.y)), r"labels\['revenue'\] has .* entries; pass one per row"
    with pytest.raises(LTRError, match=message):
        catboost_objective(TEXT, pool, **short)
    with pytest.raises(LTRError, match=message):
        xgboost_objective(TEXT, **short)(scores, xgb.DMatrix(TRAIN.X, TRAIN.y, group=TRAIN.group))
    dataset = lgb.Dataset(TRAIN.X, TRAIN.y, group=TRAIN.group).construct()
    with pytest.raises(LTRError, match=message):
        lightgbm_objective(TEXT, **short)(scores, dataset)


def test_callables_refuse_metrics_of_goals():
    xgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "catboost"))
    pool = catboost.Pool(TRAIN.X, TRAIN.y, group_id=TRAIN.qid)
    for evaluated in (
        lambda: xgboost_metric("map[revenue]")(TRAIN.y, xgb.DMatrix(TRAIN.X, TRAIN.y, group=TRAIN.group)),
        lambda: lightgbm_metric("map[revenue]")(TRAIN.y, TRAIN.y, None, TRAIN.group),
        lambda: catboost_metric("map[revenue]", pool, pool),
    ):
        with pytest.raises(LTRError, match="there are no labels 'revenue'"):
            evaluated()

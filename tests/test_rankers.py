"""The three rankers: the adapters' models, early stopping, metrics, weights, functions, files."""

import pickle
from types import SimpleNamespace

import catboost
import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from rankers import EVAL, LIBRARIES, NATIVE, SUFFIX, TEST, TRAIN, VALI, everywhere, fit, query_weights, ranker

from ltr_objectives import (
    MAP,
    Langevin,
    Metric,
    Queries,
    RankNet,
    UnitHessian,
    evaluate,
    get_metric,
    objective_for,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
TWO = {"eval_set": [(VALI.X, VALI.y), (TEST.X, TEST.y)], "eval_group": [VALI.group, TEST.group]}
WEIGHTS = [query_weights(VALI.group), query_weights(TEST.group, 1)]
FAST = {"n_estimators": 60, "learning_rate": 1.0}  # so that early stopping has a best round
L2 = {"xgboost": "reg_lambda", "lightgbm": "reg_lambda", "catboost": "l2_leaf_reg"}
OWN_METRIC = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "NDCG:top=7"}


@everywhere
def test_weights_within_a_query_multiply_gradients_and_hessians(library):
    weight = np.random.default_rng(0).uniform(0.2, 2, len(TRAIN.y)).astype(np.float32)
    one = {"n_estimators": 1, "learning_rate": 1.0, L2[library]: 0}
    found = fit(library, RankNet(), {"sample_weight": weight}, **one)
    leaf = {
        "xgboost": lambda: found.apply(TRAIN.X),
        "lightgbm": lambda: found.predict(TRAIN.X, pred_leaf=True),
        "catboost": lambda: found.calc_leaf_indexes(TRAIN.X),
    }[library]().astype(int).ravel()  # fmt: skip
    assert len(set(leaf)) > 3
    grad, hess = UnitHessian(RankNet()).gradient_hessian(np.zeros(len(TRAIN.y)), TRAIN.y, TRAIN.group, weight)
    expected = -np.bincount(leaf, grad)[leaf] / np.bincount(leaf, hess)[leaf]
    np.testing.assert_allclose(found.predict(TRAIN.X), expected, rtol=1e-4)


@everywhere
def test_regularisation_counts_documents_unless_the_objective_copies_a_library(library):
    l2, one = L2[library], {"n_estimators": 1}
    plain, same, more = (
        fit(library, RankNet(), **one, **params).predict(TRAIN.X) for params in ({}, {l2: 20}, {l2: 400})
    )
    assert np.array_equal(plain, same)
    assert np.abs(more).max() < 0.5 * np.abs(plain).max()
    native = "lambdamart:preset=lightgbm"
    raw = {l2: {"xgboost": 1, "lightgbm": 0, "catboost": 3}[library]}  # the library's default
    preset, explicit = fit(library, Langevin(native, 0.0), **one), fit(library, native, **one, **raw)
    assert np.array_equal(preset.predict(TRAIN.X), explicit.predict(TRAIN.X))


@everywhere
def test_the_metric_chooses_the_objective(library):
    own = MAP(threshold=1.0)
    for metric, chosen in ((None, "ndcg@10"), (["mrr@5", "map"], "mrr@5"), (own, own)):
        fitted = fit(library, None, eval_metric=metric, n_estimators=2)
        assert fitted.objective_ == objective_for(chosen)
        named = fit(library, objective_for(chosen), eval_metric=metric, n_estimators=2)
        assert np.array_equal(fitted.predict(TRAIN.X), named.predict(TRAIN.X))


@everywhere
@pytest.mark.parametrize("native", [False, True])
def test_early_stopping_keeps_the_best_rounds_of_the_last_eval_set(library, native):
    metrics = OWN_METRIC[library] if native else ["dcg@5", "rbp"]
    fitted = fit(library, "lambdamart:ndcg", {**TWO, "early_stopping_rounds": 4}, eval_metric=metrics, **FAST)
    best = fitted.best_iteration_
    assert best < 56
    for data, (name, record) in zip((VALI, TEST), fitted.evals_result_.items(), strict=True):
        first, *_ = record.values()
        assert {len(values) for values in record.values()} == {best + 4}
        assert fitted.best_score_[name] == {metric: values[best - 1] for metric, values in record.items()}
        if not native:
            assert list(record) == metrics
            kept = evaluate("dcg@5", fitted.predict(data.X), data.y, data.group)
            assert first[best - 1] == pytest.approx(kept, abs=2e-6)
            assert fitted.score(data.X, data.y, qid=data.qid) == pytest.approx(kept)
    assert first[best - 1] == max(first)


@everywhere
def test_without_early_stopping_all_rounds_are_kept(library):
    fitted = fit(library, given=TWO, eval_metric="map", n_estimators=30, learning_rate=1.0)
    values = fitted.evals_result_["validation_1"]["map"]
    assert np.argmax(values) < 29, "else this says nothing"
    assert fitted.best_iteration_ == len(values) == 30
    assert fitted.best_score_["validation_1"]["map"] == values[-1]
    assert fitted.score(TEST.X, TEST.y, qid=TEST.qid) == pytest.approx(values[-1], abs=2e-6)


@pytest.mark.parametrize("given", [{"use_best_model": True}, {"od_wait": 50}])
def test_catboost_keeps_the_best_rounds_if_its_own_parameters_ask_for_it(given):
    fitted = fit("catboost", given=TWO, eval_metric="map", n_estimators=30, learning_rate=1.0, **given)
    assert fitted.best_iteration_ == np.argmax(fitted.evals_result_["validation_1"]["map"]) + 1 < 30


@everywhere
@pytest.mark.parametrize("native", [False, True])
def test_several_metrics_of_ours_and_of_the_library_are_weighted_by_query(library, native):
    objective = NATIVE[library] if native else "yetiloss:map"
    theirs = {
        "xgboost": ["ndcg@7-", "ndcg@3-"], "lightgbm": ["average_precision", "l2"],
        "catboost": ["MAP:top=7", "MAP:top=3"],
    }[library]  # fmt: skip
    ours = ["map(threshold=3)@5", "map", "mrr@5", "dcg", "err"]
    given = {**TWO, "eval_sample_weight": WEIGHTS}
    fitted = fit(library, objective, given, eval_metric=[*ours[:2], *theirs, *ours[2:]])
    for data, record, weight in zip((VALI, TEST), fitted.evals_result_.values(), WEIGHTS, strict=True):
        assert record.keys() >= {*ours, *theirs}
        assert {len(values) for values in record.values()} == {8}
        expected = evaluate(ours, fitted.predict(data.X), data.y, data.group, weight)
        assert {m: record[m][-1] for m in expected} == pytest.approx(expected, abs=2e-6)
        score = fitted.score(data.X, data.y, qid=data.qid, sample_weight=weight)
        assert score == pytest.approx(expected[ours[0]])
    alone = fit(library, objective, given, eval_metric=["err"])
    assert np.array_equal(alone.predict(TEST.X), fitted.predict(TEST.X))


def test_catboost_s_own_metric_may_come_first_if_nothing_stops():
    fitted = fit("catboost", given=EVAL, eval_metric=["MAP:top=7", "map", "err"])
    assert sorted(fitted.evals_result_["validation_0"]) == ["MAP:top=7", "err", "map"]
    fitted = fit("catboost", given=EVAL, eval_metric=["map", "err"], metric_period=3)
    assert {m: len(v) for m, v in fitted.evals_result_["validation_0"].items()} == {"map": 4, "err": 4}
    assert fitted.best_score_ == {}


CONVENTIONS = [
    (f"{name}{'@3' if of.cutoff == 'required' else ''}", convention)
    for name, of in Metric.named.items()
    for convention in of.conventions
    if not of.lower_is_better  # which no ranker learns
]


@everywhere
@pytest.mark.parametrize(("metric", "convention"), CONVENTIONS)
def test_a_convention_means_the_same_in_training_records_and_score(library, metric, convention):
    of = get_metric(metric, convention)
    labels = [data.y / (4 if of.label_limit == 1 else 1) for data in (TRAIN, VALI)]
    labels[1] = np.where(VALI.qid == VALI.qid[0], 0, labels[1])  # a query without relevant documents
    named = ranker(library, None, eval_metric=metric, convention=convention, n_estimators=1)
    eval_set = {"eval_set": [(VALI.X, labels[1])], "eval_qid": [VALI.qid]}
    named.fit(TRAIN.X, labels[0], qid=TRAIN.qid, **eval_set)
    assert named.objective_ == objective_for(of, Queries(labels[0], qid=TRAIN.qid))
    expected = evaluate(of, named.predict(VALI.X), labels[1], qid=VALI.qid)
    assert named.score(VALI.X, labels[1], qid=VALI.qid) == pytest.approx(expected)
    assert named.best_score_["validation_0"][str(of)] == pytest.approx(expected, abs=2e-6)
    plain = named.set_params(convention=None).score(VALI.X, labels[1], qid=VALI.qid)
    assert plain == evaluate(metric, named.predict(VALI.X), labels[1], qid=VALI.qid)


@everywhere
def test_files_and_pickles_predict_the_same(library, tmp_path):
    fitted = fit(library, given={**EVAL, "early_stopping_rounds": 3}, n_estimators=40, learning_rate=1.0)
    assert fitted.best_iteration_ < 40
    expected = fitted.predict(TEST.X)
    path = tmp_path / f"model{SUFFIX[library]}"
    fitted.save_model(path)
    loaded = ranker(library).load_model(path)
    assert not hasattr(loaded, "best_score_")
    assert not hasattr(loaded, "evals_result_")
    for again in (loaded, pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(again.predict(TEST.X), expected)
        assert again.best_iteration_ == fitted.best_iteration_
        assert again.n_features_in_ == 10
        np.testing.assert_allclose(again.feature_importances_, fitted.feature_importances_, rtol=1e-6)
    assert pickle.dumps(fitted).find(TRAIN.y.tobytes()[:64]) == -1, "the training labels travel with the model"


def own(library, objective, given=None, **params):
    """Train with the library's own ranker."""
    kind, more, queries = {
        "xgboost": (xgb.XGBRanker, {}, {"qid": TRAIN.qid}),
        "lightgbm": (lgb.LGBMRanker, {"verbose": -1}, {"group": TRAIN.group}),
        "catboost": (catboost.CatBoostRanker, {"verbose": 0, "allow_writing_files": False}, {"group_id": TRAIN.qid}),
    }[library]
    made = kind(**LIBRARIES[library][1] | params | more | {"objective": objective})
    return made.fit(TRAIN.X, TRAIN.y, **queries, **(given or {}))


@everywhere
def test_a_file_of_the_library_s_own_ranker_has_the_rounds_that_it_predicts_with(library, tmp_path):
    path, fast = tmp_path / f"model{SUFFIX[library]}", {"n_estimators": 40, "learning_rate": 1.0}
    if library == "catboost":
        pools = (catboost.Pool(part.X, part.y, group_id=part.qid) for part in (TRAIN, VALI))
        params = {**LIBRARIES[library][1], **fast, "verbose": False, "allow_writing_files": False}
        made = catboost.CatBoostRanker(**params).fit(next(pools), eval_set=next(pools), early_stopping_rounds=3)
        rounds = made.tree_count_
    elif library == "lightgbm":
        stop = {"eval_set": [(VALI.X, VALI.y)], "eval_group": [VALI.group]}
        made = own(library, NATIVE[library], {**stop, "callbacks": [lgb.early_stopping(3, verbose=False)]}, **fast)
        rounds = made.best_iteration_
    else:
        stop = {**EVAL, "verbose": False}
        made = own(library, NATIVE[library], stop, early_stopping_rounds=3, **fast)
        rounds = made.best_iteration + 1
    getattr(made, "booster_", made).save_model(path)
    loaded, expected = ranker(library).load_model(path), made.predict(TEST.X)
    for model in (loaded, pickle.loads(pickle.dumps(loaded))):
        assert model.best_iteration_ == rounds < 40
        assert np.array_equal(model.predict(TEST.X), expected)
    going_on = fit(library, given={"init_model": loaded}, n_estimators=1, learning_rate=1e-6)
    assert going_on.best_iteration_ == rounds + 1
    np.testing.assert_allclose(going_on.predict(TEST.X), expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Regression loss .* ignores an important ranking parameter:RuntimeWarning")
@pytest.mark.parametrize(("library", "objective"), [*NATIVE.items(), ("lightgbm", "regression"), ("catboost", "RMSE")])
def test_native_objectives_train_as_in_the_library(library, objective):
    fitted, theirs = fit(library, objective), own(library, objective)
    assert np.array_equal(fitted.predict(VALI.X), theirs.predict(VALI.X))
    if library != "catboost":  # there LossFunctionChange needs the training data, which a model does not hold
        assert np.allclose(fitted.feature_importances_, theirs.feature_importances_)
    expected = evaluate("ndcg@10", fitted.predict(VALI.X), VALI.y, VALI.group)
    assert fitted.score(VALI.X, VALI.y, qid=VALI.qid) == expected


def squared(labels, scores, weight=1.0):
    return weight * (scores - labels), weight * np.ones(len(labels))


def reciprocal_rank(labels, scores):
    return 1 / (1 + np.argmax(labels[np.argsort(-scores, kind="stable")] > 0))


def absolute(labels, scores, weight):
    return "absolute", np.average(np.abs(labels - scores), weights=weight), False


def test_functions_are_objectives_and_metrics_as_in_lightgbm():
    def objective(labels, scores, weight, group):
        return squared(labels, scores, weight * len(group))

    by_row = {**TWO, "sample_weight": 1.0 + TRAIN.y, "eval_sample_weight": [1.0 + VALI.y, 1.0 + TEST.y]}
    names = {"eval_names": ["vali", "test"], "eval_metric": [absolute, "map", "average_precision"]}
    fitted = fit("lightgbm", objective, {**by_row, **names})
    theirs = own("lightgbm", objective, {**by_row, "eval_metric": absolute}, metric="None")
    np.testing.assert_array_equal(fitted.predict(TEST.X), theirs.predict(TEST.X))
    assert fitted.objective_ is objective
    assert list(fitted.evals_result_) == list(fitted.best_score_) == ["vali", "test"]
    assert sorted(fitted.evals_result_["test"]) == ["absolute", "average_precision", "map"]
    assert fitted.evals_result_["test"]["absolute"] == theirs.evals_result_["valid_1"]["absolute"]
    stop = {**by_row, "early_stopping_rounds": 4}
    stopped = fit("lightgbm", given=stop, eval_metric=[absolute, "map"], **FAST)
    values = stopped.evals_result_["validation_1"]["absolute"]
    assert stopped.best_iteration_ == np.argmin(values) + 1 == len(values) - 4


def test_functions_are_objectives_and_metrics_as_in_xgboost():
    weight = 1.0 + TRAIN.y
    regression = xgb.XGBRegressor(objective=lambda y, s: squared(y, s, weight), **LIBRARIES["xgboost"][1])
    found = fit("xgboost", lambda y, s, sample_weight: squared(y, s, sample_weight), {"sample_weight": weight})
    np.testing.assert_allclose(found.predict(TEST.X), regression.fit(TRAIN.X, TRAIN.y).predict(TEST.X), atol=1e-6)
    stop = {**FAST, "early_stopping_rounds": 4}
    found = fit("xgboost", "rank:ndcg", EVAL, eval_metric=[reciprocal_rank, "mrr", "auc"], **stop)
    metric = {"eval_metric": reciprocal_rank, "disable_default_eval_metric": True}
    theirs = own("xgboost", "rank:ndcg", EVAL, **metric, **stop)
    record = found.evals_result_["validation_0"]
    assert record["reciprocal_rank"] == theirs.evals_result()["validation_0"]["reciprocal_rank"]
    assert sorted(record) == ["auc", "mrr", "reciprocal_rank"]
    assert (found.best_iteration, found.best_score) == (theirs.best_iteration, theirs.best_score)


@everywhere
def test_callbacks_are_the_library_s_and_metrics_are_printed_only_if_asked_for(library, capfd):
    seen = []
    callback = {
        "xgboost": lambda: xgb.callback.LearningRateScheduler(lambda epoch: seen.append(epoch) or 0.3),
        "lightgbm": lambda: lgb.reset_parameter(learning_rate=lambda epoch: seen.append(epoch) or 0.3),
        "catboost": lambda: SimpleNamespace(after_iteration=lambda info: seen.append(info.iteration) is None),
    }[library]()
    for where in ({"given": {**EVAL, "callbacks": [callback]}}, {"given": EVAL, "callbacks": [callback]}):
        fit(library, **where)
        assert len(seen) == 8
        seen.clear()
    assert "0." not in capfd.readouterr().out  # no values of the metric

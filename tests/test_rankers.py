"""The three rankers: the adapters' models, early stopping, metrics, weights, initial scores, functions, files."""

import importlib
import inspect
import pickle
import sys

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, SUFFIX, fold, query_weights, ranker, ranker_class
from trainings import through_the_callable

from ltr_objectives import MAP, Langevin, LTRWarning, Metric, Objective, RankNet, evaluate, objective_for

xgb, lgb, catboost = (pytest.importorskip(name) for name in LIBRARIES)
pytestmark = pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
TWO = {"eval_set": [(VALI.X, VALI.y), (TEST.X, TEST.y)], "eval_group": [VALI.group, TEST.group]}
WEIGHTS = [query_weights(VALI.group), query_weights(TEST.group, 1)]
SMALL = {library: params for library, (_, params) in LIBRARIES.items()}
FAST = {"n_estimators": 60, "learning_rate": 1.0}  # so that early stopping has a best round


def fit(library, objective="yetiloss:map", given=None, weight=None, **params):
    """Train with these parameters; ``given`` goes to `fit`."""
    untrained = ranker(library, objective, **params)
    return untrained.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, sample_weight=weight, **(given or {}))


@everywhere
@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_the_adapter_s(library, weighted):
    weight = query_weights(TRAIN.group) if weighted else None
    expected = through_the_callable(library, "yetiloss:map", TRAIN, TRAIN.y, weight)
    assert np.ptp(expected) > 0.1
    assert np.array_equal(fit(library, weight=weight).predict(TRAIN.X), expected)
    by_row = None if weight is None else np.repeat(weight, TRAIN.group)
    again = ranker(library).fit(TRAIN.X, TRAIN.y, group=TRAIN.group, sample_weight=by_row)
    assert np.array_equal(again.predict(TRAIN.X), expected)


@everywhere
def test_regularisation_counts_documents_unless_the_objective_copies_a_library(library):
    l2 = {"catboost": "l2_leaf_reg"}.get(library, "reg_lambda")
    plain, same, more = (
        fit(library, RankNet(), n_estimators=1, **params).predict(TRAIN.X) for params in ({}, {l2: 20}, {l2: 400})
    )
    assert np.array_equal(plain, same)
    assert np.abs(more).max() < 0.5 * np.abs(plain).max()
    native = "lambdamart:preset=lightgbm"
    raw = {l2: {"xgboost": 1, "lightgbm": 0, "catboost": 3}[library]}  # the library's default
    preset, explicit = fit(library, Langevin(native, 0.0), n_estimators=1), fit(library, native, n_estimators=1, **raw)
    assert np.array_equal(preset.predict(TRAIN.X), explicit.predict(TRAIN.X))


@everywhere
def test_the_metric_chooses_the_objective(library):
    own = MAP(threshold=1.0)
    assert objective_for(own).metric == own
    for metric, chosen in ((None, "ndcg@10"), (["mrr@5", "map"], "mrr@5"), (own, own)):
        fitted = fit(library, None, eval_metric=metric, n_estimators=2)
        assert fitted.objective_ == objective_for(chosen)
        named = fit(library, objective_for(chosen), eval_metric=metric, n_estimators=2)
        assert np.array_equal(fitted.predict(TRAIN.X), named.predict(TRAIN.X))


@everywhere
def test_weights_within_a_query_multiply_gradients(library):
    weight = np.random.default_rng(0).uniform(0.2, 2, len(TRAIN.y))
    scores = []
    for factor in (1.0, 2.0):
        of_leaves = {"reg_lambda": factor, "min_child_weight": 1e-3 * factor}  # what a sum of Hessians is compared with
        if library == "catboost":  # which scales its regularisation with the weights itself
            of_leaves = {"l2_leaf_reg": 1e-30 * factor}
        scores.append(fit(library, weight=factor * weight, n_estimators=1, **of_leaves).predict(TRAIN.X))
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5)


@everywhere
@pytest.mark.parametrize("native", [False, True])
def test_early_stopping_keeps_the_best_rounds_of_the_last_eval_set(library, native):
    objective, metric = NATIVE[library] if native else "lambdamart:ndcg", "dcg@5"
    metrics = [metric] if native and library == "catboost" else [metric, "rbp"]
    fitted = fit(library, objective, {**TWO, "early_stopping_rounds": 4}, eval_metric=metrics, **FAST)
    best = fitted.best_iteration_
    assert best < 56
    for data, (name, record) in zip((VALI, TEST), fitted.evals_result_.items(), strict=True):
        assert native or list(record) == metrics  # CatBoost adds its own losses
        assert {len(record[m]) for m in metrics} == {best + 4}
        assert {m: fitted.best_score_[name][m] for m in metrics} == {m: record[m][best - 1] for m in metrics}
        kept = evaluate(metric, fitted.predict(data.X), data.y, data.group)
        assert record[metric][best - 1] == pytest.approx(kept, abs=2e-6)
    assert record[metric][best - 1] == max(record[metric])
    assert fitted.score(TEST.X, TEST.y, qid=TEST.qid) == pytest.approx(kept)


@everywhere
def test_early_stopping_on_the_library_s_own_metric(library):
    native = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "NDCG:top=7"}[library]
    fitted = fit(library, given=EVAL, eval_metric=native, **FAST, early_stopping_rounds=4)
    [values] = fitted.evals_result_["validation_0"].values()
    assert len(values) == fitted.best_iteration_ + 4 < 60
    assert values[fitted.best_iteration_ - 1] == max(values)


@everywhere
def test_without_early_stopping_all_rounds_are_kept(library):
    fitted = fit(library, given=TWO, eval_metric="map", n_estimators=30, learning_rate=1.0)
    values = fitted.evals_result_["validation_1"]["map"]
    assert np.argmax(values) < 29, "else this says nothing"
    assert fitted.best_iteration_ == len(values) == 30
    assert fitted.best_score_["validation_1"]["map"] == values[-1]
    assert fitted.score(TEST.X, TEST.y, qid=TEST.qid) == pytest.approx(values[-1], abs=2e-6)


@pytest.mark.parametrize("given", [{"use_best_model": True}, {"od_type": "Iter", "od_wait": 50}])
def test_catboost_keeps_the_best_rounds_if_its_own_parameters_ask_for_it(given):
    fitted = fit("catboost", given=TWO, eval_metric="map", n_estimators=30, learning_rate=1.0, **given)
    assert fitted.best_iteration_ == np.argmax(fitted.evals_result_["validation_1"]["map"]) + 1 < 30


@everywhere
@pytest.mark.parametrize("native", [False, True])
def test_several_metrics_of_ours_and_of_the_library_are_weighted_by_query(library, native):
    objective = NATIVE[library] if native else "yetiloss:map"
    theirs = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "MAP:top=7"}[library]
    ours = ["map(threshold=3)@5", "map", "mrr@5", "dcg", "err"]
    given = {**TWO, "eval_sample_weight": WEIGHTS}
    fitted = fit(library, objective, given, eval_metric=[*ours[:2], theirs, *ours[2:]])
    for data, record, weight in zip((VALI, TEST), fitted.evals_result_.values(), WEIGHTS, strict=True):
        assert record.keys() >= {*ours, theirs}
        assert {len(values) for values in record.values()} == {8}
        expected = evaluate(ours, fitted.predict(data.X), data.y, data.group, weight)
        assert {m: record[m][-1] for m in expected} == pytest.approx(expected, abs=2e-6)
        score = fitted.score(data.X, data.y, qid=data.qid, sample_weight=weight)
        assert score == pytest.approx(expected[ours[0]])
    alone = fit(library, objective, given, eval_metric=["err"])
    for name, record in fitted.evals_result_.items():
        assert alone.evals_result_[name]["err"] == record["err"]
    assert np.array_equal(alone.predict(TEST.X), fitted.predict(TEST.X))


def test_catboost_s_own_metric_may_come_first_if_nothing_stops():
    fitted = fit("catboost", given=EVAL, eval_metric=["MAP:top=7", "map", "err"])
    assert sorted(fitted.evals_result_["validation_0"]) == ["MAP:top=7", "err", "map"]
    fitted = fit("catboost", given=EVAL, eval_metric=["map", "err"], metric_period=3)
    assert {m: len(v) for m, v in fitted.evals_result_["validation_0"].items()} == {"map": 4, "err": 4}
    assert fitted.best_score_ == {}


CONVENTIONS = sorted({convention for c in Metric.named.values() for convention in c.conventions})


@everywhere
@pytest.mark.parametrize(
    "convention", [pytest.param(c, marks=() if c == "lightgbm" else pytest.mark.release) for c in CONVENTIONS]
)
def test_conventions_hold_in_records_and_scores(library, convention):
    y = np.where(VALI.qid == VALI.qid[0], 0, VALI.y)  # a query without relevant documents
    for metric in ("ndcg@5", "map@3", "spearman", "kendall"):
        if convention not in Metric.named[metric.partition("@")[0]].conventions:
            continue
        data = {"eval_set": [(VALI.X, y)], "eval_qid": [VALI.qid]}
        by = fit(library, given=data, eval_metric=metric, convention=convention, n_estimators=3)
        expected = evaluate(metric, by.predict(VALI.X), y, VALI.group, convention=convention)
        assert by.evals_result_["validation_0"][metric][-1] == pytest.approx(expected, abs=2e-6)
        assert by.score(VALI.X, y, qid=VALI.qid) == pytest.approx(expected)
        plain = by.set_params(convention=None).score(VALI.X, y, qid=VALI.qid)
        assert plain == evaluate(metric, by.predict(VALI.X), y, VALI.group)
        if convention in ("lightgbm", "xgboost"):  # an empty query counts as 1 there
            assert plain < expected - 0.05


@everywhere
def test_files_and_pickles_predict_the_same(library, tmp_path):
    fitted = fit(library, given={**EVAL, "early_stopping_rounds": 3}, n_estimators=40, learning_rate=1.0)
    assert fitted.best_iteration_ < 40
    expected = fitted.predict(TEST.X)
    path = tmp_path / f"model{SUFFIX[library]}"
    fitted.save_model(path)
    loaded = ranker_class(library)().load_model(path)
    assert not hasattr(loaded, "best_score_")
    assert not hasattr(loaded, "evals_result_")
    for again in (loaded, pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(again.predict(TEST.X), expected)
        assert again.best_iteration_ == fitted.best_iteration_
        assert again.n_features_in_ == 10
        np.testing.assert_allclose(again.feature_importances_, fitted.feature_importances_, rtol=1e-6)
    native = {
        "xgboost": lambda: xgb.Booster(model_file=path).predict(xgb.DMatrix(TEST.X)),
        "lightgbm": lambda: lgb.Booster(model_file=path).predict(TEST.X),
        "catboost": lambda: catboost.CatBoost().load_model(str(path)).predict(TEST.X),
    }
    assert np.array_equal(native[library](), expected)
    assert pickle.dumps(fitted).find(TRAIN.y.tobytes()[:64]) == -1, "the training labels travel with the model"


def own(library, objective, weight=None, given=None, **params):
    """Train with the library's own ranker."""
    params = {**SMALL[library], **params}
    if library == "xgboost":
        return xgb.XGBRanker(objective=objective, **params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **(given or {}))
    if library == "lightgbm":
        made = lgb.LGBMRanker(objective=objective, **params, verbose=-1)
        return made.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, sample_weight=weight, **(given or {}))
    made = catboost.CatBoostRanker(loss_function=objective, **params, verbose=False, allow_writing_files=False)
    return made.fit(TRAIN.X, TRAIN.y, group_id=TRAIN.qid)


POINTWISE = [("lightgbm", "regression"), ("lightgbm", "poisson"), ("catboost", "RMSE"), ("catboost", "MAE")]


@pytest.mark.filterwarnings("ignore:Regression loss .* ignores an important ranking parameter:RuntimeWarning")
@pytest.mark.parametrize(("library", "objective"), [*NATIVE.items(), *POINTWISE])
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


OBJECTIVES = {
    "two": lambda labels, scores: squared(labels, scores),
    "three": squared,
    "four": lambda labels, scores, weight, group: squared(labels, scores, weight * len(group)),
}
METRICS = {
    "two": lambda labels, scores: ("l1", np.abs(labels - scores).mean(), False),
    "three": lambda labels, scores, weight: ("weighted", np.average(np.abs(labels - scores), weights=weight), False),
    "four": lambda labels, scores, weight, group: [("a", len(group), True), ("b", scores[0] + weight[0], True)],
}
BY_ROW = {**TWO, "eval_sample_weight": [1.0 + VALI.y, 1.0 + TEST.y]}


@pytest.mark.parametrize("arguments", OBJECTIVES)
def test_a_function_is_the_objective_as_in_lightgbm(arguments):
    function, weight = OBJECTIVES[arguments], 1.0 + TRAIN.y
    fitted = fit("lightgbm", function, BY_ROW, weight)
    theirs = own("lightgbm", function, weight, BY_ROW, metric="None")
    np.testing.assert_array_equal(fitted.predict(TEST.X), theirs.predict(TEST.X))
    assert fitted.objective_ is function
    assert not isinstance(fitted.objective_, Objective)


@pytest.mark.parametrize("objective", ["lambdarank", "yetiloss:map"])
def test_functions_are_metrics_as_in_lightgbm(objective):
    functions, weight = [*METRICS.values()], 1.0 + TRAIN.y
    fitted = fit("lightgbm", objective, BY_ROW, weight, eval_metric=[*functions, "map", "average_precision"])
    found = fitted.evals_result_["validation_1"]
    assert sorted(found) == ["a", "average_precision", "b", "l1", "map", "weighted"]
    if objective == "lambdarank":
        theirs = own("lightgbm", objective, weight, {**BY_ROW, "eval_metric": functions}, metric="None")
        expected = theirs.evals_result_["valid_1"]
        assert {name: found[name] for name in expected} == expected
    with pytest.warns(LTRWarning, match="ndcg@10, because eval_metric="):
        fitted.score(TEST.X, TEST.y, group=TEST.group)


def test_lightgbm_stops_early_by_a_function_and_takes_names_and_metrics_of_fit():
    stop = {**TWO, "early_stopping_rounds": 4}
    fitted = fit("lightgbm", given=stop, eval_metric=[METRICS["two"], "map"], **FAST)
    values = fitted.evals_result_["validation_1"]["l1"]
    assert fitted.best_iteration_ == np.argmin(values) + 1 == len(values) - 4
    names = {"eval_names": ["vali", "test"], "eval_metric": ["map", "average_precision"]}
    fitted = fit("lightgbm", given={**stop, **names}, **FAST)
    assert list(fitted.evals_result_) == list(fitted.best_score_) == ["vali", "test"]
    assert list(fitted.best_score_["test"]) == ["average_precision", "map"]
    assert fitted.best_score_["test"]["map"] == max(fitted.evals_result_["test"]["map"])


def test_functions_are_objectives_and_metrics_as_in_xgboost():
    weight = 1.0 + TRAIN.y
    for by_row, objective in ((None, squared), (weight, lambda labels, scores: squared(labels, scores, weight))):
        expected = xgb.XGBRegressor(objective=objective, **SMALL["xgboost"]).fit(TRAIN.X, TRAIN.y).predict(TEST.X)
        found = fit("xgboost", lambda y, s, sample_weight=1.0: squared(y, s, sample_weight), weight=by_row)
        np.testing.assert_allclose(found.predict(TEST.X), expected, atol=1e-6)
    stop = {**FAST, "early_stopping_rounds": 4}
    found = fit("xgboost", "rank:ndcg", EVAL, eval_metric=[reciprocal_rank, "mrr", "auc"], **stop)
    metric = {"eval_metric": reciprocal_rank, "disable_default_eval_metric": True}
    theirs = own("xgboost", "rank:ndcg", None, EVAL, **metric, **stop)
    record = found.evals_result_["validation_0"]
    assert record["reciprocal_rank"] == theirs.evals_result()["validation_0"]["reciprocal_rank"]
    assert sorted(record) == ["auc", "mrr", "reciprocal_rank"]
    assert (found.best_iteration, found.best_score) == (theirs.best_iteration, theirs.best_score)
    with pytest.warns(LTRWarning, match="score is the mean ndcg@10"):
        found.score(VALI.X, VALI.y, qid=VALI.qid)


@everywhere
def test_callbacks_and_printing_are_the_library_s(library, capfd):
    seen = []

    class OfXGBoost(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            seen.append(epoch)
            return epoch == 2

    class OfCatBoost:
        def after_iteration(self, info):
            seen.append(info.iteration)
            return info.iteration < 3

    def of_lightgbm(env):
        seen.append(env.iteration)
        if env.iteration == 2:
            raise lgb.callback.EarlyStopException(2, [])

    given = {"xgboost": OfXGBoost(), "lightgbm": of_lightgbm, "catboost": OfCatBoost()}[library]
    quiet = fit(library, given=EVAL, callbacks=[given])
    assert len(seen) == 3
    assert quiet.best_iteration_ <= 3
    said = capfd.readouterr().out
    assert "0." not in said  # no values of the metric
    fit(library, given={**EVAL, "verbose": True})
    bound_at_import = inspect.signature(catboost.CatBoost.fit).parameters["log_cout"].default is not None
    if library != "catboost" or not bound_at_import:  # older ones print to the stdout of that time
        assert len(capfd.readouterr().out.splitlines()) >= len(said.splitlines()) + 8


@everywhere
def test_a_missing_library_says_what_to_install(library, monkeypatch):
    module = importlib.import_module(ranker_class(library).__module__)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        importlib.reload(module)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "ltr_objectives.adapters._data")
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        importlib.import_module("ltr_objectives.adapters._data")


@everywhere
def test_assigned_parameters_are_those_of_the_next_fit(library):
    fitted = fit(library, "ranknet")
    if library == "catboost":  # whose parameters are no attributes
        fitted.set_params(objective="lambdamart", learning_rate=0.01)
    else:
        fitted.objective, fitted.learning_rate = "lambdamart", 0.01
    assert fitted.get_params()["learning_rate"] == 0.01
    assert fitted.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid).objective_.name == "lambdamart"
    same = fit(library, "lambdamart", learning_rate=0.01)
    assert np.array_equal(fitted.predict(TRAIN.X), same.predict(TRAIN.X))

"""One contract for the three rankers: the adapters' models, early stopping, metrics, weights, files, errors."""

import importlib
import inspect
import pickle
import sys

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, SUFFIX, fold, query_weights, ranker, ranker_class, through_the_adapter

from ltr_objectives import MAP, Langevin, Metric, RankNet, YetiLoss, evaluate, objective_for

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")
catboost = pytest.importorskip("catboost")
pytestmark = pytest.mark.parametrize("library", LIBRARIES)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_model_is_the_adapter_s(library, weighted):
    data = fold().train
    weight = query_weights(data.group) if weighted else None
    expected = through_the_adapter(library, "yetiloss:map", data, data.y, weight)
    assert evaluate("map", expected, data.y, data.group) > evaluate("map", np.zeros(len(data.y)), data.y, data.group)
    fitted = ranker(library).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    assert np.array_equal(fitted.predict(data.X), expected)
    by_row = None if weight is None else np.repeat(weight, data.group)
    again = ranker(library, YetiLoss("map")).fit(data.X, data.y, group=data.group, sample_weight=by_row)
    assert np.array_equal(again.predict(data.X), expected)


def test_regularisation_counts_documents_unless_the_objective_copies_a_library(library):
    data = fold().train
    l2 = {"catboost": "l2_leaf_reg"}.get(library, "reg_lambda")
    given = {"qid": data.qid}
    plain, same, more = (
        ranker(library, RankNet(sigma=sigma), n_estimators=1, **params).fit(data.X, data.y, **given).predict(data.X)
        for sigma, params in ((1, {}), (1, {l2: 20}), (1, {l2: 200}))
    )
    assert np.array_equal(plain, same)
    assert np.abs(more).max() < 0.5 * np.abs(plain).max()
    preset = ranker(library, Langevin("lambdamart:preset=lightgbm", 0.0), n_estimators=1)
    raw = {l2: {"xgboost": 1, "lightgbm": 0, "catboost": 3}[library]}  # the library's default
    explicit = ranker(library, "lambdamart:preset=lightgbm", n_estimators=1, **raw)
    assert np.array_equal(
        preset.fit(data.X, data.y, **given).predict(data.X), explicit.fit(data.X, data.y, **given).predict(data.X)
    )


def test_the_metric_chooses_the_objective(library):
    data = fold().train
    own = MAP(threshold=1.0)
    for metric in (None, "map", ["mrr@5", "map"], own):
        fitted = ranker(library, None, eval_metric=metric, n_estimators=2).fit(data.X, data.y, qid=data.qid)
        first = metric[0] if isinstance(metric, list) else metric
        chosen = objective_for(first or "ndcg@10")
        assert fitted.objective_ == chosen
        named = ranker(library, chosen, eval_metric=metric, n_estimators=2).fit(data.X, data.y, qid=data.qid)
        assert np.array_equal(fitted.predict(data.X), named.predict(data.X))
    assert isinstance(objective_for(own).metric, Metric)
    assert objective_for(own).metric == own


def test_weights_within_a_query_multiply_gradients(library):
    data = fold().train
    weight = np.random.default_rng(0).uniform(0.2, 2, len(data.y))
    fitted = ranker(library, n_estimators=1).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    same = ranker(library, n_estimators=1).fit(data.X, data.y, qid=data.qid)
    assert not np.array_equal(fitted.predict(data.X), same.predict(data.X))
    doubled = ranker(library, n_estimators=1, **regularised(library, 2)).fit(
        data.X, data.y, qid=data.qid, sample_weight=2 * weight
    )
    plain = ranker(library, n_estimators=1, **regularised(library, 1)).fit(
        data.X, data.y, qid=data.qid, sample_weight=weight
    )
    np.testing.assert_allclose(doubled.predict(data.X), plain.predict(data.X), rtol=1e-5)


def regularised(library, factor):
    """The parameters that are compared with the Hessian of a leaf, times a factor."""
    if library == "catboost":  # CatBoost scales its regularisation with the weights itself
        return {"l2_leaf_reg": 1e-30 * factor}
    return {"reg_lambda": 1.0 * factor, "min_child_weight": 1e-3 * factor}


@pytest.mark.parametrize("objective", ["ours", "native"])
@pytest.mark.parametrize("metric", ["map", "mrr", "err", "dcg@5"])
def test_early_stopping_keeps_the_best_rounds(library, objective, metric):
    train, vali, _ = fold(seed=3)
    chosen = "lambdamart:ndcg" if objective == "ours" else NATIVE[library]
    fitted = ranker(library, chosen, eval_metric=[metric], n_estimators=60, learning_rate=1.0).fit(
        train.X, train.y, qid=train.qid, eval_set=[(train.X, train.y), (vali.X, vali.y)],
        eval_group=[train.group, vali.group], early_stopping_rounds=4,
    )  # fmt: skip
    assert list(fitted.evals_result_) == ["validation_0", "validation_1"]
    values = fitted.evals_result_["validation_1"][metric]
    if objective == "ours":
        assert list(fitted.evals_result_["validation_1"]) == [metric]  # CatBoost adds its own losses
    assert len(values) == fitted.best_iteration_ + 4 < 60
    assert values[fitted.best_iteration_ - 1] == max(values)
    for data, curve in ((train, "validation_0"), (vali, "validation_1")):
        expected = evaluate(metric, fitted.predict(data.X), data.y, data.group)
        found = fitted.evals_result_[curve][metric][fitted.best_iteration_ - 1]
        assert found == pytest.approx(expected, abs=2e-6)
    assert fitted.score(vali.X, vali.y, qid=vali.qid) == pytest.approx(max(values), abs=2e-6)


def test_metrics_are_weighted_by_query(library):
    train, vali, _ = fold()
    weight = query_weights(vali.group)
    fitted = ranker(library, eval_metric=MAP(k=5)).fit(
        train.X, train.y, qid=train.qid, sample_weight=query_weights(train.group),
        eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid], eval_sample_weight=[weight],
    )  # fmt: skip
    expected = evaluate("map@5", fitted.predict(vali.X), vali.y, vali.group, weight)
    assert fitted.evals_result_["validation_0"]["map@5"][-1] == pytest.approx(expected, abs=2e-6)
    assert fitted.score(vali.X, vali.y, qid=vali.qid, sample_weight=weight) == pytest.approx(expected)
    assert expected != pytest.approx(fitted.score(vali.X, vali.y, qid=vali.qid))


def test_files_and_pickles_predict_the_same(library, tmp_path):
    train, vali, test = fold()
    fitted = ranker(library, n_estimators=40, learning_rate=1.0).fit(
        train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid], early_stopping_rounds=3
    )
    assert fitted.best_iteration_ < 40
    expected = fitted.predict(test.X)
    path = tmp_path / f"model{SUFFIX[library]}"
    fitted.save_model(path)
    loaded = ranker_class(library)().load_model(path)
    for again in (loaded, pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(again.predict(test.X), expected)
        assert again.best_iteration_ == fitted.best_iteration_
        assert again.n_features_in_ == 10
        np.testing.assert_allclose(again.feature_importances_, fitted.feature_importances_, rtol=1e-6)
    native = {
        "xgboost": lambda: xgb.Booster(model_file=path).predict(xgb.DMatrix(test.X)),
        "lightgbm": lambda: lgb.Booster(model_file=path).predict(test.X),
        "catboost": lambda: catboost.CatBoost().load_model(str(path)).predict(test.X),
    }
    assert np.array_equal(native[library](), expected)
    assert pickle.dumps(fitted).find(train.y.tobytes()[:64]) == -1, "the training labels travel with the model"


def test_the_kind_of_importances_may_be_chosen(library):
    kind = {"xgboost": "weight", "lightgbm": "gain", "catboost": "FeatureImportance"}[library]
    train, _, _ = fold()
    chosen = ranker(library, importance_type=kind).fit(train.X, train.y, qid=train.qid)
    usual = ranker(library).fit(train.X, train.y, qid=train.qid)
    assert chosen.feature_importances_.shape == usual.feature_importances_.shape
    assert np.array_equal(chosen.predict(train.X), usual.predict(train.X))


def test_native_objectives_train_as_in_the_library(library):
    train, vali, _ = fold()
    fitted = ranker(library, NATIVE[library]).fit(train.X, train.y, qid=train.qid)
    options = LIBRARIES[library][1]
    own = {
        "xgboost": lambda: xgb.XGBRanker(objective="rank:ndcg", **options).fit(train.X, train.y, qid=train.qid),
        "lightgbm": lambda: lgb.LGBMRanker(**options, verbosity=-1).fit(train.X, train.y, group=train.group),
        "catboost": lambda: catboost.CatBoostRanker(
            loss_function="YetiRank", **options, verbose=False, allow_writing_files=False
        ).fit(train.X, train.y, group_id=train.qid),
    }
    theirs = own[library]()
    assert np.array_equal(fitted.predict(vali.X), theirs.predict(vali.X))
    if library != "catboost":  # there LossFunctionChange needs the training data, which a model does not hold
        assert np.allclose(fitted.feature_importances_, theirs.feature_importances_)
    assert fitted.score(vali.X, vali.y, qid=vali.qid) == evaluate("ndcg@10", fitted.predict(vali.X), vali.y, vali.group)


def test_early_stopping_on_the_library_s_own_metric(library):
    train, vali, _ = fold(seed=3)
    native = {"xgboost": "ndcg@7-", "lightgbm": "average_precision", "catboost": "NDCG:top=7"}[library]
    fitted = ranker(library, eval_metric=native, n_estimators=60, learning_rate=1.0, early_stopping_rounds=4)
    fitted.fit(train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid])
    [values] = fitted.evals_result_["validation_0"].values()
    assert len(values) == fitted.best_iteration_ + 4 < 60
    assert values[fitted.best_iteration_ - 1] == max(values)


def test_callbacks_and_printing_are_the_library_s(library, capfd):
    train, vali, _ = fold()
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
    data = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid]}
    quiet = ranker(library, callbacks=[given]).fit(train.X, train.y, qid=train.qid, **data)
    assert len(seen) == 3
    assert quiet.best_iteration_ <= 3
    said = capfd.readouterr().out
    assert "0." not in said  # no values of the metric
    ranker(library).fit(train.X, train.y, qid=train.qid, **data, verbose=True)
    bound_at_import = inspect.signature(catboost.CatBoost.fit).parameters["log_cout"].default is not None
    if library != "catboost" or not bound_at_import:  # older ones print to the stdout of that time
        assert len(capfd.readouterr().out.splitlines()) >= len(said.splitlines()) + 8


def test_a_missing_library_says_what_to_install(library, monkeypatch):
    module = importlib.import_module(ranker_class(library).__module__)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{library} is not installed: pip install {library}"):
        importlib.reload(module)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "ltr_objectives.adapters._data")
    with pytest.raises(ImportError, match=r"the rankers need scikit-learn: pip install scikit-learn"):
        importlib.import_module("ltr_objectives.adapters._data")


def test_assigned_parameters_are_those_of_the_next_fit(library):
    data, _, _ = fold(seed=3)
    fitted = ranker(library, "ranknet").fit(data.X, data.y, qid=data.qid)
    if library == "catboost":  # whose parameters are no attributes
        fitted.set_params(objective="lambdamart", learning_rate=0.01)
    else:
        fitted.objective, fitted.learning_rate = "lambdamart", 0.01
    assert fitted.get_params()["learning_rate"] == 0.01
    assert fitted.fit(data.X, data.y, qid=data.qid).objective_.name == "lambdamart"
    same = ranker(library, "lambdamart", learning_rate=0.01).fit(data.X, data.y, qid=data.qid)
    assert np.array_equal(fitted.predict(data.X), same.predict(data.X))

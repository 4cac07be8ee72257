"""The estimators are the libraries' own classes: what they inherit works as in the library."""

import inspect

import catboost
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from rankers import EVAL, LIBRARIES, TEST, TRAIN, VALI, everywhere, fit, query_weights, ranker, ranker_class

from ltr_objectives import LTRError
from ltr_objectives.adapters._ranker import Ranker

# The private names of the libraries that our estimators use, beside the functions that adapters/_frames.py looks for on
# the stack. They were tried with xgboost 2.1.4, 3.2.0 and 3.4.1, lightgbm 4.6.0 and 4.7.0, catboost 1.2.8 and 1.2.10.
# LightGBM's basic._ConfigAliases and XGBoost's sklearn.ltr_metric_decorator are used too.
PRIVATE = {
    "xgboost": ("_Booster",),
    "lightgbm": ("_Booster", "_n_features", "_other_params", "fitted_"),
    "catboost": ("_init_params", "_object", "_set_trained_model_attributes", "_prepare_train_params", "_fit"),
}
OWN = {"xgboost": xgb.XGBRanker, "lightgbm": lgb.LGBMRanker, "catboost": catboost.CatBoostRanker}


@pytest.fixture(scope="module")
def fitted():
    """Return the three, trained with early stopping."""
    stop = {**EVAL, "early_stopping_rounds": 10}
    return {library: fit(library, given=stop, eval_metric="map", n_estimators=30) for library in LIBRARIES}


@everywhere
def test_the_private_names_exist_and_ours_hide_no_other(library):
    queries = {"xgboost": {"qid": TRAIN.qid}, "lightgbm": {"group": TRAIN.group}, "catboost": {"group_id": TRAIN.qid}}
    quiet = {"allow_writing_files": False, "verbose": False} if library == "catboost" else {}
    own = OWN[library](n_estimators=1, **quiet).fit(TRAIN.X, TRAIN.y, **queries[library])
    assert [name for name in PRIVATE[library] if not hasattr(own, name)] == []
    ours = {name for c in (Ranker, ranker_class(library)) for name in vars(c) if name[0] == "_" != name[1]}
    hidden = {name for name in ours if hasattr(OWN[library], name)}
    assert hidden <= {"_get_param_names", "_estimator_type"}


@everywhere
def test_fit_names_the_library_s_arguments(library):
    of_a_pool = {"pairs", "pairs_weight", "subgroup_id", "graph", "column_description"}
    own, ours = (inspect.signature(each.fit).parameters for each in (OWN[library], ranker_class(library)))
    assert own.keys() - ours.keys() <= (of_a_pool if library == "catboost" else set())
    assert all(each.kind is each.KEYWORD_ONLY for name, each in ours.items() if name not in ("self", "X", "y"))
    assert inspect.getdoc(ranker_class(library).fit) == inspect.getdoc(Ranker.fit)


@everywhere
def test_the_constructor_has_the_library_s_defaults(library):
    base = {"xgboost": xgb.XGBModel, "lightgbm": lgb.LGBMModel, "catboost": catboost.CatBoostRanker}[library]
    own, ours = (inspect.signature(each).parameters for each in (base, ranker_class(library)))
    named = ours.keys() - {"objective", "eval_metric", "convention", "bounds", "reg_lambda", "params"}
    assert len(named) >= 5
    assert {name: ours[name].default for name in named} == {name: own[name].default for name in named}


ARGUMENTS = {
    "xgboost": ({"iteration_range": (0, 2)}, {"output_margin": True}, {"pred_contribs": True}),
    "lightgbm": ({"num_iteration": 2}, {"raw_score": True}, {"pred_contrib": True}),
    "catboost": ({"ntree_end": 2}, {"prediction_type": "RawFormulaVal"}, None),
}


@everywhere
def test_predict_takes_the_library_s_arguments(library, fitted):
    two, raw, shap = ARGUMENTS[library]
    trained, scores = fitted[library], fitted[library].predict(TEST.X)
    assert isinstance(trained, OWN[library])
    assert not np.array_equal(trained.predict(TEST.X, **two), scores)
    assert np.array_equal(trained.predict(TEST.X, **raw), scores)
    of_pool = {"data": catboost.Pool(TEST.X), "type": "ShapValues"}
    values = trained.predict(TEST.X, **shap) if shap else trained.get_feature_importance(**of_pool)
    np.testing.assert_allclose(values.sum(axis=1), scores, atol=1e-4)


@everywhere
def test_importances_are_of_the_kind_that_was_chosen(library):
    kind = {"xgboost": "weight", "lightgbm": "gain", "catboost": "FeatureImportance"}[library]
    chosen = fit(library, importance_type=kind)
    booster = chosen.booster_
    expected = {
        "xgboost": lambda: np.array([booster.get_score(importance_type=kind).get(f"f{i}", 0) for i in range(10)]),
        "lightgbm": lambda: booster.feature_importance(kind),
        "catboost": lambda: booster.get_feature_importance(type="PredictionValuesChange"),  # which needs no data
    }[library]()
    found = chosen.feature_importances_
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-6)


@everywhere
def test_a_model_of_a_table_predicts_arrays(library):
    names = [f"f{i}" for i in range(10)]
    table, others = pd.DataFrame(TRAIN.X, columns=names), pd.DataFrame(TEST.X, columns=names)
    trained = ranker(library).fit(table, TRAIN.y, qid=TRAIN.qid, **EVAL)  # the eval set is an array
    with pytest.warns(UserWarning, match="valid feature names"):  # scikit-learn's
        assert np.array_equal(trained.predict(TEST.X), trained.predict(others))


def test_attributes_of_xgboost_s_estimator(fitted):
    trained = fitted["xgboost"]
    assert trained.best_iteration + 1 == trained.best_iteration_
    assert trained.best_score == max(trained.evals_result_["validation_0"]["map"])
    assert trained.apply(TEST.X).shape == (len(TEST.y), trained.best_iteration_)
    assert trained.apply(TEST.X, iteration_range=(0, 1)).shape == (len(TEST.y), 1)
    assert np.array_equal(trained.predict(TEST.X, iteration_range=None), trained.predict(TEST.X))
    moved = trained.predict(TEST.X, base_margin=np.ones(len(TEST.y)))
    np.testing.assert_allclose(moved, trained.predict(TEST.X) + 1, atol=1e-5)
    again = fit("xgboost", n_estimators=2)
    assert np.array_equal(again.predict(TEST.X), again.set_params(max_depth=4, objective="ranknet").predict(TEST.X))
    assert not hasattr(again, "best_score")
    table = pd.DataFrame({"a": TRAIN.X[:, 0], "c": pd.Categorical((TRAIN.y % 2).astype(str))})
    assert again.fit(table, TRAIN.y, qid=TRAIN.qid).apply(table).shape == (len(TRAIN.y), 2)


def test_weights_never_abort_xgboost():
    weight = query_weights(VALI.group)
    data = {"qid": VALI.qid, "sample_weight": weight, **EVAL, "eval_sample_weight": [weight]}
    before = xgb.train({"eval_metric": "rmse"}, xgb.DMatrix(VALI.X, VALI.y, qid=VALI.qid), 1)  # keeps its metric
    for objective in ("yetiloss:map", "rank:ndcg"):
        for metric in (None, "mrr", ["map", "ndcg@3-"]):
            ranker("xgboost", objective, eval_metric=metric).fit(VALI.X, VALI.y, **data)
        for metric, model in ((["map", "rmse"], None), ("ndcg@3-", before)):
            with pytest.raises(LTRError, match="would abort the process"):
                ranker("xgboost", objective, eval_metric=metric).fit(VALI.X, VALI.y, **data, init_model=model)


def test_xgboost_s_linear_model_trains_without_early_stopping():
    assert fit("xgboost", given=EVAL, booster="gblinear", max_depth=None).best_iteration_ == 8


@pytest.mark.parametrize("save_best", [False, True])
def test_early_stopping_by_xgboost_s_callback_counts(fitted, save_best):
    expected = fitted["xgboost"]
    stop = xgb.callback.EarlyStopping(rounds=10, metric_name="map", maximize=True, save_best=save_best)
    again = fit("xgboost", given=EVAL, eval_metric="map", n_estimators=30, callbacks=[stop])
    assert again.best_iteration_ == expected.best_iteration_ < 26
    assert np.array_equal(again.predict(VALI.X), expected.predict(VALI.X))


@pytest.mark.skipif(not hasattr(xgb.Booster, "get_categories"), reason="older models have no categories")
def test_a_model_of_xgboost_itself_reads_unknown_categories_as_missing(tmp_path):
    """XGBoost reads "1" as "blue", the least known value that follows it."""
    colours = np.array(["blue", "red", "grey"])[np.random.default_rng(0).integers(0, 3, 60)]
    table = pd.DataFrame({"c": pd.Categorical(colours)})
    data = xgb.DMatrix(table, colours == "blue", qid=np.repeat(np.arange(6), 10), enable_categorical=True)
    xgb.train({"objective": "rank:ndcg"}, data, 3).save_model(tmp_path / "model.json")
    loaded = ranker("xgboost").load_model(tmp_path / "model.json")
    some = [None, *colours[1:]]
    missing, unknown, turned = (pd.DataFrame({"c": pd.Categorical(v)}) for v in (some, ["1", *some[1:]], some[::-1]))
    assert np.array_equal(loaded.predict(unknown), loaded.predict(missing))
    assert np.array_equal(loaded.predict(turned)[::-1], loaded.predict(missing))
    assert np.ptp(loaded.predict(missing)) > 0

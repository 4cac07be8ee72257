"""The estimators are the libraries' own classes: what they inherit works as in the library."""

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError
from ltr_objectives.adapters._libraries import PRIVATE
from ltr_objectives.adapters._ranker import Ranker

xgb, lgb, catboost = (pytest.importorskip(name) for name in ("xgboost", "lightgbm", "catboost"))
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
OWN = {"xgboost": xgb.XGBRanker, "lightgbm": lgb.LGBMRanker, "catboost": catboost.CatBoostRanker}
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"qid": TRAIN.qid, "eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}


@pytest.fixture(scope="module")
def fitted():
    """The three, trained with early stopping."""
    made = {library: ranker(library, eval_metric="map", n_estimators=30) for library in LIBRARIES}
    return {name: each.fit(TRAIN.X, TRAIN.y, **EVAL, early_stopping_rounds=4) for name, each in made.items()}


@everywhere
def test_they_are_the_libraries_classes(library, fitted):
    assert isinstance(fitted[library], OWN[library])
    assert type(fitted[library].booster_).__module__.partition(".")[0] == library
    assert repr(ranker_class(library)()) == f"{ranker_class(library).__name__}()"


@everywhere
def test_the_private_names_exist_and_ours_hide_no_other(library):
    own = OWN[library](**{NATIVE_OBJECTIVE[library]: NATIVE[library]}, n_estimators=1)
    quiet = {"group_id": TRAIN.qid, "verbose": False} if library == "catboost" else {"group": TRAIN.group}
    own.fit(TRAIN.X, TRAIN.y, **quiet)
    assert [name for name in PRIVATE[library] if not hasattr(own, name)] == []
    ours = {name for c in (Ranker, ranker_class(library)) for name in vars(c) if name[0] == "_" != name[1]}
    assert {name for name in ours if hasattr(OWN[library], name)} <= {
        "_more_tags",
        "_get_tags",
        "_get_param_names",
        "_estimator_type",
        "_process_predict_input_data",
    }


NATIVE_OBJECTIVE = {"xgboost": "objective", "lightgbm": "objective", "catboost": "loss_function"}
ARGUMENTS = {
    "xgboost": ({"iteration_range": (0, 2)}, {"output_margin": True}, {"pred_contribs": True}),
    "lightgbm": ({"num_iteration": 2}, {"raw_score": True}, {"pred_contrib": True}),
    "catboost": ({"ntree_end": 2}, {"prediction_type": "RawFormulaVal"}, None),
}


@everywhere
def test_predict_takes_the_library_s_arguments(library, fitted):
    two, raw, shap = ARGUMENTS[library]
    trained, scores = fitted[library], fitted[library].predict(TEST.X)
    assert not np.array_equal(trained.predict(TEST.X, **two), scores)
    assert np.array_equal(trained.predict(TEST.X, **raw), scores)
    pool = catboost.Pool(TEST.X)
    values = trained.predict(TEST.X, **shap) if shap else trained.get_feature_importance(pool, type="ShapValues")
    np.testing.assert_allclose(values.sum(axis=1), scores, atol=1e-4)


@everywhere
def test_a_model_of_a_table_predicts_arrays(library):
    names = [f"f{i}" for i in range(10)]
    table, others = pd.DataFrame(TRAIN.X, columns=names), pd.DataFrame(TEST.X, columns=names)
    trained = ranker(library).fit(table, TRAIN.y, qid=TRAIN.qid)
    mixed = {"eval_set": [(TEST.X, TEST.y)], "eval_qid": [TEST.qid]}
    with pytest.warns(UserWarning, match="X does not have valid feature names"):  # scikit-learn's
        assert np.array_equal(trained.predict(TEST.X), trained.predict(others))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        again = ranker(library).fit(table, TRAIN.y, qid=TRAIN.qid, **mixed)
    assert np.array_equal(again.predict(others), trained.predict(others))


def test_attributes_of_xgboost_s_estimator(fitted):
    trained = fitted["xgboost"]
    assert trained.get_booster().num_boosted_rounds() == trained.best_iteration + 1 == trained.best_iteration_
    assert trained.evals_result() == trained.evals_result_
    assert trained.best_score == max(trained.evals_result_["validation_0"]["map"])
    assert trained.apply(TEST.X).shape == (len(TEST.y), trained.best_iteration_)
    moved = trained.predict(TEST.X, base_margin=np.ones(len(TEST.y)))
    np.testing.assert_allclose(moved, trained.predict(TEST.X) + 1, atol=1e-5)
    again = ranker("xgboost", n_estimators=2).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    assert np.array_equal(again.predict(TEST.X), again.set_params(max_depth=4, objective="ranknet").predict(TEST.X))


def test_attributes_of_lightgbm_s_estimator(fitted):
    trained = fitted["lightgbm"]
    assert trained.n_features_ == trained.n_features_in_ == 10
    assert trained.feature_name_ == [f"Column_{i}" for i in range(10)]
    pytest.importorskip("matplotlib").use("Agg")
    assert lgb.plot_importance(trained)
    assert lgb.plot_metric(trained, metric="map")
    assert xgb.plot_importance(fitted["xgboost"])


def test_attributes_of_catboost_s_estimator(fitted):
    trained, pool = fitted["catboost"], catboost.Pool(TEST.X, TEST.y, group_id=TEST.qid)
    assert np.array_equal(list(trained.staged_predict(TEST.X))[-1], trained.predict(pool))
    assert np.array_equal(trained.copy().predict(TEST.X), trained.predict(TEST.X))
    assert trained.get_best_iteration() + 1 == trained.tree_count_ == trained.best_iteration_
    assert len(trained.eval_metrics(pool, ["NDCG"], ntree_end=2)) == 1
    assert trained.get_params()["objective"] == trained.objective == "yetiloss:map"


@pytest.mark.parametrize("ours", [{}, {"objective": "auto"}, {"objective": "YetiRank", "eval_metric": "map"}], ids=str)
def test_catboost_searches_only_for_its_own_objectives(ours):
    pool = catboost.Pool(TRAIN.X, np.minimum(TRAIN.y, 1), group_id=TRAIN.qid)
    made = ranker_class("catboost")(n_estimators=2, **ours)
    for search in (made.grid_search, made.randomized_search):
        with pytest.raises(LTRError, match=r"search cannot train for .*; search with scikit-learn's GridSearchCV"):
            search({"depth": [2, 3]}, pool)
    select = {"features_for_select": "0-3", "num_features_to_select": 2, "logging_level": "Silent"}
    with pytest.raises(LTRError, match=r"cannot train for .*; select with objective='YetiRank' and no eval_metric"):
        made.select_features(pool, **select)
    own = ranker_class("catboost")(n_estimators=2, objective="YetiRank", eval_metric="NDCG", logging_level="Silent")
    assert len(own.select_features(pool, **select, train_final_model=False)["selected_features"]) == 2
    with pytest.raises(LTRError, match="grid_search would call fit without the queries; pass refit=False, then fit"):
        own.grid_search({"depth": [2, 3]}, pool)
    if catboost.__version__ == "1.2":
        return  # its search finds no labels in a pool
    found = own.grid_search({"depth": [2, 3]}, pool, refit=False, verbose=False)["params"]
    assert own.set_params(**found).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid).depth == found["depth"]


def test_catboost_resumes_a_snapshot(tmp_path):
    files = {"save_snapshot": True, "snapshot_file": "s", "snapshot_interval": 0, "train_dir": str(tmp_path)}
    files |= {"allow_writing_files": True, "eval_metric": "map"}
    whole = ranker("catboost", eval_metric="map").fit(TRAIN.X, TRAIN.y, **EVAL)
    for rounds in (5, 8):
        resumed = ranker("catboost", **files, n_estimators=rounds).fit(TRAIN.X, TRAIN.y, **EVAL)
    assert np.array_equal(resumed.predict(TEST.X), whole.predict(TEST.X))
    assert resumed.evals_result_ == whole.evals_result_

"""The estimators are the libraries' own classes: what they inherit works as in the library."""

import itertools

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning, Queries, adapters, evaluate
from ltr_objectives.adapters._catboost_ranker import shuffled
from ltr_objectives.adapters._data import Part
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.libraries import CATBOOST, PRIVATE

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
    assert np.array_equal(list(trained.staged_predict(pool))[-1], trained.predict(TEST.X))
    assert np.array_equal(trained.copy().predict(TEST.X), trained.predict(TEST.X))
    assert trained.get_best_iteration() + 1 == trained.tree_count_ == trained.best_iteration_
    assert len(trained.eval_metrics(pool, ["NDCG"], ntree_end=2)) == 1
    assert trained.get_params()["objective"] == "yetiloss:map"


@pytest.mark.parametrize("ours", [{"objective": "queryrmse"}, {"eval_metric": "map"}], ids=str)
def test_catboost_resumes_only_snapshots_without_ours(ours, tmp_path):
    """A snapshot does not name an objective or metric of ours, so it would be continued with any other."""
    files = {"save_snapshot": True, "snapshot_file": "s", "snapshot_interval": 0, "train_dir": str(tmp_path)}
    files |= {"allow_writing_files": True, "objective": "QueryRMSE", "eval_metric": "NDCG"}
    whole = ranker("catboost", "QueryRMSE").fit(TRAIN.X, TRAIN.y, **EVAL)
    for rounds in (5, 8):
        resumed = ranker("catboost", **files, n_estimators=rounds).fit(TRAIN.X, TRAIN.y, **EVAL)
    assert np.array_equal(resumed.predict(TEST.X), whole.predict(TEST.X))
    with pytest.raises(LTRError, match=r"save_snapshot.*init_model"):
        ranker("catboost", **{**files, **ours}).fit(TRAIN.X, TRAIN.y, **EVAL)


@pytest.mark.filterwarnings("ignore:Regression loss .* ignores an important ranking parameter:RuntimeWarning")
@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("lightgbm", "regression"),
        ("lightgbm", "binary"),
        ("lightgbm", "poisson"),
        ("catboost", "RMSE"),
        ("catboost", "MAE"),
    ],
)
def test_pointwise_objectives_are_the_library_s(library, name):
    y = (TRAIN.y > 1).astype(float)
    quiet = {"verbose": -1} if library == "lightgbm" else {"verbose": False, "allow_writing_files": False}
    own = OWN[library](**{NATIVE_OBJECTIVE[library]: name}, **LIBRARIES[library][1], **quiet)
    own.fit(TRAIN.X, y, **({"group": TRAIN.group} if library == "lightgbm" else {}))
    assert np.array_equal(ranker(library, name).fit(TRAIN.X, y, qid=TRAIN.qid).predict(TEST.X), own.predict(TEST.X))


def with_statistics(seed, queries=300):
    """Labels that one feature decides with noise, and a category of which each query has three of 3,000 values."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), 12)
    shop = rng.integers(0, 3000, (queries, 3))[qid, rng.integers(0, 3, len(qid))]
    x = rng.normal(size=len(qid))
    X = pd.DataFrame({"x": x, "shop": pd.Categorical(shop.astype(str))})
    return X, np.digitize(x + 2 * rng.normal(size=len(qid)), [1, 2, 3]), qid


@pytest.mark.parametrize("native", sorted(CATBOOST.natives.keys() - {"QueryCrossEntropy"}))  # of the GPU alone
def test_a_metric_of_ours_does_not_change_a_training(native):
    """CatBoost shuffles rows with categories, which a metric needs not know of: it is evaluated on other data."""
    X, y, qid = with_statistics(0, 60)
    Z, z, other = with_statistics(1, 60)
    y, z = (np.minimum(v, 1) for v in (y, z))  # some objectives take no other labels
    if native == "StochasticRank":
        native += ":metric=NDCG"
    models = {}
    for metric in ("ndcg@10", "NDCG", ["map", "NDCG"]):
        made = ranker("catboost", native, eval_metric=metric, n_estimators=5, one_hot_max_size=1)
        models[str(metric)] = made.fit(X, y, qid=qid, eval_set=[(Z, z)], eval_qid=[other])
    first, *others = (model.predict(Z) for model in models.values())
    assert all(np.array_equal(first, scores) for scores in others)
    record = models["ndcg@10"].evals_result_["validation_0"]["ndcg@10"]
    assert record[-1] == pytest.approx(evaluate("ndcg@10", first, z, qid=other), abs=1e-6)
    assert np.ptp(record) > 0


@pytest.mark.parametrize("way", [-1, 1])
def test_target_statistics_do_not_read_labels_from_the_order_of_rows(way):
    """Sorted rows lose at most 0.025 NDCG@10; without the shuffle they lost 0.045 (falling) and 0.051 (rising)."""
    X, y, qid = with_statistics(0)
    Z, z, other = with_statistics(1)
    options = {"n_estimators": 60, "learning_rate": 0.2, "eval_metric": "ndcg@10"}
    found = []
    for order in (np.arange(len(y)), np.lexsort((way * y, qid))):
        made = ranker("catboost", None, **options).fit(X.iloc[order], y[order], qid=qid[order])
        again = ranker("catboost", None, **options).fit(X.iloc[order], y[order], qid=qid[order])
        assert np.array_equal(made.predict(Z), again.predict(Z))
        found.append(made.score(Z, z, qid=other))
    assert found[1] > found[0] - 0.025, found


def test_shuffled_rows_keep_what_belongs_to_them():
    group = np.array([3, 1, 6, 2])
    row = np.arange(12.0)
    for X, clicks in ((row[:, None], {"propensity": (row + 1) / 20}), (pd.DataFrame({"x": row}), {"position": row})):
        queries = Queries({None: row, "b": 2 * row}, group, weight=row + 1, **clicks)
        part = shuffled(Part(X, queries, row))
        now, given = np.asarray(part.X).ravel(), part.queries
        assert not np.array_equal(now, row)
        assert np.array_equal(given.ptr, queries.ptr)
        for first, last in itertools.pairwise(queries.ptr):
            assert set(now[first:last]) == set(row[first:last])
        shown = given.position if given.propensity is None else given.propensity * 20 - 1
        for array in (given.labels, given.of("b").labels / 2, given.weight_by_row - 1, shown):
            np.testing.assert_allclose(array, now, atol=1e-6)


@pytest.mark.parametrize("way", [-1, 1])
def test_the_bare_objective_warns_of_sorted_labels_with_categories(way):
    X, y, qid = with_statistics(0)
    order = np.lexsort((way * y, qid))
    sorted_rows = catboost.Pool(X.iloc[order], y[order], group_id=qid[order], cat_features=["shop"])
    with pytest.warns(LTRWarning, match="random order"):
        adapters.catboost_objective("queryrmse", sorted_rows)
    adapters.catboost_objective("queryrmse", catboost.Pool(X, y, group_id=qid, cat_features=["shop"]))
    adapters.catboost_objective("queryrmse", catboost.Pool(X[["x"]].iloc[order], y[order], group_id=qid[order]))

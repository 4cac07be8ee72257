"""Other programs read the libraries' models: their scores equal the library's."""

import ctypes
import subprocess
from types import SimpleNamespace

import examples
import lightgbm as lgb
import numpy as np
import onnxmltools
import onnxruntime
import pytest
import tl2cgen
import treelite
import xgboost as xgb
from eland.ml.transformers import get_model_transformer
from generated import ranking, shop
from onnxmltools.convert.common.data_types import FloatTensorType

from ltr_objectives.adapters import CatBoostRanker, LGBMRanker, XGBRanker, lightgbm_objective, xgboost_objective

OWN = "ignore:The ``noload`` loader:DeprecationWarning", "ignore:.*Any type hint is inferred:UserWarning"  # of MLflow
pytestmark = [pytest.mark.filterwarnings(each) for each in OWN]

X, Y, QID = ranking(0)
X = X.astype(np.float32)
GROUP = np.bincount(QID)
OTHER = ranking(1)[0].astype(np.float32)  # other rows, with zeros and missing values
OTHER[np.random.default_rng(1).random(OTHER.shape) < 0.1] = 0
OTHER[np.random.default_rng(2).random(OTHER.shape) < 0.1] = np.nan


def features(missing):
    """Return the features, a tenth of them missing if asked for."""
    return np.where(missing & (np.random.default_rng(0).random(X.shape) < 0.1), np.float32(np.nan), X)


def by_xgboost(missing=False, **params):
    data = xgb.DMatrix(features(missing), Y, qid=QID)
    params = {"max_depth": 4, "min_child_weight": 1e-3, **params}
    return xgb.train(params, data, 20, obj=xgboost_objective("yetiloss:map"))


def by_lightgbm(missing=False, **params):
    params |= {"objective": lightgbm_objective("yetiloss:map"), "min_data_in_leaf": 5, "verbose": -1}
    return lgb.train(params, lgb.Dataset(features(missing), Y, group=GROUP), 20)


@pytest.fixture(scope="module")
def recipes():
    """Return the functions of the page for ONNX, by name."""
    code = examples.block("docs/serving.md", "def with_objective").partition("for i, converted")[0]
    names = {"lgb": lgb, "np": np, "test": SimpleNamespace(X=OTHER)}
    examples.run(examples.block("docs/serving.md", "def with_names"), names)
    examples.run(code, names)
    return names


def score(onnx_model, rows=OTHER):
    session = onnxruntime.InferenceSession(onnx_model)
    return session.run(None, {session.get_inputs()[0].name: rows})[0].ravel()


TABLE, LABELS, IDS = shop()
REQUESTS = shop(1)[0].assign(brand=lambda X: X.brand.where(np.arange(len(X)) % 7 > 0))


def in_codes(X):
    """Return a table as converted models read it."""
    coded = X.assign(**{c: X[c].cat.codes.where(X[c].notna()) for c in ("brand", "shelf")})
    return np.ascontiguousarray(coded.to_numpy(np.float32))


@pytest.fixture(scope="module", params=["xgboost", "xgb.train", "lightgbm"])
def of_a_table(request):
    """Return a model of a table with missing categories, and its scores of the requests."""
    train = TABLE.assign(brand=TABLE.brand.where(np.arange(len(TABLE)) % 5 > 0))
    if request.param == "xgb.train":
        data = xgb.DMatrix(train, LABELS, qid=IDS, enable_categorical=True)
        booster = xgb.train({"min_child_weight": 1e-3}, data, 20, obj=xgboost_objective("yetiloss:map"))
        return booster, booster.predict(xgb.DMatrix(REQUESTS, enable_categorical=True))
    kind, params = (XGBRanker, {}) if request.param == "xgboost" else (LGBMRanker, {"min_data_per_group": 5})
    ranker = kind(objective="yetiloss:map", n_estimators=20, **params).fit(train, LABELS, qid=IDS)
    return ranker.booster_, ranker.predict(REQUESTS)


def test_onnx_of_a_table(recipes, of_a_table):
    """Names, whole numbers above 2^31, bools, categories and missing values."""
    booster, expected = of_a_table
    row = [("X", FloatTensorType([None, TABLE.shape[1]]))]
    if isinstance(booster, xgb.Booster):
        made = onnxmltools.convert_xgboost(recipes["with_names"](booster), initial_types=row)
    else:
        made = onnxmltools.convert_lightgbm(recipes["with_objective"](booster), initial_types=row)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(score(made.SerializeToString(), in_codes(REQUESTS)), expected, atol=1e-5)


def test_treelite_of_a_table(of_a_table):
    booster, expected = of_a_table
    if isinstance(booster, xgb.Booster):
        made = treelite.frontend.from_xgboost(booster[:])  # as the page says
    else:
        made = treelite.frontend.from_lightgbm(booster)
    found = treelite.gtil.predict(made, in_codes(REQUESTS)).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_onnx_of_linear_trees_is_refused(recipes):
    booster = by_lightgbm(linear_tree=True)
    with pytest.raises(ValueError, match="linear"):
        recipes["with_objective"](booster)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("base_score", [0, 0.5, 2])
def test_onnx_of_xgboost(recipes, missing, base_score):
    booster = by_xgboost(missing, base_score=base_score)
    made = onnxmltools.convert_xgboost(booster, initial_types=recipes["row"])
    expected = booster.predict(xgb.DMatrix(OTHER))
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(score(made.SerializeToString()), expected, atol=1e-5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("split", [None, 5])
def test_onnx_of_lightgbm(recipes, missing, split):
    booster = by_lightgbm(missing)
    known = recipes["with_objective"](booster)
    assert np.array_equal(known.predict(OTHER), booster.predict(OTHER))
    made = onnxmltools.convert_lightgbm(known, initial_types=recipes["row"], split=split)
    np.testing.assert_allclose(score(made.SerializeToString()), booster.predict(OTHER), atol=1e-5)


@pytest.mark.parametrize("missing", [False, True])
def test_onnx_of_catboost(recipes, missing, tmp_path):
    ranker = CatBoostRanker(objective="yetiloss:map", n_estimators=20).fit(features(missing), Y, qid=QID)
    rows = OTHER if missing else np.nan_to_num(OTHER)
    ranker.booster_.save_model(str(tmp_path / "model.onnx"), format="onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    [scores] = session.run(None, {session.get_inputs()[0].name: rows})
    assert np.ptp(ranker.predict(rows)) > 0.1
    np.testing.assert_allclose(scores.ravel(), ranker.predict(rows), atol=1e-5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_treelite(library, missing, tmp_path):
    if library == "xgboost":
        booster = by_xgboost(missing, base_score=0.5)
        expected, model = booster.predict(xgb.DMatrix(OTHER)), treelite.frontend.from_xgboost(booster)
    else:
        booster = by_lightgbm(missing)
        expected, model = booster.predict(OTHER), treelite.frontend.from_lightgbm(booster)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(treelite.gtil.predict(model, OTHER).ravel(), expected, atol=1e-5)
    tl2cgen.export_lib(model, toolchain="gcc", libpath=tmp_path / "model.so", params={})
    compiled = tl2cgen.Predictor(tmp_path / "model.so")
    np.testing.assert_allclose(compiled.predict(tl2cgen.DMatrix(OTHER)).ravel(), expected, atol=1e-5)


SHIM = """
extern "C" void score(const float* rows, int n, int columns, double* scores) {
    for (int i = 0; i < n; ++i)
        scores[i] = ApplyCatboostModel(std::vector<float>(rows + i * columns, rows + (i + 1) * columns));
}
"""


@pytest.mark.parametrize("missing", [False, True])
def test_code_of_catboost(missing, tmp_path):
    ranker = CatBoostRanker(objective="yetiloss:map", n_estimators=20).fit(features(missing), Y, qid=QID)
    rows = np.ascontiguousarray(OTHER if missing else np.nan_to_num(OTHER))
    expected = ranker.predict(rows)
    assert np.ptp(expected) > 0.1
    for kind in ("python", "cpp"):
        ranker.booster_.save_model(str(tmp_path / f"model.{kind}"), format=kind)
    names = {}
    examples.run((tmp_path / "model.python").read_text(), names)
    scores = [names["apply_catboost_model"](row) for row in rows.tolist()]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    (tmp_path / "model.cpp").write_text((tmp_path / "model.cpp").read_text() + SHIM)
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "model.so", tmp_path / "model.cpp"], check=True)
    scores, address = np.zeros(len(rows)), lambda array: ctypes.c_void_p(array.ctypes.data)
    ctypes.CDLL(str(tmp_path / "model.so")).score(address(rows), *rows.shape, address(scores))
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("base_score", [0, 0.5])
def test_eland_makes_the_trees_of_elasticsearch(base_score, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"xgb": xgb, "by_xgboost": by_xgboost(missing=True, base_score=base_score)}
    examples.run(examples.block("docs/serving.md", "def with_names"), names)
    examples.run(examples.block("docs/search_engines.md", "plain.load_model"), names)
    features = [f"f{k}" for k in range(X.shape[1])]
    given = {"feature_names": features, "classification_labels": None, "classification_weights": None}
    made = get_model_transformer(names["plain"], **given).transform().to_dict()["ensemble"]

    def score(nodes, row, at=0):
        node = {each["node_index"]: each for each in nodes}[at]
        if "leaf_value" in node:
            return np.ravel(node["leaf_value"])[0]  # a number, or a list of one
        value = row[node["split_feature"]]
        left = node["default_left"] if np.isnan(value) else value < np.float32(node["threshold"])
        return score(nodes, row, node["left_child"] if left else node["right_child"])

    scores = [sum(score(each["tree"]["tree_structure"], row) for each in made["trained_models"]) for row in OTHER]
    expected = names["by_xgboost"].predict(xgb.DMatrix(OTHER))
    np.testing.assert_allclose(scores - np.mean(scores), expected - expected.mean(), atol=1e-5)
    assert list(made["aggregate_output"]) == ["weighted_sum"]

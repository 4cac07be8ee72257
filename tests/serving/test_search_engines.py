"""The formats of search engines: the page's code, evaluated by the engines' rules, gives the library's scores."""

import functools
import json

import examples
import numpy as np
import pandas
import pytest
from generated import ranking, shop

from ltr_objectives.adapters import lightgbm_objective, xgboost_objective

xgb = pytest.importorskip("xgboost")
NAMES = [f"feature_{i}" for i in range(5)]  # as the page names them
# what the plugin's parser declares; it refuses other fields
SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
LEAF = {"nodeid", "depth", "leaf"}


def table(X):
    """Return the features as columns of a shop: numbers, whole numbers above 2^31 and bools."""
    columns = pandas.DataFrame(X, columns=[f"column {i}" for i in range(5)])
    sold = 2**33 + (np.nan_to_num(X[:, 1]) * 1e6).astype(np.int64)
    return columns.assign(**{"column 1": sold, "column 2": np.nan_to_num(X[:, 2]) > 1})


@functools.cache
def trained(*, missing=False, base_score=0.0, by=np.asarray, **params):
    """Return features that often equal a threshold, and a model of them."""
    X, y, qid = ranking(0, levels=4)
    X[:, 0] = ranking(0)[0][:, 0]  # thresholds of all sizes
    X = X.astype(np.float32)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    data = xgb.DMatrix(by(X), y, qid=qid)
    X = np.asarray(by(X), np.float32)  # as XGBoost reads them
    params |= {"max_depth": 4, "min_child_weight": 1e-3, "base_score": base_score}
    return X, data, xgb.train(params, data, 10, obj=xgboost_objective("yetiloss:map"))


forms = pytest.mark.parametrize("by", [np.asarray, table], ids=["array", "table"])


def page(model):
    """Return the names that the page's code defines for the model."""
    names = {"np": np, "names": NAMES, "by_xgboost": model}
    examples.run(examples.block("docs/serving.md", "def with_names"), names)
    for word in ("get_dump", "MultipleAdditiveTreesModel"):
        examples.run(examples.block("docs/search_engines.md", word), names)
    return names


def opensearch(tree, row):
    """Evaluate as `NaiveAdditiveDecisionTree` of the Learning to Rank plugin does what its parser reads."""
    while "leaf" not in tree:
        assert set(tree) == SPLIT
        assert tree["missing"] in (tree["yes"], tree["no"])
        yes, no = tree["children"]
        assert (yes["nodeid"], no["nodeid"]) == (tree["yes"], tree["no"])
        value = row[NAMES.index(tree["split"])]
        left = tree["missing"] == tree["yes"] if np.isnan(value) else np.float32(tree["split_condition"]) > value
        tree = yes if left else no
    assert set(tree) <= LEAF
    return np.float32(tree["leaf"])


def solr(tree, row, features):
    """Evaluate a tree as `MultipleAdditiveTreesModel` of Solr does."""
    while "feature" in tree:
        bound = np.float32(tree["threshold"]) + np.float32(1e-6)
        tree = tree["left"] if row[features.index(tree["feature"])] <= bound else tree["right"]
    return np.float32(tree["value"])


@forms
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("base_score", [0.0, 0.5])
def test_opensearch_gives_the_scores_of_xgboost(missing, base_score, by):
    X, data, model = trained(missing=missing, base_score=base_score, by=by)
    before = model.feature_names
    body = page(model)["body"]["model"]["model"]
    assert body["type"] == "model/xgboost+json"
    trees = json.loads(body["definition"])["splits"]
    scores = [sum(opensearch(tree, row) for tree in trees) for row in X]
    expected = model.predict(data)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(np.array(scores) + base_score, expected, atol=1e-5)
    assert model.feature_names == before


def vespa(node, row, texts=None):
    """Evaluate the expression that Vespa's importers make of a node of either library; comparisons with NaN fail.

    ``texts`` are LightGBM's categories by feature.
    """
    if "leaf" in node or "leaf_value" in node:
        return node.get("leaf", node.get("leaf_value"))
    if node.get("decision_type") == "==":
        chosen = [texts[node["split_feature"]][int(i)] for i in node["threshold"].split("||")]
        assert all(isinstance(each, str) for each in chosen)
        return vespa(node["left_child" if row[node["split_feature"]] in chosen else "right_child"], row, texts)
    if "split_condition" in node:
        value, bound, (left, right) = row[NAMES.index(node["split"])], node["split_condition"], node["children"]
        default = node["missing"] == node["yes"]
        assert (left["nodeid"], right["nodeid"]) == (node["yes"], node["no"])
    else:
        value, bound, default = row[node["split_feature"]], node["threshold"], node["default_left"]
        left, right = node["left_child"], node["right_child"]
    return vespa(left if (not value >= bound if default else value < bound) else right, row, texts)


@forms
@pytest.mark.parametrize("missing", [False, True])
def test_vespa_gives_the_scores_of_both_libraries(missing, by, tmp_path, monkeypatch):
    lgb = pytest.importorskip("lightgbm")
    monkeypatch.chdir(tmp_path)
    X, data, model = trained(missing=missing, by=by)
    _, y, qid = ranking(0, levels=4)
    params = {"objective": lightgbm_objective("yetiloss:map"), "min_data_in_leaf": 3, "verbose": -1}
    booster = lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid)), 10)
    names = {"np": np, "json": json, "by_lightgbm": booster, "dump": page(model)["dump"]}
    examples.run(examples.block("docs/search_engines.md", "def below"), names)
    rows = X.astype(float)  # which float32 values are exact in
    made = json.loads((tmp_path / "xgboost.json").read_text())
    scores = [sum(vespa(tree, row) for tree in made) for row in rows]
    np.testing.assert_allclose(scores, model.predict(data), atol=1e-5)
    made = json.loads((tmp_path / "lightgbm.json").read_text())
    assert (made["objective"], "objective" in booster.dump_model()) == ("regression", False)
    for tree in booster.dump_model()["tree_info"]:  # values that equal a threshold
        rows[::3, tree["tree_structure"]["split_feature"]] = tree["tree_structure"]["threshold"]
    scores = [sum(vespa(tree["tree_structure"], row) for tree in made["tree_info"]) for row in rows]
    np.testing.assert_allclose(scores, booster.predict(rows), atol=1e-9)


@forms
def test_solr_gives_the_scores_of_xgboost(by):
    X, data, model = trained(by=by)
    made = page(model)["solr"]
    features = [feature["name"] for feature in made["features"]]
    trees = json.loads(json.dumps(made))["params"]["trees"]
    scores = [sum(np.float32(tree["weight"]) * solr(tree["root"], row, features) for tree in trees) for row in X]
    np.testing.assert_allclose(scores, model.predict(data), atol=1e-5)


def test_solr_s_thresholds():
    """A value goes to the right, and the next smaller one to the left; next to 0 only up to Solr's rounding."""
    threshold = page(trained()[2])["threshold"]
    for value in np.float32(
        [0.0, 1e-10, -1e-10, 1e-6, -1e-6, 0.25, -0.25, 1.0, 17.3, -1e4, 3e7, *ranking(2)[0].ravel()]
    ):
        bound = np.float32(threshold(value)) + np.float32(1e-6)
        assert np.nextafter(value, np.float32(-np.inf)) - np.float32(1e-12) <= bound < value


def test_categories_are_refused_by_search_engines_without_them():
    X, y, qid = ranking(0, levels=4)
    columns = pandas.DataFrame(X).astype({0: "int"}).astype({0: "category"}).rename(columns=str)
    data = xgb.DMatrix(columns, y, qid=qid, enable_categorical=True)
    with pytest.raises(ValueError, match="categor"):
        page(xgb.train({"min_child_weight": 1e-3}, data, 2, obj=xgboost_objective("yetiloss:map")))


def test_vespa_reads_a_table_with_categories(tmp_path, monkeypatch):
    adapters = pytest.importorskip("ltr_objectives.adapters._lightgbm_ranker")
    monkeypatch.chdir(tmp_path)
    X, y, qid = shop()
    X["shelf"] = X.shelf.astype("str").astype("category")
    X.loc[::7, "brand"] = np.nan
    ranker = adapters.LGBMRanker(n_estimators=20, min_child_samples=5, min_data_per_group=5).fit(X, y, qid=qid)
    names = {"np": np, "json": json, "by_lightgbm": ranker.booster_, "dump": []}
    examples.run(examples.block("docs/search_engines.md", "def below"), names)
    made = json.loads((tmp_path / "lightgbm.json").read_text())
    texts = dict(zip((3, 4), made["pandas_categorical"], strict=True))
    rows = X.astype({"sold": float, "new": float}).to_numpy(object)
    scores = [sum(vespa(tree["tree_structure"], row, texts) for tree in made["tree_info"]) for row in rows]
    assert "==" in (tmp_path / "lightgbm.json").read_text()
    np.testing.assert_allclose(scores, ranker.predict(X), atol=1e-9)

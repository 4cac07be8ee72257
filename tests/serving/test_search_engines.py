"""The formats of search engines: the page's code, evaluated by the engines' rules, gives the library's scores."""

import functools
import json

import examples
import numpy as np
import pytest
from generated import ranking

from ltr_objectives.adapters import lightgbm_objective, xgboost_objective

xgb = pytest.importorskip("xgboost")
NAMES = [f"feature_{i}" for i in range(5)]  # as the page names them
# what the plugin's parser declares; it refuses other fields
SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
LEAF = {"nodeid", "depth", "leaf"}


@functools.cache
def trained(*, missing=False, base_score=0.0, **params):
    """Features that often equal a threshold, and a model of them."""
    X, y, qid = ranking(0, levels=4)
    X[:, 0] = ranking(0)[0][:, 0]  # thresholds of all sizes
    X = X.astype(np.float32)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    data = xgb.DMatrix(X, y, qid=qid, feature_names=NAMES)
    params |= {"max_depth": 4, "min_child_weight": 1e-3, "base_score": base_score}
    return X, data, xgb.train(params, data, 10, obj=xgboost_objective("yetiloss:map"))


def page(model):
    """The names that the page's code defines for the model."""
    names = {"np": np, "names": NAMES, "by_xgboost": model}
    for word in ("get_dump", "MultipleAdditiveTreesModel"):
        examples.run(examples.block("docs/serving.md", word), names)
    return names


def opensearch(tree, row):
    """As `NaiveAdditiveDecisionTree` of the Learning to Rank plugin evaluates what its parser reads."""
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
    """As `MultipleAdditiveTreesModel` of Solr evaluates a tree."""
    while "feature" in tree:
        bound = np.float32(tree["threshold"]) + np.float32(1e-6)
        tree = tree["left"] if row[features.index(tree["feature"])] <= bound else tree["right"]
    return np.float32(tree["value"])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("base_score", [0.0, 0.5])
def test_opensearch_gives_the_scores_of_xgboost(missing, base_score):
    X, data, model = trained(missing=missing, base_score=base_score)
    body = page(model)["body"]["model"]["model"]
    assert body["type"] == "model/xgboost+json"
    trees = json.loads(body["definition"])["splits"]
    scores = [sum(opensearch(tree, row) for tree in trees) for row in X]
    expected = model.predict(data)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(np.array(scores) + base_score, expected, atol=1e-5)


def vespa(node, row):
    """As the ranking expression that Vespa's importers make of a node of either library; comparisons with NaN fail."""
    if "leaf" in node or "leaf_value" in node:
        return node.get("leaf", node.get("leaf_value"))
    if "split_condition" in node:
        value, bound, (left, right) = row[NAMES.index(node["split"])], node["split_condition"], node["children"]
        default = node["missing"] == node["yes"]
        assert (left["nodeid"], right["nodeid"]) == (node["yes"], node["no"])
    else:
        value, bound, default = row[node["split_feature"]], node["threshold"], node["default_left"]
        left, right = node["left_child"], node["right_child"]
    return vespa(left if (not value >= bound if default else value < bound) else right, row)


@pytest.mark.parametrize("missing", [False, True])
def test_vespa_gives_the_scores_of_both_libraries(missing, tmp_path, monkeypatch):
    lgb = pytest.importorskip("lightgbm")
    monkeypatch.chdir(tmp_path)
    X, data, model = trained(missing=missing)
    _, y, qid = ranking(0, levels=4)
    params = {"objective": lightgbm_objective("yetiloss:map"), "min_data_in_leaf": 3, "verbose": -1}
    booster = lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid)), 10)
    names = {"np": np, "json": json, "by_lightgbm": booster, "dump": page(model)["dump"]}
    examples.run(examples.block("docs/serving.md", "def below"), names)
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


def test_solr_gives_the_scores_of_xgboost():
    X, data, model = trained()
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

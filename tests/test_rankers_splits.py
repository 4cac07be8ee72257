"""A model in which no tree has a split is never silent, whatever the reason; parameters that were given are named."""

import warnings

import numpy as np
import pytest
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class

from ltr_objectives import LTRError, LTRWarning
from ltr_objectives.adapters import bagged

lightgbm, catboost, _ = (pytest.importorskip(name) for name in ("lightgbm", "catboost", "xgboost"))
everywhere = pytest.mark.parametrize("library", LIBRARIES)
TRAIN, VALI, _ = fold()
CONSTANT, MISSING = np.ones_like(TRAIN.X), np.full_like(TRAIN.X, np.nan)
LIMITS = [  # the parameter as it is given, and its value
    ("xgboost", "gamma", 1e9), ("xgboost", "min_split_loss", 1e9), ("xgboost", "min_child_weight", 1e9),
    ("xgboost", "reg_lambda", 1e30), ("xgboost", "reg_alpha", 1e9), ("lightgbm", "min_split_gain", 1e9),
    ("lightgbm", "min_gain_to_split", 1e9), ("lightgbm", "min_child_samples", 10_000),
    ("lightgbm", "min_data_in_leaf", 10_000), ("lightgbm", "min_child_weight", 1e9), ("lightgbm", "reg_alpha", 1e9),
    ("catboost", "depth", 0), ("catboost", "min_data_in_leaf", 10_000),
]  # fmt: skip


def fit(library, objective, X=TRAIN.X, **params):
    if library == "catboost" and "min_data_in_leaf" in params:
        params["grow_policy"] = "Depthwise"
    rounds, data = params.pop("n_estimators", 3), {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
    stop = {"early_stopping_rounds": params.pop("stop")} | data if "stop" in params else {}
    untrained = ranker(library, objective, n_estimators=rounds, eval_metric="map", **params)
    return untrained.fit(X, TRAIN.y, qid=TRAIN.qid, **stop)


def outcome(*given, **params):
    """The only warning of a training, or its error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model = fit(*given, **params)
        except (LTRError, lightgbm.basic.LightGBMError, catboost.CatBoostError) as error:
            return str(error)
    assert np.ptp(model.predict(VALI.X)) == 0
    [warning] = [each for each in said if issubclass(each.category, LTRWarning)]
    assert warning.filename == __file__
    return str(warning.message)


@pytest.mark.parametrize("stop", [{}, {"stop": 2}], ids=["", "early stopping"])
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
@pytest.mark.parametrize(("library", "name", "value"), LIMITS)
def test_the_parameter_that_forbids_splits_is_named(library, name, value, own, stop):
    text = outcome(library, "yetiloss:map" if own else NATIVE[library], **{name: value}, **stop)
    assert f"{name}={value}" in text
    assert "0 of" in text


@everywhere
@pytest.mark.parametrize("queries", [1, 2, 5, 9, 20])
def test_tiny_data_are_ordered_or_the_parameter_is_named(library, queries):
    X, labels = np.eye(2).repeat(queries, axis=0), np.array([1, 2]).repeat(queries)
    order = np.arange(2 * queries).reshape(2, queries).T.ravel()  # a document of each label in each query
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = ranker_class(library)(n_estimators=10).fit(X[order], labels[order], group=[2] * queries)
    worse, better = model.predict(np.eye(2))
    assert better > worse or "min_child_samples" in str(said[0].message)


@everywhere
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
@pytest.mark.parametrize("X", [CONSTANT, MISSING], ids=["constant", "missing"])
def test_columns_that_order_nothing(library, own, X):
    text = outcome(library, "yetiloss:map" if own else NATIVE[library], X)
    assert any(word in text for word in ("no column orders", "num_features", "constant"))


@everywhere
def test_bags_and_candidates_say_it_too(library):
    name, value = next((name, value) for of, name, value in reversed(LIMITS) if of == library)
    grows = {"grow_policy": "Depthwise"} if library == "catboost" else {}
    with pytest.warns(LTRWarning, match=f"{name}={value}"):
        bagged(ranker(library, **{name: value}, **grows), TRAIN.X, TRAIN.y, qid=TRAIN.qid, bags=2)
    assert f"{name}={value}" in outcome(library, "auto", stop=2, **{name: value})


@everywhere
def test_a_model_with_splits_is_silent(library):
    fit(library, "yetiloss:map")  # warnings are errors
    fit(library, NATIVE[library])
    if library == "xgboost":  # the others need a round
        fit(library, "yetiloss:map", n_estimators=0)


@everywhere
def test_rounds_of_an_earlier_model_do_not_count(library):
    name, value = {"xgboost": ("gamma", 1e9), "lightgbm": ("min_split_gain", 1e9), "catboost": ("depth", 0)}[library]
    options = {"qid": TRAIN.qid, "init_model": fit(library, "yetiloss:map")}
    with pytest.warns(LTRWarning, match=f"{name}={value}"):
        ranker(library, **{name: value}).fit(TRAIN.X, TRAIN.y, **options)


def test_auto_says_that_only_native_objectives_are_left():
    with pytest.warns(LTRWarning) as said:
        model = fit("lightgbm", "auto", CONSTANT, stop=2)
    assert isinstance(model.objective_, str)
    texts = [str(warning.message) for warning in said]
    assert len(texts) == 2
    assert "no objective of ours" in texts[0]
    assert "0 of" in texts[1]

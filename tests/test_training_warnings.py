"""Warnings of trainings, each once, from the libraries' own functions and from our estimators."""

import warnings

import numpy as np
import pytest
from catalog import ONE_OF_EACH, PATHS
from rankers import LIBRARIES, NATIVE, fold, ranker, ranker_class
from trainings import WAYS, exact, release, trained

from ltr_objectives import LTRError, LTRWarning, get_metric
from ltr_objectives.adapters import bagged

libraries = pytest.mark.parametrize("library", LIBRARIES)
ways = pytest.mark.parametrize("way", WAYS)


RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(4000, 3)), RNG.integers(0, 3, 4000).astype(float), [20] * 200


def warning_of(code, words):
    """The warning of ours that has these words; there is no other, except of trees without a split."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        code()
    said = [str(w.message) for w in caught if issubclass(w.category, LTRWarning)]
    [text] = [text for text in said if words in text]
    assert all(words in other or "have a split" in other for other in said)
    return text


@libraries
@ways
@pytest.mark.parametrize("threads", [1, 3])
def test_useless_queries(library, way, threads):
    features, _, group = WIDE
    equal = np.repeat(np.arange(200), 20) % 2  # labels of a query
    how = {"rounds": 2, "threads": threads, "params": exact(library, way)}
    arguments = library, way, PATHS["own Hessian"], features, equal, group
    assert warning_of(lambda: trained(*arguments, **how), "200 of 200 queries have zero gradient")


@ways
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_limit_that_forbids_every_split(library, way):
    name = "min_sum_hessian_in_leaf" if (library, way) == ("lightgbm", "callable") else "min_child_weight"
    arguments = library, way, PATHS["own Hessian"], *WIDE, 2
    text = warning_of(lambda: trained(*arguments, params={name: 1e5}), "forbids every split")
    assert f"{name}=100000" in text


@libraries
@ways
@pytest.mark.parametrize("path", ["propensity", "position"])
def test_grades_instead_of_clicks(library, way, path):
    given = {path: 1 + np.tile(np.arange(20), 200)}
    words = f"with {path}, labels are clicks, 0 or 1"
    assert warning_of(lambda: trained(library, way, PATHS["clicks"], *WIDE, 2, **given), words)


@libraries
@ways
@pytest.mark.parametrize("metric", [get_metric("map"), get_metric("ndcg@10"), *release(ONE_OF_EACH)])
def test_eval_sets_on_which_every_order_is_as_good(library, way, metric):
    features, y, group = WIDE
    graded = hasattr(metric, "threshold")
    labels = 1.0 + y if graded else np.full(4000, min(1.0, metric.label_limit or 1.0))
    arguments = library, way, PATHS["own Hessian"], features, y / 4, group, 1
    how = {"valid": (features, labels, group), "metric": metric}
    words = f"every order of the documents has the same {metric}; "
    text = warning_of(lambda: trained(*arguments, **how), words)
    assert ("eval_set[0]: " in text) == (way == "estimator")
    if graded:
        assert f"labels are from 1 to 3, and all above {metric.threshold:g} are relevant" in text
        better = how | {"metric": text.split("as in '")[1].split("'")[0]}
        trained(*arguments, **better)  # warnings are errors


@libraries
def test_score_by_another_metric(library):
    name = {"xgboost": "rmse", "lightgbm": "l2", "catboost": "QueryRMSE"}[library]
    fitted = ranker(library, NATIVE[library], eval_metric=name, n_estimators=1)
    fitted.fit(WIDE[0], WIDE[1], group=WIDE[2])
    assert warning_of(lambda: fitted.score(WIDE[0], WIDE[1], group=WIDE[2]), "score is the mean ndcg@10")


# a model in which no tree has a split is never silent


TRAIN, VALI, _ = fold()
LIMITS = [  # the parameter as it is given, and its value
    ("xgboost", "gamma", 1e9), ("xgboost", "min_split_loss", 1e9), ("xgboost", "min_child_weight", 1e9),
    ("xgboost", "reg_lambda", 1e30), ("xgboost", "reg_alpha", 1e9), ("lightgbm", "min_split_gain", 1e9),
    ("lightgbm", "min_gain_to_split", 1e9), ("lightgbm", "min_child_samples", 10_000),
    ("lightgbm", "min_data_in_leaf", 10_000), ("lightgbm", "min_child_weight", 1e9), ("lightgbm", "reg_alpha", 1e9),
    ("catboost", "depth", 0), ("catboost", "min_data_in_leaf", 10_000),
]  # fmt: skip
LAST = {library: (name, value) for library, name, value in LIMITS}


def fit(library, objective, X=TRAIN.X, stop=None, **params):
    if "min_data_in_leaf" in params and library == "catboost":
        params["grow_policy"] = "Depthwise"
    given = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid], "early_stopping_rounds": stop} if stop else {}
    untrained = ranker(library, objective, eval_metric="map", **{"n_estimators": 3, **params})
    return untrained.fit(X, TRAIN.y, qid=TRAIN.qid, **given)


def outcome(*given, **params):
    """The only warning of a training, or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = fit(*given, **params)
        except (LTRError, ranker(given[0]).library.exception()) as error:
            return str(error)
    assert np.ptp(model.predict(VALI.X)) == 0
    [warning] = [each for each in caught if issubclass(each.category, LTRWarning)]
    assert warning.filename == __file__
    return str(warning.message)


@pytest.mark.parametrize("stop", [None, pytest.param(2, marks=pytest.mark.release)])
@pytest.mark.parametrize("own", [True, pytest.param(False, marks=pytest.mark.release)], ids=["ours", "native"])
@pytest.mark.parametrize(("library", "name", "value"), LIMITS)
def test_the_parameter_that_forbids_splits_is_named(library, name, value, own, stop):
    text = outcome(library, PATHS["random"] if own else NATIVE[library], stop=stop, **{name: value})
    assert f"{name}={value}" in text
    assert "0 of" in text


@libraries
@pytest.mark.parametrize("queries", [1, 2, 5, 9, 20])
def test_tiny_data_are_ordered_or_the_parameter_is_named(library, queries):
    X, labels = np.eye(2).repeat(queries, axis=0), np.array([1, 2]).repeat(queries)
    order = np.arange(2 * queries).reshape(2, queries).T.ravel()  # a document of each label in each query
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = ranker_class(library)(n_estimators=10).fit(X[order], labels[order], group=[2] * queries)
    worse, better = model.predict(np.eye(2))
    assert better > worse or "min_child_samples" in str(caught[0].message)


@libraries
@pytest.mark.parametrize("own", [True, False], ids=["ours", "native"])
@pytest.mark.parametrize("value", [1.0, np.nan], ids=["constant", "missing"])
def test_columns_that_order_nothing(library, own, value):
    text = outcome(library, PATHS["random"] if own else NATIVE[library], np.full_like(TRAIN.X, value))
    assert any(word in text for word in ("no column orders", "num_features", "constant"))


@libraries
def test_models_without_splits_of_bags_candidates_and_continued_trainings(library):
    name, value = LAST[library]
    params = {name: value, **({"grow_policy": "Depthwise"} if library == "catboost" else {})}
    with pytest.warns(LTRWarning, match=f"{name}={value}"):
        bagged(ranker(library, **params), TRAIN.X, TRAIN.y, qid=TRAIN.qid, bags=2)
    assert f"{name}={value}" in outcome(library, "auto", stop=2, **{name: value})
    before = fit(library, PATHS["random"], **({"grow_policy": "Depthwise"} if library == "catboost" else {}))
    with pytest.warns(LTRWarning, match=f"{name}={value}"):  # rounds of the earlier model do not count
        ranker(library, **params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, init_model=before)


def test_models_with_splits_or_without_rounds_are_silent():
    for library in LIBRARIES:
        for objective in (PATHS["random"], NATIVE[library]):
            fit(library, objective)  # warnings are errors
    fit("xgboost", PATHS["random"], n_estimators=0)  # the others need a round


def test_auto_says_that_only_native_objectives_are_left():
    with pytest.warns(LTRWarning) as said:
        model = fit("lightgbm", "auto", np.ones_like(TRAIN.X), stop=2)
    assert isinstance(model.objective_, str)
    first, second = (str(warning.message) for warning in said)
    assert "no objective of ours" in first
    assert "0 of" in second

"""The rankers inside scikit-learn: its own checks, clone, search, cross-validation, metadata routing."""

import pickle

import catboost
import numpy as np
import pandas
import pytest
import sklearn
from rankers import LIBRARIES, NATIVE, everywhere, fit, fold, ranker, ranker_class
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ltr_objectives import MAP, YetiLoss, adapters, evaluate
from ltr_objectives.libraries import LIBRARIES as FACTS

VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
DATA = fold().train


class OneQuery:
    """scikit-learn's checks do not pass queries, so all rows are one."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, group=None if y is None else [len(np.asarray(y))], sample_weight=sample_weight)

    def score(self, X, y):
        return super().score(X, y, group=[len(np.asarray(y))])


class XGBRanker(OneQuery, adapters.XGBRanker):
    def __init__(self, *, objective="yetiloss:ndcg", n_estimators=5, n_jobs=1):
        super().__init__(objective=objective, n_estimators=n_estimators, n_jobs=n_jobs)


class LGBMRanker(OneQuery, adapters.LGBMRanker):
    def __init__(self, *, objective="yetiloss:ndcg", n_estimators=5, n_jobs=1, min_child_samples=1):
        given = {"n_estimators": n_estimators, "n_jobs": n_jobs, "min_child_samples": min_child_samples}
        super().__init__(objective=objective, **given)


class CatBoostRanker(OneQuery, adapters.CatBoostRanker):
    def __init__(self, *, objective="yetiloss:ndcg", n_estimators=5, thread_count=1):
        super().__init__(objective=objective, n_estimators=n_estimators, thread_count=thread_count)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = None  # the checks of regressors have negative labels
        return tags


checks = parametrize_with_checks([XGBRanker(), LGBMRanker(), CatBoostRanker()])
names, cases = checks.args  # before version 1.8 a generator, which pytest no longer likes


@pytest.mark.parametrize(names, list(cases), **checks.kwargs)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_scikit_learn_s_own_checks(estimator, check):
    name = check.func.__name__
    if "sample_weight_equivalence" in name:
        pytest.skip("a row twice adds pairs with its twin; a row of weight 2 does not")
    if name == "check_fit2d_1sample" and isinstance(estimator, CatBoostRanker):
        pytest.skip("CatBoost refuses data without any feature that varies, in words of its own")
    older = isinstance(estimator, CatBoostRanker) and not hasattr(catboost.CatBoost, "__sklearn_tags__")
    if name == "check_estimator_tags_renamed" and older:
        pytest.skip("CatBoost 1.2.8 has the older tags alone")
    check(estimator)


@everywhere
def test_parameters_travel(library):
    given = {"objective": YetiLoss("map", permutations=3), "eval_metric": ["map", MAP(k=3)], "subsample": 0.7}
    made = ranker(library, **given)
    twin = clone(made)
    assert twin.get_params() == made.get_params()
    assert twin._given() == {**LIBRARIES[library][1], **given}
    assert ranker_class(library)()._given() == pickle.loads(pickle.dumps(ranker_class(library)()))._given() == {}
    twin.set_params(subsample=0.5, objective="yetirank")
    assert twin.get_params().items() >= {"subsample": 0.5, "objective": "yetirank"}.items()
    assert made.get_params()["subsample"] == 0.7
    assert "objective=YetiLoss" in repr(made)
    for name in ("objective", "eval_metric", "convention", "bounds", "learning_rate"):
        assert clone(made.set_params(**{name: None})).get_params()[name] is None


@everywhere
@pytest.mark.parametrize(("objective", "features", "sign"), [("yetiloss:map", 10, -1), ("auto", 2, 1)])
def test_a_failed_fit_leaves_no_trace(library, objective, features, sign):
    """The first fails at the first gradient, the second because the eval set has other features."""
    with_eval_set = {"qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    fitted = ranker(library, objective).fit(DATA.X, DATA.y, **with_eval_set)
    new, before = clone(fitted), fitted.predict(DATA.X)
    for each in (new, fitted):
        with pytest.raises((ValueError, FACTS[library].exception())):
            each.fit(DATA.X[:, :features], sign * DATA.y, **with_eval_set)
    assert not [name for name in vars(new) if name.endswith("_") and name != "fitted_"]
    assert not hasattr(new, "n_features_in_")
    assert not hasattr(new, "booster_")
    assert np.array_equal(fitted.predict(DATA.X), before)


@everywhere
def test_random_states_as_in_scikit_learn(library):
    name = "random_seed" if library == "catboost" else "random_state"
    states = *(np.random.RandomState(seed) for seed in (3, 3, 4)), np.random.default_rng(3)
    drawn = {"subsample": 0.5, **({"subsample_freq": 1} if library == "lightgbm" else {})}
    one, two, *others = (fit(library, **drawn, **{name: state}).predict(DATA.X) for state in states)
    assert np.array_equal(one, two)
    assert not any(np.array_equal(one, other) for other in others)


def small(library, **params):
    return ranker(library, **{"n_estimators": 3, **params})


def by_hand(library, metric="ndcg@10", **params):
    """Return the expected result of cross-validation."""
    values = []
    for train, test in GroupKFold(3).split(DATA.X, DATA.y, DATA.qid):
        fitted = small(library, **params).fit(DATA.X[train], DATA.y[train], qid=DATA.qid[train])
        values.append(evaluate(metric, fitted.predict(DATA.X[test]), DATA.y[test], qid=DATA.qid[test]))
    return values


TABLE = pandas.DataFrame(DATA.X, columns=[f"feature {i}" for i in range(10)]).assign(qid=DATA.qid)


@everywhere
def test_searches_with_a_column_of_ids_have_one_metric_for_all_objectives(library):
    grid = {"objective": ["yetiloss:map", NATIVE[library]], "learning_rate": [0.5]}
    search = GridSearchCV(small(library), grid, cv=GroupKFold(3))
    for metric, chosen in (("ndcg@10", {}), ("map", {"estimator__eval_metric": "map"})):
        found = search.set_params(**chosen).fit(TABLE, DATA.y, groups=DATA.qid).cv_results_
        expected = [np.mean(by_hand(library, metric, **params)) for params in found["params"]]
        assert found["mean_test_score"] == pytest.approx(expected, abs=1e-12)
    assert list(search.best_estimator_.feature_names_in_) == list(TABLE.columns[:-1])
    best = search.best_estimator_.predict(TABLE.drop(columns="qid"))
    assert np.array_equal(search.predict(TABLE), best)


@everywhere
def test_search_and_cross_validation_by_metadata_routing(library):
    with sklearn.config_context(enable_metadata_routing=True):
        routed = small(library).set_fit_request(qid=True).set_score_request(qid=True)
        split = {"cv": GroupKFold(3), "params": {"groups": DATA.qid, "qid": DATA.qid}}
        assert cross_val_score(routed, DATA.X, DATA.y, **split) == pytest.approx(by_hand(library), abs=1e-12)
        if VERSION >= (1, 8):  # before, a pipeline's score gets no metadata
            pipeline = make_pipeline(FunctionTransformer(), routed)
            assert cross_val_score(pipeline, DATA.X, DATA.y, **split) == pytest.approx(by_hand(library), abs=1e-12)


@everywhere
def test_the_library_s_own_arguments_of_fit_are_routed(library):
    name = {"xgboost": "base_margin", "lightgbm": "init_score", "catboost": "baseline"}[library]
    with sklearn.config_context(enable_metadata_routing=True):
        routed = small(library).set_fit_request(qid=True, **{name: True}).set_score_request(qid=True)
        given = {"groups": DATA.qid, "qid": DATA.qid, name: 5.0 * DATA.y}
        found = cross_val_score(routed, DATA.X, DATA.y, cv=GroupKFold(3), params=given)
        assert not np.allclose(found, by_hand(library))
        assert small(library).set_fit_request(**{name: "start"}).get_metadata_routing().fit.requests[name] == "start"


class Scaled:
    """A parameter of a subclass, which the library does not get, and one that it gets."""

    def __init__(self, *, factor=2.0, max_bin=16, **params):
        super().__init__(max_bin=max_bin, **params)
        self.factor = factor

    def predict(self, X, **options):
        return self.factor * super().predict(X, **options)


@everywhere
def test_a_subclass_may_add_parameters(library):
    derived = type("Derived", (Scaled, ranker_class(library)), {})
    made, expected = derived(**LIBRARIES[library][1]), ranker_class(library)(**LIBRARIES[library][1], max_bin=16)
    scores = expected.fit(DATA.X, DATA.y, qid=DATA.qid).predict(DATA.X)
    assert np.array_equal(made.fit(DATA.X, DATA.y, qid=DATA.qid).predict(DATA.X), 2 * scores)
    if library != "catboost":  # whose get_params leaves such parameters out, as in CatBoost itself
        again = clone(made).set_params(factor=3.0).fit(DATA.X, DATA.y, qid=DATA.qid)
        assert np.array_equal(again.predict(DATA.X), 3 * scores)

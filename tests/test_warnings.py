"""Each warning of ours is given once, whatever library is in between."""

import warnings

import numpy as np
import pytest
from catalog import ONE_OF_EACH
from rankers import LIBRARIES, NATIVE, ranker

from ltr_objectives import LTRWarning
from ltr_objectives.adapters import (
    catboost_metric,
    catboost_objective,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")
catboost = pytest.importorskip("catboost")
pytest.importorskip("sklearn")
everywhere = pytest.mark.parametrize("library", LIBRARIES)
RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(4000, 3)), np.repeat(np.arange(200), 20)
LEARNABLE, USELESS = RNG.integers(0, 3, 4000), QID % 2  # equal labels in each query
THREADS = {"xgboost": "n_jobs", "lightgbm": "n_jobs", "catboost": "thread_count"}


def warns_once(code, match):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        code()
    [warning] = [w for w in said if issubclass(w.category, LTRWarning)]
    assert match in str(warning.message)


def through_the_adapter(library, y, threads, objective="yetiloss:map", **params):
    if library == "xgboost":
        params |= {"nthread": threads}
        return xgb.train(params, xgb.DMatrix(X, y, qid=QID), 2, obj=xgboost_objective(objective))
    if library == "lightgbm":
        params |= {"objective": lightgbm_objective(objective), "num_threads": threads, "verbose": -1}
        return lgb.train(params, lgb.Dataset(X, y, group=[20] * 200), 2)
    pool = catboost.Pool(X, y, group_id=QID)
    params |= {"loss_function": catboost_objective(objective, pool), "thread_count": threads, "iterations": 2}
    params |= {"eval_metric": "NDCG", "verbose": False, "allow_writing_files": False, "bootstrap_type": "No"}
    return catboost.CatBoost(params).fit(pool)


def evaluate_by_the_adapter(library, metric, labels):
    if library == "xgboost":
        evals = xgb.DMatrix(X, labels, qid=QID)
        return xgb.train({}, evals, 2, evals=[(evals, "e")], custom_metric=xgboost_metric(metric))
    if library == "lightgbm":
        params, evals = {"objective": "l2", "metric": "None", "verbose": -1}, lgb.Dataset(X, labels, group=[20] * 200)
        return lgb.train(params, evals, 2, valid_sets=[evals], feval=lightgbm_metric(metric))
    train, evals = catboost.Pool(X, LEARNABLE, group_id=QID), catboost.Pool(X, labels, group_id=QID)
    return catboost_metric(metric, train, evals)


@pytest.mark.filterwarnings("ignore:0 of .* rounds have a split")
@everywhere
@pytest.mark.parametrize("threads", [1, 3])
def test_useless_queries(library, threads):
    useless = "200 of 200 queries have zero gradient"
    warns_once(lambda: through_the_adapter(library, USELESS, threads), useless)
    fitted = ranker(library, **{THREADS[library]: threads})
    with pytest.warns(LTRWarning, match=useless):
        fitted.fit(X, USELESS, qid=QID)


@pytest.mark.parametrize(("library", "limit"), [("xgboost", "min_child_weight"), ("lightgbm", "min_child_weight")])
def test_a_limit_that_forbids_every_split(library, limit):
    params, forbids = {limit: 1e5}, "forbids every split"
    warns_once(lambda: through_the_adapter(library, LEARNABLE, 1, **params), forbids)
    fitted = ranker(library, **params)
    warns_once(lambda: fitted.fit(X, LEARNABLE, qid=QID), forbids)


@everywhere
@pytest.mark.parametrize("metric", ONE_OF_EACH, ids=str)
def test_eval_sets_on_which_every_order_is_as_good(library, metric):
    stars = 1.0 + LEARNABLE
    labels = stars if hasattr(metric, "threshold") else np.full(4000, min(1.0, metric.label_limit or 1.0))
    fitted = ranker(library, eval_metric=metric, n_estimators=1)
    given = {"qid": QID, "eval_set": [(X, LEARNABLE / 4), (X, labels)], "eval_qid": [QID, QID]}
    told = f"every order of the documents has the same {metric}; "
    warns_once(lambda: evaluate_by_the_adapter(library, metric, labels), told)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted.fit(X, LEARNABLE / 4, **given)
    [warning] = [w for w in said if issubclass(w.category, LTRWarning)]
    assert f"eval_set[1]: {told}" in str(warning.message)
    if hasattr(metric, "threshold"):
        assert f"labels are from 1 to 3, and all above {metric.threshold:g} are relevant" in str(warning.message)
        written = str(warning.message).split("as in '")[1].split("'")[0]
        fitted.set_params(eval_metric=written)
        fitted.fit(X, LEARNABLE, qid=QID, eval_set=[(X, stars)], eval_qid=[QID])  # warnings are errors


@everywhere
def test_score_by_another_metric(library):
    name = {"xgboost": "rmse", "lightgbm": "l2", "catboost": "QueryRMSE"}[library]
    fitted = ranker(library, NATIVE[library], eval_metric=name, n_estimators=1).fit(X, LEARNABLE, qid=QID)
    warns_once(lambda: fitted.score(X, LEARNABLE, qid=QID), "score is the mean ndcg@10")

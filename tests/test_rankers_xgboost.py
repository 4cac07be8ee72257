"""XGBoost's ranker: it never aborts the process, warns as the adapter does, and keeps its callbacks."""

import numpy as np
import pytest
from rankers import fold, query_weights, ranker

from ltr_objectives import LTRError, LTRWarning

xgb = pytest.importorskip("xgboost")
pytest.importorskip("sklearn")
DATA, VALI, _ = fold(seed=3)
ROWS = len(DATA.y)


def test_xgboost_never_aborts_on_weights():
    weight = query_weights(DATA.group)
    data = {"qid": DATA.qid, "sample_weight": weight, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    data["eval_sample_weight"] = [weight]
    for objective in ("yetiloss:map", "rank:ndcg"):
        for metric in (None, "mrr", ["map", "ndcg@3-"]):
            ranker("xgboost", objective, eval_metric=metric).fit(DATA.X, DATA.y, **data)
        for wrong in ("rmse", "mape"):
            with pytest.raises(LTRError, match="would abort the process"):
                ranker("xgboost", objective, eval_metric=["map", wrong]).fit(DATA.X, DATA.y, **data)
    before = xgb.train({"eval_metric": "rmse"}, xgb.DMatrix(DATA.X, DATA.y, qid=DATA.qid), 1)  # keeps its metric
    for objective in ("yetiloss:map", "rank:ndcg"):
        with pytest.raises(LTRError, match="would abort the process"):
            ranker("xgboost", objective, eval_metric="ndcg@3-").fit(DATA.X, DATA.y, **data, init_model=before)
    data["sample_weight"] = np.random.default_rng(0).uniform(1, 2, ROWS)
    with pytest.raises(LTRError, match="one weight a query"):
        ranker("xgboost", "rank:ndcg").fit(DATA.X, DATA.y, **data)


def test_xgboost_s_linear_model_trains_without_early_stopping():
    data = {"qid": DATA.qid, "eval_set": [(DATA.X, DATA.y)], "eval_qid": [DATA.qid]}
    linear = ranker("xgboost", booster="gblinear", max_depth=None)
    assert linear.fit(DATA.X, DATA.y, **data).best_iteration_ == 8


def test_a_limit_that_forbids_every_split_is_warned_of():
    with pytest.warns(LTRWarning, match="every split, such as min_child_weight=10000.0"):
        ranker("xgboost", min_child_weight=1e4).fit(DATA.X, DATA.y, qid=DATA.qid)


@pytest.mark.parametrize("save_best", [False, True])
def test_the_user_s_own_early_stopping_counts(save_best):
    data = {"qid": DATA.qid, "eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
    options = {"n_estimators": 60, "learning_rate": 1.0, "eval_metric": "map"}
    expected = ranker("xgboost", **options).fit(DATA.X, DATA.y, **data, early_stopping_rounds=4)
    stop = xgb.callback.EarlyStopping(rounds=4, metric_name="map", maximize=True, save_best=save_best)
    fitted = ranker("xgboost", **options).fit(DATA.X, DATA.y, **data, callbacks=[stop])
    values = fitted.evals_result_["validation_0"]["map"]
    assert fitted.best_iteration_ == expected.best_iteration_ == np.argmax(values) + 1 < 56
    assert np.array_equal(fitted.predict(VALI.X), expected.predict(VALI.X))


def test_leaves_of_a_table_with_categories_and_no_best_score_without_eval_set():
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "c": pd.Categorical(rng.integers(0, 3, 60).astype(str))})
    fitted = ranker("xgboost").fit(table, rng.integers(0, 3, 60), qid=np.repeat(np.arange(6), 10))
    assert fitted.apply(table).shape == (60, fitted.best_iteration_)
    assert not hasattr(fitted, "best_score")


@pytest.mark.skipif(not hasattr(xgb.Booster, "get_categories"), reason="older models have no categories")
def test_a_model_of_xgboost_itself_reads_unknown_categories_as_missing(tmp_path):
    """XGBoost reads "1" as "blue", the least known value that follows it."""
    import pandas as pd

    pytest.importorskip("pyarrow")
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


def squared(labels, scores, sample_weight=1.0):
    return sample_weight * (scores - labels), sample_weight * np.ones(len(labels))


def reciprocal_rank(labels, scores):
    return 1 / (1 + np.argmax(labels[np.argsort(-scores, kind="stable")] > 0))


def test_a_function_is_the_objective_as_in_xgboost_s_other_estimators():
    params = {"n_estimators": 8, "max_depth": 3, "learning_rate": 0.3, "n_jobs": 1}
    found = ranker("xgboost", squared).fit(DATA.X, DATA.y, qid=DATA.qid)
    expected = xgb.XGBRegressor(objective=squared, **params).fit(DATA.X, DATA.y)
    np.testing.assert_array_equal(found.predict(VALI.X), expected.predict(VALI.X))
    weight = 1.0 + DATA.y
    found = ranker("xgboost", squared).fit(DATA.X, DATA.y, qid=DATA.qid, sample_weight=weight)
    expected = xgb.XGBRegressor(objective=lambda labels, scores: squared(labels, scores, weight), **params)
    np.testing.assert_allclose(found.predict(VALI.X), expected.fit(DATA.X, DATA.y).predict(VALI.X), atol=1e-6)


def test_functions_are_metrics_as_in_xgboost():
    data = {"qid": DATA.qid, "eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}
    params = {"n_estimators": 40, "max_depth": 3, "learning_rate": 1.0, "n_jobs": 1, "early_stopping_rounds": 4}
    found = ranker("xgboost", "rank:ndcg", eval_metric=[reciprocal_rank, "mrr", "auc"], **params)
    found.fit(DATA.X, DATA.y, **data)
    own = xgb.XGBRanker(eval_metric=reciprocal_rank, disable_default_eval_metric=True, **params)
    own.fit(DATA.X, DATA.y, **data)
    record = found.evals_result_["validation_0"]
    assert record["reciprocal_rank"] == own.evals_result()["validation_0"]["reciprocal_rank"]
    assert sorted(record) == ["auc", "mrr", "reciprocal_rank"]
    assert (found.best_iteration, found.best_score) == (own.best_iteration, own.best_score)
    with pytest.warns(LTRWarning, match="score is the mean ndcg@10"):
        found.score(VALI.X, VALI.y, qid=VALI.qid)

"""Spark: what XGBoost's estimators can and cannot do with our objectives."""

import os
import sys

import numpy as np
import pandas as pd
import pyspark
import pytest
import xgboost as xgb
from generated import ranking

from ltr_objectives import evaluate
from ltr_objectives.adapters import xgboost_metric, xgboost_objective

X, Y, QID = ranking(0, levels=4)
NAMES = [f"f{i}" for i in range(X.shape[1])]
FRAME = pd.DataFrame(X, columns=NAMES).assign(label=Y, qid=QID)
XGB = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1}


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    local = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = pyspark.sql.SparkSession.builder.master("local[2]").config(map=local)
    session = builder.getOrCreate()
    yield session
    session.stop()


def ranker(**options):
    from xgboost.spark import SparkXGBRanker

    columns = {"features_col": NAMES, "label_col": "label", "qid_col": "qid"}
    return SparkXGBRanker(**columns, **{"num_workers": 2, "n_estimators": 8, **XGB, **options})


def alone(objective):
    data = xgb.DMatrix(X, Y, qid=QID)
    return xgb.train(XGB, data, 8, obj=xgboost_objective(objective)).predict(data)


def scores_of(model):
    return model.get_booster().predict(xgb.DMatrix(X), validate_features=False)


@pytest.mark.parametrize("objective", ["queryrmse", "listnet"])  # whose gradients do not depend on the order of rows
def test_two_workers_train_the_model_of_one_process(spark, objective):
    model = ranker(obj=xgboost_objective(objective), force_repartition=True).fit(spark.createDataFrame(FRAME))
    assert np.ptp(alone(objective)) > 0.1
    np.testing.assert_allclose(scores_of(model), alone(objective), atol=1e-5)


def test_early_stopping_by_our_metric(spark):
    held_out = np.random.default_rng(0).random(QID.max() + 1)[QID] < 0.3
    model = ranker(
        obj=xgboost_objective("lambdamart:map"), custom_metric=xgboost_metric("map"), force_repartition=True,
        n_estimators=60, validation_indicator_col="held_out", early_stopping_rounds=5,
    ).fit(spark.createDataFrame(FRAME.assign(held_out=held_out)))  # fmt: skip
    booster = model.get_booster()
    best = booster[: booster.best_iteration + 1].predict(xgb.DMatrix(X[held_out]), validate_features=False)
    value = evaluate("map", best, Y[held_out], qid=QID[held_out])
    assert booster.num_boosted_rounds() < 60
    assert float(booster.best_score) == pytest.approx(value, abs=1e-5)


def test_an_error_on_one_worker_ends_the_training(spark):
    wrong = FRAME.assign(label=np.where(np.arange(len(FRAME)) == len(FRAME) - 1, 5, Y))
    estimator = ranker(obj=xgboost_objective("lambdamart:err"), force_repartition=True)
    with pytest.raises(Exception, match=r"err .*labels"):
        estimator.fit(spark.createDataFrame(wrong))

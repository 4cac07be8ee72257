"""Dask: the models and values of one process, and the same model from the same partitions."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import examples
import numpy as np
import pytest
import recording
from generated import ranking

from ltr_objectives import evaluate
from ltr_objectives.adapters import (
    dask_by_query,
    dask_evaluate,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)
from ltr_objectives.kernels import threads

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
dask = pytest.importorskip("dask")
dxgb = pytest.importorskip("xgboost.dask")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that close late
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # a warning of old versions of Dask
]
XGB = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1}
LGB = {"num_leaves": 7, "min_child_weight": 1e-3, "min_child_samples": 5, "verbose": -1, "metric": "None"}
LGB |= {"deterministic": True, "force_col_wise": True}


def in_xgboost(client, data, rounds, **options):
    dtrain = dxgb.DaskDMatrix(client, data.X, data.y, qid=data.qid)
    evals = [(dxgb.DaskDMatrix(client, e.X, e.y, qid=e.qid), f"e{i}") for i, e in enumerate(options.pop("evals", ()))]
    out = dxgb.train(client, XGB, dtrain, rounds, evals=evals, verbose_eval=False, **options)
    return out["booster"], out["history"]


def in_lightgbm(client, data, objective, rounds, valid=None, **options):
    ranker = lgb.DaskLGBMRanker(client=client, objective=lightgbm_objective(objective), n_estimators=rounds, **LGB)
    if valid is not None:
        options["eval_group"] = [valid.group]
        if "eval_X" in inspect.signature(lgb.DaskLGBMRanker.fit).parameters:  # newer versions deprecate eval_set
            options |= {"eval_X": (valid.X,), "eval_y": (valid.y,)}
        else:
            options["eval_set"] = [(valid.X, valid.y)]
    return ranker.fit(data.X, data.y, group=data.group, **options)


def trees(ranker):
    return ranker.booster_.model_to_string().split("\nparameters:")[0]


def test_xgboost_s_values_are_those_of_one_process(client):
    train, valid = ranking(0), ranking(1, queries=40)
    data, held_out = dask_by_query(*train), dask_by_query(*valid)
    models = []
    for _ in range(2):
        booster, history = in_xgboost(
            client, data, 60, obj=xgboost_objective("yetiloss:map"), custom_metric=xgboost_metric("mrr", "map"),
            evals=[data, held_out], early_stopping_rounds=5,
        )  # fmt: skip
        models.append(bytes(booster.save_raw("ubj")))
    assert models[0] == models[1]
    assert booster.num_boosted_rounds() < 60
    assert booster.best_iteration == np.argmax(history["e1"]["map"])
    for name, (X, y, qid) in (("e0", train), ("e1", valid)):
        for metric in ("map", "mrr"):
            recorded = history[name][metric][-1] if metric == "map" else 1 - history[name]["1-mrr"][-1]
            here = evaluate(metric, booster.predict(xgb.DMatrix(X)), y, qid=qid)
            assert recorded == pytest.approx(here, abs=1e-6)  # XGBoost passes on six digits
    scores = dxgb.predict(client, booster, held_out.X)
    X, y, qid = valid
    everywhere = evaluate("map", booster.predict(xgb.DMatrix(X)), y, qid=qid)
    assert dask_evaluate("map", scores, held_out.y, held_out.qid) == everywhere
    parts = [np.asarray(column.partitions[0].compute()) for column in (scores, held_out.y, held_out.qid)]
    assert abs(evaluate("map", *parts[:2], qid=parts[2]) - everywhere) > 1e-5  # a single worker's value differs


def test_lightgbm_s_values_are_those_of_one_process(client):
    X, y, qid = ranking(1, queries=40)
    data, valid = dask_by_query(*ranking(0)), dask_by_query(X, y, qid, everywhere=True)
    models = []
    with dask.config.set({"delayed_pure": True}):  # the same order of workers, hence the same bins
        for _ in range(2):
            ranker = in_lightgbm(
                client, data, "yetiloss:map", 60, valid, eval_metric=lightgbm_metric("map"),
                callbacks=[lgb.early_stopping(5, verbose=False)],
            )  # fmt: skip
            models.append(trees(ranker))
    assert models[0] == models[1]
    assert ranker.best_iteration_ < 60
    values = ranker.evals_result_["valid_0"]["map"]
    assert ranker.best_iteration_ == np.argmax(values) + 1
    assert max(values) == pytest.approx(evaluate("map", ranker.to_local().predict(X), y, qid=qid), abs=1e-12)


def test_workers_train_the_model_of_one_process_in_lightgbm_by_weights_of_rows(client):
    X, y, qid = ranking(0, levels=4)
    weight = np.random.default_rng(1).uniform(0.2, 5, len(y))
    data = dask_by_query(X, y, qid, weight)
    ranker = in_lightgbm(client, data, "lambdamart:map", 5, sample_weight=data.weight)
    params = {**LGB, "objective": lightgbm_objective("lambdamart:map"), "learning_rate": 0.1, "num_threads": 1}
    alone = lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid), weight=weight), 5)
    assert np.ptp(alone.predict(X)) > 0.1
    np.testing.assert_allclose(ranker.to_local().predict(X), alone.predict(X), atol=1e-9)
    by_query = dask_evaluate("map", ranker.predict(data.X), data.y, data.qid, data.weight)
    assert by_query == pytest.approx(evaluate("map", alone.predict(X), y, qid=qid, weight=weight), abs=1e-12)


def test_workers_train_the_model_of_one_process_in_xgboost(client):
    X, y, qid = ranking(0, levels=4)  # so that all workers have the same bins
    objective, dtrain = xgboost_objective("lambdamart:map"), xgb.DMatrix(X, y, qid=qid)
    model, _ = in_xgboost(client, dask_by_query(X, y, qid), 8, obj=objective)
    alone = xgb.train(XGB, dtrain, 8, obj=objective).predict(dtrain)
    assert np.ptp(alone) > 0.1
    np.testing.assert_allclose(model.predict(dtrain), alone, atol=1e-5)


@pytest.mark.parametrize("train", ["xgboost", "lightgbm"])
def test_gradients_take_the_threads_that_dask_gives_a_worker(client, train, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    data = dask_by_query(*ranking(0))
    for chosen, used in ((None, 1), (3, 3)):
        recording.ASKED.clear()
        if train == "xgboost":
            in_xgboost(client, data, 2, obj=xgboost_objective(recording.Recording(), n_threads=chosen))
        else:
            ours = lightgbm_objective(recording.Recording(), n_threads=chosen)
            ranker = lgb.DaskLGBMRanker(client=client, objective=ours, n_estimators=2, **LGB)
            ranker.fit(data.X, data.y, group=data.group)
        assert set(recording.ASKED) == {used}


FALLING_IDS = """
if __name__ == "__main__":
    import sys
    import pytest
    sys.path.insert(0, sys.argv[1])
    import examples
    examples.less_data(pytest.MonkeyPatch())
"""


@pytest.mark.release
def test_the_example_trains_on_processes_and_takes_ids_that_fall(tmp_path):
    example = examples.block("docs/distributed.md", "LocalCluster")
    small = (
        example.replace("(200, 60, 60)", "(24, 12, 12)").replace("        300,", "        5,").replace("=300,", "=5,")
    )
    assert small.count("5,") >= 2
    (tmp_path / "example.py").write_text(FALLING_IDS + small)
    done = subprocess.run(
        [sys.executable, "example.py", Path(__file__).parent], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"^(xgboost|lightgbm) 0\.[0-9]+$", done.stdout, re.M)) == {"xgboost", "lightgbm"}

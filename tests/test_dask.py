"""Dask: data sets spread by query, the models and values of one process, and errors on all workers."""

import inspect
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, NamedTuple

import examples
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import recording
import xgboost as xgb
from generated import ranking

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import (
    bounded,
    dask_evaluate,
    dask_group,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)
from ltr_objectives.kernels import threads

dask = pytest.importorskip("dask")
da, dd, dxgb = (pytest.importorskip(name) for name in ("dask.array", "dask.dataframe", "xgboost.dask"))
pytestmark = [
    pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that close late
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # a warning of old versions of Dask
]
XGB = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1}
LGB = {"num_leaves": 7, "min_child_weight": 1e-3, "min_child_samples": 5, "verbose": -1, "metric": "None"}
LGB |= {"deterministic": True, "force_col_wise": True}
RECIPE: dict[str, Any] = {}
examples.run(examples.script("dask_clusters"), RECIPE)
X, Y, QID = ranking(0)
SIZES = np.bincount(QID)
CHUNKS = np.add.reduceat(SIZES, np.arange(0, len(SIZES), 3)).tolist()  # of partitions with three queries
CHUNKS = (0, *CHUNKS[:2], 0, *CHUNKS[2:], 0)


def in_dask(*columns, chunks=CHUNKS):
    """Return the columns in partitions of whole queries; some are empty, as a filter leaves them."""
    return [da.from_array(c, chunks=(chunks, *c.shape[1:])) for c in columns]


class Spread(NamedTuple):
    """A data set, as the recipe of examples/dask_clusters.py spreads it."""

    table: Any
    group: Any  # for LightGBM

    @property
    def X(self):
        return self.table[[f"f{i}" for i in range(5)]]


def frame(X):
    return pd.DataFrame(X).add_prefix("f")


def rows(X, y, qid, weight=1.0):
    return frame(X).assign(y=y, qid=qid, weight=weight)


def spread(X, y, qid, weight=1.0, partitions=3):
    table = RECIPE["spread"](rows(X, y, qid, weight), partitions)
    return Spread(table, dask_group(table["qid"]))


def in_xgboost(client, data, rounds, **options):
    dtrain, *evals = (
        dxgb.DaskDMatrix(client, each.X, each.table["y"], qid=each.table["qid"])
        for each in (data, *options.pop("evals", ()))
    )
    evals = [(each, f"e{i}") for i, each in enumerate(evals)]
    out = dxgb.train(client, XGB, dtrain, rounds, evals=evals, verbose_eval=False, **options)
    return out["booster"], out["history"]


def in_lightgbm(client, data, objective, rounds, valid=None, **options):
    ranker = lgb.DaskLGBMRanker(client=client, objective=objective, n_estimators=rounds, **LGB)
    if valid is not None:
        options["eval_group"] = [valid.group]
        if "eval_X" in inspect.signature(lgb.DaskLGBMRanker.fit).parameters:  # newer versions deprecate eval_set
            options |= {"eval_X": (valid.X,), "eval_y": (valid.table["y"],)}
        else:
            options["eval_set"] = [(valid.X, valid.table["y"])]
    return ranker.fit(data.X, data.table["y"], group=data.group, **options)


def test_xgboost_s_values_are_those_of_one_process(client):
    train, valid = (X, Y, QID), ranking(1, queries=40)
    data, held_out = spread(*train), spread(*valid)
    models = []
    for _ in range(2):
        booster, history = in_xgboost(
            client, data, 60, obj=xgboost_objective("yetiloss:map"), evals=[data, held_out], early_stopping_rounds=5,
            custom_metric=xgboost_metric("mrr", "0.5*gauc + mrr", "map"),
        )  # fmt: skip
        models.append(bytes(booster.save_raw("ubj")))
    assert models[0] == models[1]
    assert booster.num_boosted_rounds() < 60
    assert booster.best_iteration == np.argmax(history["e1"]["map"])
    for name, (features, labels, ids) in (("e0", train), ("e1", valid)):
        here = booster.predict(xgb.DMatrix(frame(features)))
        everywhere, mrr = evaluate("map", here, labels, qid=ids), evaluate("mrr", here, labels, qid=ids)
        assert history[name]["map"][-1] == pytest.approx(everywhere, abs=1e-6)  # XGBoost passes on six digits
        assert 1 - history[name]["1-mrr"][-1] == pytest.approx(mrr, abs=1e-6)
        of_sum = evaluate("0.5*gauc + mrr", here, labels, qid=ids)
        assert -history[name]["-0.5*gauc+mrr"][-1] == pytest.approx(of_sum, abs=1e-6)
    scores = dxgb.predict(client, booster, held_out.X)
    columns = scores, held_out.table["y"], held_out.table["qid"]
    assert dask_evaluate("map", *columns) == everywhere
    parts = [np.asarray(column.partitions[0].compute()) for column in columns]
    assert abs(evaluate("map", *parts[:2], qid=parts[2]) - everywhere) > 1e-5  # a single worker's value differs


def test_lightgbm_s_values_are_those_of_one_process(client):
    features, labels, ids = ranking(1, queries=40)
    data, valid = spread(X, Y, QID), Spread(*RECIPE["everywhere"](rows(features, labels, ids), 3))
    ranker = in_lightgbm(
        client, data, lightgbm_objective("yetiloss:map"), 60, valid, eval_metric=lightgbm_metric("map"),
        callbacks=[lgb.early_stopping(5, verbose=False)],
    )  # fmt: skip
    assert ranker.best_iteration_ < 60
    values = ranker.evals_result_["valid_0"]["map"]
    assert ranker.best_iteration_ == np.argmax(values) + 1
    here = evaluate("map", ranker.to_local().predict(frame(features)), labels, qid=ids)
    assert max(values) == pytest.approx(here, abs=1e-12)


def test_workers_train_the_model_of_one_process_in_lightgbm_by_weights_of_rows(client):
    X, y, qid = ranking(0, levels=4)
    weight = np.random.default_rng(1).uniform(0.2, 5, len(y))
    data = spread(X, y, qid, weight)
    objective = lightgbm_objective("lambdamart:map")
    ranker = in_lightgbm(client, data, objective, 5, sample_weight=data.table["weight"])
    params = {**LGB, "objective": objective, "learning_rate": 0.1, "num_threads": 1}
    alone = lgb.train(params, lgb.Dataset(X, y, group=np.bincount(qid), weight=weight), 5)
    assert np.ptp(alone.predict(X)) > 0.1
    np.testing.assert_allclose(ranker.to_local().predict(frame(X)), alone.predict(X), atol=1e-9)
    by_query = dask_evaluate("map", ranker.predict(data.X), *(data.table[name] for name in ("y", "qid", "weight")))
    assert by_query == pytest.approx(evaluate("map", alone.predict(X), y, qid=qid, weight=weight), abs=1e-12)


def test_workers_train_the_model_of_one_process_in_xgboost(client):
    X, y, qid = ranking(0, levels=4)  # so that all workers have the same bins
    objective, dtrain = xgboost_objective("lambdamart:map"), xgb.DMatrix(frame(X), y, qid=qid)
    model, _ = in_xgboost(client, spread(X, y, qid), 8, obj=objective)
    alone = xgb.train(XGB, dtrain, 8, obj=objective).predict(dtrain)
    assert np.ptp(alone) > 0.1
    np.testing.assert_allclose(model.predict(dtrain), alone, atol=1e-5)


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_workers_have_no_bounds(client, library, followed):
    features, labels, ids = ranking(1, queries=40)
    data, held_out = spread(X, Y, QID), spread(features, labels, ids)
    if library == "xgboost":
        here = xgb.DMatrix(X, Y, qid=QID), xgb.DMatrix(features, labels, qid=ids)
        pair = bounded("map", {"ndcg@10": 0.5}, *here)
        with pytest.raises(LTRError, match="bounds="):
            in_xgboost(
                client, data, 3, obj=pair.objective, evals=[held_out], custom_metric=pair.metric if followed else None
            )
    else:
        here = lgb.Dataset(X, Y, group=SIZES), lgb.Dataset(features, labels, group=np.bincount(ids))
        pair = bounded("map", {"ndcg@10": 0.5}, *here)
        with pytest.raises(LTRError, match="valid"):
            in_lightgbm(client, data, pair.objective, 3, held_out if followed else None,
                        **{"eval_metric": pair.metric} if followed else {})  # fmt: skip


@pytest.mark.parametrize("train", ["xgboost", "lightgbm"])
def test_gradients_take_the_threads_that_dask_gives_a_worker(client, train, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    data = spread(X, Y, QID)
    for chosen, used in ((None, 1), (3, 3)):
        recording.ASKED.clear()
        if train == "xgboost":
            in_xgboost(client, data, 2, obj=xgboost_objective(recording.Recording(), n_threads=chosen))
        else:
            in_lightgbm(client, data, lightgbm_objective(recording.Recording(), n_threads=chosen), 2)
        assert set(recording.ASKED) == {used}


@pytest.mark.parametrize("partitions", [1, 3, 20])
def test_the_recipe_keeps_all_rows_and_cuts_no_query(client, partitions):
    names = np.array([f"query {99 - q}" for q in QID])  # falling ids
    data = spread(X, Y, names, Y + 1.0, partitions)
    rows = data.table.compute()
    assert data.table.npartitions == partitions
    order = np.argsort(names, kind="stable")
    assert np.array_equal(rows["qid"], names[order])
    assert np.array_equal(rows[["f0", "y", "weight"]], np.column_stack([X[:, 0], Y, Y + 1.0])[order])
    assert np.array_equal(data.group.compute(), np.unique(names, return_counts=True)[1])


@pytest.mark.parametrize("metric", ["map(empty=skip)", "mrr + 2*gauc"])
def test_metrics_and_sizes_are_those_of_one_process(client, metric):
    by_row = np.arange(1.0, len(Y) + 1)
    assert np.array_equal(dask_group(*in_dask(QID)).compute(), SIZES)
    found = dask_evaluate(metric, *in_dask(X[:, 0], Y, QID, by_row))
    assert found == pytest.approx(evaluate(metric, X[:, 0], Y, qid=QID, weight=by_row), abs=1e-12)


def test_sums_with_a_metric_without_a_maximum_are_refused(client):
    with pytest.raises(LTRError, match="dcg@5"):
        dask_evaluate("mrr + 0.1*dcg@5", *in_dask(X[:, 0], Y, QID))


def test_a_partition_may_have_weights_of_0_only(client):
    weight = np.repeat(np.arange(len(SIZES)) >= 3, SIZES) * 2.0  # the first that is not empty
    for metric in ("ndcg@5", "map(empty=skip)"):
        found = dask_evaluate(metric, *in_dask(X[:, 0], Y, QID, weight))
        assert found == pytest.approx(evaluate(metric, X[:, 0], Y, qid=QID, weight=weight), abs=1e-12)


def test_cut_queries_are_refused(client):
    cut = r"was cut: it has rows in partitions 0 and .*set_index\('qid'\)"
    order = np.random.default_rng(2).permutation(len(Y))
    for rows, message in ((np.arange(len(Y)), cut), (order, "in several places")):
        columns = in_dask(X[rows], Y[rows], QID[rows], chunks=(len(Y) // 3, 1, len(Y) - len(Y) // 3 - 1))
        with pytest.raises(LTRError, match=message):
            dask_group(columns[2])
        with pytest.raises(LTRError, match=message):
            dask_evaluate("map", columns[1], *columns[1:])


def test_a_table_that_was_cut_is_whole_by_its_index(client):
    table = pd.DataFrame(X).add_prefix("f").assign(y=Y, qid=QID)
    cut = dd.from_pandas(table, npartitions=5, sort=False)
    with pytest.raises(LTRError, match="was cut"):
        dask_group(cut["qid"])
    whole = cut.set_index("qid").reset_index().persist()  # as the message says
    assert np.array_equal(dask_group(whole["qid"]).compute(), SIZES)
    rows = [part.sort_values(list(part), ignore_index=True) for part in (table, whole.compute()[list(table)])]
    pd.testing.assert_frame_equal(*rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (in_dask(Y, Y, np.where(QID == 3, None, QID.astype(object))), "qid has no id in row"),
        (in_dask(Y, Y, np.ma.masked_equal(QID, 3)), "qid has a masked value"),
        (in_dask(Y, np.where(Y == 2, np.nan, Y), QID), "labels must be finite"),
        ([*in_dask(Y), Y, QID], "qid must be a Dask array, series or dataframe, got ndarray"),
        ([Y, *in_dask(Y, QID)], "scores must be a Dask array, series or dataframe, got ndarray"),
        ([da.from_array(Y), *in_dask(Y, QID)], r"^scores, y, qid have .* partitions"),
    ],
    ids=range(6),
)
def test_wrong_data_are_refused(client, given, message):
    with pytest.raises(LTRError, match=message):
        dask_evaluate("map", *given)


def test_an_error_on_one_worker_ends_the_training_on_all(client):
    data = spread(X, np.where(np.arange(len(Y)) == len(Y) - 1, 5, Y), QID)
    right = {"obj": xgboost_objective("lambdamart")}
    late = {**right, "custom_metric": xgboost_metric("err"), "evals": [data]}
    for wrong in ({"obj": xgboost_objective("lambdamart:err")}, late):
        with pytest.raises(LTRError, match=r"err .*labels"):
            in_xgboost(client, data, 2, **wrong)
        assert len(client.run(lambda: None)) == len(client.ncores())
        assert in_xgboost(client, data, 2, **right)[0].num_boosted_rounds() == 2  # no worker waits for another


def test_workers_without_rows_take_part(client):
    ours, sets = xgboost_objective("lambdamart:map"), []
    for chunks in ((len(Y),), tuple(n for n in CHUNKS if n)):  # arrays: a worker without rows has no names of columns
        features, y, qid = in_dask(X, Y, QID, chunks=chunks)
        sets.append(SimpleNamespace(X=features, table={"y": y, "qid": qid}))
    for data, valid in (sets, sets[::-1]):
        model, record = in_xgboost(client, data, 3, obj=ours, custom_metric=xgboost_metric("map"), evals=[valid])
        here = evaluate("map", model.predict(xgb.DMatrix(X)), Y, qid=QID)
        assert record["e0"]["map"][-1] == pytest.approx(here, abs=1e-6)


@pytest.mark.release
def test_the_example_trains_on_processes(tmp_path):
    example = examples.script("dask_clusters").replace("(200, 60, 60)", "(24, 12, 12)")
    (tmp_path / "example.py").write_text(example.replace("300,", "5,"))
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(xgboost|lightgbm) 0\.[0-9]+$", done.stdout, re.M) == ["xgboost", "lightgbm"]

"""Dask: data sets cut by query, the models and values of one process, and errors before training or on all workers."""

import inspect
import re
import subprocess
import sys

import examples
import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import recording
import xgboost as xgb
from generated import ranking
from scipy import sparse

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import (
    dask_by_query,
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
X, Y, QID = ranking(0)
SIZES = np.bincount(QID)
CHUNKS = np.add.reduceat(SIZES, np.arange(0, len(SIZES), 3)).tolist()  # of partitions with three queries
CHUNKS = (0, *CHUNKS[:2], 0, *CHUNKS[2:], 0)


def in_dask(*columns, chunks=CHUNKS):
    """The columns in partitions of whole queries; some are empty, as a filter leaves them."""
    return [da.from_array(c, chunks=(chunks, *c.shape[1:])) for c in columns]


def in_xgboost(client, data, rounds, **options):
    dtrain = dxgb.DaskDMatrix(client, data.X, data.y, qid=data.qid)
    evals = [(dxgb.DaskDMatrix(client, e.X, e.y, qid=e.qid), f"e{i}") for i, e in enumerate(options.pop("evals", ()))]
    out = dxgb.train(client, XGB, dtrain, rounds, evals=evals, verbose_eval=False, **options)
    return out["booster"], out["history"]


def in_lightgbm(client, data, objective, rounds, valid=None, **options):
    ranker = lgb.DaskLGBMRanker(client=client, objective=objective, n_estimators=rounds, **LGB)
    if valid is not None:
        options["eval_group"] = [valid.group]
        if "eval_X" in inspect.signature(lgb.DaskLGBMRanker.fit).parameters:  # newer versions deprecate eval_set
            options |= {"eval_X": (valid.X,), "eval_y": (valid.y,)}
        else:
            options["eval_set"] = [(valid.X, valid.y)]
    return ranker.fit(data.X, data.y, group=data.group, **options)


def test_xgboost_s_values_are_those_of_one_process(client):
    train, valid = (X, Y, QID), ranking(1, queries=40)
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
    for name, (features, labels, ids) in (("e0", train), ("e1", valid)):
        here = booster.predict(xgb.DMatrix(features))
        everywhere, mrr = evaluate("map", here, labels, qid=ids), evaluate("mrr", here, labels, qid=ids)
        assert history[name]["map"][-1] == pytest.approx(everywhere, abs=1e-6)  # XGBoost passes on six digits
        assert 1 - history[name]["1-mrr"][-1] == pytest.approx(mrr, abs=1e-6)
    scores = dxgb.predict(client, booster, held_out.X)
    assert dask_evaluate("map", scores, held_out.y, held_out.qid) == everywhere
    parts = [np.asarray(column.partitions[0].compute()) for column in (scores, held_out.y, held_out.qid)]
    assert abs(evaluate("map", *parts[:2], qid=parts[2]) - everywhere) > 1e-5  # a single worker's value differs


def test_lightgbm_s_values_are_those_of_one_process(client):
    features, labels, ids = ranking(1, queries=40)
    data, valid = dask_by_query(X, Y, QID), dask_by_query(features, labels, ids, everywhere=True)
    models = []
    with dask.config.set({"delayed_pure": True}):  # the same order of workers, hence the same bins
        for _ in range(2):
            ranker = in_lightgbm(
                client, data, lightgbm_objective("yetiloss:map"), 60, valid, eval_metric=lightgbm_metric("map"),
                callbacks=[lgb.early_stopping(5, verbose=False)],
            )  # fmt: skip
            models.append(ranker.booster_.model_to_string().split("\nparameters:")[0])
    assert models[0] == models[1]
    assert ranker.best_iteration_ < 60
    values = ranker.evals_result_["valid_0"]["map"]
    assert ranker.best_iteration_ == np.argmax(values) + 1
    here = evaluate("map", ranker.to_local().predict(features), labels, qid=ids)
    assert max(values) == pytest.approx(here, abs=1e-12)


def test_workers_train_the_model_of_one_process_in_lightgbm_by_weights_of_rows(client):
    X, y, qid = ranking(0, levels=4)
    weight = np.random.default_rng(1).uniform(0.2, 5, len(y))
    data = dask_by_query(X, y, qid, weight)
    objective = lightgbm_objective("lambdamart:map")
    ranker = in_lightgbm(client, data, objective, 5, sample_weight=data.weight)
    params = {**LGB, "objective": objective, "learning_rate": 0.1, "num_threads": 1}
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
    data = dask_by_query(X, Y, QID)
    for chosen, used in ((None, 1), (3, 3)):
        recording.ASKED.clear()
        if train == "xgboost":
            in_xgboost(client, data, 2, obj=xgboost_objective(recording.Recording(), n_threads=chosen))
        else:
            in_lightgbm(client, data, lightgbm_objective(recording.Recording(), n_threads=chosen), 2)
        assert set(recording.ASKED) == {used}


def pieces(data):
    """The contents of each partition, by column."""
    columns = [c for c in data if c is not None]
    return [[np.asarray(c.partitions[i].compute()) for c in columns] for i in range(data.X.numblocks[0])]


def check(data):
    """Assert that all rows are there in order, queries are whole, groups fit, and partitions have similar sizes."""
    found = pieces(data)
    assert np.array_equal(np.concatenate([p[0] for p in found]), X)
    assert np.array_equal(np.concatenate([p[1] for p in found]), Y)
    for _, _, numbers, group, *_ in found:
        assert np.array_equal(np.bincount(numbers - numbers[0]), group)
    queries = [set(p[2].tolist()) for p in found]
    assert sum(map(len, queries)) == len(set.union(*queries)) == len(SIZES)
    assert max(len(p[1]) for p in found) < 2 * min(len(p[1]) for p in found)
    return found


def test_rows_in_memory(client):
    names = np.array([f"query {99 - q}" for q in QID])  # falling ids
    weight = np.linspace(1, 2, len(Y))
    found = check(dask_by_query(X, Y, names, weight))
    assert np.array_equal(np.concatenate([p[4] for p in found]), weight)
    assert len(found) == len(client.ncores())
    assert len(check(dask_by_query(X, Y, names, partitions=3))) == 3


def test_partitions_leave_no_task_that_another_worker_could_steal(client):
    data = dask_by_query(pd.DataFrame(X, columns=list("abcde")), pd.Series(Y), pd.Series(QID), pd.Series(Y + 1.0))
    addresses = sorted(client.scheduler_info()["workers"], key=lambda w: client.scheduler_info()["workers"][w]["name"])
    for column in data[:5]:
        futures = client.futures_of(column)
        assert {future.status for future in futures} == {"finished"}
        if column is not data.X:  # a frame has an alias of each partition
            assert [f.key for f in client.futures_of(client.persist(column))] == [f.key for f in futures]
        held = {future.key[1]: list(client.who_has([future])[future.key]) for future in futures}
        assert [held[i] for i in range(len(addresses))] == [[address] for address in addresses]


def test_partitions_of_whole_queries_are_joined(client):
    by_row = np.arange(1.0, len(Y) + 1)
    columns = in_dask(X, Y, QID, by_row)
    data = dask_by_query(*columns)
    assert len(check(data)) == len(client.ncores())
    assert np.array_equal(data.qid.compute(), QID)
    assert np.array_equal(data.weight.compute(), by_row)
    assert np.array_equal(dask_group(data.qid).compute(), SIZES)
    assert np.array_equal(dask_group(columns[2]).compute(), SIZES)
    assert len(check(dask_by_query(*columns, partitions=2))) == 2
    for metric in ("ndcg@5", "map(empty=skip)"):
        expected = evaluate(metric, X[:, 0], Y, qid=QID, weight=by_row)
        found = dask_evaluate(metric, *in_dask(X[:, 0], Y, QID, by_row))
        assert found == pytest.approx(expected, abs=1e-12)


def test_a_partition_may_have_weights_of_0_only(client):
    weight = np.repeat(np.arange(len(SIZES)) >= 3, SIZES) * 2.0  # the first that is not empty
    for metric in ("ndcg@5", "map(empty=skip)"):
        found = dask_evaluate(metric, *in_dask(X[:, 0], Y, QID, weight))
        assert found == pytest.approx(evaluate(metric, X[:, 0], Y, qid=QID, weight=weight), abs=1e-12)
    data = dask_by_query(*in_dask(X, Y, QID, weight), partitions=20)
    assert np.array_equal(data.weight.compute(), weight)


def test_cut_queries_are_refused(client):
    cut = r"was cut: it has rows in partitions 0 and .*set_index\('qid'\)"
    order = np.random.default_rng(2).permutation(len(Y))
    for rows, message in ((np.arange(len(Y)), cut), (order, "in several places")):
        columns = in_dask(X[rows], Y[rows], QID[rows], chunks=(len(Y) // 3, 1, len(Y) - len(Y) // 3 - 1))
        with pytest.raises(LTRError, match=message):
            dask_group(columns[2])
        with pytest.raises(LTRError, match=message):
            dask_by_query(*columns)
        with pytest.raises(LTRError, match=message):
            dask_evaluate("map", columns[1], *columns[1:])


def test_dataframes_and_sparse_matrices(client):
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=pd.Categorical(np.where(Y > 1, "u", "v")))
    names = frame.columns.tolist()
    pd.testing.assert_frame_equal(dask_by_query(frame, pd.Series(Y), pd.Series(QID)).X.compute(), frame)
    cut = dd.from_pandas(frame.assign(y=Y, qid=QID, row=np.arange(len(Y))), npartitions=5, sort=False)
    with pytest.raises(LTRError, match="was cut"):
        dask_by_query(cut[names], cut["y"], cut["qid"])
    whole = cut.set_index("qid").reset_index().persist()  # as the message says
    data, rows = dask_by_query(whole[names], whole["y"], whole["qid"]), whole["row"].compute()
    pd.testing.assert_frame_equal(data.X.compute().reset_index(drop=True), frame.iloc[rows].reset_index(drop=True))
    assert np.array_equal(data.y.compute(), Y[rows])
    assert np.array_equal(data.qid.compute(), QID)
    assert data.X.npartitions == len(client.ncores()) == data.qid.numblocks[0]
    data = dask_by_query(sparse.csr_matrix(X), Y, QID)
    parts = [data.X.partitions[i].compute() for i in range(data.X.numblocks[0])]
    assert all(sparse.issparse(p) for p in parts)
    assert np.array_equal(sparse.vstack(parts).toarray(), X)


SHIFTED = (0, CHUNKS[1] + 1, CHUNKS[2] - 1, *CHUNKS[3:])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (in_dask(X, Y, np.where(QID == 3, None, QID.astype(object))), "qid has no id in row"),
        (in_dask(X, Y, np.ma.masked_equal(QID, 3)), "qid has a masked value"),
        (in_dask(X, np.ma.masked_equal(Y, 1), QID), "labels has a masked value"),
        (in_dask(np.ma.masked_greater(X, 1), Y, QID), "X has a masked value"),
        ((np.ma.masked_greater(X, 1), Y, QID), "X has a masked value"),
        (in_dask(X, np.where(Y == 2, np.nan, Y), QID), "labels must be finite"),
        (in_dask(X, 2.0**24 + Y, QID), "rank the labels within each query"),
        ([*in_dask(X), Y, QID], "y must be a Dask array, series or dataframe, got ndarray"),
        ((X[:5], Y, QID), "X has 5 rows, but qid has"),
        ([*in_dask(X, chunks=SHIFTED), *in_dask(Y, QID)], r"X has \d+ rows, but qid has"),
        ([*in_dask(X), da.from_array(Y), *in_dask(QID)], r"^X, y, qid have .* partitions"),
    ],
    ids=range(11),
)
def test_wrong_data_are_refused(client, given, message):
    with pytest.raises(LTRError, match=message):
        dask_by_query(*given)


def test_wrong_numbers_of_partitions_are_refused(client):
    for given, n, message in (
        ((X, Y, QID), 61, "60 queries cannot be spread over 61 partitions"),
        ((X, Y, QID), 0, "partitions=0 must be"),
        (in_dask(X, Y, QID), 21, "20 partitions cannot be spread over 21 partitions"),
    ):
        with pytest.raises(LTRError, match=message):
            dask_by_query(*given, partitions=n)
    with pytest.raises(LTRError, match=r"^scores, y, qid have .* partitions"):
        dask_evaluate("map", da.from_array(Y), *in_dask(Y, QID))


def test_an_error_on_one_worker_ends_the_training_on_all(client):
    data = dask_by_query(X, np.where(np.arange(len(Y)) == len(Y) - 1, 5, Y), QID)
    right = {"obj": xgboost_objective("lambdamart")}
    late = {**right, "custom_metric": xgboost_metric("err"), "evals": [data]}
    for wrong in ({"obj": xgboost_objective("lambdamart:err")}, late):
        with pytest.raises(LTRError, match="err takes labels up to 4, got 5"):
            in_xgboost(client, data, 2, **wrong)
        assert len(client.run(lambda: None)) == len(client.ncores())
        assert in_xgboost(client, data, 2, **right)[0].num_boosted_rounds() == 2  # no worker waits for another


def test_workers_without_rows_take_part(client):
    sets, ours = [dask_by_query(X, Y, QID, partitions=1), dask_by_query(X, Y, QID)], xgboost_objective("lambdamart:map")
    for data, valid in (sets, sets[::-1]):
        model, record = in_xgboost(client, data, 3, obj=ours, custom_metric=xgboost_metric("map"), evals=[valid])
        here = evaluate("map", model.predict(xgb.DMatrix(X)), Y, qid=QID)
        assert record["e0"]["map"][-1] == pytest.approx(here, abs=1e-6)


@pytest.mark.release
def test_the_example_trains_on_processes(tmp_path):
    example = examples.block("docs/large_data.md", "LocalCluster").replace("(200, 60, 60)", "(24, 12, 12)")
    (tmp_path / "example.py").write_text(example.replace("300,", "5,"))
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(xgboost|lightgbm) 0\.[0-9]+$", done.stdout, re.M) == ["xgboost", "lightgbm"]

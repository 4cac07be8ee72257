"""Dask: data sets cut by query, the models and values of one process, and errors before training or on all workers."""

import inspect
import itertools
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import examples
import numpy as np
import pandas as pd
import pytest
import recording
from generated import ranking

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

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
dxgb = pytest.importorskip("xgboost.dask")
sparse = pytest.importorskip("scipy.sparse")
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


def pieces(data):
    """The contents of each partition, by column."""
    columns = [c for c in data if c is not None]
    return [[np.asarray(c.partitions[i].compute()) for c in columns] for i in range(data.X.numblocks[0])]


def check(data, X, y, qid):
    """Assert that all rows are there in order, queries are whole, groups fit, and partitions have similar sizes."""
    found = pieces(data)
    assert np.array_equal(np.concatenate([p[0] for p in found]), X)
    assert np.array_equal(np.concatenate([p[1] for p in found]), y)
    for _, _, numbers, group, *_ in found:
        assert np.array_equal(np.bincount(numbers - numbers[0]), group)
    queries = [set(p[2].tolist()) for p in found]
    assert sum(map(len, queries)) == len(set.union(*queries)) == len(np.unique(qid))
    assert max(len(p[1]) for p in found) < 2 * min(len(p[1]) for p in found)
    return found


def test_rows_in_memory(client):
    X, y, qid = ranking(0)
    names = np.array([f"query {q:03d}" for q in qid])
    weight = np.linspace(1, 2, len(y))
    data = dask_by_query(X, y, names, weight)
    found = check(data, X, y, qid)
    assert np.array_equal(np.concatenate([p[4] for p in found]), weight)
    assert len(found) == len(client.ncores())
    assert len(check(dask_by_query(X, y, names, partitions=3), X, y, qid)) == 3


def test_partitions_leave_no_task_that_another_worker_could_steal(client):
    X, y, qid = ranking(0)
    frame = pd.DataFrame(X, columns=list("abcde"))
    data = dask_by_query(frame, pd.Series(y), pd.Series(qid), pd.Series(y + 1.0))
    addresses = sorted(client.scheduler_info()["workers"], key=lambda w: client.scheduler_info()["workers"][w]["name"])
    for column in data[:5]:
        futures = client.futures_of(column)
        assert {future.status for future in futures} == {"finished"}
        if column is not data.X:  # a frame has an alias of each partition
            assert [f.key for f in client.futures_of(client.persist(column))] == [f.key for f in futures]
        held = {future.key[1]: list(client.who_has([future])[future.key]) for future in futures}
        assert [held[i] for i in range(len(addresses))] == [[address] for address in addresses]


def chunks_of(qid, queries=3):
    """Sizes of partitions with so many queries, one of them empty."""
    sizes = np.add.reduceat(np.bincount(qid), np.arange(0, qid[-1] + 1, queries))
    return (*sizes[:2].tolist(), 0, *sizes[2:].tolist())


def test_partitions_of_whole_queries_are_joined(client):
    X, y, qid = ranking(0)
    by_row = np.arange(1.0, len(y) + 1)
    columns = [da.from_array(c, chunks=(chunks_of(qid), *c.shape[1:])) for c in (X, y, qid, by_row)]
    assert columns[0].numblocks[0] > len(client.ncores())
    data = dask_by_query(*columns)
    assert len(check(data, X, y, qid)) == len(client.ncores())
    assert np.array_equal(data.qid.compute(), qid)
    assert np.array_equal(data.weight.compute(), by_row)
    assert np.array_equal(dask_group(data.qid).compute(), data.group.compute())
    assert np.array_equal(dask_group(columns[2]).compute(), data.group.compute())
    assert len(check(dask_by_query(*columns, partitions=2), X, y, qid)) == 2
    with pytest.raises(LTRError, match="20 partitions cannot be spread over 21 partitions"):
        dask_by_query(*columns, partitions=21)


@pytest.mark.parametrize("shuffled", [False, True])
def test_cut_queries_are_refused(client, shuffled):
    X, y, qid = ranking(0)
    if shuffled:
        order = np.random.default_rng(2).permutation(len(y))
        X, y, qid = X[order], y[order], qid[order]
    chunks = (len(y) // 3, 1, len(y) - len(y) // 3 - 1)
    cut = [da.from_array(c, chunks=(chunks, *c.shape[1:])) for c in (X, y, qid)]
    message = "in several places" if shuffled else r"was cut: it has rows in partitions 0 and .*set_index\('qid'\)"
    with pytest.raises(LTRError, match=message):
        dask_group(cut[2])
    with pytest.raises(LTRError, match=message):
        dask_by_query(*cut)


def test_dataframes_and_sparse_matrices(client):
    X, y, qid = ranking(0)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=pd.Categorical(np.where(y > 1, "u", "v")))
    data = dask_by_query(frame, pd.Series(y), pd.Series(qid))
    pd.testing.assert_frame_equal(data.X.compute(), frame)
    lies = dd.from_pandas(frame.assign(y=y, qid=qid, row=np.arange(len(y))), npartitions=5, sort=False)
    with pytest.raises(LTRError, match="was cut"):
        dask_by_query(lies[frame.columns.tolist()], lies["y"], lies["qid"])
    whole = lies.set_index("qid").reset_index().persist()  # as the message says
    data, rows = dask_by_query(whole[frame.columns.tolist()], whole["y"], whole["qid"]), whole["row"].compute()
    pd.testing.assert_frame_equal(data.X.compute().reset_index(drop=True), frame.iloc[rows].reset_index(drop=True))
    assert np.array_equal(data.y.compute(), y[rows])
    assert np.array_equal(data.qid.compute(), qid)
    assert data.X.npartitions == len(client.ncores()) == data.qid.numblocks[0]
    data = dask_by_query(sparse.csr_matrix(X), y, qid)
    parts = [data.X.partitions[i].compute() for i in range(data.X.numblocks[0])]
    assert all(sparse.issparse(p) for p in parts)
    assert np.array_equal(sparse.vstack(parts).toarray(), X)


def test_everywhere(client):
    X, y, qid = ranking(0, queries=5)
    columns = [da.from_array(c, chunks=(chunks_of(qid), *c.shape[1:])) for c in (X, y, qid)]
    for given in ((X, y, qid), columns):
        for copy in pieces(dask_by_query(*given, everywhere=True)):
            assert np.array_equal(copy[0], X)
            assert np.array_equal(copy[3], np.bincount(qid))


def in_dask(qid, *columns):
    """The columns in three partitions of whole queries."""
    chunks = tuple(np.diff([0, *np.searchsorted(qid, [20, 40]), len(qid)]).tolist())
    return [da.from_array(c, chunks=(chunks, *c.shape[1:])) for c in columns]


@pytest.mark.parametrize("kind", ["local", "dask"])
def test_wrong_values_are_refused(client, kind):
    X, y, qid = ranking(0)
    form = partial(in_dask, qid) if kind == "dask" else lambda *columns: list(columns)
    none, hidden = np.where(qid == 3, None, qid.astype(object)), np.ma.masked_equal(qid, 3)
    for wrong, message in (
        (form(X, y, none), "qid has no id in row"),
        (form(X, y, hidden), "qid has a masked value"),
        (form(X, np.ma.masked_equal(y, 1), qid), "labels has a masked value"),
        (form(np.ma.masked_greater(X, 1), y, qid), "X has a masked value"),
        (form(X, y, qid, np.ma.masked_equal(y + 1, 1)), "weight has a masked value"),
        (form(X, np.where(y == 2, np.nan, y), qid), "labels must be finite"),
        (form(X, 2.0**24 + y, qid), "rank the labels within each query"),
        ([*form(X, y), None], "qid must be a Dask array" if kind == "dask" else "qid="),
        ([*form(X), None, *form(qid)], "y must be a Dask array" if kind == "dask" else "labels must be one-dim"),
    ):
        with pytest.raises(LTRError, match=message):
            dask_by_query(*wrong)
    if kind == "dask":
        for ids in form(none, hidden):
            with pytest.raises(LTRError, match="qid has"):
                dask_evaluate("map", *form(y, y), ids)


def test_wrong_sizes_are_refused(client):
    X, y, qid = ranking(0)
    far = in_dask(qid, X, y, qid)
    first, second, third = far[0].chunks[0]
    shifted = da.from_array(X, chunks=((first + 1, second - 1, third), -1))
    for given, options, message in (
        ((X, y, qid[::2].repeat(2)[::-1] % 3), {}, "qid is not sorted"),
        ((X, y, qid), {"partitions": 61}, "60 queries cannot be spread over 61 partitions"),
        ((X, y, qid), {"partitions": 0}, "partitions=0 must be"),
        ((X[:5], y, qid), {}, "X has 5 rows, but qid has"),
        ((shifted, *far[1:]), {}, r"X has \d+ rows, but qid has"),
        ((far[0], far[1].rechunk(20), far[2]), {}, r"^X, y, qid have .* partitions"),
        ((far[0], y, qid), {}, "y must be a Dask array, series or dataframe, got ndarray"),
    ):
        with pytest.raises(LTRError, match=message):
            dask_by_query(*given, **options)
    with pytest.raises(LTRError, match=r"^scores, y, qid have .* partitions"):
        dask_evaluate("map", far[1].rechunk(len(y)), far[1].rechunk(len(y)), far[2].rechunk((qid < qid[-1]).sum()))
    with pytest.raises(LTRError, match="was cut"):
        dask_evaluate("map", *(da.from_array(c, chunks=50) for c in (y, y, qid)))


@pytest.mark.parametrize(("at", "form"), [(0, "array"), (1, "series"), (2, "array")])
def test_a_partition_may_be_empty(at, form):
    """As a filter leaves it."""
    X, y, qid = ranking(0)
    half = int(np.flatnonzero(qid == 7)[0])
    cuts = sorted([0, half, len(y), [0, half, len(y)][at]])
    weight = 1.0 + qid % 3

    def parts(column):
        if form == "series":
            pieces = [column[a:b] for a, b in itertools.pairwise(cuts)]
            return dd.from_map(pd.Series, pieces, meta=pd.Series(column[:0]))
        return da.from_array(column, chunks=(tuple(np.diff(cuts).tolist()),))

    columns = [parts(column) for column in (X[:, 0], y, qid, weight)]
    group = dask_group(columns[2])
    assert np.array_equal(group.compute(), np.bincount(qid))
    assert [len(block.compute()) for block in group.blocks].count(0) == group.numblocks[0] - 2 == 1
    for metric in ("ndcg@5", "map(empty=skip)"):
        found = dask_evaluate(metric, *columns)
        assert found == pytest.approx(evaluate(metric, X[:, 0], y, qid=qid, weight=weight), abs=1e-12)


def test_an_error_on_one_worker_ends_the_training_on_all(client):
    X, y, qid = ranking(0)
    y[-1] = 5
    data = dask_by_query(X, y, qid)
    dtrain = dxgb.DaskDMatrix(client, data.X, data.y, qid=data.qid)
    wrong = {"obj": xgboost_objective("lambdamart:err")}
    late = {"obj": xgboost_objective("lambdamart"), "custom_metric": xgboost_metric("err"), "evals": [(dtrain, "d")]}
    for options in (wrong, late):
        with pytest.raises(LTRError, match="err takes labels up to 4, got 5"):
            dxgb.train(client, XGB, dtrain, 2, verbose_eval=False, **options)
        assert len(client.run(lambda: None)) == len(client.ncores())
        out = dxgb.train(client, XGB, dtrain, 2, obj=xgboost_objective("lambdamart"))  # no worker waits for another
        assert out["booster"].num_boosted_rounds() == 2


def test_workers_without_rows_take_part(client):
    X, y, qid = ranking(0)
    one, all_ = dask_by_query(X, y, qid, partitions=1), dask_by_query(X, y, qid)
    matrices = [dxgb.DaskDMatrix(client, d.X, d.y, qid=d.qid) for d in (one, all_)]
    for dtrain, valid in (matrices, matrices[::-1]):
        out = dxgb.train(
            client, XGB, dtrain, 3,
            obj=xgboost_objective("lambdamart:map"), custom_metric=xgboost_metric("map"), evals=[(valid, "v")],
            verbose_eval=False,
        )  # fmt: skip
        here = evaluate("map", out["booster"].predict(xgb.DMatrix(X)), y, qid=qid)
        assert out["history"]["v"]["map"][-1] == pytest.approx(here, abs=1e-6)


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
    example = examples.block("docs/large_data.md", "LocalCluster")
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

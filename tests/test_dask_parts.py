"""Dask: how data sets are cut by query, and what is refused before training or on all workers."""

import itertools
from functools import partial

import numpy as np
import pytest
from generated import ranking

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import (
    dask_by_query,
    dask_evaluate,
    dask_group,
    xgboost_metric,
    xgboost_objective,
)

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # sockets that close late
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of old versions of Dask
]


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
    pd = pytest.importorskip("pandas")
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
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    dd = pytest.importorskip("dask.dataframe")
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
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
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
    dxgb = pytest.importorskip("xgboost.dask")
    X, y, qid = ranking(0)
    y[-1] = 5
    data = dask_by_query(X, y, qid)
    dtrain = dxgb.DaskDMatrix(client, data.X, data.y, qid=data.qid)
    params = {"disable_default_eval_metric": 1}
    wrong = {"obj": xgboost_objective("lambdamart:err")}
    late = {"obj": xgboost_objective("lambdamart"), "custom_metric": xgboost_metric("err"), "evals": [(dtrain, "d")]}
    for options in (wrong, late):
        with pytest.raises(LTRError, match="err takes labels up to 4, got 5"):
            dxgb.train(client, params, dtrain, 2, verbose_eval=False, **options)
        assert len(client.run(lambda: None)) == len(client.ncores())
        out = dxgb.train(client, params, dtrain, 2, obj=xgboost_objective("lambdamart"))  # no worker waits for another
        assert out["booster"].num_boosted_rounds() == 2


def test_workers_without_rows_take_part(client):
    xgb, dxgb = pytest.importorskip("xgboost"), pytest.importorskip("xgboost.dask")
    X, y, qid = ranking(0)
    one, all_ = dask_by_query(X, y, qid, partitions=1), dask_by_query(X, y, qid)
    matrices = [dxgb.DaskDMatrix(client, d.X, d.y, qid=d.qid) for d in (one, all_)]
    for dtrain, valid in (matrices, matrices[::-1]):
        out = dxgb.train(
            client, {"disable_default_eval_metric": 1, "min_child_weight": 1e-3}, dtrain, 3,
            obj=xgboost_objective("lambdamart:map"), custom_metric=xgboost_metric("map"), evals=[(valid, "v")],
            verbose_eval=False,
        )  # fmt: skip
        here = evaluate("map", out["booster"].predict(xgb.DMatrix(X)), y, qid=qid)
        assert out["history"]["v"]["map"][-1] == pytest.approx(here, abs=1e-6)

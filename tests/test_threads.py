"""Threads of our own: any number, several callers at once, after a fork."""

import multiprocessing
import os
import threading

import numpy as np
import pytest

from ltr_objectives import LambdaMART, LTRError, Queries
from ltr_objectives.kernels import threads
from ltr_objectives.kernels.threads import available_threads, chunk_bounds, run


def work(n_threads=2):
    rng = np.random.default_rng(5)
    group = rng.integers(1, 30, 200)
    labels, scores = rng.integers(0, 4, group.sum()), rng.normal(size=group.sum())
    return LambdaMART("ndcg").gradient_hessian(scores, labels, group, n_threads=n_threads)[0].tobytes()


def test_chunks_cover_every_query_once(rng):
    for count in (1, 2, 5, 1000):
        ptr = Queries(np.zeros(3 * count), np.full(count, 3)).ptr
        for chunks in (1, 2, 16, 5000):
            bounds = chunk_bounds(ptr, chunks)
            assert bounds[0] == 0
            assert bounds[-1] == count
            assert (np.diff(bounds) > 0).all()
    skewed = np.concatenate(([0], np.cumsum([10_000, *[1] * 999])))
    assert chunk_bounds(skewed, 4)[-1] == 1000


def test_several_callers_at_once():
    expected, got = work(1), []
    callers = [threading.Thread(target=lambda: got.extend(work() for _ in range(5))) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert got == [expected] * 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns of any fork while there are threads
def test_after_a_fork():
    expected = work()  # the parent's threads exist when the child begins
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(work, [2, 2]) == [expected] * 2


def test_where_no_thread_is_to_be_had_the_caller_does_all(monkeypatch):
    queued = []

    class Pool:
        def submit(self, begin, times):
            queued.extend([begin] * times)

    monkeypatch.setattr(threads, "_pool", Pool())
    done = []
    run(lambda first, last: done.extend(range(first, last)), np.arange(0, 402, 2), (), 3)
    assert done == list(range(200))
    for begin in queued:  # a late thread has nothing to do
        begin()
    assert len(done) == 200
    assert len(queued) == 2


def test_data_sets_of_all_sizes_share_their_threads(monkeypatch):
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    before = threading.active_count()
    for queries in range(1, 33):
        done = np.zeros(queries)
        run(lambda first, last, done: np.add(done[first:last], 1, out=done[first:last]),
            100 * np.arange(queries + 1), (done,), 32)  # fmt: skip
        assert (done == 1).all()
    assert threading.active_count() - before <= 32


def test_one_thread_is_the_caller_s(monkeypatch):
    monkeypatch.setattr(threads, "_pool", None)
    work(1)


def test_numbers_of_threads():
    assert work(-1) == work(1) == work(64)
    for wrong in (0, -2, 1.5, "two"):
        with pytest.raises(LTRError, match="n_threads"):
            work(wrong)


def test_the_environment_bounds_the_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert available_threads() == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert available_threads() >= 1

"""Kernels of one job: the order of a list, exponentials, and threads in this process, its forks and others."""

import itertools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from loading import run_code
from trainings import LIBRARIES, train

from ltr_objectives import LambdaMART
from ltr_objectives.kernels import threads
from ltr_objectives.kernels.exponential import FARTHEST, exponentials
from ltr_objectives.kernels.sorting import RUN, SHORT, descending_order, head_order, sorter
from ltr_objectives.kernels.threads import available_threads, run
from ltr_objectives.queries import MOST_RESULTS, Queries

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")

# sorting


LENGTHS = [1, 2, 8, RUN, 32, 33, 120, SHORT, SHORT + 1, 500, 1500]
LISTS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-2, 3, n).astype(float),
    "all equal": lambda rng, n: np.full(n, -0.5),
    "zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "last digits alone differ": lambda rng, n: 1e3 + rng.integers(-20, 20, n) * 2e-13,
    "huge and tiny": lambda rng, n: rng.choice([1e30, -1e30, 1e308, 5e-324, -5e-324, 0.0, 1e-200], n),
    "descending": lambda rng, n: -np.arange(n, dtype=float),
    "ascending": lambda rng, n: np.arange(n, dtype=float),
}


@pytest.mark.parametrize("n", LENGTHS)
def test_order_is_numpy_s(n, rng):
    for kind, some in LISTS.items():
        s = np.column_stack([some(rng, n), rng.normal(size=n)])[:, 0]  # strided
        sort, order = sorter(n + 3), np.empty(n + 3, np.int64)  # buffers may be longer than the list
        descending_order(s, order, sort)
        expected = np.argsort(-s, kind="stable")
        assert np.array_equal(order[:n], expected), kind
        assert np.array_equal(sort.key[:n], s[expected]), kind


@pytest.mark.parametrize("n", LENGTHS)
def test_the_head_of_the_order(n, rng):
    for kind, top in itertools.product(LISTS, (1, 7, 30, 33, 100)):
        s = LISTS[kind](rng, n)
        sort, order = sorter(n + 3), np.empty(n + 3, np.int64)
        expected = np.argsort(-s, kind="stable")
        last = s[expected[min(top, n) - 1]]
        for others in (False, True):
            count = head_order(s, min(top, n), others, order, sort)
            assert count >= (s >= last).sum(), (kind, top)
            assert np.array_equal(order[:count], expected[:count]), (kind, top)
            assert np.array_equal(sort.key[:count], s[expected[:count]]), (kind, top)
        if count < n:
            assert count == (s >= last).sum(), (kind, top)
            assert np.array_equal(order[count:n], np.flatnonzero(s < last)), (kind, top)


# exponential


def exp(x):
    out = x.copy()
    exponentials(out)
    return out


def test_error_is_below_one_unit_in_the_last_place(rng):
    near = np.nextafter(FARTHEST, 0)
    x = np.concatenate([rng.uniform(-1, 1, 50_000) * scale for scale in (700, 1, 1e-3, 1e-17)] + [[near, -near, 0.0]])
    exact = np.exp(x.astype(np.longdouble))
    assert np.max(np.abs(exp(x) - exact) / exact) < 2.2e-16
    far = np.array([1.0, -745.0, -1e308, 710.0, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(exp(far), np.exp(far), rtol=1e-15)
    assert len(exp(np.empty(0))) == 0


# threads


def work(n_threads=2):
    rng = np.random.default_rng(5)
    group = rng.integers(1, 30, 200)
    labels, scores = rng.integers(0, 4, group.sum()), rng.normal(size=group.sum())
    return LambdaMART("ndcg").gradient_hessian(scores, labels, group, n_threads=n_threads)[0].tobytes()


def test_several_callers_at_once():
    expected = work(1)
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, 30 * [2])) == 30 * [expected]


def test_several_callers_keep_results_of_one_data_set():
    queries, before = Queries([1, 0], [2]), sys.getswitchinterval()

    def keep(caller):
        for i in range(20_000):
            queries.cached((caller, i), lambda: None)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(keep, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert len(queries._computed) == MOST_RESULTS


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


def test_numbers_of_threads(monkeypatch):
    assert work(-1) == work(1) == work(64)
    for value, count in (("1", [1]), ("many", range(1, 1000))):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() in count
    monkeypatch.setattr(threads, "_pool", None)
    work(1)  # needs no thread but its own


# other processes


def lines_of(code: str) -> list[str]:
    """Return the lines that code prints in a new process, where Python 3.12 may warn of forks."""
    return run_code(code, PYTHONWARNINGS="ignore::DeprecationWarning").stdout.splitlines()


@FORKS
def test_forked_processes_after_our_threads_ran():
    expected = [train(library, threads=2) for library in LIBRARIES]
    code = """
import functools, multiprocessing, threading, numpy as np
from ltr_objectives import LambdaMART
from ltr_objectives.kernels import threads
from trainings import LIBRARIES, train
LambdaMART().gradient_hessian(np.arange(40.0), np.arange(40) % 3, [4] * 10, n_threads=2)
assert threading.active_count() > 1
with multiprocessing.get_context("fork").Pool(1) as pool:
    for result in pool.map(functools.partial(train, threads=2), LIBRARIES):
        print(result.hex())
"""
    assert [line for line in lines_of(code) if not line.startswith("[LightGBM]")] == [x.hex() for x in expected]


WORK = """
import os, signal, threading, time, numba, numpy as np
from ltr_objectives import LambdaMART
from ltr_objectives.kernels import _compiler
scores, labels, group = np.random.default_rng(0).normal(size=4000), np.arange(4000) % 3, [8] * 500
def work(): return LambdaMART().gradient_hessian(scores, labels, group, n_threads=2)[0].tobytes()
"""
FORKING = """
expected, stop = work(), threading.Event()
def busy():
    while not stop.is_set(): work()
callers = [threading.Thread(target=busy) for _ in range(3)]
for c in callers: c.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(work() != expected)
    print(os.waitpid(child, 0)[1])
stop.set()
"""


@pytest.mark.release
@FORKS
@pytest.mark.parametrize("other", ["", "def work(): return numba.njit(lambda x: x + 1)(1)"], ids=["run", "compile"])
def test_forks_while_other_threads_compute_or_compile(other):
    assert lines_of(WORK + other + FORKING) == ["0"] * 20


@pytest.mark.release
def test_a_thread_that_trains_after_the_main_thread_has_ended():
    code = """
expected = work()
def late():
    while threading.main_thread().is_alive(): time.sleep(0.01)
    time.sleep(0.2)
    print(work() == expected)
threading.Thread(target=late).start()
"""
    assert lines_of(WORK + code) == ["True"]

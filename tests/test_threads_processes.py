"""Trainings in other processes and threads: joblib, multiprocessing, forks at bad moments, late threads."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import joblib
import pytest
from trainings import LIBRARIES, train

HERE = str(Path(__file__).parent)
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")


def script(code: str) -> list[str]:
    """The lines that ``code`` prints in a new process, in which no library has used OpenMP yet."""
    path = os.pathsep.join([HERE, str(Path(HERE).parent)])
    done = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code], text=True, timeout=120,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(backend):
    pytest.importorskip("xgboost")
    expected = [train(library, threads=2) for library in LIBRARIES]
    with joblib.parallel_config(backend=backend, n_jobs=2):
        got = joblib.Parallel()(joblib.delayed(train)(library, threads=2) for library in LIBRARIES)
    assert got == expected


def test_spawned_processes():
    expected = [train(library) for library in LIBRARIES]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(train, LIBRARIES) == expected


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
    assert [line for line in script(code) if not line.startswith("[LightGBM]")] == [x.hex() for x in expected]


@FORKS
def test_forks_while_other_threads_compute():
    code = """
import os, threading, numpy as np
from ltr_objectives import LambdaMART
scores, labels, group = np.random.default_rng(0).normal(size=4000), np.arange(4000) % 3, [8] * 500
def work(): return LambdaMART().gradient_hessian(scores, labels, group, n_threads=2)[0].tobytes()
expected, stop = work(), threading.Event()
def busy():
    while not stop.is_set(): work()
callers = [threading.Thread(target=busy) for _ in range(3)]
for c in callers: c.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(work() != expected)
    print(os.waitpid(child, 0)[1])
stop.set()
"""
    assert script(code) == ["0"] * 20


@FORKS
def test_forks_while_another_thread_compiles():
    code = """
import os, signal, threading, numba
import ltr_objectives.kernels._compiler
def work(): return numba.njit(lambda x: x + 1)(1)
stop = threading.Event()
def busy():
    while not stop.is_set(): work()
work()
thread = threading.Thread(target=busy)
thread.start()
for _ in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(work() != 2)
    print(os.waitpid(child, 0)[1])
stop.set()
"""
    assert script(code) == ["0"] * 4


def test_a_thread_that_trains_after_the_main_thread_has_ended():
    code = """
import threading, time, numpy as np
from ltr_objectives import LambdaMART
def work(): return LambdaMART().gradient_hessian(np.arange(40.0), np.arange(40) % 3, [4] * 10, n_threads=2)[0].tobytes()
expected = work()
def late():
    while threading.main_thread().is_alive(): time.sleep(0.01)
    time.sleep(0.2)
    print(work() == expected)
threading.Thread(target=late).start()
"""
    assert script(code) == ["True"]

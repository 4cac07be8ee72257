"""Ctrl-C in a gradient: it takes effect within a query, and the same data set gives the same bytes afterwards."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache

from ltr_objectives import Queries, get_objective, objectives
from ltr_objectives.kernels import _jit, threads
from ltr_objectives.objectives import call

ROOT = Path(__file__).parent.parent
SIGINT = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
ROWS = threads.FEW_ROWS + 1


@pytest.fixture
def ctrl_c():
    """Sends Ctrl-C to this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore Ctrl-C
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def patient(seen, ctrl_c):
    """A kernel that interrupts its first call; each call ends when told to, or after a minute."""

    def kernel(first, last, stop):
        if not seen:
            ctrl_c()
        seen.append(first)
        until = time.monotonic() + 60
        while not stop[0] and time.monotonic() < until:
            time.sleep(0.001)
        assert stop[0]

    return kernel


@SIGINT
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_stops_the_chunk_at_hand_and_all_that_follow(n_threads, ctrl_c):
    seen = []
    with pytest.raises(KeyboardInterrupt):
        threads.run(patient(seen, ctrl_c), np.arange(ROWS + 1), (stop := np.zeros(1, bool),), n_threads, stop)
    assert 1 <= len(seen) <= n_threads


@SIGINT
def test_one_thread_stops_between_chunks_where_a_kernel_knows_no_stop(ctrl_c):
    seen = []

    def kernel(first, last):
        seen.append(first)
        ctrl_c()
        time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, np.arange(ROWS + 1), (), 1)
    assert seen == [0]


@SIGINT
@pytest.mark.skipif(_jit.parts is _jit._Plain or numba.config.DISABLE_JIT, reason="numba compiles as it always does")
@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupt_waits_for_the_end_of_compiling(fails, ctrl_c):
    class Interrupting(NullCache):
        def load_overload(self, sig, target_context):
            ctrl_c()
            if fails:
                raise ValueError("as planned")

    def add_one(x):
        return x + 1

    add_one = _jit.kernel(add_one)
    add_one._cache = Interrupting()
    with pytest.raises(KeyboardInterrupt) as raised:
        add_one(1)
    assert len(add_one.signatures) == (not fails)
    assert (str(raised.value.__context__) == "as planned") == fails
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


@pytest.mark.parametrize("stoppable", [True, False])
def test_an_error_in_a_chunk_ends_the_others_too(stoppable):
    seen = []

    def kernel(first, last, *stop):
        seen.append(first)
        if first == 0:
            raise ValueError("as planned")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="as planned"):
        threads.run(kernel, np.arange(ROWS + 1), (), 2, np.zeros(1, bool) if stoppable else None)
    assert len(seen) < 15


@pytest.mark.parametrize("name", objectives())
def test_every_kernel_that_may_take_long_stops(name, monkeypatch):
    any_objective = get_objective(name)
    stoppable = []

    def run(kernel, ptr, arguments, n_threads=None, stop=None, draws=1):
        if kernel is not call.finish:
            stoppable.append(stop is not None)
        if stop is not None:
            stop[0] = True
        return threads.run(kernel, ptr, arguments, n_threads, None, draws)

    monkeypatch.setattr(call, "run", run)
    queries = Queries([1, 0, 1, 0, 1, 0], group=[4, 2])
    grad, _ = any_objective.inner.compute(queries, np.array([0.1, 0.5, 0.3, 0.2, 0.0, 0.4]))
    assert grad.any() != any(stoppable)
    if any_objective.facts.fewer_pairs:
        assert any(stoppable)


SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
from ltr_objectives import Queries
from ltr_objectives.registry import get_objective

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)

def interrupted(work, seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        timer.start()
        work()
        timer.join()
        time.sleep(0.1)
    except KeyboardInterrupt:
        return True
    return False

def data(n):
    return Queries(rng.choice(5, n), [n]), rng.normal(size=n)
"""

LONG = (
    "lambdamart", "lambdamart:ndcg;score_norm=true", "lambdamart:ndcg;sigma=1000", "yetiloss:ndcg", "ranknet",
    "lambdaloss", "approxndcg", "stochasticrank:ndcg", "softrank:max_documents=1000000",
)  # fmt: skip
HEARD = (
    SCRIPT
    + """
queries, scores = data(1_000_000)
for i, name in enumerate(sys.argv[1:]):
    objective = get_objective(name)
    objective.gradient_hessian([0.0, 1.0, 2.0], [1, 0, 2], [3])  # compiled, or read
    assert interrupted(lambda: objective.compute(queries, scores, n_threads=1 + i % 2), 0.5), name
few, shown = data(4000)
plrank = get_objective("plrank:k=1000;samples=1000000")
plrank.gradient_hessian([0.0, 1.0, 2.0], [1, 0, 2], [3])
assert interrupted(lambda: plrank.compute(few, shown), 0.5)
"""
)

AFTERWARDS = (
    SCRIPT
    + """
queries, scores = data(6000)
for name in sys.argv[1:]:
    objective = get_objective(name)
    def work():
        return b"".join(x.tobytes() for x in objective.compute(queries, scores, iteration=3, n_threads=2))
    expected = work()
    for seconds in (0.0, 0.002, 0.02):
        assert interrupted(work, seconds)
        assert work() == expected, name
"""
)


STORM = (
    SCRIPT
    + """
queries, scores = Queries(rng.choice(5, 4800), [800] * 6), rng.normal(size=4800)
objective = get_objective(sys.argv[1])
expected = objective.compute(queries, scores, n_threads=3)[0].tobytes()
going = [True]

def storm():
    while going:
        time.sleep(rng.uniform(0, 0.005))
        os.kill(os.getpid(), signal.SIGINT)

heard = 0
storming = threading.Thread(target=storm, daemon=True)
while True:
    try:
        if not storming.ident:
            storming.start()
        while heard < 1000:
            try:
                assert objective.compute(queries, scores, n_threads=3)[0].tobytes() == expected
            except KeyboardInterrupt:
                heard += 1
        going.clear()
        storming.join()
        break
    except KeyboardInterrupt:
        pass
time.sleep(0.1)
assert sum(t.name == "ltr-objectives" for t in threading.enumerate()) >= 3
assert objective.compute(queries, scores, n_threads=3)[0].tobytes() == expected
"""
)


@SIGINT
@pytest.mark.parametrize(
    ("script", "names"),
    [(HEARD, LONG), (AFTERWARDS, tuple(objectives())), (STORM, ("lambdamart:ndcg;truncation=50",))],
    ids=["heard", "afterwards", "storm"],
)
def test_in_a_process_of_its_own(script, names, tmp_path):
    file = tmp_path / "interrupted.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, "-W", "ignore", file, *names], cwd=tmp_path, timeout=500, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr

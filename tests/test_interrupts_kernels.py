"""Ctrl-C in a gradient takes effect between chunks, and the same data set gives the same bytes afterwards."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ltr_objectives import objectives
from ltr_objectives.kernels import threads

ROOT = Path(__file__).parent.parent
SIGINT = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")


@pytest.fixture
def ctrl_c():
    """Sends Ctrl-C to this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore Ctrl-C
    yield lambda: os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, before)


@SIGINT
def test_an_interrupt_waits_for_the_chunks_that_run_and_no_other_begins(ctrl_c):
    seen, ended = [], []

    def kernel(first, last):
        if not seen:
            ctrl_c()
        seen.append(first)
        time.sleep(0.2)
        ended.append(first)

    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, np.arange(1001), (), 3)
    begun = len(seen)
    time.sleep(0.3)
    assert len(seen) == begun <= 3
    assert len(ended) >= begun - 1  # the caller's own chunk may be cut, because it is Python here


def test_an_error_in_a_chunk_ends_the_others_too():
    seen = []

    def kernel(first, last):
        seen.append(first)
        if first == 0:
            raise ValueError("as planned")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="as planned"):
        threads.run(kernel, np.arange(1001), (), 2)
    assert len(seen) < 15


SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
from ltr_objectives import Queries
from ltr_objectives.objectives.base import get_objective

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
        while heard < 50:
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
assert sum(t.name == "ltr-objectives" for t in threading.enumerate()) >= 2
assert objective.compute(queries, scores, n_threads=3)[0].tobytes() == expected
"""
)


@SIGINT
@pytest.mark.parametrize(
    ("script", "names"),
    [(AFTERWARDS, tuple(objectives())), (STORM, ("lambdamart:ndcg;truncation=50",))],
    ids=["afterwards", "storm"],
)
def test_in_a_process_of_its_own(script, names, tmp_path):
    file = tmp_path / "interrupted.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, "-W", "ignore", file, *names], cwd=tmp_path, timeout=500, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert done.returncode == 0, done.stderr

"""Ctrl-C in a boosting round: the process continues, and the next training gives the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trainings import LIBRARIES

HERE = Path(__file__).parent
SCRIPT = """
import os, signal, sys, threading, time
import numpy as np
from ltr_objectives.adapters import _catboost_passes
from ltr_objectives.objectives import pairwise
from trainings import small_data, train

signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have inherited none
_catboost_passes.WAIT_SECONDS = 1e6  # a thread that waits for one that is gone would hang, and the test with it
DATA = small_data(300)

def run(**how):
    return train(library, "lambdamart", threads=2, data=DATA, **how)

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(work):
    try:
        work()
    except KeyboardInterrupt:
        return True
    except Exception as error:  # CatBoost wraps what comes out of a user-defined objective
        assert type(error).__name__ == "CatBoostError", error
        return "KeyboardInterrupt" in str(error) or "interrupted" in str(error)
    return False

real, rounds = pairwise.pairs_by_gain, 100_000

def inside_our_kernel(*arguments):
    global calls
    calls += 1
    if calls == when:
        ctrl_c()
        time.sleep(0.1)
    real(*arguments)

def soon(iteration):
    global last
    last = iteration
    if iteration == 2:
        threading.Timer(delay, ctrl_c).start()

def inside_a_callback(iteration):
    if iteration == 2:
        ctrl_c()
        time.sleep(1)

for library in sys.argv[1:]:
    expected = run()
    pairwise.pairs_by_gain = inside_our_kernel
    for when in (1, 20, 40):  # at the start of the training, in a later round
        calls = 0
        assert interrupted(lambda: run(rounds=500)), library
        assert run() == expected, library
    pairwise.pairs_by_gain = real
    for delay in (0.0, 0.001, 0.003, 0.007, 0.02):  # anywhere in a round, mostly inside the library
        # CatBoost's own code around a callback loses an interrupt, and ends the training as if the callback had said so
        heard = interrupted(lambda: run(rounds=rounds, after=soon))
        assert heard or library == "catboost" and last < rounds - 1, library
        assert run() == expected, library
    assert interrupted(lambda: run(rounds=500, after=inside_a_callback)), library
    assert run() == expected, library
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
def test_the_next_training_is_right(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(HERE), str(HERE.parent)])
    done = subprocess.run([sys.executable, script, *LIBRARIES], cwd=tmp_path, timeout=300, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert done.returncode == 0, done.stderr

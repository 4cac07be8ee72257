"""Ctrl-C in a gradient or a boosting round: the process continues, and the same work gives the same bytes."""

import os
import signal
import sys
import time

import numpy as np
import pytest
from loading import run_code
from trainings import release

from ltr_objectives.kernels import threads

SIGINT = pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")


@SIGINT
def test_an_interrupt_waits_for_the_chunks_that_run_and_no_other_begins():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore Ctrl-C
    seen, ended = [], []

    def kernel(first, last):
        if not seen:
            os.kill(os.getpid(), signal.SIGINT)
        seen.append(first)
        time.sleep(0.2)
        ended.append(first)

    with pytest.raises(KeyboardInterrupt):
        threads.run(kernel, np.arange(1001), (), 3)
    signal.signal(signal.SIGINT, before)
    begun = len(seen)
    time.sleep(0.3)
    assert len(seen) == begun <= 3
    assert len(ended) >= begun - 1  # the caller's own chunk may be cut, because it is Python here


STORM = """
import os, signal, sys, threading, time
import numpy as np
from ltr_objectives import Queries
from ltr_objectives.objectives.mixture import get_objective

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
labels, scores = rng.choice(5, 4800), rng.normal(size=4800)
objective = get_objective("lambdamart:ndcg;truncation=50 + yetiloss:permutations=2 + plrank + listnet")
expected = objective.compute(Queries(labels, [800] * 6), scores, n_threads=3)[0].tobytes()
queries = Queries(labels, [800] * 6)  # the storm begins before the sizes of the parts are known
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
        while heard < int(sys.argv[1]):
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


@SIGINT
@pytest.mark.parametrize("interrupts", ["50", pytest.param("1000", marks=pytest.mark.release)])
def test_a_storm_of_interrupts_changes_no_later_gradient(interrupts):
    run_code(STORM, interrupts)


# trainings


TRAINING = """
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

[library], calls = sys.argv[1:], 0
expected = run()
pairwise.pairs_by_gain = inside_our_kernel
for when in (1, 20):  # at the start of the training, in a later round
    calls = 0
    assert interrupted(lambda: run(rounds=500))
    assert run() == expected
pairwise.pairs_by_gain = real
for delay in (0.0, 0.003, 0.02):  # anywhere in a round, mostly inside the library
    # CatBoost's own code around a callback loses an interrupt, and ends the training as if the callback had said so
    heard = interrupted(lambda: run(rounds=rounds, after=soon))
    assert heard or library == "catboost" and last < rounds - 1
    assert run() == expected
"""


@SIGINT
@pytest.mark.parametrize("library", ["xgboost", *release(["lightgbm", "catboost"])])
def test_the_next_training_is_right(library):
    run_code(TRAINING, library, PYTHONWARNINGS="ignore")

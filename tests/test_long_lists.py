"""Long lists: computed in parts on several threads, and ended by Ctrl-C."""

import itertools
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from catalog import EXAMPLES, SOME

from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives import call, pairwise
from ltr_objectives.objectives.pairwise import PairwiseObjective
from ltr_objectives.queries import Queries
from ltr_objectives.testing import random_labels

OF_PAIRS = [each for each in itertools.chain(*SOME.values()) if isinstance(each, PairwiseObjective)]
LONG = Queries(np.arange(300_000) % 2, [300_000])
SLOW = {type(each): each for each in itertools.chain(*EXAMPLES.values()) if each.pairs_visited(LONG) > 1e10}


@pytest.fixture
def short_is_long(monkeypatch):
    """Compute lists of ten documents in parts."""
    for module in (call, pairwise):
        monkeypatch.setattr(module, "LONG", 10)
    monkeypatch.setattr(pairwise, "PAIRS_OF_PART", 20)


@pytest.mark.parametrize("objective", OF_PAIRS, ids=str)
def test_parts_add_up_to_the_whole(objective, rng, request):
    group = np.array([30, 4, 21, 1, 12])
    labels, scores = random_labels(objective.label_limit, rng, group.sum()), rng.normal(size=group.sum())
    queries, first = Queries(labels, group), Queries(labels[:30], [30])
    whole = objective.compute(queries, scores)
    request.getfixturevalue("short_is_long")
    in_parts = [np.array(objective.compute(queries, scores, n_threads=n)) for n in (1, 2, 5)]
    assert {x.tobytes() for x in in_parts} == {in_parts[0].tobytes()}
    np.testing.assert_allclose(in_parts[0], whole, 1e-9, 1e-12 * np.abs(whole).max())
    alone = np.array(objective.compute(first, scores[:30]))
    assert alone.tobytes() == in_parts[0][:, :30].tobytes()
    skipped = np.array(objective.compute(queries, scores, skip=np.arange(5) == 0))
    assert not skipped[:, :30].any()
    assert skipped[:, 30:].tobytes() == in_parts[0][:, 30:].tobytes()


def test_the_parts_of_a_list_depend_on_that_list_alone():
    labels, others = np.arange(60_000) % 5, np.arange(90_000) % 2
    for objective in OF_PAIRS:
        if objective.label_limit is None:
            alone, among = Queries(labels, [60_000]), Queries(np.append(labels, others), [60_000, 90_000])
            parts = [objective._parts(queries, 0, objective._inputs(queries)) for queries in (alone, among)]
            assert parts[0] == parts[1]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
@pytest.mark.parametrize("objective", SLOW.values(), ids=str)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_interrupt_ends_a_long_list(objective, n_threads, rng):
    scores, few = rng.normal(size=LONG.rows), Queries(LONG.labels[:99], [99])
    expected = np.array(objective.compute(few, scores[:99])).tobytes()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore Ctrl-C
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.5, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        objective.compute(LONG, scores, n_threads=n_threads)
    assert time.perf_counter() - sent[0] < 5  # the whole takes 10 to 300 s; 5 is for a busy machine
    signal.signal(signal.SIGINT, before)
    assert np.array(objective.compute(few, scores[:99])).tobytes() == expected


def test_a_kernel_of_one_s_own_may_compute_long_lists(short_is_long, rng):
    """It runs in threads of the pool, of which none may wait for the others."""
    queries, scores, skip = Queries(np.arange(40) % 2, [40]), rng.normal(size=40), np.zeros(1, bool)
    skip.flags.writeable = False
    expected, found = OF_PAIRS[0].compute(queries, scores)[0], []
    run(lambda *_: found.append(OF_PAIRS[0].compute(queries, scores, n_threads=2, skip=skip)[0]), np.arange(9), (), 2)
    assert len(found) > 1
    assert all(np.array_equal(each, expected) for each in found)

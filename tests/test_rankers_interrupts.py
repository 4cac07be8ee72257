"""Ctrl-C in a training by the rankers is a KeyboardInterrupt, even if CatBoost turns it into its own error."""

import os
import signal
import sys

import numpy as np
import pytest
import rankers
from recording import Recording


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
@pytest.mark.parametrize("library", rankers.LIBRARIES)
def test_it_stays_a_keyboard_interrupt(library, monkeypatch):
    pytest.importorskip(library)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    calls = []

    def fill(self, call):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                np.sort(np.arange(100))  # so that the interrupt is raised here
        call.grad[:] = call.scores - call.queries.labels

    monkeypatch.setattr(Recording, "fill", fill)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3
    try:
        with pytest.raises(KeyboardInterrupt):
            rankers.ranker(library, Recording(), n_estimators=50).fit(X, y, group=[20] * 10)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) < 20

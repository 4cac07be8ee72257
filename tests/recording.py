"""An objective that records which threads compute it, for the tests."""

import threading
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives.objectives.base import Objective

SEEN: set[int] = set()
ASKED: list[int | None] = []


def _note(first, last, ptr, scores, labels, out):
    SEEN.add(threading.get_ident())
    time.sleep(0.002)  # so that every thread of a pool gets a chunk
    rows = slice(ptr[first], ptr[last])
    out.grad[rows] = scores[rows] - labels[rows]


@dataclass(frozen=True)
class Recording(Objective):
    """Squared error; ``SEEN`` holds the threads that compute it, ``ASKED`` the numbers of threads asked for."""

    name: ClassVar[str] = "recording"
    hessian: ClassVar[str] = "ones"

    def fill(self, call):
        ASKED.append(call.n_threads)
        call.run(_note, call.queries.labels)

    def reference(self, scores, labels):
        return scores - labels, np.ones(len(scores))


def threads_of(work) -> int:
    """How many threads computed gradients during ``work()``."""
    SEEN.clear()
    work()
    return len(SEEN)

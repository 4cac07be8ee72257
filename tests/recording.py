"""An objective that records which threads compute it, for the tests."""

import threading
import time
from dataclasses import dataclass
from typing import ClassVar

from ltr_objectives.objectives.base import Facts, Objective

SEEN: list[set[int]] = []
ASKED: list[int | None] = []


def _note(first, last, ptr, scores, labels, size, out):
    SEEN[-1].add(threading.get_ident())
    time.sleep(0.01)  # so that every thread of a pool gets a chunk
    rows = slice(ptr[first], ptr[last])
    out.grad[rows] = size * (scores[rows] - labels[rows])


@dataclass(frozen=True)
class Recording(Objective):
    """Squared error times ``size``; ``SEEN`` holds the threads of each call, ``ASKED`` the numbers asked for."""

    size: float = 1.0

    name: ClassVar[str] = "recording"
    hessian: ClassVar[str] = "ones"
    facts = Facts(shift_invariant=False, label_scale=True)

    def fill(self, call):
        ASKED.append(call.n_threads)
        SEEN.append(set())
        call.run(_note, call.queries.labels, float(self.size))


def threads_of(work) -> int:
    """Return the most threads that computed one gradient during ``work()``."""
    SEEN.clear()
    work()
    return max(map(len, SEEN))

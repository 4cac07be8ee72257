"""Run a kernel over all queries on several threads.

A kernel is a serial function ``kernel(first, last, *arrays)`` over the queries ``first <= q < last`` that writes only
what belongs to those queries. Which thread takes which chunk therefore cannot change a bit of the result. Threads of
our own, instead of numba's, survive ``fork``, may be entered from several Python threads at once, and compile faster.
"""

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any

import numpy as np

from ltr_objectives.checks import check_integer, is_number

CHUNKS_PER_THREAD = 8

FEW_ROWS = 4096  # up to so many a gradient takes less time than anybody waits for
POLL_SECONDS = 0.1  # where a signal does not end a wait, as on Windows, the wait must end by itself

_pools: "dict[tuple[int, str], _Pool]" = {}
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _pools.clear()  # the threads stayed in the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_threads() -> int:
    """Processors that this process may use, bounded by ``NUMBA_NUM_THREADS`` or ``OMP_NUM_THREADS`` where set."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            count = min(count, int(value))
    return count


def at_most(asked: object) -> int | None:
    """The threads a training asked for, bounded by :func:`available_threads`; None where it left that open.

    >>> at_most(1), at_most("1"), at_most(0), at_most(-1), at_most(None)
    (1, 1, None, None, None)
    """
    if isinstance(asked, str) and asked.isdigit():
        asked = int(asked)
    if is_number(asked) and asked >= 1:
        return min(int(asked), available_threads())
    return None


class _Pool:
    """Threads that take tasks from a queue, and end with the process.

    They are daemons, and not those of ``concurrent.futures``: Ctrl-C while such a pool starts a thread makes it forget
    the thread, for which the process then waits at its end.
    """

    def __init__(self, threads: int) -> None:
        self._missing = threads
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, task: Callable[[], None]) -> None:
        """Have a thread do the task; RuntimeError where the process may have no more threads."""
        with _lock:
            while self._missing:
                threading.Thread(target=_serve, args=(self._tasks,), name="ltr-objectives", daemon=True).start()
                self._missing -= 1
        self._tasks.put(task)


def _serve(tasks: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        tasks.get()()


def _pool(threads: int, callers: str) -> _Pool:
    """Threads for the main thread, or for all other callers: while it waits, its work must not queue behind theirs."""
    with _lock:
        return _pools.setdefault((threads, callers), _Pool(threads))


def chunk_bounds(ptr: np.ndarray, chunks: int) -> np.ndarray:
    """Query indices that cut the data into at most ``chunks`` parts with about equally many rows."""
    goals = np.linspace(0, ptr[-1], chunks + 1)[1:-1]
    return np.unique(np.concatenate(([0], np.searchsorted(ptr, goals), [len(ptr) - 1])))


def run(
    kernel: Callable[..., Any],
    ptr: np.ndarray,
    arguments: tuple[Any, ...],
    n_threads: int | None = None,
    stop: np.ndarray | None = None,
) -> None:
    """Call ``kernel(first, last, *arguments)`` on chunks that together cover every query once; -1 is all processors.

    Python raises KeyboardInterrupt only in the main thread, and only while that runs Python: here between two chunks.
    A kernel that may take long for a single query has among its arguments ``stop``, an array of one truth value. It
    returns early, with its work half done, once that is true. Unless the data are few, the main thread waits while
    others run such a kernel, and returns as soon as they have stopped.
    """
    if n_threads not in (None, -1):
        check_integer("n_threads", n_threads)
    threads = min(available_threads() if n_threads in (None, -1) else int(n_threads), len(ptr) - 1)
    few = ptr[-1] <= FEW_ROWS
    if threads == 1 and few:
        kernel(0, len(ptr) - 1, *arguments)
        return
    waits = stop is not None and not few and threading.current_thread() is threading.main_thread()
    if waits and not getattr(kernel, "signatures", True):
        kernel(0, 0, *arguments)  # compiles, here where Ctrl-C ends that too
    bounds = chunk_bounds(ptr, threads * CHUNKS_PER_THREAD)
    chunks = deque((int(a), int(b)) for a, b in itertools.pairwise(bounds))

    def work() -> None:
        try:
            while True:
                try:
                    a, b = chunks.popleft()
                except IndexError:
                    return
                kernel(a, b, *arguments)
        except BaseException:
            if stop is not None:
                stop[0] = True
            chunks.clear()
            raise

    others: list[Future[None]] = []
    try:
        pool = _pool(threads, "main") if waits else _pool(threads - 1, "others")
        for _ in range(threads if waits else threads - 1):
            others.append(Future())
            waits &= _submit(pool, others[-1], work)
        if not waits:
            work()
        for i, other in enumerate(others):
            if (waits and i == 0) or not other.cancel():  # it began, and did not find the pool busy until now
                while not wait([other], POLL_SECONDS).done:
                    pass
                other.result()
    except BaseException:  # an interrupt too: nobody may write into the arrays once the caller is gone
        if stop is not None:
            stop[0] = True
        chunks.clear()
        wait([other for other in others if not other.cancel()])
        raise


def _submit(pool: _Pool, future: "Future[None]", work: Callable[[], None]) -> bool:
    """Whether a thread will do the work: if none is left, or the main thread has ended, the caller does all of it."""

    def begin() -> None:
        if future.set_running_or_notify_cancel():
            try:
                work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)

    try:
        pool.submit(begin)
    except RuntimeError:
        return False
    return True

"""Run a kernel over all queries on several threads.

A kernel is a serial function ``kernel(first, last, *arrays)`` over the queries ``first <= q < last`` that writes only
what belongs to those queries. So the result is the same to the last bit, whichever thread takes a chunk. The threads
here replace numba's: they survive ``fork``, serve several Python threads at once, and let kernels compile faster.
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

FEW_ROWS = 4096  # the gradient of so many rows is too short to interrupt
POLL_SECONDS = 0.1  # on Windows a signal does not end a wait, so that each wait must be short

_pools: "dict[tuple[int, str], _Pool]" = {}
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _pools.clear()  # a forked process has none of its parent's threads


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
    """The threads that a training asked for, bounded by :func:`available_threads`; None where it named no number.

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

    They are daemons, unlike those of ``concurrent.futures``. After Ctrl-C while a thread starts, that pool forgets the
    thread, and the process waits for it at its end.
    """

    def __init__(self, threads: int) -> None:
        self._missing = threads
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, task: Callable[[], None]) -> None:
        """Let a thread run the task; RuntimeError where the process cannot start one."""
        with _lock:
            while self._missing:
                threading.Thread(target=_serve, args=(self._tasks,), name="ltr-objectives", daemon=True).start()
                self._missing -= 1
        self._tasks.put(task)


def _serve(tasks: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        tasks.get()()


def _pool(threads: int, callers: str) -> _Pool:
    """The pool of the main thread, or of all other callers: the main thread's work must not queue behind theirs."""
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
    """Call ``kernel(first, last, *arguments)`` on chunks that cover each query once; -1 threads are all processors.

    Python raises KeyboardInterrupt only in the main thread, and only between two chunks. A kernel that may take long
    for one query has ``stop``, an array of one truth value, among its arguments. Once that is true, the kernel returns
    with its work half done. Above ``FEW_ROWS`` rows the main thread waits while other threads run such a kernel, and
    returns as soon as they have stopped.
    """
    if n_threads is None or (is_number(n_threads) and n_threads == -1):
        n_threads = available_threads()
    check_integer("n_threads", n_threads)
    threads = min(int(n_threads), len(ptr) - 1)
    few = ptr[-1] <= FEW_ROWS
    if threads == 1 and few:
        kernel(0, len(ptr) - 1, *arguments)
        return
    waits = stop is not None and not few and threading.current_thread() is threading.main_thread()
    if waits and not getattr(kernel, "signatures", True):
        kernel(0, 0, *arguments)  # compile in the main thread, where Ctrl-C ends it
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
            if (waits and i == 0) or not other.cancel():  # one that has not begun is not needed
                while not wait([other], POLL_SECONDS).done:
                    pass
                other.result()
    except BaseException:  # also Ctrl-C: no thread may write into the arrays after the caller has returned
        if stop is not None:
            stop[0] = True
        chunks.clear()
        wait([other for other in others if not other.cancel()])
        raise


def _submit(pool: _Pool, future: "Future[None]", work: Callable[[], None]) -> bool:
    """Let a thread do the work. Return False where none can start, as at the end of the process; the caller does it."""

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

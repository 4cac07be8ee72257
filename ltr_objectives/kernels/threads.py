"""Run a kernel over all queries on several threads.

A kernel is a serial function ``kernel(first, last, *arrays)`` over the queries ``first <= q < last`` that writes only
what belongs to those queries. Which thread takes which chunk therefore cannot change a bit of the result. Threads of
our own, instead of numba's, survive ``fork``, may be entered from several Python threads at once, and compile faster.
"""

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from ltr_objectives.errors import is_number, whole

CHUNKS_PER_THREAD = 8

_pools: dict[int, ThreadPoolExecutor] = {}
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

    >>> at_most(1), at_most(0), at_most(-1), at_most(None)
    (1, None, None, None)
    """
    if is_number(asked) and asked >= 1:
        return min(int(asked), available_threads())
    return None


def _pool(threads: int) -> ThreadPoolExecutor:
    with _lock:
        if threads not in _pools:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="ltr-objectives")
        return _pools[threads]


def chunk_bounds(ptr: np.ndarray, chunks: int) -> np.ndarray:
    """Query indices that cut the data into at most ``chunks`` parts with about equally many rows."""
    goals = np.linspace(0, ptr[-1], chunks + 1)[1:-1]
    return np.unique(np.concatenate(([0], np.searchsorted(ptr, goals), [len(ptr) - 1])))


def run(kernel: Callable[..., Any], ptr: np.ndarray, arguments: tuple[Any, ...], n_threads: int | None = None) -> None:
    """Call ``kernel(first, last, *arguments)`` on chunks that together cover every query once; -1 is all processors."""
    if n_threads is None or (is_number(n_threads) and n_threads == -1):
        n_threads = available_threads()
    whole("n_threads", n_threads)
    threads = min(int(n_threads), len(ptr) - 1)
    if threads == 1:
        kernel(0, len(ptr) - 1, *arguments)
        return
    bounds = chunk_bounds(ptr, threads * CHUNKS_PER_THREAD)
    chunks = deque((int(a), int(b)) for a, b in itertools.pairwise(bounds))

    def work() -> None:
        while True:
            try:
                a, b = chunks.popleft()
            except IndexError:
                return
            kernel(a, b, *arguments)

    others: list[Future[None]] = []
    try:
        for _ in range(threads - 1):
            others.append(Future())
            _submit(_pool(threads - 1), others[-1], work)
        work()
        for other in others:
            if not other.cancel():  # it began, and did not find the pool busy with other callers until now
                other.result()
    except BaseException:  # an interrupt too: nobody may write into the arrays once the caller is gone
        chunks.clear()
        wait([other for other in others if not other.cancel()])
        raise


def _submit(pool: ThreadPoolExecutor, future: "Future[None]", work: Callable[[], None]) -> None:
    def begin() -> None:
        if future.set_running_or_notify_cancel():
            try:
                work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)

    # no thread is to be had, or the main thread has ended and with it every pool: then the caller does all the work
    with contextlib.suppress(RuntimeError):
        pool.submit(begin)

"""Run a kernel over all queries on several threads.

A kernel is a serial function ``kernel(first, last, *arrays)`` over the queries ``first <= q < last`` that writes only
what belongs to those queries. So the result is the same to the last bit, whichever thread takes a chunk. Unlike numba's
threads, these work after ``fork``, serve several Python threads at once, and let kernels compile faster.
"""

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from ltr_objectives.checks import check_integer, is_number

CHUNKS_PER_THREAD = 8
MOST_THREADS = 256
MOST_ASKED = 10_000  # LightGBM and CatBoost end the process on a million
POLL_SECONDS = 0.1  # on Windows a signal does not end a wait, so each wait is short
LONG = 10_000  # documents of a list from which the main thread waits for signals instead of computing

_lock = threading.Lock()


def _after_fork() -> None:
    global _lock, _pool
    _lock, _pool = threading.Lock(), _Pool()  # a forked process does not have the threads of its parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_threads() -> int:
    """Return processors that this process may use, bounded by ``NUMBA_NUM_THREADS`` or ``OMP_NUM_THREADS`` if set."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            count = min(count, int(value))
    return count


def at_most(asked: object, name: str = "n_threads") -> int | None:
    """Return how many threads a training asked for, at most :func:`available_threads`; None if it did not say.

    ``name`` is the parameter, for the error about a number beyond ``MOST_ASKED``.

    >>> at_most(1), at_most("1"), at_most(0), at_most(-1), at_most(None)
    (1, 1, None, None, None)
    """
    if isinstance(asked, str) and asked.isdigit():
        asked = int(asked)
    if is_number(asked) and asked >= 1:
        check_integer(name, int(asked), most=MOST_ASKED)
        return min(int(asked), available_threads())
    return None


def asked_for(n_threads: object) -> int:
    """Return the number of threads; None and -1 are all processors.

    >>> asked_for(3), asked_for(None) == available_threads()
    (3, True)
    """
    if n_threads is None or (is_number(n_threads) and n_threads == -1):
        return available_threads()
    return check_integer("n_threads", n_threads)


class _Pool:
    """Threads that take tasks from a queue, as many as the largest call needed, and end with the process.

    ``concurrent.futures`` is not used: its locks are Python code, and Ctrl-C inside one can break it.
    """

    def __init__(self) -> None:
        self._threads = 0
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def submit(self, task: Callable[[], None], times: int) -> bool:
        """Give the task to ``times`` threads, or to fewer if the process cannot start as many; False if to none."""
        with _lock, contextlib.suppress(RuntimeError):
            while self._threads < times:
                threading.Thread(target=self._serve, name="ltr-objectives", daemon=True).start()
                self._threads += 1
        for _ in range(times):
            self._tasks.put(task)
        return self._threads > 0

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


_pool = _Pool()


def chunk_bounds(ptr: np.ndarray, chunks: int) -> np.ndarray:
    """Return query indices that cut the data into at most ``chunks`` parts with about equally many rows."""
    rows = np.linspace(0, ptr[-1], chunks + 1)[1:-1]
    return np.unique(np.concatenate(([0], np.searchsorted(ptr, rows), [len(ptr) - 1])))


def run(
    kernel: Callable[..., Any],
    ptr: np.ndarray,
    arguments: tuple[Any, ...],
    n_threads: int | None = None,
    stop: np.ndarray | None = None,
) -> None:
    """Call ``kernel(first, last, *arguments)`` on chunks that cover each query once.

    ``n_threads`` of None or -1 is all processors. After an error or Ctrl-C no further chunk begins. It is raised
    when no thread writes into the arrays any more. With ``stop``, an array of False that the kernel reads as it works,
    the main thread does not compute but waits, and after Ctrl-C, which only it receives, sets all of ``stop`` to True.
    """
    threads = min(asked_for(n_threads), len(ptr) - 1, MOST_THREADS)
    if threads == 1 and stop is None:
        kernel(0, len(ptr) - 1, *arguments)
        return
    if not getattr(kernel, "signatures", True):
        kernel(0, 0, *arguments)  # compile in the main thread, where Ctrl-C ends it
    work = _Work(kernel, arguments, chunk_bounds(ptr, threads * CHUNKS_PER_THREAD).tolist(), stop)
    try:
        waits = stop is not None and threading.current_thread() is threading.main_thread()
        if waits and _pool.submit(work.help, threads):
            work.watch()
        else:
            _pool.submit(work.help, threads - 1)
            work.do()
    except BaseException:
        work.cancel()
        raise
    finally:
        work.wait()
    for error in work.ended:
        if error is not None:
            raise error


class _Work:
    """The chunks of one call, for its caller and its helpers.

    A helper appends to ``begun`` before it takes a chunk, and its error or None to ``ended`` after its last one. So
    once no chunk is left, the call is over when as many have ended as have begun.
    """

    def __init__(
        self, kernel: Callable[..., Any], arguments: tuple[Any, ...], bounds: list[int], stop: np.ndarray | None
    ) -> None:
        self.kernel = kernel
        self.arguments = arguments
        self.chunks = deque(itertools.pairwise(bounds))
        self.begun: list[bool] = []
        self.ended: list[BaseException | None] = []
        self.wake: SimpleQueue[None] = SimpleQueue()
        self.stop = stop

    def do(self) -> None:
        """Take one chunk after the other until none is left."""
        while True:
            try:
                first, last = self.chunks.popleft()
            except IndexError:
                return
            self.kernel(first, last, *self.arguments)

    def help(self) -> None:
        """Do the same in a thread of the pool."""
        self.begun.append(True)
        error = None
        try:
            self.do()
        except BaseException as raised:
            error = raised
            self.cancel()
        self.ended.append(error)
        self.wake.put(None)

    def cancel(self) -> None:
        """Begin no further chunk, and stop the kernels that read ``stop``."""
        self.chunks.clear()
        if self.stop is not None:
            self.stop.fill(True)

    def watch(self) -> None:
        """Wait until the helpers have taken all chunks."""
        while self.chunks:
            with contextlib.suppress(Empty):
                self.wake.get(timeout=POLL_SECONDS)

    def wait(self) -> None:
        """Wait until no helper has a chunk, and only then raise KeyboardInterrupt."""
        self.chunks.clear()
        interrupt = None
        while len(self.ended) < len(self.begun):
            try:
                self.wake.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            except KeyboardInterrupt as raised:
                interrupt = raised
                self.cancel()
        if interrupt is not None:
            raise interrupt

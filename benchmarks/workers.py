"""Worker processes that end with their parent, however it ends."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of ``jobs`` new processes; an error or Ctrl-C in the block ends them at once."""
    others = active_children()
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _follow)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        while own := [process for process in active_children() if process not in others]:  # one may start only now
            for process in own:
                process.terminate()
                process.join(1)
        raise


def _follow() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent handles it
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Wait for the end of a pipe that the system closes when the parent ends, even if it is killed."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

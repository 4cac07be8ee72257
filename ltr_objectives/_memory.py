"""The bound on what is read into memory."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from ltr_objectives.errors import LTRError

_OF_A_CONTAINER = (  # limit, and what of it is in use beside the cache of files; of cgroups 2 and 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "anon "),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.stat", "total_rss "),
)


def available_memory() -> int | None:
    """The bytes that this process can still get without swapping; None where the system, such as Windows, hides it."""
    try:
        free = [1024 * _number("/proc/meminfo", "MemAvailable:")]
    except (OSError, ValueError):
        return None
    for limit, usage, name in _OF_A_CONTAINER:
        with suppress(OSError, ValueError):  # "max" where there is no limit
            free.append(int(Path(limit).read_text()) - _number(usage, name))
    return max(min(free), 0)


def _number(path: str, name: str) -> int:
    [line] = [line for line in Path(path).read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1])


@contextmanager
def within_memory(what: str) -> Iterator[None]:
    """Raise :class:`LTRError` if the block needs more than the available memory; ``what`` begins the message.

    On Linux allocations beyond it fail; elsewhere the system decides. The limit is one of the whole process, so that
    commands use this, and not functions that users call.
    """
    with suppress(ImportError):  # beforehand: an import that finds no memory can raise anything
        import_module("sklearn.datasets")
    free = available_memory()
    try:
        with _limited(free):
            yield
    except Exception as error:
        if (
            not isinstance(error, (MemoryError, SystemError)) and type(error).__name__ != "ArrowException"
        ):  # cannot start a thread
            raise
        enough = "" if free is None else f", {free / 2**30:.1f} GiB"
        raise LTRError(f"{what} needs more than the available memory{enough}; give fewer rows or columns") from None


@contextmanager
def _limited(free: int | None) -> Iterator[None]:
    used = None
    with suppress(OSError, ValueError):  # of a system without it
        used = 1024 * _number("/proc/self/status", "VmData:")
    if free is None or used is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = used + free
    bounds = [bound for bound in (limit, soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))

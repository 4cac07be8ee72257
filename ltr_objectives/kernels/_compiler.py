"""Numba's compiler and the cache of machine code, loaded when the first kernel is called.

Numba's disk cache has three faults. It hashes only the file that defines a kernel, so it keeps old machine code after
an upgrade of a helper. It reads any file in its folder. It fails if the folder is damaged or full. The cache here is a
folder that only its user can write, named after a hash of every source file of the package's kernels. If that folder
cannot be used, kernels are compiled without a cache.

With the tested versions of numba, :mod:`ltr_objectives.kernels._parts` halves the time to compile by private parts of
numba. Other versions compile plainly, to the same results.
"""

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from ltr_objectives._files import Foreign, private_folder, read_sealed, say_once, user_cache, write_sealed

PACKAGE = Path(__file__).resolve().parent.parent
config: Any = numba.config
TESTED = "0.61", "0.68"  # versions of numba: the lowest supported, and the one that the tests install
HELP = "kernels are compiled in each process; to cache them, repair the folder or set NUMBA_CACHE_DIR to another"


class _Plain:
    """Numba as documented, in place of ``_parts``."""

    @staticmethod
    def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
        return numba.njit(**options)(function)

    @staticmethod
    def prepare(target: Any) -> None:
        target.refresh()

    @staticmethod
    def reduced(result: Any) -> Any:
        return result._reduce()


if hasattr(os, "register_at_fork"):  # a lock that another thread has stays locked in the child
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

if logging.getLogger("numba").level == logging.NOTSET:  # else a root logger at DEBUG gets 10,000 lines a kernel
    logging.getLogger("numba").setLevel(logging.INFO)

parts: Any = _Plain
if numba.__version__.rpartition(".")[0] in TESTED:
    from ltr_objectives.kernels import _parts as parts


def source_hash(package: Path = PACKAGE) -> str:
    """A hash of the versions of numba and Python, and of every source file that compiled code can come from."""
    digest = hashlib.sha256(f"{numba.__version__} {sys.implementation.cache_tag}".encode())
    for folder in ("kernels", "metrics", "objectives"):
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / "ltr_objectives"
        return
    yield PACKAGE / "__pycache__"
    yield user_cache()


def cache_folder() -> Path | None:
    """The first folder for machine code that only this user can write, or None where there is none."""
    try:
        for base in _candidates():
            folder = base / f"numba-{source_hash()}"
            try:
                return private_folder(folder)
            except Foreign as error:
                say_once(folder, f"machine code is not read: {error}; delete it, or set NUMBA_CACHE_DIR to another")
            except OSError:
                continue
    except RuntimeError:  # the user has no home folder
        pass
    return None


CACHE = cache_folder()


@functools.cache
def announce_compiling() -> None:
    """Print one line on stderr before this process compiles its first kernel, because that takes seconds."""
    kept = "is not kept, since no folder is writable" if CACHE is None else f"is kept in {CACHE}"
    if sys.stderr is not None and not os.environ.get("LTR_OBJECTIVES_QUIET"):
        with contextlib.suppress(OSError, ValueError):  # a closed stderr must not stop a training
            print(
                f"ltr_objectives: compiling machine code, which takes seconds; it {kept}", file=sys.stderr, flush=True
            )


class Uncached(NullCache):
    """In place of a cache if no folder is writable."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Find nothing."""
        announce_compiling()


class MachineCode:
    """The cache of one kernel, in place of numba's: one file with machine code by signature and processor."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self.cache_path = str(folder)
        self._folder = folder
        code = function.__code__
        self._file = folder / f"{function.__module__}.{function.__qualname__}-{code.co_firstlineno}.code"
        source = Path(code.co_filename).read_bytes()
        self._stamp = hashlib.sha256(source + code.co_code).digest()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled before, or None."""
        parts.prepare(target)
        try:
            found = self._read().get(self._key(signature, target.codegen()))
            if found is not None:
                return CompileResult._rebuild(target, *pickle.loads(found))
        except Exception as error:  # a damaged pickle may raise anything
            self._say("read", error)
        announce_compiling()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep what was compiled."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        try:
            known = self._read()
        except Exception:  # load_overload has reported it
            known = {}
        try:
            code = dumps(parts.reduced(result))
            write_sealed(self._file, dumps({**known, self._key(signature, result.codegen): code}))
        except Exception as error:
            self._say("written", error)

    def flush(self) -> None:
        """Delete the file."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> dict[Any, bytes]:
        try:
            return pickle.loads(read_sealed(self._file))
        except FileNotFoundError:
            return {}

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        return signature, codegen.magic_tuple(), self._stamp

    def _say(self, what: str, error: Exception) -> None:
        say_once(self._folder, f"machine code in {self._folder} cannot be {what}: {error}; {HELP}")


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return numba's kernel of ``function``, whose machine code is cached."""
    found: Any = parts.compiled(function, options)
    if not config.DISABLE_JIT and os.path.exists(function.__code__.co_filename):  # not from a notebook
        found._cache = Uncached() if CACHE is None else MachineCode(function, CACHE)
    return found

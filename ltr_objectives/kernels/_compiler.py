"""Numba's compiler and the cache of machine code, loaded when the first kernel is called.

Numba's own cache hashes only the file that defines a kernel, so it keeps old machine code after an upgrade of a helper.
The cache here is a folder named after a hash of every source file of the package's kernels. Machine code is read from
the package, where an installation compiles it, and then from the user's folder, where anything else is kept. Reading a
file of machine code runs it, so the user's folder is read only if no other user can write there.

The hash is that of the import, because the functions in memory are. The files are hashed again before machine code is
read or written: after a change nothing is, because a module may have been imported before or after it.

With the tested versions of numba, :mod:`ltr_objectives.kernels._parts` halves the time to compile by private parts of
numba. Other versions compile plainly, to the same results.
"""

import contextlib
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from ltr_objectives._files import private_folder, replacing, require_own, user_cache
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.kernels._sources import AT_IMPORT, FOLDERS, PACKAGE, source_hash

config: Any = numba.config
REMEDY = (
    "set NUMBA_CACHE_DIR to a folder that you alone can write to, or, as the owner of the installation, run "
    "python -m ltr_objectives.warmup"
)
TESTED = "0.61", "0.68"  # versions of numba: the lowest supported, and the one that the tests install


if hasattr(os, "register_at_fork"):  # a lock that another thread has stays locked in the child
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

if logging.getLogger("numba").level == logging.NOTSET:  # else a root logger at DEBUG gets 10,000 lines a kernel
    logging.getLogger("numba").setLevel(logging.INFO)

parts: Any = None
if numba.__version__.rpartition(".")[0] in TESTED:
    from ltr_objectives.kernels import _parts as parts


NAME = f"numba-{numba.__version__}-{sys.implementation.cache_tag}-{AT_IMPORT}"
BUILT_IN = PACKAGE / NAME  # whoever can write there can write the package's source files too


def user_folder() -> Path:
    """Return the user's folder for machine code; raise RuntimeError without a home folder."""
    return (Path(config.CACHE_DIR, "ltr_objectives") if config.CACHE_DIR else user_cache()) / NAME


V3 = {"+avx2", "+bmi", "+bmi2", "+cx16", "+f16c", "+fma", "+lzcnt", "+movbe", "+popcnt", "+sahf", "+sse4.2", "+xsave"}


def _processors(codegen: Any) -> Iterator[tuple[str, str, str]]:
    """Return the processors whose machine code runs here, best first: this one, x86-64-v3, and the generic one."""
    triple, name, features = codegen.magic_tuple()
    system = triple.rstrip("0123456789.")  # without the version of macOS
    yield system, name, features
    if set(features.split(",")) >= V3:
        yield system, "x86-64-v3", ""
    yield system, "generic", ""


def _require_same_sources() -> None:
    """Raise unless the source files still are those of the functions in memory."""
    require(AT_IMPORT, "the package has no source files, as in a zip file; install it")
    require(source_hash() == AT_IMPORT, "the package's source files changed after its import; restart Python")


class MachineCode(NullCache):
    """The cache of one kernel, in place of numba's: one file with machine code by signature and processor."""

    kept: ClassVar[bool] = True  # until something cannot be kept

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}.code"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled before, or None."""
        rtsys.initialize(target_context)  # what machine code calls; ``refresh`` takes as long as ``import numba``
        for find in (lambda: BUILT_IN, user_folder):
            with contextlib.suppress(Exception):  # the file is missing, damaged, or not to be trusted
                known = self._read(find())
                for processor in _processors(target_context.codegen()):
                    if found := known.get((sig, processor)):
                        return CompileResult._rebuild(target_context, *pickle.loads(found))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; warn once if that fails."""
        if not self.kept or data.lifted or data.library.has_dynamic_globals:
            return
        known: dict[Any, bytes] = {}
        try:
            _require_same_sources()
            folder = private_folder(user_folder())
            with contextlib.suppress(Exception):
                known = self._read(folder)
            known[sig, next(_processors(data.codegen))] = dumps(data._reduce())
            code = dumps(known)
            with replacing(folder / self._name) as new:
                new.write_bytes(sha256(code).digest() + code)
                new.chmod(0o644)  # whatever the umask
        except (LTRError, OSError, RuntimeError) as error:
            MachineCode.kept = False
            message = str(error) if isinstance(error, LTRError) else f"{error}; {REMEDY}"
            warn(f"machine code is not kept, so each process compiles its kernels: {message}")

    def _read(self, folder: Path) -> dict[Any, bytes]:
        """Return what a file holds, byte for byte as it was written."""
        with (folder / self._name).open("rb") as file:
            if folder != BUILT_IN:
                require_own(folder.stat(), folder)
                require_own(os.fstat(file.fileno()), folder)  # the folder may have been replaced
            _require_same_sources()
            digest, code = file.read(32), file.read()
        require(sha256(code).digest() == digest, "damaged")
        known: dict[Any, bytes] = pickle.loads(code)
        require(isinstance(known, dict), "damaged")
        return known


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return numba's kernel of ``function``; the machine code of the package's own kernels is cached."""
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # numbers of NumPy warn, machine code does not
    found: Any = numba.njit(**options)(function) if parts is None else parts.compiled(function, options)
    if function.__module__.startswith(tuple(f"ltr_objectives.{folder}." for folder in FOLDERS)):
        found._cache = MachineCode(function)
    return found

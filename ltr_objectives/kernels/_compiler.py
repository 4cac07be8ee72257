"""Numba's compiler and the cache of machine code, loaded when the first kernel is called.

Numba's own cache hashes only the file that defines a kernel, so it keeps old machine code after an upgrade of a helper,
or under a stale ``.pyc``. Here a file of machine code has the name of a hash of all that it is compiled from, as it is
in memory: the kernel, those that it calls, their options and constants, numba's modes, and the code of this module. It
is read from the package, where an installation compiles it, and then from the user's folder, where anything else is
kept. Reading machine code runs it. So a file repeats its name, and the user's folder is read only if no other user can
write there or exchange a folder above.

A kernel that others call is compiled twice: for them, as a part of their machine code, and for Python if it is called
from there. Only the latter has a wrapper and a file.
"""

import contextlib
import itertools
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np
from llvmlite.ir import PointerType
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.types import Array, BaseTuple, Boolean, NoneType, Number, none
from numba.extending import lower_builtin, type_callable

from ltr_objectives._files import private_folder, replacing, require_own, require_private, user_cache
from ltr_objectives.errors import require, warn
from ltr_objectives.kernels._apart import apart
from ltr_objectives.kernels._content import content_hash

config: Any = numba.config
REMEDY = (
    "set NUMBA_CACHE_DIR to a folder that you alone can write to, or, as the owner of the installation, run "
    "python -m ltr_objectives.warmup"
)


if hasattr(os, "register_at_fork"):  # a lock that another thread has stays locked in the child
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

if logging.getLogger("numba").level == logging.NOTSET:  # else a root logger at DEBUG gets 10,000 lines a kernel
    logging.getLogger("numba").setLevel(logging.INFO)

HERE = content_hash(sys._getframe().f_code)  # of this module, which decides how kernels are compiled
MODES = "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE", "USING_SVML"
NAME = f"numba-{numba.__version__}-{sys.implementation.cache_tag}"
BUILT_IN = Path(__file__).parent.parent / NAME  # whoever can write there can write the package's source files too


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


def _read(kinds: Iterable[Any]) -> Iterator[Any]:
    """Yield the types of arguments by name, and the classes of records among them."""
    for kind in kinds:
        if not isinstance(kind, Array | BaseTuple | Boolean | NoneType | Number):
            raise TypeError(f"the content of arguments of type {kind} is not known")
        yield str(kind)
        if isinstance(kind, BaseTuple):
            yield getattr(kind, "instance_class", None)
            yield from _read(getattr(kind, "types", ()))


def _digest(name: str, code: bytes) -> bytes:
    """Hash machine code together with what it is for, so that no file can be taken for another."""
    return sha256(f"{NAME}/{name}\n".encode() + code).digest()


class MachineCode(NullCache):
    """The cache of one kernel, in place of numba's: a file for each signature and processor."""

    kept: ClassVar[bool] = True  # until something cannot be kept

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    def _names(self, sig: Any, codegen: Any) -> Iterator[str]:
        """Yield the names of the files whose machine code runs here, best first."""
        modes = [getattr(config, mode, None) for mode in MODES]
        read = content_hash(HERE, modes, self._function, sorted(self._options.items()), list(_read(sig)))
        for processor in _processors(codegen):
            yield f"{self._function.__module__}.{self._function.__qualname__}-{content_hash(read, processor)}.code"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled before, or None."""
        rtsys.initialize(target_context)  # what machine code calls; ``refresh`` takes as long as ``import numba``
        with contextlib.suppress(TypeError):  # nothing of this kernel is kept
            names = self._names(sig, target_context.codegen())
            for find, name in itertools.product((lambda: BUILT_IN, user_folder), names):
                with contextlib.suppress(Exception):  # the file is missing, damaged, or not to be trusted
                    return CompileResult._rebuild(target_context, *_loaded(find(), name))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; warn once if that fails."""
        if not self.kept or data.lifted or data.library.has_dynamic_globals:
            return
        try:
            file = private_folder(user_folder()) / next(self._names(sig, data.codegen))
            code = dumps(data._reduce())
            if not file.is_file():
                file.unlink(missing_ok=True)  # a pipe would be written to
            with replacing(file) as new:
                new.write_bytes(_digest(file.name, code) + code)
                new.chmod(0o644)  # whatever the umask
        except (OSError, RuntimeError, TypeError) as error:
            MachineCode.kept = False
            warn(f"machine code is not kept, so each process compiles its kernels: {error}; {REMEDY}")


def _loaded(folder: Path, name: str) -> Any:
    """Return what a file holds, byte for byte as it was written."""
    if folder != BUILT_IN:
        require_private(folder)
    require((folder / name).is_file(), "missing, or a pipe")
    with (folder / name).open("rb") as file:
        if folder != BUILT_IN:
            require_own(os.fstat(file.fileno()), folder)
        digest, code = file.read(32), file.read()
    require(_digest(name, code) == digest, "damaged")
    return pickle.loads(code)


@type_callable(apart)
def _type_apart(context: Any) -> Callable[[], Any]:
    return lambda: none


@lower_builtin(apart)  # type: ignore[untyped-decorator]
def _mark_arguments(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    for argument in context.call_conv.get_arguments(builder.function):
        if isinstance(argument.type, PointerType):
            argument.add_attribute("noalias")
    return context.get_dummy_value()


def callee(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return numba's kernel of ``function`` for calls from kernels."""
    return numba.njit(no_cpython_wrapper=True, **options)(function)  # type: ignore[call-overload]  # not in its types


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return numba's kernel of ``function``; the machine code of the package's own kernels is cached."""
    if config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # numbers of NumPy warn, machine code does not
    found: Any = numba.njit(**options)(function)
    if function.__module__.startswith("ltr_objectives."):
        found._cache = MachineCode(function, options)
    return found

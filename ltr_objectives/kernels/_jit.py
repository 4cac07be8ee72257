"""How kernels are compiled and cached; no other module knows about either.

Numba's disk cache has three faults. It looks only at the file that defines a kernel, so it keeps old machine code after
an upgrade of a helper. It reads whatever lies in its folder. It fails where the folder is damaged or full. The cache
here lies in a folder that only its user can write, named after a hash of every source file of the package's kernels.
Where that folder cannot be used, kernels are compiled without a cache.

``kernel`` computes sums in the order written. ``inlined`` lets LLVM reorder them, so that it vectorises them, and
copies the function into every caller. If it were called instead, LLVM would optimise it with each caller, and the order
of the sums would depend on what the process loaded first. ``inlined_kernel`` keeps the order of sums and copies the
function too. It is for functions that are called often and take records: a call would pass each array of a record as
seven arguments or more.

Numba optimises every function, makes machine code of it, and optimises its copy again in each caller, that caller's
copy in the next one, and so on. Here compiled code does not call a kernel itself but its *part*: its LLVM code, neither
optimised nor made machine code of. The kernel that Python calls is optimised once, with all its parts; only it is
cached. A part that reorders sums is optimised alone, so that its sums have the same order in all kernels.

All release the GIL: threads are made by :mod:`ltr_objectives.kernels.threads`, not by numba.
"""

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.core.typed_passes import NopythonTypeInference
from numba.core.types import Integer, SliceType, none, unliteral

from ltr_objectives._files import Foreign, private_folder, read_sealed, say_once, user_cache, write_sealed
from ltr_objectives.kernels._notice import tell_before_compiling

PACKAGE = Path(__file__).resolve().parent.parent
config: Any = numba.config
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
HELP = "kernels are compiled in each process; to cache them, repair the folder or set NUMBA_CACHE_DIR to another"


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
tell_before_compiling(lambda: CACHE)


class MachineCode:
    """The cache of one kernel, in place of numba's: one file with machine code by signature and processor."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self.cache_path = str(folder)
        self._folder = folder
        code = function.__code__
        self._file = folder / f"{function.__module__}.{function.__qualname__}-{code.co_firstlineno}.code"
        source = Path(code.co_filename).read_bytes()
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        self._stamp = hashlib.sha256(source + code.co_code + dumps(cells)).digest()

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what was compiled before, or None.

        Of numba only what machine code calls is prepared, not what compiles it: that takes as long as ``import numba``.
        """
        rtsys.initialize(target)
        try:
            found = self._read().get(self._key(signature, target.codegen()))
            return None if found is None else CompileResult._rebuild(target, *pickle.loads(found))
        except Exception as error:  # a damaged pickle may raise anything
            self._say("read", error)
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
            *reduced, used = result._replace(type_annotation="")._reduce()
            text = str(result.library._final_module)
            code = dumps((*reduced, tuple(env for env in used if text.count(env.env_name) > 1)))
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


class _Shared(Flags):
    """The options that functions of numba's own (``max``, ``np.empty``) take over from the kernels that call them.

    Numba compiles those functions once for each set of options, and compares all options at each addition of two
    numbers. Kernels differ in what those functions need not know, so they show one object to them.
    """

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class _Options(Flags):
    """The options of one kernel."""

    shown: ClassVar[dict[Any, _Shared]] = {}

    def copy(self) -> _Shared:
        """What numba shows to the functions that it compiles meanwhile."""
        fastmath: Any = self.fastmath
        return self.shown.setdefault(frozenset(fastmath.flags), _Shared(self))


class _Copied(JITCodeLibrary):
    """The LLVM code of one function, which waits for the kernels into which it is copied."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self.codegen._data_layout

    def finalize(self) -> None:
        self._finalized = True


class _Linked(JITCodeLibrary):
    """The LLVM code of one function and of all that it calls, optimised once."""

    def finalize(self) -> None:
        self._linking_libraries = list(dict.fromkeys(_with_callees(self._linking_libraries)))
        super().finalize()


class _Reordered(_Linked):
    """The LLVM code of a function that reorders sums, the same in all kernels."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _with_callees(libraries: list[Any]) -> Iterator[Any]:
    for library in libraries:
        yield library
        if isinstance(library, _Copied):
            yield from _with_callees(library._linking_libraries)


@register_pass(mutates_CFG=False, analysis_only=True)
class _Borrow(AnalysisPass):
    """Leave out the counting of references where no array is made: the callers hold all of them."""

    _name = "ltr_objectives_borrow"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        models = state.targetctx.data_model_manager
        if not any(models[kind].contains_nrt_meminfo() for kind in (*_made(state.calltypes), state.return_type)):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        return False


def _made(calls: dict[Any, Any]) -> Iterator[Any]:
    """The types of all that a function computes, except parts of arrays; and of what it copies into arrays."""
    for at, call in calls.items():
        if isinstance(at, ir.SetItem | ir.StaticSetItem):
            yield call.args[-1]
        elif call is not None:
            part = getattr(at, "op", "") == "getitem" and isinstance(call.args[1], Integer | SliceType)
            yield none if part else call.return_type


class _ToRun(Compiler):
    """Compiles a function for calls from Python."""

    library: type[JITCodeLibrary] = _Linked

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, names: Any):
        super().__init__(typing, target, library, args, returned, _Options(flags), names)

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        [passes] = super().define_pipelines()
        passes.add_pass_after(_Borrow, NopythonTypeInference)
        passes.finalize()
        return [passes]


class _ToCopy(_ToRun):
    """Compiles a function for calls from kernels: its types and its LLVM code, and no more."""

    def define_pipelines(self) -> Any:
        self.state.flags.no_compile = True
        self.library = _Reordered if self.state.flags.fastmath else _Copied
        return super().define_pipelines()

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        result = super().compile_extra(function)._replace(entry_point=object())
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _Part(CPUDispatcher):
    """A function for calls from compiled code, where it is compiled once for all constant arguments."""

    def __init__(self, function: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals or {}, {**targetoptions, "no_cpython_wrapper": True}, _ToCopy)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if not self.targetoptions["forceinline"]:  # else the caller's constants select loops
            args = tuple(map(unliteral, args))
        return super().get_call_template(args, kws)

    def add_overload(self, result: Any) -> None:
        self.overloads[result.signature.args] = result


class _Kernel(CPUDispatcher):
    """A compiled function; other compiled functions call its part."""

    def __init__(self, function: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals or {}, targetoptions, _ToRun)

    @cached_property
    def _part(self) -> Any:
        return _Part(self.py_func, self.locals, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        return self._part._numba_type_


def _compile(fastmath: set[str] | bool, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    options = {
        "nopython": True,
        "nogil": True,
        "error_model": "numpy",
        "fastmath": fastmath,
        "no_cfunc_wrapper": True,
        "forceinline": inline,
    }

    def decorate(function: Callable[..., Any]) -> Any:
        if config.DISABLE_JIT:
            return function
        compiled: Any = _Kernel(function, targetoptions=options)
        if CACHE is not None and os.path.exists(function.__code__.co_filename):  # not from a notebook
            compiled._cache = MachineCode(function, CACHE)
        return compiled

    return decorate


kernel = _compile(False)
inlined = _compile(REASSOCIATE, inline=True)
inlined_kernel = _compile(False, inline=True)

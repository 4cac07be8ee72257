"""Compile kernels in half the time, with parts of numba that are not public.

Numba optimises every function and generates its machine code, then optimises its copy in each caller, and so on. Here a
kernel that another kernel calls is compiled to LLVM IR only, its *part*. The IR is linked into the outermost kernel,
which is optimised and cached once. A part that reorders sums is optimised alone, so that its sums have the same order
in all kernels. Its arguments are marked noalias.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar

from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonTypeInference
from numba.core.types import Integer, NamedTupleClass, SliceType, none, unliteral


def compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make the function a kernel with ``options`` of ``numba.njit``."""
    return _Kernel(function, targetoptions={"nopython": True, **options})


class _Shared(Flags):
    """The options that numba's own functions (``max``, ``np.empty``) inherit from the kernels that call them.

    Numba compiles such a function once for each set of options, and compares all options at each addition of two
    numbers. Kernels differ only in options that do not concern these functions, so all share one object.
    """

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class _Options(Flags):
    """The options of one kernel."""

    shown: ClassVar[dict[Any, _Shared]] = {}

    def copy(self) -> _Shared:
        """Return the options for the functions that numba compiles meanwhile."""
        fastmath: Any = self.fastmath
        return self.shown.setdefault(frozenset(fastmath.flags), _Shared(self))


class _Copied(JITCodeLibrary):
    """The LLVM IR of a part."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self.codegen._data_layout

    def finalize(self) -> None:
        self._finalized = True


class _Linked(JITCodeLibrary):
    """The LLVM IR of a kernel and of all parts that it calls, optimised once."""

    def finalize(self) -> None:
        # LLVM drops a function if no IR linked before calls it, so each part follows the last of its callers
        found = list(_with_callees(self._linking_libraries))
        self._linking_libraries = list(dict.fromkeys(reversed(found)))[::-1]
        super().finalize()


class _Reordered(_Linked):
    """The LLVM IR of a part that reorders sums, optimised alone."""

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
    """Switch reference counting off in functions that make no array: their callers hold all arrays that they use.

    Each slice would count twice, atomically. LLVM does not remove that from functions that are called for each
    document: LambdaMART's gradient would take 2.4 times as long.
    """

    _name = "ltr_objectives_borrow"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        models = state.targetctx.data_model_manager
        if not any(models[kind].contains_nrt_meminfo() for kind in (*_made(state), state.return_type)):
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        return False


def _made(state: Any) -> Iterator[Any]:
    """Yield the types of what a function computes, but for records, parts of arrays or tuples, copies into arrays."""
    for at, call in state.calltypes.items():
        if isinstance(at, ir.SetItem | ir.StaticSetItem):
            yield call.args[-1]
        elif call is not None:
            op = getattr(at, "op", "")
            part = op in ("getiter", "iternext", "static_getitem")
            part |= op == "getitem" and isinstance(call.args[1], Integer | SliceType)
            record = op == "call" and isinstance(state.typemap[at.func.name], NamedTupleClass)
            yield none if part or record else call.return_type


class _ToRun(Compiler):
    """Compile a function for calls from Python."""

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
    """Compile a function for calls from kernels: to LLVM IR only."""

    def define_pipelines(self) -> Any:
        flags = self.state.flags
        flags.no_compile = True
        reorders = bool(flags.fastmath)
        flags.noalias = reorders  # else loops begin by comparing the addresses of arrays
        self.library = _Reordered if reorders else _Copied
        return super().define_pipelines()

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        result = super().compile_extra(function)._replace(entry_point=object())
        result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class _Part(CPUDispatcher):
    """A function for calls from kernels, compiled once for all constant arguments."""

    def __init__(self, function: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals or {}, {**targetoptions, "no_cpython_wrapper": True}, _ToCopy)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        if not self.targetoptions["forceinline"]:  # else the caller's constants select loops
            args = tuple(map(unliteral, args))
        return super().get_call_template(args, kws)

    def add_overload(self, result: Any) -> None:
        self.overloads[result.signature.args] = result


class _Kernel(CPUDispatcher):
    """A compiled function. Kernels call its part; the user's compiled functions call it as any other function."""

    def __init__(self, function: Callable[..., Any], locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(function, locals or {}, targetoptions, _ToRun)

    @cached_property
    def _part(self) -> Any:
        return _Part(self.py_func, self.locals, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        caller = ConfigStack.top_or_none()  # the options of the function that is being compiled
        return self._part._numba_type_ if isinstance(caller, _Shared) else super()._numba_type_

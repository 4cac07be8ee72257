"""The decorators of kernels. Numba is loaded when the first kernel is called.

* ``kernel`` computes sums in the order written.
* ``inlined`` lets LLVM reorder sums, so that it vectorises them, and is copied into every caller. Otherwise the order
  of the sums would depend on which caller the process compiled first. Arrays that it writes must not overlap its other
  arguments, because LLVM assumes that they do not.
* ``inlined_kernel`` keeps the order of sums and is copied too. It is for functions that are called often and take
  records, because a call passes each array of a record as seven arguments or more.

All kernels release the GIL: threads are made by :mod:`ltr_objectives.kernels.threads`, not by numba.
"""

import functools
from collections.abc import Callable
from typing import Any

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


class Kernel:
    """A function that numba compiles when it is first called, from Python or from another kernel."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str] | bool, inline: bool) -> None:
        if function.__closure__:  # machine code and its file are found by name, so closures of a factory need their own
            closed = (
                getattr(cell.cell_contents, "__qualname__", repr(cell.cell_contents)) for cell in function.__closure__
            )
            function.__qualname__ = "-".join((function.__name__, *closed))
        functools.update_wrapper(self, function)
        self.py_func = function
        self.targetoptions = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "no_cfunc_wrapper": True,
            "forceinline": inline,
        }

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        """Numba's kernel, or the function itself if numba is switched off."""
        from ltr_objectives.kernels import _compiler  # loads numba

        return _compiler.compiled(self.py_func, self.targetoptions)

    @property
    def signatures(self) -> Any:
        """The types of arguments for which it is compiled."""
        return self.compiled.signatures

    @property
    def _numba_type_(self) -> Any:  # numba asks every global of a function for it
        return self.compiled._numba_type_


kernel = functools.partial(Kernel, fastmath=False, inline=False)
inlined = functools.partial(Kernel, fastmath=REASSOCIATE, inline=True)
inlined_kernel = functools.partial(Kernel, fastmath=False, inline=True)

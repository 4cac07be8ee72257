"""The decorators of kernels. Numba is loaded when the first kernel is called.

* ``kernel`` computes sums in the order written. It makes no array, and counts no references, because its caller holds
  all arrays: each slice would count twice, atomically, and LambdaMART's gradient would take 2.4 times as long.
* ``allocating`` counts references. It is for a function that makes arrays, returns some, or receives some from a
  function that it calls. Any other one that makes an array raises an error when it is compiled.
* ``inlined`` lets LLVM reorder sums, so that it vectorises them, and is copied into every caller. Otherwise the order
  of the sums would depend on which caller the process compiled first. If it writes arrays, it begins with ``apart()``.
* ``inlined_kernel`` keeps the order of sums and is copied too. It is for functions that are called often and take
  records, because a call passes each array of a record as seven arguments or more.

All kernels release the GIL: threads are made by :mod:`ltr_objectives.kernels.threads`, not by numba.
"""

import functools
from collections.abc import Callable
from typing import Any

from ltr_objectives.kernels._apart import apart as apart

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


class Kernel:
    """A function that numba compiles when it is first called, from Python or from another kernel."""

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: set[str] | bool = False,
        inline: bool = False,
        counts: bool = False,
    ) -> None:
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
            "_nrt": counts,  # always given, because numba lets a function without it inherit its caller's
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

    @functools.cached_property
    def callee(self) -> Any:
        """Numba's kernel as other kernels call it. A wrapper for Python would compile half as long again."""
        from ltr_objectives.kernels import _compiler  # loads numba

        return _compiler.callee(self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:  # numba asks every global of a function for it
        return self.callee._numba_type_


kernel = Kernel
allocating = functools.partial(Kernel, counts=True)
inlined = functools.partial(Kernel, fastmath=REASSOCIATE, inline=True)
inlined_kernel = functools.partial(Kernel, inline=True)

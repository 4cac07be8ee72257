"""The hash of what a kernel is compiled from: functions in memory, whatever their files hold by now."""

from collections.abc import Iterator
from hashlib import sha256
from types import CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any

import numpy as np


def content_hash(*values: Any) -> str:
    """Hash the content of constants, records, functions and kernels, and of all globals and kernels that they use.

    Raise TypeError for a value of another kind.
    """
    return sha256("\n".join(_content(values, {})).encode()).hexdigest()[:32]


def _content(value: Any, read: dict[FunctionType, int]) -> Iterator[str]:
    """Yield the content of ``value``, but not again that of a function that was ``read``."""
    yield type(value).__name__
    if hasattr(value, "py_func"):  # a kernel
        yield from _content((sorted(value.targetoptions.items()), value.py_func), read)
    elif isinstance(value, FunctionType):
        first = value not in read
        yield str(read.setdefault(value, len(read)))
        if first:
            names = sorted({name for code in _codes(value.__code__) for name in code.co_names} & set(value.__globals__))
            used = [(name, value.__globals__[name]) for name in names]
            closed = [cell.cell_contents for cell in value.__closure__ or ()]
            yield from _content((value.__code__, value.__defaults__, closed, used), read)
    elif isinstance(value, CodeType):
        called = value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars
        yield from _content((value.co_code, value.co_consts, called, value.co_argcount, value.co_flags), read)
    elif isinstance(value, type) and issubclass(value, tuple):
        yield repr((value.__module__, value.__qualname__, getattr(value, "_fields", ())))
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, tuple | list):
        yield str(len(value))
        for part in value:
            yield from _content(part, read)
    elif isinstance(value, set | frozenset):
        yield repr(sorted(map(repr, value)))
    elif isinstance(value, np.generic):
        yield repr(value.item())
    elif isinstance(value, int | float | str | bytes | EllipsisType | None):
        yield repr(value)
    else:
        raise TypeError(f"machine code is not kept for kernels that use {value!r}")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the bytecode of a function and of those that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)

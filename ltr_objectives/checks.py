"""Checks of parameters: each raises an LTRError that names the argument."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from importlib import import_module
from inspect import getattr_static, isfunction
from itertools import takewhile
from pkgutil import iter_modules
from typing import Any, ClassVar, NoReturn, TypeGuard, TypeVar

import numpy as np

from ltr_objectives.errors import LTRError, did_you_mean, require, shown

T = TypeVar("T")
MOST_SEED = 2**64 - 1

Check = Callable[[str, Any], Any]  # of the name and value of a parameter; returns the value to keep


class Named:
    """The classes of a package by their names in text. The first look at them imports all its modules."""

    def __init__(self, package: str) -> None:
        self.package, self.classes, self.whole = f"ltr_objectives.{package}", dict[str, Any](), False

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        if not self.whole:
            for module in iter_modules(import_module(self.package).__path__, f"{self.package}."):
                import_module(module.name)
            self.whole = True
        return self.classes


@dataclass(frozen=True)
class Extensible:
    """A base of classes that users extend, with a table of those that have a name in text."""

    # The parameters that a call named, of this object or of one that it was copied from. The first field: see __new__.
    _written: tuple[str, ...] = field(default=(), kw_only=True, repr=False, compare=False)

    _given: ClassVar[tuple[str, ...]]  # those that this call names
    name: ClassVar[str]
    named: ClassVar[Any]  # a `Named`; each base has its own
    checks: ClassVar[dict[str, Check]] = {}  # of parameters by name, beside those of the bases
    _not_read: ClassVar[dict[str, str]] = {  # what would be ignored in places, and what to do instead
        "__init__": "make its parameters fields, because objects with equal fields count as one"
    }

    def __init_subclass__(cls, text: str = "") -> None:
        super().__init_subclass__()
        own = vars(cls).keys() - ({"__init__"} if "__dataclass_params__" in vars(cls) else set())  # made with slots
        for base in cls.__mro__[1:]:
            for name, instead in vars(base).get("_not_read", {}).items():
                require(name not in own, f"{cls.__name__}.{name} would be ignored in places; {instead}")
        cls.checks = {name: check for base in cls.__mro__[::-1] for name, check in vars(base).get("checks", {}).items()}
        for name in ("reference", "reference_loss"):
            if isfunction(method := vars(cls).get(name)):
                setattr(cls, name, _takes_lists(method))
        if text:
            ours = cls.__module__.startswith("ltr_objectives.")  # which the first look imports
            named = getattr_static(cls, "named").classes if ours else cls.named
            known = named.get(text, cls)
            again = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
            require(again, f"text={text!r} is the name of {known.__qualname__}; choose another")
            cls.name, named[text] = text, cls

    def __new__(cls, *values: object, **named: object) -> Any:
        made: Any = cls
        require(hasattr(cls, "name"), f'{cls.__name__} has no name; write name: ClassVar[str] = "..." in the class')
        for each in fields(made):
            value = getattr(cls, each.name, each.default)
            require(
                value is each.default or hasattr(value, "__get__"),  # slots
                f"{cls.__name__} sets {each.name}, a parameter, which would be ignored: put @dataclass(frozen=True) "
                f"above the class and write {each.name}: type = value",
            )
        new = super().__new__(cls)
        in_order = [each.name for each in fields(made) if each.init and not each.kw_only]
        # dataclasses.replace names what it changes, and then the other fields, of which the first is _written
        object.__setattr__(new, "_given", (*in_order[: len(values)], *takewhile("_written".__ne__, named)))
        return new

    def __post_init__(self) -> None:
        """Check and convert the parameters; a subclass calls it first, and then compares them with one another."""
        made: Any = self
        object.__setattr__(self, "_written", tuple(dict.fromkeys((*self._written, *self._given))))
        for each in fields(made):
            if each.init and each.name in self.checks:
                value = self.checks[each.name](each.name, getattr(self, each.name))
                object.__setattr__(self, each.name, value)


def _takes_lists(method: Callable[..., Any]) -> Callable[..., Any]:
    """Convert lists among the arguments of ``method`` to arrays."""

    def array(value: Any) -> Any:
        return np.array(value, np.float64) if isinstance(value, list | tuple) else value

    return wraps(method)(lambda *given, **named: method(*map(array, given), **{k: array(v) for k, v in named.items()}))


def find_class(table: Mapping[str, T], name: str, kind: str) -> T:
    """Return the class called ``name`` in ``table``; ``kind`` is for the error."""
    if name not in table:
        there = f"there are {', '.join(sorted(table))}{did_you_mean(name, table)}"
        raise LTRError(f"unknown {kind} {shown(name)}; {there}")
    return table[name]


def check_choice(argument: str, value: object, allowed: tuple[object, ...]) -> Any:
    """Return the entry of ``allowed`` that equals ``value``; raise if there is none."""
    comparable = isinstance(value, str | bool | np.bool_ | None) or is_number(value)  # not an array or timedelta64
    if not comparable or value not in allowed:
        one_of = ", ".join(map(repr, allowed))
        raise LTRError(f"{argument}={shown(value)} is not known; choose one of {one_of}{did_you_mean(value, allowed)}")
    return allowed[allowed.index(value)]


def one_of(*allowed: object) -> Check:
    """Return the check that a value is one of ``allowed``."""
    return partial(check_choice, allowed=allowed)


def optional(check: Check) -> Check:
    """Return ``check`` for values other than None."""
    return lambda name, value: None if value is None else check(name, value)


def _number_that(must: str, good: Callable[[float], bool]) -> Check:
    """Return the check that a value is a finite number and ``good``."""

    def check(name: str, value: object) -> float:
        if not (is_number(value) and good(value)):
            refuse(name, value, must)
        return value.item() if isinstance(value, np.generic) else value

    check.__doc__ = f"Return ``value``, not of NumPy's types; it {must}."
    return check


def check_integer(name: str, value: object, least: int = 1, most: int = 2**63 - 1) -> int:
    """Convert ``value`` to an int; raise unless it is a whole number from ``least`` to ``most``, such as 3 or 3.0."""
    whole = int(value) if is_number(value) else None
    if whole is None or value != whole or not least <= whole <= most:
        limit = f" and at most {most:,}" if whole is not None and whole > most else ""
        refuse(name, value, f"must be a whole number of at least {least}{limit}")
    return whole


def refuse(name: str, value: object, must: str) -> NoReturn:
    """Raise an error that says what number ``value`` must be."""
    other = isinstance(value, numbers.Number) and not is_number(value)  # a fraction, a bool, 10**400 or NaN
    raise LTRError(f"{name}={shown(value)} {must}{'; pass a finite int or float' if other else ''}")


def check_list(name: str, value: object, of: str) -> list[Any]:
    """Return the entries of a list, tuple or array; empty for None. ``of`` names the entries in the error."""
    if value is None:
        return []
    good = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    good = good and getattr(value, "shape", None) != ()  # an array without dimensions is Iterable, but has no entries
    if not good:  # the message is made only here, because the repr of data takes long
        raise LTRError(f"{name} must be a list of {of}, got {shown(value)}")
    entries: Any = value
    return list(entries)


def check_weights(value: object, count: int, of: str) -> tuple[float, ...]:
    """Return a weight for each of ``count`` things, not all 0; 1 each for None. ``of`` names them in the error."""
    weights = tuple(check_list("weights", value, "numbers")) or (1.0,) * count
    require(len(weights) == count, f"weights has {len(weights)} entries for {count} {of}; give one each")
    for weight in weights:
        check_not_negative("weights", weight)
    require(any(weights), f"weights are all 0; give some {of.removesuffix('s')} a weight above 0")
    return tuple(map(float, weights))


check_number = _number_that("must be a finite number", lambda value: True)
check_positive = _number_that("must be a number above 0", lambda value: value > 0)
check_not_negative = _number_that("must be a number of at least 0", lambda value: value >= 0)
check_fraction = _number_that("must be above 0 and at most 1", lambda value: 0 < value <= 1)
check_draws = partial(check_integer, most=1_000_000)  # a query, that one call can finish
check_seed = partial(check_integer, least=0, most=MOST_SEED)


def is_number(value: object) -> TypeGuard[float]:
    """Return True for a finite int or float that float64 can hold."""
    if not isinstance(value, int | float | np.integer | np.floating):
        return False
    if isinstance(value, bool | np.timedelta64 | np.longdouble):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # 10**400
        return False

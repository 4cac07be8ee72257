"""The base of objectives and metrics: parameters as frozen fields, their checks, and a name in text."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, wraps
from importlib import import_module
from inspect import Signature, getattr_static, isfunction, signature
from itertools import takewhile
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from ltr_objectives.checks import Check
from ltr_objectives.errors import LTRError, did_you_mean, require, shown
from ltr_objectives.language import WORD

T = TypeVar("T")


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


class _Signature:
    """The parameters that a class shows: all but ``_written``, which only copies pass on."""

    def __get__(self, instance: object, owner: type) -> Signature:
        of = signature(owner.__init__)  # type: ignore[misc]  # of subclasses, which have their own
        return of.replace(parameters=[p for p in of.parameters.values() if p.name not in ("self", "_written")])


@dataclass(frozen=True)
class Extensible:
    """A base of classes that users extend, with a table of those that have a name in text.

    An object knows which of its parameters somebody wrote, also if they equal the defaults. ``_given`` are those that
    its own call names. ``_written`` are these and the written ones of the object that ``dataclasses.replace`` copied;
    it is the first field, so that ``replace`` passes it after what it changes and before what it merely copies.
    """

    if TYPE_CHECKING:  # no editor offers it
        _written: ClassVar[tuple[str, ...]]
    else:
        _written: tuple[str, ...] = field(default=(), kw_only=True, repr=False, compare=False)
    __signature__ = _Signature()

    _given: ClassVar[tuple[str, ...]]
    name: ClassVar[str]
    named: ClassVar[Any]  # a `Named`; each base has its own
    checks: ClassVar[dict[str, Check]] = {}  # of parameters by name, beside those of the bases
    # methods that must not be overridden, because some callers bypass them, and what to do instead
    _not_read: ClassVar[dict[str, str]] = {
        "__init__": "make its parameters fields, because objects with equal fields count as one"
    }

    def __init_subclass__(cls, text: str = "") -> None:
        super().__init_subclass__()
        cls._refuse_overrides()
        cls.checks = {name: check for base in cls.__mro__[::-1] for name, check in vars(base).get("checks", {}).items()}
        cls._accept_lists()
        if text:
            cls._register(text)

    @classmethod
    def _refuse_overrides(cls) -> None:
        """Raise for a method that a base lists in ``_not_read``."""
        own = vars(cls).keys() - ({"__init__"} if "__dataclass_params__" in vars(cls) else set())  # made with slots
        for base in cls.__mro__[1:]:
            for name, instead in vars(base).get("_not_read", {}).items():
                require(name not in own, f"{cls.__name__}.{name} would be ignored in places; {instead}")

    @classmethod
    def _accept_lists(cls) -> None:
        """Make ``reference`` and ``reference_loss`` of this class convert lists to arrays."""
        for name in ("reference", "reference_loss"):
            if isfunction(method := vars(cls).get(name)):
                setattr(cls, name, _takes_lists(method))

    @classmethod
    def _register(cls, text: str) -> None:
        """Give the class its name in text, which no other class may have."""
        good = re.fullmatch(WORD, text)
        require(good, f"text={text!r} cannot be read in sums or before @; choose small letters a to z only")
        ours = cls.__module__.startswith("ltr_objectives.")  # which the first look imports
        named = getattr_static(cls, "named").classes if ours else cls.named
        known = named.get(text, cls)
        again = (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
        require(again, f"text={text!r} is the name of {known.__qualname__}; choose another")
        cls.name, named[text] = text, cls

    def __new__(cls, *values: object, **named: object) -> Any:
        made: Any = cls
        require(hasattr(cls, "name"), f'{cls.__name__} has no name; write name: ClassVar[str] = "..." in the class')
        cls._refuse_hidden_parameters()
        new = super().__new__(cls)
        in_order = [each.name for each in fields(made) if each.init and not each.kw_only]
        # what stands after _written, dataclasses.replace copies
        object.__setattr__(new, "_given", (*in_order[: len(values)], *takewhile("_written".__ne__, named)))
        return new

    @classmethod
    def _refuse_hidden_parameters(cls) -> None:
        """Raise for a parameter that the class sets without being a dataclass, so that ``__init__`` ignores it."""
        made: Any = cls
        for each in fields(made):
            value = getattr(cls, each.name, each.default)
            require(
                value is each.default or hasattr(value, "__get__"),  # slots
                f"{cls.__name__} sets {each.name}, a parameter, which would be ignored: put @dataclass(frozen=True) "
                f"above the class and write {each.name}: type = value",
            )

    def __post_init__(self) -> None:
        """Check and convert the parameters; a subclass calls it first, and then compares them with one another."""
        made: Any = self
        object.__setattr__(self, "_written", tuple(dict.fromkeys((*self._written, *self._given))))
        for each in fields(made):
            if each.init and each.name in self.checks:
                value = self.checks[each.name](each.name, getattr(self, each.name))
                object.__setattr__(self, each.name, value)

    @classmethod
    @cache
    def parameters(cls) -> tuple[str, ...]:
        """Return the names of the parameters, in order."""
        return tuple(f.name for f in fields(cls) if f.init and f.name != "_written")

    def settings(self) -> dict[str, Any]:
        """Return the parameters by name, with every default and preset filled in."""
        return {name: getattr(self, name) for name in self.parameters()}


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

"""Checks of parameters: each raises an LTRError that names the argument."""

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ltr_objectives.errors import LTRError, did_you_mean, require, shown

MOST_SEED = 2**64 - 1

Check = Callable[[str, Any], Any]  # of the name and value of a parameter; returns the value to keep


def check_choice(argument: str, value: object, allowed: tuple[object, ...]) -> Any:
    """Return the entry of ``allowed`` that equals ``value``; raise if there is none."""
    comparable = isinstance(value, str | bool | np.bool_ | None) or is_number(value)  # not an array or timedelta64
    if not comparable or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise LTRError(f"{argument}={shown(value)} is not known; choose one of {choices}{did_you_mean(value, allowed)}")
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

    check.__doc__ = f"Return ``value`` as a Python number; it {must}."
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

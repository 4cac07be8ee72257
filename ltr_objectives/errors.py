"""The one exception type that bad input and bad parameters raise, and the one warning."""

import math
import numbers
from collections.abc import Hashable, Iterable
from typing import TypeGuard


class LTRError(ValueError):
    """Input or a parameter that cannot be right; the message names the argument and says what to do."""


class LTRWarning(UserWarning):
    """What is allowed but may not be what was meant; the message says why and what to do."""


def require(condition: object, message: str) -> None:
    """Raise :class:`LTRError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise LTRError(message)


def choice(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise unless ``value`` is one of ``allowed``."""
    if not isinstance(value, Hashable) or value not in allowed:  # arrays answer a comparison by an array
        one_of = ", ".join(map(repr, allowed))
        raise LTRError(f"{argument}={value!r} is not known; choose one of {one_of}{did_you_mean(value, allowed)}")


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """The end of a message: which of ``known`` is nearest to ``value``, if any is near.

    >>> did_you_mean("ndgc", ["map", "ndcg"])
    "; did you mean 'ndcg'?"
    """
    from difflib import get_close_matches

    close = get_close_matches(value, [k for k in known if isinstance(k, str)], 1) if isinstance(value, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def positive(name: str, value: object) -> None:
    """Raise unless ``value`` is a finite number above zero."""
    require(is_number(value) and 0 < value < float("inf"), f"{name}={value!r} must be a number above 0")


def not_negative(name: str, value: object) -> None:
    """Raise unless ``value`` is a finite number of at least zero."""
    require(is_number(value) and 0 <= value < float("inf"), f"{name}={value!r} must be a number of at least 0")


def share(name: str, value: object) -> None:
    """Raise unless ``value`` is a number above 0 and at most 1."""
    require(is_number(value) and 0 < value <= 1, f"{name}={value!r} must be above 0 and at most 1")


def whole(name: str, value: object, least: int = 1, most: int = 2**63 - 1) -> None:
    """Raise unless ``value`` is a whole number from ``least`` to ``most``."""
    good = is_number(value) and value == int(value) and least <= int(value) <= most
    limit = f" and at most {most:,}" if is_number(value) and int(value) > most else ""
    require(good, f"{name}={value!r} must be a whole number of at least {least}{limit}")


def draws(name: str, value: object) -> None:
    """Raise unless ``value`` is a number of draws a query that one call can finish."""
    whole(name, value, most=1_000_000)


def seed(value: object) -> None:
    """Raise unless ``value`` is a seed: what 64 bits hold."""
    whole("seed", value, 0, 2**64 - 1)


def is_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a finite real number; truth values are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)

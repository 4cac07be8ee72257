"""The one exception that invalid input and parameters raise, and the one warning."""

import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LONGEST = 200  # characters of a value in a message
PASSED = {  # packages between the user's line and a warning
    "ltr_objectives", "xgboost", "lightgbm", "catboost", "sklearn", "joblib", "torch", "contextlib", "copy",
    "dataclasses",
}  # fmt: skip


class LTRError(ValueError):
    """Invalid input or an invalid parameter; the message names the argument and says what to do."""


class LTRWarning(UserWarning):
    """Input that is allowed but may be a mistake; the message says why and what to do."""


def require(condition: object, message: str) -> None:
    """Raise :class:`LTRError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise LTRError(message)


def shown(value: object) -> str:
    """Return the repr of ``value`` for a message, cut if it is long.

    >>> shown("a" * 1000)[-8:]
    "aaa...'"
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write an int of more than 4,300 digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}...{text[-1]}"


def did_you_mean(value: object, known: Iterable[object], end: str = "") -> str:
    """Return the end of a message: the one of ``known`` that is near ``value``, if any; ``end`` followed ``value``.

    The names of one thing are a tuple, the usual one first; if it is near too, it is preferred.

    >>> did_you_mean("ndgc", ["map", "ndcg"], "@10"), did_you_mean("eval_x", ["eval_y", "eval_X"])
    ("; did you mean 'ndcg@10'?", "; did you mean 'eval_X'?")
    >>> did_you_mean("num_leafs", [("num_leaves", "num_leaf")])
    "; did you mean 'num_leaves'?"
    """
    from difflib import get_close_matches

    if not isinstance(value, str):
        return ""
    things = [thing if isinstance(thing, tuple) else (thing,) for thing in known]
    names = [name for thing in things for name in thing if isinstance(name, str) and name != value]
    close = [name for name in names if name.lower() == value.lower()] or get_close_matches(value, names)
    usual = [thing[0] for thing in things if close and close[0] in thing and thing[0] in close]
    return f"; did you mean {[*usual, *close][0] + end!r}?" if close else ""


def described(thing: object) -> str:
    """Name a thing that was given instead of a metric or an objective."""
    if isinstance(thing, type):
        return f"the class {thing.__name__}; pass an object, such as {thing.__name__}()"
    return type(thing).__name__


def essence(message: str) -> str:
    """Return the message of a library without its source line and stack trace.

    >>> essence("[16:40:25] /src/o.cc:27: Unknown objective function: `rank:foo`\\n\\nStack trace:\\n  0x7f")
    'Unknown objective function: `rank:foo`'
    """
    said = message.partition("Stack trace:")[0].strip()
    return re.sub(r"^(\[[\d:]+\] )?\S+\.(cc|cpp|h|cu):\d+: ", "", said)


def warn(message: str) -> None:
    """Warn with :class:`LTRWarning` at the line outside this package, and outside the libraries that call it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, LTRWarning, stacklevel=level)


@contextmanager
def each_once() -> Iterator[None]:
    """Show each warning at the end, and once however often it was given."""
    given: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as given:
            yield
    finally:
        for each in {str(each.message): each for each in given}.values():
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

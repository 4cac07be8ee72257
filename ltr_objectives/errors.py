"""The one exception that invalid input and parameters raise, and the one warning."""

import re
import sys
import threading
import warnings
from collections.abc import Iterable
from types import FrameType

LONGEST = 200  # characters of a value in a message


class LTRError(ValueError):
    """Invalid input or an invalid parameter; the message names the argument and says what to do."""


class LTRWarning(UserWarning):
    """Input that is allowed but may be a mistake; the message says why and what to do."""


def require(condition: object, message: str) -> None:
    """Raise :class:`LTRError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise LTRError(message)


def shown(value: object) -> str:
    """The repr of ``value`` for a message, cut if it is long.

    >>> shown("a" * 1000)[-8:]
    "aaa...'"
    """
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write an int of more than 4,300 digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}...{text[-1]}"


def did_you_mean(value: object, known: Iterable[object]) -> str:
    """The end of a message: which of ``known`` is nearest to ``value``, if any is near.

    >>> did_you_mean("ndgc", ["map", "ndcg"]), did_you_mean("eval_x", ["eval_y", "eval_X"])
    ("; did you mean 'ndcg'?", "; did you mean 'eval_X'?")
    """
    from difflib import get_close_matches

    if not isinstance(value, str):
        return ""
    names = [k for k in known if isinstance(k, str)]
    close = [k for k in names if k.lower() == value.lower()] or get_close_matches(value, names, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def essence(message: str) -> str:
    """The message of a library without its source line and stack trace.

    >>> essence("[16:40:25] /src/o.cc:27: Unknown objective function: `rank:foo`\\n\\nStack trace:\\n  0x7f")
    'Unknown objective function: `rank:foo`'
    """
    said = message.partition("Stack trace:")[0].strip()
    return re.sub(r"^(\[[\d:]+\] )?\S+\.(cc|cpp|h|cu):\d+: ", "", said)


LIBRARIES = {"ltr_objectives", "xgboost", "lightgbm", "catboost", "sklearn", "joblib", "numba", "torch"}
BETWEEN = {"contextlib", "copy", "functools", "importlib", "threading"}  # a library may call itself through these


def warn(message: str) -> None:
    """Warn with :class:`LTRWarning` at the line of the user's code that led here."""
    here = sys._getframe(1)
    frame = _of_the_user(here)
    if frame is None:  # a library's own thread, for which the main thread waits
        frame = _of_the_user(sys._current_frames().get(threading.main_thread().ident or 0)) or here
    where = frame.f_globals
    registry = where.setdefault("__warningregistry__", {})
    name, line = where.get("__name__", "<string>"), frame.f_lineno or 1
    warnings.warn_explicit(message, LTRWarning, frame.f_code.co_filename, line, name, registry)


def _of_the_user(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of the user's code, or None."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES | BETWEEN:
        frame = frame.f_back
    return frame

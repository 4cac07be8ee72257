"""The calls of a library that led to us: the one place that searches the stack.

No library passes its Booster, its parameters or its eval sets to the objects of users, so they are read from the stack.
The estimators know them, and do not ask here.
"""

import sys
from types import FrameType
from typing import Any, NamedTuple

from ltr_objectives.libraries import Library


class Calls(NamedTuple):
    """The functions of a library that led to us, innermost first; none if the user called us."""

    frames: list[FrameType]
    booster: Any  # the library's model in training, or None

    @property
    def names(self) -> list[str]:
        """The names of the functions."""
        return [frame.f_code.co_name for frame in self.frames]

    def local(self, function: str) -> dict[str, Any]:
        """Return the local variables of the innermost call of ``function``; empty if it was not called."""
        return next((frame.f_locals for frame in self.frames if frame.f_code.co_name == function), {})


def calls_of(library: Library) -> Calls:
    """Return the calls of ``library`` that led here. Functions of the user's may lie between the library and us."""

    def inside(frame: FrameType) -> bool:
        return frame.f_globals.get("__name__", "").partition(".")[0] == library.name

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not inside(frame):
        frame = frame.f_back
    frames = []
    while frame is not None and inside(frame):
        frames.append(frame)
        frame = frame.f_back
    if not frames:  # nor need the library be installed
        return Calls([], None)
    model = getattr(library.load(), library.model)
    callers = (each.f_locals.get("self") for each in frames)
    return Calls(frames, next((caller for caller in callers if isinstance(caller, model)), None))

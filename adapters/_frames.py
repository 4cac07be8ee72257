"""The calls of a library that led to us.

No library hands our objects its Booster, its parameters or its eval sets, so they are read from the stack. Our rankers
for XGBoost and LightGBM know the parameters, and do not ask here.
"""

import sys
from types import FrameType
from typing import Any

from ltr_objectives.adapters._libraries import Library


def calls_of(library: Library) -> list[FrameType]:
    """The calls of ``library`` that led here, innermost first; none where the user called us.

    Functions of the user's may lie between us and the library, since users wrap our callables.
    """

    def inside(frame: FrameType) -> bool:
        return frame.f_globals.get("__name__", "").partition(".")[0] == library.name

    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not inside(frame):
        frame = frame.f_back
    calls = []
    while frame is not None and inside(frame):
        calls.append(frame)
        frame = frame.f_back
    return calls


def booster_of(calls: list[FrameType], library: Library) -> Any:
    """The Booster that is being trained by these calls, or None."""
    model = getattr(library.load(), library.model)
    callers = (frame.f_locals.get("self") for frame in calls)
    return next((caller for caller in callers if isinstance(caller, model)), None)

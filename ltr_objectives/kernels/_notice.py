"""Print one line on stderr before a process compiles its first kernel, since that takes seconds."""

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import event

QUIET = "LTR_OBJECTIVES_QUIET"


class _Notice(event.Listener):
    def __init__(self, cache: Callable[[], Path | None]) -> None:
        self.cache = cache
        self.told = False

    def on_start(self, event: Any) -> None:
        module = getattr(event.data["dispatcher"].py_func, "__module__", None) or ""  # None for code from exec
        if self.told or not module.startswith("ltr_objectives."):
            return
        self.told = True
        folder = self.cache()
        kept = "is not kept, since no folder is writable" if folder is None else f"is kept in {folder}"
        if sys.stderr is not None and not os.environ.get(QUIET):
            with contextlib.suppress(OSError, ValueError):  # a closed stderr must not stop a training
                print(
                    f"ltr_objectives: compiling machine code, which takes seconds; it {kept}",
                    file=sys.stderr,
                    flush=True,
                )

    def on_end(self, event: Any) -> None:
        pass


def tell_before_compiling(cache: Callable[[], Path | None]) -> None:
    """Print the line before this process first compiles a kernel; loading one from ``cache()`` prints nothing."""
    event.register("numba:compile", _Notice(cache))

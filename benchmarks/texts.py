"""Numbers and tables as text, and where they are printed."""

import sys
from collections.abc import Sequence

from rich.console import Console


def terminal(width: int = 120) -> Console:
    """The console; a file, which has no width to respect, gets this one."""
    return Console(width=None if sys.stdout.isatty() else width)


def short(value: float) -> str:
    """Four digits, without a leading zero.

    >>> short(0.25), short(1.0)
    ('.2500', '1.0000')
    """
    return f"{value:.4f}".removeprefix("0")


def marked(text: str, mark: str) -> str:
    """The text with its mark behind, if any."""
    return f"{text} {mark}" if mark else text


def pipe_table(lines: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> str:
    """Markdown of a head and its lines; without ``right``, all columns but the first two are numbers.

    >>> print(pipe_table([["library", "objective", "map"], ["xgboost", "yetirank", ".5"]]))
    | library | objective | map |
    | --- | --- | ---: |
    | xgboost | yetirank | .5 |
    """
    rule = ["---:" if number else "---" for number in right or [i > 1 for i in range(len(lines[0]))]]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))

"""Numbers and tables as text, and the console that prints them."""

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table


def terminal(width: int = 120) -> Console:
    """The console; ``width`` is that of output to a file."""
    return Console(width=None if sys.stdout.isatty() else width)


def short(value: float) -> str:
    """Four digits, without a leading zero.

    >>> short(0.25), short(1.0)
    ('.2500', '1.0000')
    """
    return f"{value:.4f}".removeprefix("0")


def marked(text: str, mark: str) -> str:
    """The text followed by its mark, if any."""
    return f"{text} {mark}" if mark else text


def signed(difference: float, error: float) -> str:
    """A difference and its standard error.

    >>> signed(-0.0125, 0.25)
    '-.0125 (.2500)'
    """
    return f"{difference:+.4f} ({short(error)})".replace("0.", ".", 1)


def p_of(p: float) -> str:
    """Two digits of p.

    >>> p_of(0.01234), p_of(1e-9)
    ('0.012', '< 1e-4')
    """
    return f"{p:.2g}" if p >= 1e-4 else "< 1e-4"


def pipe_table(lines: Sequence[Sequence[str]], right: Sequence[bool] | None = None) -> str:
    """A Markdown table of a head and its lines; without ``right``, all columns but the first two are numbers.

    >>> print(pipe_table([["library", "objective", "map"], ["xgboost", "yetirank", ".5"]]))
    | library | objective | map |
    | --- | --- | ---: |
    | xgboost | yetirank | .5 |
    """
    rule = ["---:" if number else "---" for number in right or [i > 1 for i in range(len(lines[0]))]]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def printed(lines: Sequence[Sequence[str]], title: str, caption: str | None = None) -> Table:
    """A head and its lines for the terminal, a section for each library; ``**`` is bold, as in markdown."""
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for name in lines[0][:2]:
        table.add_column(name, overflow="fold")
    for name, *cells in list(zip(*lines, strict=True))[2:]:
        width = max(len(text.replace("**", "")) for text in (name, *cells))
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    last = ""
    for library, objective, *cells in lines[1:]:
        if library != last and last:
            table.add_section()
        name = objective.replace(" (native)", " [cyan](native)[/]")
        bold = [text.replace("**", "[bold]", 1).replace("**", "[/]", 1) for text in cells]
        table.add_row(library if library != last else "", name, *bold)
        last = library
    return table

"""Numbers and tables as text, and the console that prints them."""

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def terminal(width: int = 120) -> Console:
    """Return the console; ``width`` is that of output to a file."""
    return Console(width=None if sys.stdout.isatty() else width, highlight=False)


def marked(text: str, mark: str) -> str:
    """Return the text followed by its mark, if any."""
    return f"{text} {mark}" if mark else text


def signed(difference: float, error: float, digits: int = 4) -> str:
    """Format a difference and its standard error. A difference that rounds to zero has no sign.

    >>> signed(-0.0125, 0.25), signed(-0.01, 0.2, 1)
    ('-0.0125 (0.2500)', '0.0 (0.2)')
    """
    text = f"{difference:+.{digits}f}"
    return f"{text if text.strip('+-0.') else text[1:]} ({error:.{digits}f})"


def p_of(p: float) -> str:
    """Format p to two digits, a small one to one digit.

    >>> p_of(0.01234), p_of(1e-9)
    ('0.012', '< 1e-4')
    """
    return f"{p:.{1 if p < 1e-3 else 2}g}" if p >= 1e-4 else "< 1e-4"


def show(screen: Console, lines: Sequence[Sequence[str]], title: str, caption: str | None = None) -> None:
    """Print a head and its lines. Nothing is cropped: if the table is too wide, the terminal wraps."""
    made = _by_library(lines, title, caption)
    wide = made.__rich_measure__(screen, screen.options.update(max_width=10_000)).maximum
    screen.width = max(screen.width, wide)
    screen.print(made)


def table(head: Sequence[str], left: int = 1, title: str | None = None, caption: str | None = None) -> Table:
    """Make an empty table; the columns after the first ``left`` have numbers."""
    made = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for i, name in enumerate(head):
        if i < left:
            made.add_column(name, overflow="fold")
        else:
            made.add_column(name, justify="right", no_wrap=True)
    return made


def _by_library(lines: Sequence[Sequence[str]], title: str, caption: str | None) -> Table:
    """Make a section for each library; ``**`` is bold, as in markdown."""
    head, *rest = (list(map(escape, line)) for line in lines)
    made = table(
        [name.replace(" in ", "\nin ") for name in head], 2, escape(title), None if caption is None else escape(caption)
    )
    last = ""
    for library, objective, *cells in rest:
        if library != last and last:
            made.add_section()
        bold = [text.replace("**", "[bold]", 1).replace("**", "[/]", 1) for text in cells]
        name = objective.replace(" (native)", " [cyan](native)[/]")
        made.add_row(library if library != last else "", name, *bold)
        last = library
    return made

"""``python -m benchmarks demo``: the comparison on generated data, in a minute or two."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.compare import compare


def demo(out: Annotated[Path, typer.Option(help="Folder for CSV, JSON and PNG.")] = Path("results")) -> None:
    """Compare all libraries on small generated data.

    A table and a picture, in under two minutes on two cores.
    """
    compare(queries="150,60,150", trees=100, learning_rate=0.15, patience=30, out=out, name="demo")

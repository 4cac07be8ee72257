"""The command line: ``ltr-objectives``, or ``python -m ltr_objectives``. Needs Typer, Rich, pandas and scikit-learn."""

import os
import sys


def main() -> None:
    """Run the command that the arguments name, or say what to install for it."""
    # OpenMP threads that spin while they wait slow those that work. A library reads this when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from ltr_objectives.workbench.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas"):
            raise
        print(
            f"error: the command line needs {error.name}: pip install typer rich pandas scikit-learn", file=sys.stderr
        )
        sys.exit(2)
    app(prog_name="ltr-objectives")

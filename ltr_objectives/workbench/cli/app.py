"""The commands, and how they report errors. To add a command, write its file and register it below."""

import importlib.metadata
import platform
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from ltr_objectives import __version__
from ltr_objectives.errors import LTRError, LTRWarning
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.cli.compare import compare
from ltr_objectives.workbench.cli.evaluate import evaluate
from ltr_objectives.workbench.cli.predict import predict
from ltr_objectives.workbench.cli.tradeoff import tradeoff
from ltr_objectives.workbench.cli.train import train

SHOWN = ("numpy", "numba", "scikit-learn", *LIBRARIES)
UsageError: Any = typer.BadParameter.__base__  # of click, or of Typer's own copy of it


class OneLineErrors(TyperGroup):
    """Print an error that the user can repair as one red line, with exit code 2; a bug keeps its traceback.

    Each warning of this package is a line too, printed once however many trainings give it.
    """

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        printed: set[str] = set()
        show = warnings.showwarning

        def show_once(message: Any, category: Any, *where: Any) -> None:
            if not issubclass(category, LTRWarning):
                show(message, category, *where)
            elif str(message) not in printed:
                printed.add(str(message))
                Console(stderr=True).print(Text(f"warning: {message}", "yellow"), soft_wrap=True)

        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_once  # type: ignore[assignment]  # which knows names of arguments
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the output has closed it
            raise
        except KeyboardInterrupt:  # of which Typer says nothing
            typer.echo("interrupted", err=True)
            raise
        except (UsageError, LTRError, ImportError, OSError) as error:
            said = error.format_message() if isinstance(error, UsageError) else error
            line = " ".join(f"error: {said}".splitlines())
            Console(stderr=True).print(Text(line, "bold red"), soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def print_versions(asked: bool) -> None:
    """Print the versions of this package, of Python, of the system and of the packages that matter."""
    if not asked:
        return
    typer.echo(f"ltr-objectives {__version__}")
    typer.echo(f"python {platform.python_version()} on {platform.platform()}")
    installed = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    for name in SHOWN:
        typer.echo(f"{name} {installed.get(name) or installed.get(f'{name}-cpu') or 'is not installed'}")
    raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=print_versions, help="Print versions, as for a bug report."),
    ] = False,
) -> None:
    """Ranking metrics, and ranking objectives in XGBoost, LightGBM and CatBoost."""


app.command()(compare)
app.command()(evaluate)
app.command()(predict)
app.command()(tradeoff)
app.command()(train)

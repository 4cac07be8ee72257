"""The commands, and how they report errors. To add a command, write its file and register it below."""

from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from ltr_objectives.cli.compare import compare
from ltr_objectives.cli.evaluate import evaluate
from ltr_objectives.cli.predict import predict
from ltr_objectives.cli.report import report
from ltr_objectives.cli.train import train
from ltr_objectives.cli.warmup import warmup
from ltr_objectives.errors import LTRError

UsageError: Any = typer.BadParameter.__base__  # of click, or of Typer's own copy of it


class OneLineErrors(TyperGroup):
    """Print an error that the user can repair as one red line, with exit code 2; a bug keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the output has closed it
            raise
        except (UsageError, LTRError, ImportError, OSError) as error:
            said = error.format_message() if isinstance(error, UsageError) else error
            line = " ".join(f"error: {said}".splitlines())
            Console(stderr=True).print(Text(line, "bold red"), soft_wrap=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    help="Ranking metrics, and ranking objectives in XGBoost, LightGBM and CatBoost.",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(compare)
app.command()(evaluate)
app.command()(predict)
app.command()(report)
app.command()(train)
app.command()(warmup)

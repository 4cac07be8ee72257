"""The command line of the benchmarks. To add a subcommand, write its file and its line below."""

import os

import typer

from benchmarks.bounds import bounds
from benchmarks.clicks import clicks
from benchmarks.demo import demo
from benchmarks.equivalence import equivalence
from benchmarks.kernels import kernels
from benchmarks.latency import latency
from benchmarks.money import money
from benchmarks.movielens import movielens
from benchmarks.one_list import one_list
from benchmarks.publish import publish
from benchmarks.quality import quality
from benchmarks.report import report
from benchmarks.retrain import retrain
from benchmarks.scaling import scaling
from benchmarks.search_text import search_text
from benchmarks.startup import startup
from benchmarks.training import evaluation, training
from benchmarks.variance import variance
from ltr_objectives.workbench.cli.app import OneLineErrors

# On a busy machine OpenMP threads that spin while they wait make trainings take many times as long. OpenMP reads the
# variable when XGBoost or LightGBM is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

app = typer.Typer(
    help="Measure ltr_objectives beside the native objectives.",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
app.command()(bounds)
app.command()(clicks)
app.command()(demo)
app.command()(equivalence)
app.command()(evaluation)
app.command()(kernels)
app.command()(latency)
app.command()(money)
app.command()(movielens)
app.command()(one_list)
app.command()(publish)
app.command()(quality)
app.command()(report)
app.command()(retrain)
app.command()(scaling)
app.command()(search_text)
app.command()(startup)
app.command()(training)
app.command()(variance)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")

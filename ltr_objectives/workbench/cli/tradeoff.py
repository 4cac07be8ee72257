"""``ltr-objectives tradeoff``: what one metric gains for what another one loses."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
from rich.console import Console
from typer import Option

from ltr_objectives import adapters
from ltr_objectives.checks import check_choice
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.statistics import BETTER, SAME, WORSE
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import canvas, read_parts, save_figure, writable
from ltr_objectives.workbench.cli.options import names_in, python_value
from ltr_objectives.workbench.tables import Columns, show_features, warn_of_labels, write_csv
from ltr_objectives.workbench.texts import marked, show, terminal
from ltr_objectives.workbench.trials import estimator

if TYPE_CHECKING:
    from ltr_objectives.adapters._tradeoff import Tradeoff

CAPTION = (
    "Changes from the first line, with 95% intervals over {queries:,} validation queries; {better} better, {worse} "
    "worse: the interval is on one side of 0. Front: no other line is as good in both metrics and better in one. On "
    "these queries changes of {first} below about {of_first:.1%}, and of {second} below {of_second:.1%}, cannot be "
    "told from none. Rounds were chosen on them, so compare your choice with the first line on others."
)
SHARES = "Shares of the first metric to lose, such as 0.005,0.01; default: 0.005,0.01,0.02,0.05."


def tradeoff(
    library: Annotated[str, Option(metavar="NAME", help=f"{', '.join(LIBRARIES)}.")],
    train: Annotated[Path, Option(help="LETOR, Parquet or CSV.", **options.FILE)],
    vali: Annotated[Path, Option(help="The queries that choose the rounds and compare.", **options.FILE)],
    metric: Annotated[list[str], Option(metavar="NAMES", help="Two: the one that may lose, the one that shall gain.")],
    lose: Annotated[options.Names, Option(metavar="SHARES", help=SHARES, **options.QUIET)] = None,
    weights: Annotated[options.Names, Option(metavar="NUMBERS", help="Weights of the second in a sum.")] = None,
    label: options.Label = "label",
    qid: options.QidColumn = "qid",
    weight: options.Weight = None,
    ignore: options.Ignore = None,
    categorical: options.Categorical = None,
    trees: options.Trees = 500,
    learning_rate: options.LearningRate = 0.1,
    patience: options.Patience = 50,
    threads: options.Threads = 0,
    param: options.Param = None,
    picture: options.Picture = None,
    out: Annotated[Path | None, Option(metavar="FILE", help="The table as .csv.", **options.QUIET)] = None,
    own: options.Own = None,
    as_json: options.AsJson = False,
) -> None:
    """Train with several bounds or weights, and compare what one metric gains with what another one loses.

    A metric such as dcg(gain_type=linear)@10[revenue] reads the column revenue.
    """
    check_choice("--library", library, tuple(LIBRARIES))
    metrics = options.read_metrics(metric)
    writable(out, (".csv",), "tables", train, vali)
    figure = canvas(picture, train, vali)
    goals = list(dict.fromkeys(goal for each in metrics for goal in each.goals))
    columns = Columns(label, qid, weight, names_in(ignore), names_in(categorical), goals=goals)
    parts = read_parts({"train": train, "vali": vali}, columns)
    learn, valid = parts["train"], parts["vali"]
    warn_of_labels(learn, columns.ignore)
    params = options.params_of(library, trees, learning_rate, threads, param)
    shares, factors = ([python_value(x) for x in names_in(given)] or None for given in (lose, weights))
    with Console(stderr=True).status(f"{library} trains for {metrics[0]}"), estimator(library) as ranker:
        found = adapters.tradeoff(
            ranker(eval_metric=metrics, **params), learn.X, learn.y, qid=learn.qid, sample_weight=learn.weight,
            labels=learn.labels, lose=shares, weights=factors, early_stopping_rounds=patience,
            eval_set=[(valid.X, valid.y)], eval_qid=[valid.qid], eval_sample_weight=[valid.weight],
            eval_labels=[valid.labels],
        )  # fmt: skip
    if picture is not None:
        adapters.TradeoffDisplay.from_tradeoff(found, figure.subplots())
        save_figure(figure, picture)
    if out is not None:
        write_csv(pd.DataFrame(found.lines), out)
    if as_json:
        options.print_json({
            "library": library, "metrics": found.metrics, "queries": found.queries, "resolution": found.resolution,
            "lines": [line._asdict() for line in found.lines],
        })  # fmt: skip
    else:
        screen = terminal()
        screen.print(show_features(learn.X), markup=False, soft_wrap=True)
        _show(screen, found, library, f"{train.name}: {len(learn.group):,} queries")


def _show(screen: Console, found: "Tradeoff", library: str, title: str) -> None:
    """Print the table, a line for each training."""
    (first, second), (of_first, of_second) = found.metrics, found.resolution
    rows = [["library", "training", first, "change", second, "change", "trees", "front"]]
    for x in found.lines:
        changes = (
            change(x.first_change, x.first_low, x.first_high),
            change(x.second_change, x.second_low, x.second_high),
        )
        values = f"{x.first:.4f}", changes[0], f"{x.second:.4f}", changes[1]
        rows.append([library, x.training, *values, str(x.rounds), "yes" if x.on_front else ""])
    said = CAPTION.format(
        queries=found.queries, better=BETTER, worse=WORSE, first=first, second=second, of_first=of_first,
        of_second=of_second,
    )  # fmt: skip
    show(screen, rows, title, said)


def change(mean: float, low: float, high: float) -> str:
    """Format a change in percent, its interval, and a mark if the interval is on one side of 0.

    >>> change(-0.02, -0.03, -0.01), change(0.0, 0.0, 0.0)
    ('-2.0% (-3.0 to -1.0) ▼', '')
    """
    if low == high:
        return ""
    mark = BETTER if low > 0 else WORSE if high < 0 else SAME
    return marked(f"{100 * mean:+.1f}% ({100 * low:+.1f} to {100 * high:+.1f})", mark)

"""``ltr-objectives evaluate``: ranking metrics of scores on disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.table import Table
from typer import Option, echo

from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.correlation import Spearman
from ltr_objectives.metrics.equal_orders import warn_if_all_relevant
from ltr_objectives.metrics.text import any_metric
from ltr_objectives.statistics import interval
from ltr_objectives.workbench.cli import options
from ltr_objectives.workbench.cli.files import Lists, read_column, read_lists
from ltr_objectives.workbench.cli.trec import read_trec
from ltr_objectives.workbench.tables import Columns
from ltr_objectives.workbench.texts import table, terminal

FILE = options.FILE


def evaluate(
    metric: Annotated[list[str], Option(metavar="NAMES", help=f"{options.METRICS}.")] = options.DEFAULT,
    labels: Annotated[str | None, Option(help="Relevance labels, one a line.", **FILE)] = None,
    scores: Annotated[str | None, Option(help="Scores, likewise.", **FILE)] = None,
    position: Annotated[str | None, Option(help="Or where users saw each document, 1 the top.", **FILE)] = None,
    qid: Annotated[str | None, Option(help="Query ids, likewise; of a table --data their column.", **FILE)] = None,
    data: Annotated[Path | None, Option(help="Labels and ids in LETOR, Parquet or CSV.", **FILE)] = None,
    label: options.Label = "label",
    weight: options.Weight = None,
    run: Annotated[Path | None, Option(help="TREC: query Q0 document rank score tag.", **FILE)] = None,
    qrels: Annotated[Path | None, Option(help="TREC judgements: query 0 document label.", **FILE)] = None,
    complete: Annotated[bool, Option("--complete", help="Queries missing from the run found nothing.")] = False,
    drop_unjudged: Annotated[bool, Option("--drop-unjudged", help="Leave out documents without a label.")] = False,
    convention: options.Convention = None,
    per_query: Annotated[bool, Option("--per-query", help="Also print the value of each query.")] = False,
    own: options.Own = None,
    as_json: options.AsJson = False,
) -> None:
    """Print the mean of ranking metrics over queries.

    Pass labels, scores and query ids as files of text (also .gz, .bz2, .xz) or .npy, or as FILE.csv:COLUMN or
    FILE.parquet:COLUMN; or a data file and scores; or a TREC run and its judgements. Rows of one query must be
    consecutive, except in Parquet and CSV files. Judged documents missing from the run count for the ideal DCG and for
    recall. Documents without a judgement are not relevant, unless --drop-unjudged leaves them out.
    """
    chosen = options.read_metrics(metric, convention, any_metric)
    if run is not None and qrels is not None and not any((data, labels, scores, qid)):
        lists = read_trec(run, qrels, complete=complete, convention=convention, drop_unjudged=drop_unjudged)
    elif (scores is None) != (position is None) and not any((run, qrels, complete)):
        found = 0.0 - read_column("position", position) if position else read_column("scores", str(scores))
        lists = read_lists(data, labels, found, qid, Columns(label, weight=weight), drop_unjudged=drop_unjudged)
        _refuse_positions(lists)
    else:
        raise LTRError(
            "pass --labels and --qid, or --data, with --scores or --position; or --run and --qrels, perhaps --complete"
        )
    warn_if_all_relevant(chosen, lists.queries, "these labels")
    means = {str(m): lists.mean(m) for m in chosen}
    values = {str(m): lists.values(m) for m in chosen} if per_query else {}
    if as_json:
        by_query = {"per_query": {"qid": lists.ids, **{name: v.tolist() for name, v in values.items()}}}
        options.print_json({
            "queries": len(lists.ids), "convention": convention, "metrics": means, **(by_query if per_query else {}),
            "notes": lists.notes,
        })  # fmt: skip
        return
    terminal().print(_table(lists, means, values))
    for note in lists.notes:
        echo(f"note: {note}", err=True)


def _refuse_positions(lists: Lists) -> None:
    """Raise for scores that are probably positions: whole numbers, none twice in a query, that rank upside down."""
    queries, s = lists.queries, lists.scores
    query = np.repeat(np.arange(len(queries)), np.diff(queries.ptr))
    within = s.min() >= 0 and s.max() <= queries.longest and (s % 1 == 0).all()
    if within and len(np.unique([query, s], axis=1).T) == len(s):
        correlation, _, high = interval(Spearman().values(queries, s))
        require(
            not high < 0,
            "--scores are whole numbers that differ in each query, as positions do, and the best documents have the "
            f"lowest (Spearman's correlation {correlation:.2f}): pass positions in --position",
        )


def _table(lists: Lists, means: Mapping[str, float], values: Mapping[str, np.ndarray]) -> Table:
    made = table(["query", *means], caption=f"queries: {len(lists.ids):,}")
    for i, query in enumerate(lists.ids if values else ()):
        made.add_row(str(query), *("-" if np.isnan(v[i]) else f"{v[i]:.4f}" for v in values.values()))
    if values:
        made.add_section()
    made.add_row("mean", *(f"{mean:.4f}" for mean in means.values()), style="bold")
    return made

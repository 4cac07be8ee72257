"""``ltr-objectives evaluate``: ranking metrics of scores on disk."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from rich import box
from rich.table import Table
from typer import Option, echo

from ltr_objectives.diagnostics import warn_if_all_relevant
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import any_metric
from ltr_objectives.workbench.cli import options

if TYPE_CHECKING:
    from ltr_objectives.workbench.cli.files import Lists
    from ltr_objectives.workbench.tables import Columns


def evaluate(
    metric: options.Metrics = "ndcg@10",
    labels: options.Labels = None,
    scores: options.Scores = None,
    qid: options.Qid = None,
    data: options.Letor = None,
    label: options.Label = "label",
    weight: options.Weight = None,
    run: Annotated[Path | None, Option(metavar="FILE", help="TREC run: query Q0 document rank score tag.")] = None,
    qrels: Annotated[Path | None, Option(metavar="FILE", help="TREC judgements: query 0 document label.")] = None,
    complete: Annotated[
        bool, Option("--complete", help="With --qrels: count queries missing from the run, as having found nothing.")
    ] = False,
    drop_unjudged: Annotated[
        bool, Option("--drop-unjudged", help="Leave out documents without a label or judgement (condensed lists).")
    ] = False,
    convention: options.Convention = None,
    per_query: Annotated[bool, Option("--per-query", help="Also print the value of each query.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Print the mean of ranking metrics over queries.

    Pass labels, scores and query ids as separate files, a LETOR, Parquet or CSV file and scores, or a TREC run and its
    judgements. Rows of one query must be consecutive, except in Parquet and CSV files. Judged documents missing from
    the run count for the ideal DCG and for recall. Documents without a judgement are not relevant, unless
    --drop-unjudged leaves them out.
    """
    chosen = options.read_metrics(metric, convention, any_metric)
    from ltr_objectives.workbench.tables import Columns

    columns = Columns(label, weight=weight)
    lists = _read(data, labels, scores, qid, columns, run, qrels, complete, convention, drop_unjudged)

    warn_if_all_relevant(chosen, lists.queries, "these labels")
    means = {str(m): lists.mean(m) for m in chosen}
    values = {str(m): lists.values(m) for m in chosen} if per_query else {}
    if as_json:
        numbers = {name: None if np.isnan(mean) else mean for name, mean in means.items()}
        document: dict[str, Any] = {"queries": len(lists.ids), "convention": convention, "metrics": numbers}
        if per_query:
            by_query = {name: [None if np.isnan(x) else float(x) for x in v] for name, v in values.items()}
            document["per_query"] = {"qid": lists.ids, **by_query}
        options.print_json({**document, "notes": lists.notes})
        return
    table = Table(box=box.SIMPLE_HEAD, caption=f"queries: {len(lists.ids):,}", caption_justify="left")
    table.add_column("query", overflow="fold")
    for name in means:
        table.add_column(name, justify="right", no_wrap=True)
    if per_query:
        for i, query in enumerate(lists.ids):
            table.add_row(str(query), *("-" if np.isnan(v[i]) else f"{v[i]:.4f}" for v in values.values()))
        table.add_section()
    table.add_row("mean", *(f"{mean:.4f}" for mean in means.values()), style="bold")
    options.console().print(table)
    for note in lists.notes:
        echo(f"note: {note}", err=True)


def _read(
    data: Path | None, labels: str | None, scores: str | None, qid: str | None, columns: "Columns",
    run: Path | None, qrels: Path | None, complete: bool, convention: str | None, drop_unjudged: bool,
) -> "Lists":  # fmt: skip
    from ltr_objectives.workbench.cli.files import read_lists
    from ltr_objectives.workbench.cli.trec import read_trec

    others = [value for value in (data, labels, scores, qid) if value is not None]
    if run is not None or qrels is not None:
        require(run is not None and qrels is not None and not others, "pass --run and --qrels, without other files")
        assert run is not None
        assert qrels is not None
        return read_trec(run, qrels, complete=complete, convention=convention, drop_unjudged=drop_unjudged)
    require(scores is not None, "pass --labels, --scores and --qid, or --data and --scores, or --run and --qrels")
    require(not complete, "--complete needs --run and --qrels")
    return read_lists(data, labels, scores, qid, columns, drop_unjudged=drop_unjudged)

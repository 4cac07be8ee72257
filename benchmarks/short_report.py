"""The report of a comparison: one table for the terminal, as CSV and as JSON, and one picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.cells import write_whole
from benchmarks.figures import curves, style
from benchmarks.pooled import by_query, chosen
from benchmarks.provenance import versions
from benchmarks.report import to_csv
from ltr_objectives.workbench.statistics import BETTER, WORSE, mark
from ltr_objectives.workbench.summary import is_native, named, summary
from ltr_objectives.workbench.texts import marked, show

CAPTION = (
    "{0} better, {1} worse than the library's first native objective: paired t-test over {2} test queries, p < {3:g} "
    "after Holm's correction. Bold: best in its library. Seconds are of training, with the vali metric after each tree."
)


def write(
    results: Sequence[dict[str, Any]], settings: dict[str, Any], out: Path, name: str, console: Console
) -> list[Path]:
    """Print the table; write ``name.csv``, ``name.json`` with settings, versions and curves, and ``name.png``."""
    data, metrics = settings["data"], settings["metrics"]
    rows = rows_of(results, settings["alpha"])
    caption = CAPTION.format(BETTER, WORSE, len(results[0]["test"][metrics[0]]), settings["alpha"])
    show(console, lines_of(rows, metrics), f"{data}: test metrics", caption)
    csv, full, picture = (out / f"{name}.{kind}" for kind in ("csv", "json", "png"))
    to_csv(table_of(rows), csv)
    write_whole(full, {"settings": settings, "versions": versions(), "rows": rows}, indent=1)
    figure = curves.drawn(chosen(results), data, metrics[0])
    assert figure is not None
    return [csv, full, style.write(figure, picture)]


def rows_of(results: Sequence[dict[str, Any]], alpha: float) -> list[dict[str, Any]]:
    """A record for each training; for each metric its test mean, p and mark against the library's first native one."""
    table = summary(by_query(chosen(results)), lambda natives, _: next(iter(natives)), randomise=False)
    blocks = table.groupby(["library", "objective"])
    rows = []
    for r in results:
        by = blocks.get_group((r["library"], r["label"])).set_index("metric")
        stop, native = r["stop"], is_native(r["library"], r["label"])
        p = by["p"].dropna().to_dict() if "p" in by else {}
        rows.append({
            "library": r["library"], "objective": r["label"], "native": native,
            "reference": native and not p, "best_iteration": r["trees"][stop], "seconds": r["seconds"],
            "test": by["mean"].to_dict(), "curve": r["curves"][stop], "p": p,
            "mark": {metric: mark(by.loc[metric, "difference"], p[metric], alpha) for metric in p},
        })  # fmt: skip
    return rows


def lines_of(rows: Sequence[dict[str, Any]], metrics: Sequence[str]) -> list[list[str]]:
    """The printed table; the best of a library is bold."""
    lines = [["library", "objective", *metrics, "trees", "seconds"]]
    for row in rows:
        block = [other["test"] for other in rows if other["library"] == row["library"]]
        cells = []
        for metric in metrics:
            value = row["test"][metric]
            text = f"{value:.4f}"
            text = f"**{text}**" if value == max(test[metric] for test in block) else text
            cells.append(marked(text, row["mark"].get(metric, "")))
        label = named(row["library"], row["objective"])
        lines.append([row["library"], label, *cells, str(row["best_iteration"]), f"{row['seconds']:.1f}"])
    return lines


def table_of(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows and their p values as a table, one column each."""
    records = []
    for row in rows:
        kind = "reference" if row["reference"] else "native" if row["native"] else "ours"
        record: dict[str, Any] = {"library": row["library"], "objective": row["objective"], "kind": kind}
        for metric, value in row["test"].items():
            found = {"": value, " p": row["p"].get(metric), " mark": row["mark"].get(metric, "")}
            record |= {metric + suffix: x for suffix, x in found.items()}
        records.append(record | {"best_iteration": row["best_iteration"], "seconds": row["seconds"]})
    return pd.DataFrame.from_records(records)

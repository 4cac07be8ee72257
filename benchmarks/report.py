"""A study's results as a printed table, markdown, CSV and parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from benchmarks.lead import lead, on_vali
from benchmarks.lead import markdown as lead_markdown
from ltr_objectives._files import replacing
from ltr_objectives.libraries import is_native, named
from ltr_objectives.statistics import BETTER, WORSE, differences, mark
from ltr_objectives.workbench.summary import (
    CAPTION,
    OWN_BEST,
    Values,
    best_of,
    block_of,
    by_query,
    chosen,
    rows_of,
    summary,
    whole_of,
)
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import marked, p_of, pipe_table, show, signed

EXPLANATION = (
    "Differences from the library's best native objective by this metric, with standard errors over test queries in "
    "brackets. p is that of the paired t-test, after Holm's correction over all of ours in the library; {0} and {1} "
    "mark p below {2:g}. Both the best native objective and the best of ours were chosen on these test queries. The "
    "choice among all of ours makes the difference too large; p accounts for that."
)
NOTE = (
    "Train value of the model at its early stop on vali; in brackets train value minus test value. Means over folds "
    "and seeds."
)


def write(
    results: Sequence[dict[str, Any]], out: Path, alpha: float, console: Console, *, plots: bool = True
) -> list[Path]:
    """Print the tables, write them as markdown, CSV and parquet, and draw the plots.

    ``summary`` has every data set, ``verdict`` ours against the best native objectives, and ``queries`` the value of
    each test query.
    """
    frame = chosen(results)
    values = by_query(frame)
    table = summary(values)
    metrics = list(dict.fromkeys(frame["metric"]))
    caption = CAPTION.format(BETTER, WORSE, alpha, OWN_BEST)
    texts = []
    for data, block in table.groupby("data", sort=False):
        queries = int(block["queries"].max())
        title = f"{data}, {queries:,} test queries"
        lines = [["library", "objective", *metrics], *rows_of(block, metrics, alpha)]
        texts.append(f"**{title}**\n\n{pipe_table(lines)}")
        show(console, lines, title)
    console.print(caption)
    keys = zip(frame["data"], frame["library"], frame["label"], frame["metric"], strict=True)
    if lost := dict.fromkeys(f"{key[1]} {key[2]}" for key in keys if key not in values):
        caption += f" Left out, because a fold has no result: {', '.join(lost)}."
        console.print(f"[red]left out, because a fold has no result:[/] {', '.join(lost)}")
    against = verdict(values)
    if not against.empty:
        head, *lines = best_lines(against, alpha)
        by_library = sorted(lines, key=lambda line: line[0])
        show(console, [head, *by_library], "ours against each library's best native objective")
    with_choice = values | by_query(on_vali(frame))
    ours_named = lead(with_choice)
    texts = [
        text
        for text in ("" if ours_named.empty else lead_markdown(ours_named), verdict_markdown(against, alpha), *texts)
        if text
    ]
    files = [out / name for name in ("summary.csv", "summary.md", "queries.parquet")]
    write_csv(table, files[0])
    with replacing(files[1]) as new:
        new.write_text("\n\n".join([*texts, caption]) + "\n")
    with replacing(files[2]) as new:
        long_table(with_choice).to_parquet(new, index=False)
    for name, found in (
        ("lead.csv", ours_named),
        ("verdict.csv", against),
        ("chosen.csv", settings_on_vali(frame)),
    ):
        if not found.empty:
            files.append(out / name)
            write_csv(found, files[-1])
    files.append(out / "gaps.md")
    with replacing(files[-1]) as new:
        new.write_text(gap_table(gap_values(frame)))
    if plots:
        from benchmarks.figures import draw

        files += draw(frame, table, gap_values(frame), ours_named, against, out)
    return files


def long_table(values: Values) -> pd.DataFrame:
    """A line for each data set, library, objective, metric and query."""
    keys = "data", "library", "objective", "metric"
    parts = [pd.DataFrame({**dict(zip(keys, key, strict=True)), "query": range(len(v)), "value": v})
             for key, v in values.items()]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def settings_on_vali(frame: pd.DataFrame) -> pd.DataFrame:
    """The learning rate and parameters that vali chose for each training; empty if there was no choice."""
    columns = ["learning_rate", "params"]
    if not (frame["params"] != "").any() and frame["learning_rate"].nunique() < 2:
        return frame[:0]
    return frame[["data", "fold", "seed", "library", "label", "metric", *columns, "vali"]]


def verdict(values: Values) -> pd.DataFrame:
    """One line per library, metric and objective of ours: difference from the best native one, its error, and p.

    Several data sets are pooled. ``best`` marks the largest mean among ours.
    """
    whole = whole_of(values)
    records: list[dict[str, Any]] = []
    for library, metric in dict.fromkeys((k[1], k[3]) for k in values if k[1] and k[0] == whole):
        block = block_of(values, whole, library, metric)
        natives = {label: v for label, v in block.items() if is_native(library, label)}
        ours = {label: v for label, v in block.items() if label not in natives}
        if not natives or not ours:
            continue
        rival, best = best_of(natives), best_of(ours)
        for label, of in differences(ours, block[rival]).items():
            records.append({
                "data": whole, "library": library, "metric": metric, "objective": label, "best": label == best,
                "mean": np.nanmean(block[label]), "native": rival, "native_mean": np.nanmean(block[rival]), **of,
            })  # fmt: skip
    return pd.DataFrame.from_records(records)


def best_lines(table: pd.DataFrame, alpha: float) -> list[list[str]]:
    """The best of ours in each library by each metric; the first line is the head."""
    head = ["library", "metric", "best native", "its mean", "best of ours", "its mean", "difference", "p"]
    return [head, *(
        [r["library"], r["metric"], r["native"], f"{r['native_mean']:.4f}", r["objective"], f"{r['mean']:.4f}",
         _difference(r, alpha), p_of(r["p"])]
        for _, r in table[table["best"]].iterrows()
    )]  # fmt: skip


def verdict_markdown(table: pd.DataFrame, alpha: float) -> str:
    """The best of ours in each library by each metric, then all of ours; empty without natives or without ours."""
    if table.empty:
        return ""
    metrics = list(dict.fromkeys(table["metric"]))
    every = [["library", "objective", *metrics]]
    for (library, objective), part in table.groupby(["library", "objective"], sort=False):
        by = part.set_index("metric")
        cells = [f"{_difference(by.loc[m], alpha)}, p {p_of(by.loc[m, 'p'])}" if m in by.index else "" for m in metrics]
        every.append([str(library), str(objective), *cells])
    data = table["data"].iloc[0]
    return "\n\n".join([
        f"**Verdict: ours against each library's best native objective, {data}**",
        pipe_table(best_lines(table, alpha), [False, False, False, True, False, True, True, True]),
        f"**All of ours, {data}**",
        pipe_table(every),
        EXPLANATION.format(BETTER, WORSE, alpha),
    ])  # fmt: skip


def _difference(row: Any, alpha: float) -> str:
    return marked(signed(row["difference"], row["se"]), mark(row["difference"], row["p"], alpha))


def gap_values(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per data set, library, label and metric: train value, gap, and the gap's error over folds and seeds."""
    part = frame[frame["library"] != ""]
    test = part["values"].map(np.nanmean)
    each = part.assign(train=part["train"].astype(float), value=part["train"].astype(float) - test)
    by = each.groupby(["data", "library", "label", "metric"], sort=False)
    return by.agg(train=("train", "mean"), value=("value", "mean"), se=("value", "sem")).reset_index()


def gap_table(table: pd.DataFrame) -> str:
    """The gaps as Markdown, a table for each data set."""
    metrics = list(dict.fromkeys(table["metric"]))
    texts = []
    for data, block in table.groupby("data", sort=False):
        lines = [["library", "objective", *metrics]]
        for (library, label), rows in block.groupby(["library", "label"], sort=False):
            by = rows.set_index("metric")
            cells = [f"{by.loc[m, 'train']:.4f} ({by.loc[m, 'value']:.4f})" if m in by.index else "" for m in metrics]
            lines.append([str(library), named(str(library), str(label)), *cells])
        texts.append(f"**Generalisation, {data}**\n\n{pipe_table(lines)}")
    return "\n\n".join([*texts, NOTE]) + "\n"

"""A study's results as a printed table, markdown, CSV and parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from benchmarks.gaps import gap_table, gap_values
from benchmarks.lead import lead
from benchmarks.lead import markdown as lead_markdown
from benchmarks.verdict import markdown, sentences, verdict
from ltr_objectives._files import replacing
from ltr_objectives.workbench.statistics import BETTER, WORSE
from ltr_objectives.workbench.summary import CAPTION, Values, by_query, chosen, rows_of, summary
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import pipe_table, show


def write(
    results: Sequence[dict[str, Any]], out: Path, alpha: float, console: Console, *, plots: bool = True
) -> list[Path]:
    """Print the tables, write them as markdown, CSV and parquet, and draw the plots.

    ``summary`` has every data set, ``verdict`` ours against the best native objectives, ``queries`` the value of each
    test query, and ``tuned`` the chosen hyper-parameters.
    """
    frame = chosen(results)
    values = by_query(frame)
    table = summary(values)
    metrics = list(dict.fromkeys(frame["metric"]))
    caption = CAPTION.format(BETTER, WORSE, alpha)
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
        caption += f" Left out, since a fold has no result: {', '.join(lost)}."
        console.print(f"[red]left out, since a fold has no result:[/] {', '.join(lost)}")
    against = verdict(values)
    for line in sentences(against, alpha):
        console.print(line, markup=False)
    named = lead(values)
    texts = [text for text in ("" if named.empty else lead_markdown(named), markdown(against, alpha), *texts) if text]
    files = [out / name for name in ("summary.csv", "summary.md", "queries.parquet")]
    write_csv(table, files[0])
    with replacing(files[1]) as new:
        new.write_text("\n\n".join([*texts, caption]) + "\n")
    with replacing(files[2]) as new:
        long_table(values).to_parquet(new, index=False)
    for name, found in (
        ("lead.csv", named),
        ("verdict.csv", against),
        ("tuned.csv", tuned(results)),
        ("chosen.csv", on_vali(frame)),
    ):
        if not found.empty:
            files.append(out / name)
            write_csv(found, files[-1])
    files.append(out / "gaps.md")
    with replacing(files[-1]) as new:
        new.write_text(gap_table(gap_values(frame)))
    if plots:
        from benchmarks.figures import draw

        files += draw(frame, table, named, out)
    return files


def long_table(values: Values) -> pd.DataFrame:
    """A line for each data set, library, objective, metric and query."""
    keys = "data", "library", "objective", "metric"
    parts = [pd.DataFrame({**dict(zip(keys, key, strict=True)), "query": range(len(v)), "value": v})
             for key, v in values.items()]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def on_vali(frame: pd.DataFrame) -> pd.DataFrame:
    """The learning rate and parameters that vali chose for each training; empty if there was no choice."""
    columns = ["learning_rate", "params"]
    if not (frame["params"] != "").any() and frame["learning_rate"].nunique() < 2:
        return frame[:0]
    return frame[["data", "fold", "seed", "library", "label", "metric", *columns, "vali"]]


def tuned(results: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The hyper-parameters that the search found, one line for each training."""
    return pd.DataFrame.from_records(
        [
            {"data": r["fold"][0], "fold": Path(r["fold"][1]).name, "seed": r["fold"][2]}
            | {"library": r["library"], "objective": r["objective"], "metric": r["metrics"][0], "trials": r["trials"]}
            | r["tuned"] | {"vali": r["vali"][r["metrics"][0]]}
            for r in results if "tuned" in r
        ]
    )  # fmt: skip

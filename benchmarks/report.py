"""A study's results as a printed table, markdown, CSV and parquet, and ``python -m benchmarks report`` over studies."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from rich.console import Console
from typer import Option, echo

from benchmarks.cells import write_whole
from benchmarks.figures import lead_dots, write_figure
from benchmarks.lead import (
    CHOICES,
    against,
    against_markdown,
    by_objective,
    lead,
    lead_markdown,
    objectives_markdown,
    on_vali,
    over_seeds,
)
from benchmarks.provenance import provenance
from benchmarks.publish import pipe_table
from benchmarks.summary import POOLED, Key, Values, by_query, chosen, summary
from ltr_objectives._files import replacing
from ltr_objectives.errors import require
from ltr_objectives.statistics import BETTER, WORSE
from ltr_objectives.workbench.contest import ALPHA, CAPTION, OWN_BEST, rows_of
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import show

STUDY = (
    "Folder of a study, with its queries.parquet, or KIND=FOLDER, where KIND names its kind of data; may be repeated. "
    "Of several folders of a kind the first has the native objectives."
)
BESIDE = (
    "Compare every objective with this label instead, by KIND: metrics, libraries and kinds are one family of tests."
)


def write(results: Sequence[dict[str, Any]], out: Path, console: Console) -> list[Path]:
    """Print the tables, and write them as markdown, CSV and parquet.

    ``summary`` has every data set, ``lead`` what our names give against native objectives, and ``queries`` the value
    of each test query.
    """
    frame = chosen(results)
    values = by_query(frame)
    table = summary(values)
    metrics = list(dict.fromkeys(frame["metric"]))
    caption = CAPTION.format(BETTER, WORSE, ALPHA, OWN_BEST)
    texts = []
    for data, block in table.groupby("data", sort=False):
        title = f"{data}, {int(block['queries'].max()):,} test queries"
        lines = [["library", "objective", *metrics], *rows_of([*block.itertuples()], metrics)]
        texts.append(f"**{title}**\n\n{_table(lines)}")
        show(console, lines, title)
    keys = zip(frame["data"], frame["library"], frame["label"], frame["metric"], strict=True)
    if lost := dict.fromkeys(f"{key[1]} {key[2]}" for key in keys if key not in values):
        caption += f" Left out, because a fold has no result: {', '.join(lost)}."
    console.print(caption)
    with_choice = values | by_query(on_vali(frame))
    ours_named = lead(with_choice)
    texts = ["" if ours_named.empty else lead_markdown(ours_named), *texts, caption]
    with replacing(out / "summary.md") as new:
        new.write_text("\n\n".join(filter(None, texts)) + "\n")
    with replacing(out / "queries.parquet") as new:
        long_table(with_choice).to_parquet(new, index=False)
    files = [out / name for name in ("summary.md", "queries.parquet")]
    settings = settings_on_vali(pd.concat([frame, on_vali(frame)]))
    csv = {"summary": table, "lead": ours_named, "chosen": settings, "seeds": over_seeds(frame)}
    for name, found in csv.items():
        path = out / f"{name}.csv"
        path.unlink(missing_ok=True)  # of an earlier run, with other objectives
        if not found.empty:
            write_csv(found, path)
            files.append(path)
    return files


def report(
    study: Annotated[list[str], Option(help=STUDY)],
    beside: Annotated[str, Option("--against", help=BESIDE)] = "",
    out: Annotated[Path, Option(help="Folder for the tables and the picture.")] = Path("results/lead"),
) -> None:
    """Compare what our names give with the best native objectives, over one or several studies, by kind of data."""
    parts, defaults, document = _read(study)
    out.mkdir(parents=True, exist_ok=True)
    if beside:
        table = against(beside, parts)
        write_csv(table, out / "against.csv")
        text = against_markdown(table, beside)
    else:
        values = {key: v for part in parts.values() for key, v in part.items()}
        kinds = {key[0]: kind for kind, part in parts.items() if kind for key in part}
        table, objectives = lead(values, kinds, defaults), by_objective(values, kinds)
        need = "native objectives, and what objective_for names for a metric, such as yetiloss:ndcg for map"
        require(not table.empty, f"the studies need {need}")
        write_csv(table, out / "lead.csv")
        write_csv(objectives, out / "objectives.csv")
        text = lead_markdown(table) + "\n\n" + objectives_markdown(objectives)
        picture = lead_dots(table[table["data"] != POOLED])
        echo(f"written: {write_figure(picture, out / 'lead.png')}")
    write_whole(out / "study.json", document, indent=1)
    with replacing(out / "summary.md") as new:
        new.write_text(text + "\n")
    echo(text)


def _read(studies: Sequence[str]) -> tuple[dict[str, Values], dict[Key, np.ndarray], dict[str, Any]]:
    """Read studies; return values by kind, for each training whether it had the defaults, and commands and versions."""
    parts: dict[str, Values] = {}
    defaults: dict[Key, np.ndarray] = {}
    document = provenance() | {"studies": {}}
    for each in studies:
        kind, _, folder = each.rpartition("=")
        of = json.loads((Path(folder) / "study.json").read_text())
        document["versions"] |= of["versions"]
        require(Path(folder).name not in document["studies"], f"two studies are called {Path(folder).name}; rename one")
        document["studies"][Path(folder).name] = of["command"]
        long = pd.read_parquet(Path(folder) / "queries.parquet")
        if (path := Path(folder) / "chosen.csv").exists():
            for key, part in pd.read_csv(path).groupby(["data", "library", "label", "metric"], sort=False):
                defaults[key] = part["params"].str.contains("settings=defaults", na=False).to_numpy()
        trained = long[(long["data"] != POOLED) & (long["library"] != "")].astype({"value": float})
        for key, part in trained.groupby(["data", "library", "objective", "metric"], sort=False):
            found = parts.setdefault(kind, {})
            require(key[2] in CHOICES or key not in found, f"two studies of one kind have {', '.join(key)}")
            found.setdefault(key, part.sort_values("query")["value"].to_numpy())  # choices are those of the first study
    return parts, defaults, document


def long_table(values: Values) -> pd.DataFrame:
    """Return a line for each data set, library, objective, metric and query."""
    keys = "data", "library", "objective", "metric"
    parts = [pd.DataFrame({**dict(zip(keys, key, strict=True)), "query": range(len(v)), "value": v})
             for key, v in values.items()]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def settings_on_vali(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the learning rate and parameters that validation chose for each training; empty if there was no choice."""
    columns = ["learning_rate", "params"]
    if not (frame["params"] != "").any() and frame["learning_rate"].nunique() < 2:
        return frame[:0]
    named = frame.assign(fold=[Path(place).name for place in frame["fold"]])
    return named[["data", "fold", "seed", "library", "label", "metric", *columns, "vali"]]


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Format library, objective and numbers in Markdown."""
    return pipe_table(lines, [i > 1 for i in range(len(lines[0]))])

"""The results of a comparison as a printed table, as CSV and as JSON."""

import importlib.metadata
import json
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from rich import box
from rich.table import Table

from benchmarks.experiment import Row
from ltr_objectives._files import replacing
from ltr_objectives.kernels.threads import available_threads


def printed(rows: Sequence[Row], title: str, caption: str) -> Table:
    """One line for each library and objective; the best of a library is bold."""
    metrics = list(rows[0].test)
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for name in ("library", "objective"):
        table.add_column(name, overflow="fold")
    for name in (*metrics, "trees", "seconds"):
        table.add_column(name, justify="right", no_wrap=True, min_width=max(5, len(name), 8 * (name in metrics)))
    for library in dict.fromkeys(row.library for row in rows):
        block = [row for row in rows if row.library == library]
        best = {m: max(row.test[m] for row in block) for m in metrics}
        for row in block:
            kind = " [cyan](native)[/]" if row.native else ""
            cells = [_cell(row, m, row.test[m] == best[m]) for m in metrics]
            first = library if row is block[0] else ""
            table.add_row(
                first, row.objective + kind, *cells, str(row.best_iteration), f"{row.seconds:.1f}",
                end_section=row is block[-1],
            )  # fmt: skip
    return table


def _cell(row: Row, metric: str, best: bool) -> str:
    value = f"{row.test[metric]:.4f}"
    mark = row.mark.get(metric) or " "
    return (f"[bold]{value}[/]" if best else value) + f" {mark}"


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """The same, and p values, with one column each."""
    records = []
    for row in rows:
        kind = "reference" if row.reference else "native" if row.native else "ours"
        record: dict[str, Any] = {"library": row.library, "objective": row.objective, "kind": kind}
        for metric, value in row.test.items():
            record |= {
                metric: value, f"{metric} p": row.p.get(metric), f"{metric} mark": row.mark.get(metric, ""),
            }  # fmt: skip
        records.append(record | {"best_iteration": row.best_iteration, "seconds": row.seconds})
    return pd.DataFrame.from_records(records)


def save(rows: Sequence[Row], settings: dict[str, Any], out: Path, name: str) -> list[Path]:
    """Write ``name.csv`` and ``name.json``; the latter also has the settings, the versions and the curves."""
    out.mkdir(parents=True, exist_ok=True)
    csv, full = out / f"{name}.csv", out / f"{name}.json"
    with replacing(csv) as new:
        frame(rows).to_csv(new, index=False)
    document = {"settings": settings, "versions": versions(), "rows": [asdict(row) for row in rows]}
    with replacing(full) as new:
        new.write_text(json.dumps(document, indent=1))
    return [csv, full]


def provenance() -> dict[str, Any]:
    """The command that is running, and what it runs on."""
    return {"command": f"python -m benchmarks {shlex.join(sys.argv[1:])}", "versions": versions()}


def versions(libraries: Sequence[str] = ("xgboost", "lightgbm", "catboost")) -> dict[str, str]:
    """Of the processors, of Python, and of the packages that matter to the results."""
    found = {"processors": f"{available_threads()} x {_processor()}", "python": platform.python_version()}
    for package in ("ltr-objectives", "numpy", "numba", *libraries):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def versions_of(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What the trainings of a study record, which may have gone on with other versions than it began with.

    >>> versions_of([{"versions": {"xgboost": "3.1.0"}}, {"versions": {"xgboost": "3.2.0"}}, {}])
    {'xgboost': '3.1.0 in 1 and 3.2.0 in 1 of the trainings', 'versions': 'not recorded in 1 of the trainings'}
    """
    counts: dict[str, Counter[str]] = {}
    for result in results:
        for package, version in result.get("versions", {}).items():
            counts.setdefault(package, Counter())[version] += 1
    found = {
        package: " and ".join(f"{version} in {n}" for version, n in of.items()) + " of the trainings"
        if len(of) > 1
        else next(iter(of))
        for package, of in counts.items()
    }
    unknown = sum("versions" not in result for result in results)
    return found | ({"versions": f"not recorded in {unknown} of the trainings"} if unknown else {})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

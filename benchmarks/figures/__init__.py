"""The pictures of a study, as PNG beside its tables. To add one, write its file and its lines below."""

from pathlib import Path

import pandas as pd

from benchmarks.figures.curves import learning_curves
from benchmarks.figures.dots import gap_dots, metric_dots, verdict_dots
from benchmarks.figures.lead import lead_dots as lead_dots
from benchmarks.figures.style import distinct


def draw(
    frame: pd.DataFrame, summary: pd.DataFrame, gaps: pd.DataFrame, named: pd.DataFrame, verdict: pd.DataFrame,
    out: Path,
) -> list[Path]:  # fmt: skip
    """Draw all pictures of the trainings, their summary, their gaps, what our names give, and the verdict."""
    written: list[Path | None] = []
    for metric in distinct(frame["metric"]):
        written += [learning_curves(frame, data, metric, out) for data in distinct(frame["data"])]
        if (gaps["metric"] == metric).any():
            written += [metric_dots(summary, metric, out), gap_dots(gaps, metric, out)]
    if not named.empty:
        written.append(lead_dots(named, out))
    if not verdict.empty:
        written.append(verdict_dots(verdict, out))
    return [path for path in written if path is not None]

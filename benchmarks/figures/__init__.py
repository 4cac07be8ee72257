"""The pictures of a study, as PNG beside its tables."""

from pathlib import Path

import pandas as pd

from benchmarks.figures.curves import learning_curves
from benchmarks.figures.dots import lead_dots, metric_dots, verdict_dots
from benchmarks.figures.style import distinct


def draw(
    frame: pd.DataFrame, summary: pd.DataFrame, named: pd.DataFrame, verdict: pd.DataFrame, out: Path
) -> list[Path]:
    """Draw all pictures of the trainings, their summary, what our names give, and the verdict."""
    trained = frame[frame["library"] != ""]
    written = [
        learning_curves(frame, data, metric, out)
        for metric in distinct(trained["metric"]) for data in distinct(trained["data"])
    ]  # fmt: skip
    written += [metric_dots(summary, metric, out) for metric in distinct(trained["metric"])]
    written += [] if named.empty else [lead_dots(named, out)]
    return written + ([] if verdict.empty else [verdict_dots(verdict, out)])

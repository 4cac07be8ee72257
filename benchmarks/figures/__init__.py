"""The pictures of a study, as PNG beside its tables. To add one, write its file and its lines below."""

from pathlib import Path

import pandas as pd

from benchmarks.figures.curves import learning_curves
from benchmarks.figures.dots import metric_dots
from benchmarks.figures.effects import effect_plot, find_effects
from benchmarks.figures.gaps import gap_dots, gap_table, gap_values
from benchmarks.figures.lead import lead_dots
from benchmarks.figures.ranks import rank_diagrams
from benchmarks.figures.style import distinct, ours_of
from benchmarks.lead import lead
from ltr_objectives._files import replacing
from ltr_objectives.workbench.summary import Values


def draw(frame: pd.DataFrame, values: Values, summary: pd.DataFrame, out: Path, alpha: float) -> list[Path]:
    """Draw all pictures; ``frame`` has the trainings, ``summary`` their results over all test queries."""
    sets = distinct(frame["data"])
    table = gap_values(frame)
    written: list[Path | None] = []
    for metric in distinct(frame["metric"]):
        part = frame[frame["metric"] == metric]
        written += [learning_curves(frame, data, metric, out) for data in sets]
        if (table["metric"] == metric).any():
            written += [metric_dots(summary, metric, out), gap_dots(table, metric, out)]
        written.append(rank_diagrams(values, metric, out, alpha))
        for effect in find_effects(ours_of(part), metric):
            written.append(effect_plot(values, effect, metric, out))
            if effect.option == "hessian":
                written += [learning_curves(frame, data, metric, out, effect) for data in sets]
    if not (named := lead(values)).empty:
        written.append(lead_dots(named, out))
    gap_file = out / "gaps.md"
    with replacing(gap_file) as new:
        new.write_text(gap_table(table))
    return [gap_file, *(path for path in written if path is not None)]

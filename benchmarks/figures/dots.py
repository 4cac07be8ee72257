"""Dots by objective, the libraries one below the other, with a panel for each data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from benchmarks.figures.style import (
    INK,
    LIBRARY_COLOURS,
    PALE,
    blank,
    distinct,
    libraries_of,
    library_title,
    natives_of,
    ours_of,
    quiet,
    save,
    shown,
)  # fmt: skip

LINE, GAP = 0.14, 0.1  # inches


def grouped(table: pd.DataFrame, metric: str, title: str, out: Path, name: str, zeros: dict[str, float]) -> Path:
    """Draw ``value`` and its 95% interval of ``1.96 se`` for each data, library and label.

    ``zeros`` is where each data set has a vertical line.
    """
    sets, libraries = distinct(table["data"]), libraries_of(table)
    lines: list[tuple[str, list[str]]] = [(o, [*libraries]) for o in ours_of(table)]
    lines += [(n, [library]) for library in libraries for n in natives_of(table, library)]
    values = table.set_index(["data", "library", "label"])[["value", "se"]]
    offsets, ticks, y = [], [], 0.0
    for label, group in lines:
        present = [x for x in group if any((data, x, label) in values.index for data in sets)]
        offsets.append([(library, y + i * LINE) for i, library in enumerate(present)])
        ticks.append(y + (len(present) - 1) * LINE / 2)
        y += len(present) * LINE + GAP
    figure = blank(3.2 + 2.3 * len(sets), max(2.2, y + 1.3), title)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, data in zip(axes, sets, strict=True):
        for (label, _), places in zip(lines, offsets, strict=True):
            for library, at in places:
                if (data, library, label) not in values.index:
                    continue
                value, se = values.loc[(data, library, label)]
                native = label in natives_of(table, library)
                look: dict[str, Any] = {"color": LIBRARY_COLOURS.get(library, INK), "mfc": "white" if native else None}
                half = 0.0 if np.isnan(se) else 1.96 * se
                ax.errorbar(value, at, xerr=half or None, fmt="o", ms=4.5, lw=1.3, **look)
        ax.axvline(zeros[data], color=INK, lw=0.8)
        ax.set_title(shown(data, metric, 24), loc="left", fontsize=10, fontweight="bold", color=INK)
        quiet(ax)
        ax.grid(axis="y", lw=0)
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.tick_params(axis="x", labelsize=8)
        ax.locator_params(axis="x", nbins=5)
    axes[0].set_yticks(ticks, [shown(label, metric) for label, _ in lines], fontsize=8.5)
    axes[0].set_ylim(y - GAP, -LINE)
    handles = [Line2D([], [], color=LIBRARY_COLOURS.get(x, INK), marker="o", label=library_title(x)) for x in libraries]
    handles.append(Line2D([], [], color=INK, marker="o", mfc="white", label="native"))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=len(handles), fontsize=9, frameon=False, labelcolor=INK
    )
    return save(figure, out, name, metric)


def metric_dots(summary: pd.DataFrame, metric: str, out: Path) -> Path:
    """The test metric of every objective, and a line at the value of a model that cannot tell documents apart."""
    part = summary[summary["metric"] == metric]
    constant = part[part["library"] == ""].set_index("data")["mean"]
    table = part[part["library"] != ""].rename(columns={"objective": "label", "mean": "value"})
    zeros = {data: float(constant.get(data, np.nan)) for data in distinct(table["data"])}
    title = f"test {metric} with 95% intervals over queries, and a line at that of a constant model"
    return grouped(table, metric, title, out, "dots", zeros)

"""Dots by objective, the libraries one below the other, with a panel for each data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from benchmarks.figures import style

LINE, GAP = 0.14, 0.1  # inches


def grouped(table: pd.DataFrame, metric: str, title: str, out: Path, name: str, zeros: dict[str, float]) -> Path:
    """Draw ``value`` and its 95% interval of ``1.96 se`` for each data, library and label.

    ``zeros`` is where each data set has a vertical line.
    """
    sets, libraries = style.distinct(table["data"]), style.libraries_of(table)
    lines: list[tuple[str, list[str]]] = [(o, [*libraries]) for o in style.ours_of(table)]
    lines += [(n, [library]) for library in libraries for n in style.natives_of(table, library)]
    values = table.set_index(["data", "library", "label"])[["value", "se"]]
    colours, offsets, ticks, y = style.LIBRARY_COLOURS, [], [], 0.0
    for label, group in lines:
        present = [x for x in group if any((data, x, label) in values.index for data in sets)]
        offsets.append([(library, y + i * LINE) for i, library in enumerate(present)])
        ticks.append(y + (len(present) - 1) * LINE / 2)
        y += len(present) * LINE + GAP
    figure = style.blank(3.2 + 1.9 * len(sets), max(2.2, y + 1.3), title)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, data in zip(axes, sets, strict=True):
        for (label, _), places in zip(lines, offsets, strict=True):
            for library, at in places:
                if (data, library, label) not in values.index:
                    continue
                value, se = values.loc[(data, library, label)]
                fill = "white" if label in style.natives_of(table, library) else None
                look: dict[str, Any] = {"color": colours.get(library, style.INK), "mfc": fill}
                half = 0.0 if np.isnan(se) else 1.96 * se
                ax.errorbar(value, at, xerr=half or None, fmt="o", ms=4.5, lw=1.3, **look)
        ax.axvline(zeros[data], color=style.INK, lw=0.8)
        ax.set_title(style.shown(data, metric, 24), loc="left", fontsize=11.5, fontweight="bold", color=style.INK)
        style.quiet(ax)
        ax.grid(axis="y", lw=0)
        ax.grid(axis="x", color=style.PALE, lw=0.6)
        ax.tick_params(axis="x", labelsize=10)
        ax.locator_params(axis="x", nbins=4)
    axes[0].set_yticks(ticks, [style.shown(label, metric or "{metric}") for label, _ in lines], fontsize=10.5)
    axes[0].set_ylim(y - GAP, -LINE)
    handles = [
        Line2D([], [], color=colours.get(x, style.INK), marker="o", label=style.library_title(x)) for x in libraries
    ]
    if any(style.natives_of(table, library) for library in libraries):
        handles.append(Line2D([], [], color=style.INK, marker="o", mfc="white", label="native"))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=len(handles), fontsize=10, frameon=False, labelcolor=style.INK
    )
    return style.save(figure, out, *filter(None, (name, metric)))


def metric_dots(summary: pd.DataFrame, metric: str, out: Path) -> Path:
    """The test metric of every objective, and a line at the value of a model that scores all documents alike."""
    part = summary[summary["metric"] == metric]
    constant = part[part["library"] == ""].set_index("data")["mean"]
    table = part[part["library"] != ""].rename(columns={"objective": "label", "mean": "value"})
    zeros = {data: float(constant.get(data, np.nan)) for data in style.distinct(table["data"])}
    title = f"test {metric} with 95% intervals over queries, and a line at that of a constant model"
    return grouped(table, metric, title, out, "dots", zeros)


def verdict_dots(verdict: pd.DataFrame, out: Path) -> Path:
    """Every objective of ours, minus the library's best native one, with a panel for each metric."""
    names = {"objective": "label", "difference": "value"}
    table = verdict.drop(columns="data").rename(columns={**names, "metric": "data"})
    title = "Ours minus the library's best native objective, with 95% intervals over queries"
    return grouped(table, "", title, out, "verdict", dict.fromkeys(table["data"], 0.0))


def gap_dots(table: pd.DataFrame, metric: str, out: Path) -> Path:
    """Draw the gaps of one metric, with 1.96 standard errors over folds and seeds if there are several."""
    part = table[table["metric"] == metric]
    errors = "" if part["se"].isna().all() else " and 1.96 standard errors"
    title = f"{metric}: train minus test, means{errors} over folds and seeds"
    return grouped(part, metric, title, out, "gaps", dict.fromkeys(part["data"], 0.0))

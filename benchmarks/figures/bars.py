"""Bars by objective, the libraries side by side, with a panel for each data set."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.patches import Patch

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

BAR, GAP = 0.125, 0.09  # inches


def grouped(table: pd.DataFrame, metric: str, title: str, out: Path, name: str, starts: dict[str, float]) -> Path:
    """Draw ``value`` and its 95% interval of ``1.96 se`` for each data, library and label.

    ``starts`` is where the bars of each data set begin.
    """
    sets, libraries = distinct(table["data"]), libraries_of(table)
    lines: list[tuple[str, list[str]]] = [(o, [*libraries]) for o in ours_of(table)]
    lines += [(n, [library]) for library in libraries for n in natives_of(table, library)]
    values = table.set_index(["data", "library", "label"])[["value", "se"]]
    offsets, ticks, y = [], [], 0.0
    for label, group in lines:
        present = [x for x in group if any((data, x, label) in values.index for data in sets)]
        offsets.append([(library, y + i * BAR) for i, library in enumerate(present)])
        ticks.append(y + (len(present) - 1) * BAR / 2)
        y += len(present) * BAR + GAP
    figure = blank(3.2 + 2.3 * len(sets), max(2.2, y + 1.3), title)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, data in zip(axes, sets, strict=True):
        ends = []
        for (label, _), places in zip(lines, offsets, strict=True):
            for library, at in places:
                if (data, library, label) not in values.index:
                    continue
                value, se = values.loc[(data, library, label)]
                native = label in natives_of(table, library)
                look: dict[str, Any] = {"color": LIBRARY_COLOURS.get(library, INK)}
                if native:
                    look = {"facecolor": "white", "edgecolor": look["color"], "hatch": "//////", "lw": 0.8}
                ax.barh(at, value - starts[data], left=starts[data], height=0.86 * BAR, **look)
                half = 1.96 * (0.0 if np.isnan(se) else se)
                if half:
                    ax.plot([value - half, value + half], [at, at], color=INK, lw=1.0, solid_capstyle="butt")
                ends += [value - half, value + half, starts[data]]
        room = 0.04 * (max(ends) - min(ends) or 1.0)
        ax.set_xlim(min(ends) if min(ends) == starts[data] else min(ends) - room, max(ends) + room)
        ax.set_title(shown(data, metric, 24), loc="left", fontsize=10, fontweight="bold", color=INK)
        quiet(ax)
        ax.grid(axis="y", lw=0)
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.tick_params(axis="x", labelsize=8)
        ax.locator_params(axis="x", nbins=5)
    axes[0].set_yticks(ticks, [shown(label, metric) for label, _ in lines], fontsize=8.5)
    axes[0].set_ylim(y - GAP, -BAR)
    handles = [Patch(color=LIBRARY_COLOURS.get(x, INK), label=library_title(x)) for x in libraries]
    handles.append(Patch(facecolor="white", edgecolor=INK, hatch="//////", label="native"))
    figure.legend(
        handles=handles, loc="outside lower left", ncols=len(handles), fontsize=9, frameon=False, labelcolor=INK
    )
    return save(figure, out, name, metric)


def metric_bars(summary: pd.DataFrame, metric: str, out: Path) -> Path:
    """The test metric of every objective; bars begin at the value of a model that cannot tell documents apart."""
    part = summary[summary["metric"] == metric]
    constant = part[part["library"] == ""].set_index("data")["mean"]
    table = part[part["library"] != ""].rename(columns={"objective": "label", "mean": "value"})
    starts = {data: float(constant.get(data, 0.0)) for data in distinct(table["data"])}
    title = f"test {metric} with 95% intervals over queries, from the value of a constant model"
    return grouped(table, metric, title, out, "bars", starts)

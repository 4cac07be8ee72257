"""Dots with intervals, by metric."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from benchmarks.figures import style
from benchmarks.summary import POOLED


def lead_dots(table: pd.DataFrame, out: Path) -> Path:
    """Draw the lead of our default objectives over the native objective that vali chose.

    Each metric has a row, each library a panel. Dots of the first kind of data are hollow.
    """
    table = table[table["data"] != POOLED]
    metrics, libraries, kinds = (style.distinct(table[name]) for name in ("metric", "library", "data"))
    colours = style.colours_of(style.distinct(table["ours"]))
    title = "Thousandths above the library's best objective"
    figure = style.blank(4.6, 0.45 * len(metrics) + 1.7, title)
    axes: Any = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    looks: dict[str, Any] = {kind: {"mfc": "white" if kind == kinds[0] else None} for kind in kinds}
    for ax, library in zip(axes, libraries, strict=True):
        for _, each in table[table["library"] == library].iterrows():
            row = metrics.index(each["metric"]) + 0.26 * (kinds.index(each["data"]) - (len(kinds) - 1) / 2)
            look = {"color": colours[each["ours"]], **looks[each["data"]]}
            ax.errorbar(1000 * each["difference"], row, xerr=1960 * each["se"], fmt="o", ms=6.5, lw=1.6, **look)
        _finish(ax, 0.0, style.library_title(library))
    axes[0].set_yticks(range(len(metrics)), metrics)
    axes[0].set_ylim(len(metrics) - 0.5, -0.5)
    handles = [Line2D([], [], color=colour, lw=4, label=objective) for objective, colour in colours.items()]
    handles += [Line2D([], [], color=style.INK, marker="o", label=kind, **look) for kind, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, fontsize=9, frameon=False)
    return style.write(figure, out / "lead.png")


def _finish(ax: Any, zero: float, title: str) -> None:
    ax.axvline(zero, color=style.INK, lw=0.8)
    ax.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=style.INK)
    style.quiet(ax)
    ax.grid(axis="y", lw=0)
    ax.grid(axis="x", color=style.PALE, lw=0.6)
    ax.tick_params(axis="x", labelsize=10)
    ax.locator_params(axis="x", nbins=4)

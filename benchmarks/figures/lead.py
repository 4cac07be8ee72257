"""The metric of what our names train, minus the library's best native objective."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.lines import Line2D

from benchmarks.figures.style import INK, PALE, blank, colours_of, distinct, library_title, save
from benchmarks.summary import POOLED


def lead_dots(table: pd.DataFrame, out: Path) -> Path:
    """A row for each metric and a panel for each library, with 95% intervals; dots of the first kind are hollow."""
    table = table[table["data"] != POOLED].replace({"ours": {"yetiloss": "yetiloss:ndcg@10"}})
    metrics, libraries, kinds = (distinct(table[name]) for name in ("metric", "library", "data"))
    colours = colours_of(distinct(table["ours"]))
    figure = blank(4.6, 0.45 * len(metrics) + 1.7, "Thousandths above the library's best objective")
    axes: Any = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    for ax, library in zip(axes, libraries, strict=True):
        for i, kind in enumerate(kinds):
            part = table[(table["library"] == library) & (table["data"] == kind)]
            rows = [metrics.index(metric) + 0.26 * (i - (len(kinds) - 1) / 2) for metric in part["metric"]]
            for (_, each), row in zip(part.iterrows(), rows, strict=True):
                style = {"color": colours[each["ours"]], "mfc": "white" if kind == kinds[0] else None}
                ax.errorbar(1000 * each["difference"], row, xerr=1960 * each["se"], fmt="o", ms=6.5, lw=1.6, **style)
        ax.axvline(0.0, color=INK, lw=1)
        ax.set_yticks(range(len(metrics)), metrics)
        ax.locator_params(axis="x", nbins=4)
        ax.set_ylim(len(metrics) - 0.5, -0.5)
        ax.set_title(library_title(library), loc="left", fontsize=11, color=INK)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(PALE)
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(colors=INK, length=0, labelsize=10)
    handles = [Line2D([], [], color=colour, lw=4, label=objective) for objective, colour in colours.items()]
    handles += [
        Line2D([], [], color=INK, lw=1.6, marker="o", mfc="white" if kind == kinds[0] else None, label=kind)
        for kind in kinds
    ]
    look = {"frameon": False, "fontsize": 9, "columnspacing": 1.2, "handlelength": 1.4}
    figure.legend(handles=handles, loc="outside lower left", ncols=3, **look)
    return save(figure, out, "lead")

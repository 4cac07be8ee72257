"""Dots with intervals: by objective, the libraries one below the other, or by metric."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from benchmarks.figures import style
from benchmarks.summary import POOLED

LINE, GAP = 0.14, 0.1  # inches


def grouped(table: pd.DataFrame, metric: str, title: str, out: Path, name: str, zeros: dict[str, float]) -> Path:
    """Draw ``value`` and its 95% interval of ``1.96 se`` for each data, library and label, a panel for each data set.

    ``zeros`` is where each data set has a vertical line.
    """
    sets, libraries = style.distinct(table["data"]), style.libraries_of(table)
    natives = [(library, label) for library in libraries for label in style.natives_of(table, library)]
    places: dict[tuple[str, str], float] = {}  # by library and label
    ticks: dict[str, float] = {}
    y = 0.0
    for label in [*style.ours_of(table), *(label for _, label in natives)]:
        rows = [library for library in libraries if ((table["library"] == library) & (table["label"] == label)).any()]
        places |= {(library, label): y + i * LINE for i, library in enumerate(rows)}
        ticks[style.shown(label, metric or "{metric}")] = y + (len(rows) - 1) * LINE / 2
        y += len(rows) * LINE + GAP
    figure = style.blank(3.2 + 1.9 * len(sets), max(2.2, y + 1.3), title)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, data in zip(axes, sets, strict=True):
        part = table[(table["data"] == data) & (table["library"] != "")]
        for library, label, value, se in part[["library", "label", "value", "se"]].itertuples(index=False):
            colour = style.LIBRARY_COLOURS.get(library, style.INK)
            look: dict[str, Any] = {"color": colour, "mfc": "white" if (library, label) in natives else None}
            half = None if np.isnan(se) else 1.96 * se
            ax.errorbar(value, places[library, label], xerr=half, fmt="o", ms=4.5, lw=1.3, **look)
        _finish(ax, zeros[data], style.shown(data, metric, 24))
    axes[0].set_yticks(list(ticks.values()), list(ticks), fontsize=10.5)
    axes[0].set_ylim(y - GAP, -LINE)
    names: dict[str, Any] = {
        style.library_title(x): {"color": style.LIBRARY_COLOURS.get(x, style.INK)} for x in libraries
    }
    names |= {"native": {"color": style.INK, "mfc": "white"}} if natives else {}
    handles = [Line2D([], [], marker="o", label=name, **look) for name, look in names.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), fontsize=10, frameon=False)
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
    return style.save(figure, out, "lead")


def _finish(ax: Any, zero: float, title: str) -> None:
    ax.axvline(zero, color=style.INK, lw=0.8)
    ax.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=style.INK)
    style.quiet(ax)
    ax.grid(axis="y", lw=0)
    ax.grid(axis="x", color=style.PALE, lw=0.6)
    ax.tick_params(axis="x", labelsize=10)
    ax.locator_params(axis="x", nbins=4)

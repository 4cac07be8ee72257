"""What our names give for each metric, less the library's best native objective."""

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.figures.style import INK, PALE, blank, distinct, library_title, save
from benchmarks.lead import REAL
from benchmarks.pooled import POOLED

LOOKS: dict[bool, dict[str, Any]] = {
    True: {"color": "#D55E00", "marker": "o"},
    False: {"color": "#0072B2", "marker": "s"},
}


def lead_dots(table: pd.DataFrame, out: Path) -> Path:
    """A row for each metric and a panel for each library, with 95% intervals; real and generated data apart."""
    table = table[table["data"] != POOLED]
    metrics, libraries, kinds = (distinct(table[name]) for name in ("metric", "library", "data"))
    figure = blank(
        9.5, 0.55 * len(metrics) + 1.6, "Ours for the metric, less the library's best own objective, in thousandths"
    )
    axes: Any = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    for ax, library in zip(axes, libraries, strict=True):
        for i, kind in enumerate(kinds):
            part = table[(table["library"] == library) & (table["data"] == kind)]
            rows = [metrics.index(metric) + 0.26 * (i - (len(kinds) - 1) / 2) for metric in part["metric"]]
            ax.errorbar(
                1000 * part["difference"],
                rows,
                xerr=1960 * part["se"],
                fmt="none",
                lw=1.4,
                ecolor=LOOKS[kind == REAL]["color"],
            )
            ax.plot(1000 * part["difference"], rows, ls="none", ms=6, label=kind, **LOOKS[kind == REAL])
        ax.axvline(0.0, color=INK, lw=1)
        ax.set_yticks(range(len(metrics)), metrics)
        ax.set_ylim(len(metrics) - 0.5, -0.5)
        ax.set_title(library_title(library), loc="left", fontsize=10, color=INK)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(PALE)
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(colors=INK, length=0, labelsize=9)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    return save(figure, out, "lead")

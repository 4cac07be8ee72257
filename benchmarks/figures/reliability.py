"""Reliability curves: how often documents of a probability are relevant."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures.style import COLOURS, INK, OTHERS, blank, distinct, library_title, quiet, save

COLOURS_OF = {"ranking": COLOURS["yetiloss:ndcg@10"], "mixture": COLOURS["mixture"], "pointwise": OTHERS[0]}
WHEN = {"before": "logistic function of the score", "after": "isotonic regression on held-out queries"}


def reliability_curves(document: dict[str, Any], out: Path) -> Path:
    """A column for each library, with a line for each objective: above without calibration, below with it."""
    results = document["results"]
    libraries = distinct(r["library"] for r in results)
    figure = blank(3.1 * len(libraries) + 0.4, 6.2, "Share of relevant documents by predicted probability")
    axes: Any = figure.subplots(2, len(libraries), sharex=True, sharey=True, squeeze=False)
    for row, (when, words) in zip(axes, WHEN.items(), strict=True):
        for ax, library in zip(row, libraries, strict=True):
            ax.plot([0, 1], [0, 1], color=INK, lw=0.8, ls=":")
            for r in (r for r in results if r["library"] == library):
                x, y, _ = np.array(r[when]["curve"]).T
                ax.plot(x, y, "o-", color=COLOURS_OF[r["objective"]], ms=3.5, lw=1.4, label=r["objective"])
            ax.set_title(library_title(library), loc="left", fontsize=10, color=INK)
            ax.set_xlim(0, 1)
            ax.set_ylim(0, 1)
            ax.set_aspect("equal")
            quiet(ax)
        row[0].set_ylabel(words, fontsize=9, color=INK)
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=len(names), frameon=False, fontsize=9)
    return save(figure, out, "reliability")

"""Learning curves on vali, means over folds and seeds: ours in colour, six to a panel, natives in grey in each panel.

The natives of a library are named in its first panel, ours at the end of their row.
"""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.figures import style

LEGEND = {"fontsize": 8, "facecolor": "white", "edgecolor": "none", "handlelength": 1.4, "labelcolor": style.INK}


def mean_curve(curves: Sequence[Sequence[float]], stops: Sequence[int]) -> np.ndarray:
    """Mean by number of trees; a training that has ended counts with the value at its early stop.

    >>> mean_curve([[0.25, 0.5, 0.25], [0.5]], [2, 1])
    array([0.375, 0.5  , 0.375])
    """
    whole = np.empty((len(curves), max(map(len, curves))))
    for row, curve, stop in zip(whole, curves, stops, strict=True):
        row[:] = curve[stop - 1]
        row[: len(curve)] = curve
    return whole.mean(axis=0)


def learning_curves(frame: pd.DataFrame, data: str, metric: str, out: Path) -> Path | None:
    """Draw one data set and metric to a file."""
    figure = drawn(frame, data, metric)
    return style.save(figure, out, "curves", data, metric) if figure is not None else None


def drawn(frame: pd.DataFrame, data: str, metric: str) -> Figure | None:
    """One data set and metric, a column for each library; curves are pale beyond the early stop."""
    part = frame[(frame["data"] == data) & (frame["metric"] == metric) & (frame["library"] != "")]
    order = style.ours_of(frame)
    colours = style.colours_of(order)  # the same for every data set
    libraries = style.libraries_of(part)
    means = {
        key: (mean_curve(rows["curve"].tolist(), rows["trees"].astype(int).tolist()), rows["trees"].mean())
        for key, rows in part.groupby(["library", "label"], sort=False) if all(rows["curve"].map(bool))
    }  # fmt: skip
    here, most = style.ours_of(part), len(style.OURS)
    chunks = [[o for o in order[i : i + most] if o in here] for i in range(0, len(order), most)]
    chunks = [chunk for chunk in chunks if chunk] or [[]]
    if not means:
        return None
    several = part.duplicated(["library", "label"]).any()
    what = "mean over folds and seeds, dots at the mean early stop" if several else "dots at the early stop"
    names = [style.shown(o, metric) for chunk in chunks for o in chunk]
    names_width = 0.3 + 0.065 * max(map(len, names), default=0)
    title = f"vali {metric} by number of trees, {data}: {what}, pale beyond it"
    figure = style.blank(3.4 * len(libraries) + names_width, 3.3 * len(chunks) + 0.7, title)
    widths = [3.4] * len(libraries) + [names_width]
    axes = figure.subplots(len(chunks), len(widths), sharex=True, sharey=True, squeeze=False, width_ratios=widths)
    lowest, highest = [], []
    for j, library in enumerate(libraries):
        natives = style.natives_of(part, library)
        for i, chunk in enumerate(chunks):
            ax = axes[i, j]
            looks = [(n, *style.NATIVE[k % len(style.NATIVE)]) for k, n in enumerate(natives)]
            looks += [(o, colours[o], "-") for o in chunk]
            for label, colour, dashes in looks:
                if (library, label) not in means:
                    continue
                curve, stop = means[library, label]
                trees, used = np.arange(1, len(curve) + 1), slice(round(stop))
                ax.plot(trees, curve, dashes, color=colour, lw=1.2, alpha=0.3)
                ax.plot(trees[used], curve[used], dashes, color=colour, lw=1.3)
                ax.plot(stop, curve[round(stop) - 1], "o", color=colour, ms=5, mec="white", mew=0.8, zorder=5)
                lowest.append(np.quantile(curve, 0.05))
                highest.append(curve.max())
            style.quiet(ax)
        axes[0, j].set_title(style.library_title(library), loc="left", fontsize=11, fontweight="bold", color=style.INK)
        _legend(axes[0, j], natives, style.NATIVE, metric, "lower right", " (native)")
        axes[-1, j].set_xlabel("trees", color=style.INK)
    for row, chunk in zip(axes, chunks, strict=True):
        _legend(row[-1], chunk, [(colours[o], "-") for o in chunk], metric, "center left", "")
        row[-1].set_axis_off()
        row[0].set_ylabel(f"vali {metric}", color=style.INK)
    height = max(max(highest) - min(lowest), 1e-3)
    axes[0, 0].set_ylim(min(lowest) - 0.3 * height, max(highest) + 0.06 * height)
    return figure


def _legend(ax: Any, labels: Sequence[str], looks: Any, metric: str, where: str, suffix: str) -> None:
    if labels:
        handles = [
            Line2D([], [], color=colour, ls=dashes, label=style.shown(o, metric) + suffix)
            for o, (colour, dashes) in zip(labels, cycle(looks))
        ]
        ax.legend(handles=handles, loc=where, borderaxespad=0, **LEGEND)

"""Learning curves on vali, means over folds and seeds: ours in colour, the library's own in grey."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.figures import style


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


def drawn(frame: pd.DataFrame, data: str, metric: str) -> Figure:
    """One data set and metric, a panel for each library; curves are pale beyond the early stop."""
    part = frame[(frame["data"] == data) & (frame["metric"] == metric) & (frame["library"] != "")]
    several = part.duplicated(["library", "label"]).any()
    what = "mean over folds and seeds, dots at the mean early stop" if several else "dots at the early stop"
    libraries, colours = style.libraries_of(part), style.colours_of(style.ours_of(frame))  # the same for all data sets
    title = f"vali {metric} by number of trees, {data}: {what}, pale beyond it"
    figure = style.blank(4.6 * len(libraries), 3.4 + 0.18 * part["label"].nunique(), title)
    axes = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    lowest, highest = [], []
    for ax, library in zip(axes, libraries, strict=True):
        greys = dict(zip(style.natives_of(part, library), cycle(style.NATIVE), strict=False))
        for label, rows in part[part["library"] == library].groupby("label", sort=False):
            curve = mean_curve(rows["curve"].tolist(), rows["trees"].astype(int).tolist())
            colour, dashes = greys.get(label) or (colours.get(label, style.INK), "-")
            stop, trees = rows["trees"].mean(), np.arange(1, len(curve) + 1)
            used = slice(round(stop))
            ax.plot(trees, curve, dashes, color=colour, lw=1.2, alpha=0.3)
            name = style.shown(str(label), metric) + (" (native)" if label in greys else "")
            ax.plot(trees[used], curve[used], dashes, color=colour, lw=1.3, label=name)
            ax.plot(stop, curve[round(stop) - 1], "o", color=colour, ms=5, mec="white", mew=0.8, zorder=5)
            lowest.append(np.quantile(curve, 0.05))
            highest.append(curve.max())
        style.quiet(ax)
        ax.set_title(style.library_title(library), loc="left", fontsize=11, fontweight="bold", color=style.INK)
        ax.set_xlabel("trees", color=style.INK)
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=8, frameon=False, labelcolor=style.INK)
    axes[0].set_ylabel(f"vali {metric}", color=style.INK)
    height = max(max(highest) - min(lowest), 1e-3)
    axes[0].set_ylim(min(lowest) - 0.05 * height, max(highest) + 0.06 * height)
    return figure

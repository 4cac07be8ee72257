"""Learning curves on vali: ours in colour, the library's own in grey."""

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure

from benchmarks.figures import style
from ltr_objectives.libraries import is_native, named
from ltr_objectives.workbench.contest import Key, Outcome


def drawn(found: Mapping[Key, Outcome], metric: str) -> Figure:
    """Trainings on one fold, a panel for each library; curves are pale beyond the early stop."""
    libraries = style.distinct(library for library, _ in found)
    colours = style.colours_of(style.distinct(label for library, label in found if not is_native(library, label)))
    title = f"vali {metric} by number of trees: dots at the early stop, pale beyond it"
    figure = style.blank(4.6 * len(libraries), 3.4 + 0.18 * len({label for _, label in found}), title)
    axes = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    lowest, highest = [], []
    for ax, library in zip(axes, libraries, strict=True):
        greys = cycle(style.NATIVE)
        for label, outcome in ((label, each) for (of, label), each in found.items() if of == library):
            colour, dashes = next(greys) if is_native(library, label) else (colours[label], "-")
            [result] = outcome.results
            curve, stop = np.array(result.curve), result.rounds
            trees = np.arange(1, len(curve) + 1)
            ax.plot(trees, curve, dashes, color=colour, lw=1.2, alpha=0.3)
            ax.plot(trees[:stop], curve[:stop], dashes, color=colour, lw=1.3, label=named(library, label))
            ax.plot(stop, curve[stop - 1], "o", color=colour, ms=5, mec="white", mew=0.8, zorder=5)
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

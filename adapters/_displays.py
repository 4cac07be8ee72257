"""Pictures of results, in the form of scikit-learn's displays. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr_objectives.errors import require
from ltr_objectives.position_bias import PositionOffsets
from ltr_objectives.statistics import Comparison

if TYPE_CHECKING:
    from ltr_objectives.adapters._tradeoff import Tradeoff

BLUE, GREY = "#0072B2", "#DDDDDD"


def axes(ax: Any) -> Any:
    """Return the axes, by default those of a new figure."""
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    return ax


class ComparisonDisplay:
    """Picture of comparisons, in the form of scikit-learn's displays; needs Matplotlib.

    Each comparison is a row: the difference with its confidence interval. A point is filled if its interval excludes 0.

    Parameters
    ----------
    comparisons : dict of str to Comparison
        Results of :func:`ltr_objectives.compare_scores` by the names of their rows, such as metrics or models.
    names : pair of str
        What the two models are called below the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What :meth:`plot` drew on.
    figure_ : matplotlib.figure.Figure
        Its figure.

    Examples
    --------
    >>> from ltr_objectives import compare_scores
    >>> qid, old, new = [1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 0, 1], [1, 0, 0, 1, 1, 0]
    >>> found = {name: compare_scores(name, new, old, [1, 0, 0, 1, 1, 0], qid=qid) for name in ("map", "ndcg@10")}
    >>> shown = ComparisonDisplay.from_comparisons(found, names=("new", "old"))  # doctest: +SKIP
    """

    def __init__(self, comparisons: Mapping[str, Comparison], names: tuple[str, str] = ("a", "b")) -> None:
        require(comparisons, "comparisons is empty; pass results of compare_scores by their names")
        self.comparisons, self.names = comparisons, names

    @classmethod
    def from_comparisons(
        cls, comparisons: Mapping[str, Comparison], names: tuple[str, str] = ("a", "b"), ax: Any = None
    ) -> ComparisonDisplay:
        """Draw comparisons, and return the display."""
        return cls(comparisons, names).plot(ax)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw on the axes ``ax``, by default on those of a new figure, and return the display."""
        ax = axes(ax)
        ax.axvline(0, color=GREY, lw=1)
        for row, c in enumerate(self.comparisons.values()):
            reach = [[c.difference - c.low], [c.high - c.difference]]
            filled = BLUE if c.low > 0 or c.high < 0 else "white"
            ax.errorbar(c.difference, row, xerr=reach, fmt="o", color=BLUE, mfc=filled, lw=1.4)
        ax.set_yticks(range(len(self.comparisons)), [*self.comparisons])
        ax.set_ylim(len(self.comparisons) - 0.5, -0.5)
        a, b = self.names
        ax.set_xlabel(f"\N{LEFTWARDS ARROW} {b} better | {a} better \N{RIGHTWARDS ARROW}")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class TradeoffDisplay:
    """Picture of a trade-off, in the form of scikit-learn's displays; needs Matplotlib.

    Each training is a point: the changes of both metrics, with 95% intervals. Filled points are on the front.

    Parameters
    ----------
    tradeoff : Tradeoff
        Result of :func:`ltr_objectives.adapters.tradeoff`.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What :meth:`plot` drew on.
    figure_ : matplotlib.figure.Figure
        Its figure.

    Examples
    --------
    >>> from ltr_objectives.adapters import tradeoff
    >>> found = tradeoff(ranker, X, y, qid=qid, **valid)  # doctest: +SKIP
    >>> TradeoffDisplay.from_tradeoff(found).figure_.savefig("tradeoff.png")  # doctest: +SKIP
    """

    def __init__(self, tradeoff: Tradeoff) -> None:
        self.tradeoff = tradeoff

    @classmethod
    def from_tradeoff(cls, tradeoff: Tradeoff, ax: Any = None) -> TradeoffDisplay:
        """Draw a trade-off, and return the display."""
        return cls(tradeoff).plot(ax)

    def plot(self, ax: Any = None) -> TradeoffDisplay:
        """Draw on the axes ``ax``, by default on those of a new figure, and return the display."""
        ax = axes(ax)
        lines = sorted(self.tradeoff.lines, key=lambda line: line.first)
        front = [(100 * x.first_change, 100 * x.second_change) for x in lines if x.on_front]
        ax.axvline(0, color="#DDDDDD", lw=1)
        ax.plot(*zip(*front, strict=True), color=BLUE, lw=1)
        for line in lines:
            x, x_low, x_high = (100 * value for value in (line.first_change, line.first_low, line.first_high))
            y, y_low, y_high = (100 * value for value in (line.second_change, line.second_low, line.second_high))
            ax.errorbar(
                x, y, [[y - y_low], [y_high - y]], [[x - x_low], [x_high - x]], fmt="o", color=BLUE,
                mfc=BLUE if line.on_front else "white", ecolor="#BBBBBB", lw=0.8,
            )  # fmt: skip
            look = {"rotation": 45, "rotation_mode": "anchor", "fontsize": 8}  # level texts of neighbours overlap
            place = {} if line.on_front else {"ha": "right", "va": "top"}  # on the side where no front is
            offset = (5, 5) if line.on_front else (-4, -4)
            ax.annotate(line.training, (x, y), offset, textcoords="offset points", **look, **place)
        first, second = self.tradeoff.metrics
        better = "better \N{RIGHTWARDS ARROW}"  # along both axes
        ax.set(xlabel=f"change of {first}, %: {better}", ylabel=f"change of {second}, %: {better}")
        ax.margins(0.12)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PropensityDisplay:
    """Picture of an estimate, in the form of scikit-learn's displays; needs Matplotlib.

    How often each position is looked at, as a share of the first, with 95% intervals; and the curve of ``eta``.

    Parameters
    ----------
    offsets : PositionOffsets
        Result of :func:`ltr_objectives.adapters.position_offsets`, or ``position_offsets_`` of an estimator.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        What :meth:`plot` drew on.
    figure_ : matplotlib.figure.Figure
        Its figure.

    Examples
    --------
    >>> ranker.fit(X, clicks, qid=qid, position=position)  # doctest: +SKIP
    >>> PropensityDisplay.from_offsets(ranker.position_offsets_).figure_.savefig("seen.png")  # doctest: +SKIP
    """

    def __init__(self, offsets: PositionOffsets) -> None:
        self.offsets = offsets

    @classmethod
    def from_offsets(cls, offsets: PositionOffsets, ax: Any = None) -> PropensityDisplay:
        """Draw an estimate, and return the display."""
        return cls(offsets).plot(ax)

    def plot(self, ax: Any = None) -> PropensityDisplay:
        """Draw on the axes ``ax``, by default on those of a new figure, and return the display."""
        ax = axes(ax)
        found = self.offsets
        rank = 1 + np.arange(len(found.offsets))
        shown = found.documents > 0
        low, middle, high = (np.exp(found.log_propensities + z * found.errors)[shown] for z in (-1.96, 0.0, 1.96))
        bars = {"fmt": "o", "ms": 4, "color": BLUE, "ecolor": "#BBBBBB", "label": "estimate, 95% interval"}
        ax.errorbar(rank[shown], middle, [middle - low, high - middle], **bars)
        ax.plot(rank, rank**-found.eta, color=BLUE, lw=1, label=f"rank$^{{-{found.eta:.2f}}}$")
        ax.set(
            xlabel="position, 1 is the top", ylabel="looked at, as a share of the first", ylim=(0, None), xscale="log"
        )
        ax.xaxis.set_major_formatter("{x:g}")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

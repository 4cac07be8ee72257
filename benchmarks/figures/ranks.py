"""Critical-difference diagrams: mean ranks over queries; bars join objectives that cannot be told apart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from benchmarks.figures.style import INK, LIBRARY_COLOURS, blank, library_title, save, shown
from ltr_objectives.workbench.libraries import is_native
from ltr_objectives.workbench.summary import Values, block_of, whole_of


class Ranks(NamedTuple):
    """Mean ranks, best first, and their significance."""

    labels: list[str]
    means: np.ndarray
    queries: int
    friedman_p: float
    critical: float  # least difference of two mean ranks that is significant


def compare_ranks(values: dict[str, np.ndarray], alpha: float = 0.05) -> Ranks:
    """Friedman's test and Nemenyi's critical difference, over the queries for which all have a value.

    For k objectives and n queries the critical difference is q sqrt(k (k + 1) / (6 n)), where q is the quantile of the
    studentised range divided by sqrt(2). Ties have the mean of their ranks. Demsar, "Statistical comparisons of
    classifiers over multiple data sets", JMLR 2006, section 3.2.2.

    >>> found = compare_ranks({"a": np.array([0.5, 0.5]), "b": np.array([0.75, 0.5]), "c": np.array([0.25, 0.5])})
    >>> found.labels, found.means.tolist()
    (['b', 'a', 'c'], [1.5, 2.0, 2.5])
    """
    labels, table = list(values), np.column_stack(list(values.values()))
    table = table[~np.isnan(table).any(axis=1)]
    n, k = table.shape
    ranks = stats.rankdata(-table, axis=1)
    means = ranks.mean(axis=0)
    p = float(stats.friedmanchisquare(*table.T).pvalue) if k > 2 and np.ptp(ranks) else 1.0
    q = stats.studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2)
    order = np.argsort(means, kind="stable")
    return Ranks([labels[i] for i in order], means[order], n, p, float(q * np.sqrt(k * (k + 1) / (6 * n))))


def cliques(means: np.ndarray, critical: float) -> list[tuple[int, int]]:
    """First and last of each longest run of sorted ``means`` within ``critical``, without runs of one.

    >>> cliques(np.array([1.0, 1.5, 2.0, 4.0]), 0.75)
    [(0, 1), (1, 2)]
    """
    ends = [int(np.searchsorted(means, m + critical, side="right")) - 1 for m in means]
    return [(i, end) for i, end in enumerate(ends) if end > i and (i == 0 or end > ends[i - 1])]


def rank_diagrams(values: Values, metric: str, out: Path, alpha: float) -> Path | None:
    """Draw a diagram for each library, over all data sets together; None if no library has three objectives."""
    whole = whole_of(values)
    found = {}
    for library in dict.fromkeys(key[1] for key in values if key[1]):
        block = block_of(values, whole, library, metric)
        if len(block) > 2:
            found[library] = compare_ranks(block, alpha)
    if not found:
        return None
    heights = [1.25 + 0.19 * -(-len(r.labels) // 2) + 0.1 * len(cliques(r.means, r.critical)) for r in found.values()]
    title = (
        f"test {metric}, {whole}: mean ranks over queries; bars join what Nemenyi's test at {alpha:g} cannot tell apart"
    )
    figure = blank(9.5, sum(heights) + 0.4, title)
    axes = figure.subplots(len(found), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, (library, ranks), height in zip(axes, found.items(), heights, strict=True):
        _diagram(ax, library, ranks, metric, height)
    return save(figure, out, "ranks", metric)


def _diagram(ax: Any, library: str, ranks: Ranks, metric: str, height: float) -> None:
    """The best half at the left, best first; the others at the right, worst first; one unit of y is an inch."""
    colour = LIBRARY_COLOURS.get(library, INK)
    low, high = ranks.means[0], max(ranks.means[-1], ranks.means[0] + ranks.critical)
    span = max(high - low, 1e-3)
    bars = cliques(ranks.means, ranks.critical)
    below = 0.2 + 0.1 * len(bars)
    half = -(-len(ranks.labels) // 2)
    edges = low - 0.06 * span, high + 0.06 * span
    for i, (label, mean) in enumerate(zip(ranks.labels, ranks.means, strict=True)):
        left = i < half
        y = -below - 0.19 * (i if left else len(ranks.labels) - 1 - i)
        native = is_native(library, label)
        look: dict[str, Any] = {"color": "#777777" if native else colour, "lw": 1.0, "ls": ":" if native else "-"}
        ax.plot([mean, mean, edges[0] if left else edges[1]], [0, y, y], **look)
        text = shown(label, metric) + (" (native)" if native else "")
        name = f"{text}  {mean:.2f}" if left else f"{mean:.2f}  {text}"
        where = {"ha": "right" if left else "left", "va": "center", "fontsize": 8.5}
        ax.text(edges[0] - 0.01 * span if left else edges[1] + 0.01 * span, y, name, color=look["color"], **where)
    for level, (first, last) in enumerate(bars):
        y = -0.12 - 0.1 * level
        pad = 0.004 * span
        ax.plot([ranks.means[first] - pad, ranks.means[last] + pad], [y, y], color=INK, lw=3.2, solid_capstyle="round")
    _axis(ax, low, high)
    ax.plot([low, low + ranks.critical], [0.5, 0.5], color=INK, lw=1.6, marker="|", ms=7)
    p = "< 1e-4" if ranks.friedman_p < 1e-4 else f"= {ranks.friedman_p:.2g}"
    critical = f"critical difference {ranks.critical:.2f}; {ranks.queries:,} queries; Friedman's p {p}"
    ax.text(low + ranks.critical + 0.02 * span, 0.5, critical, fontsize=8, color=INK, va="center")
    ax.set_title(library_title(library), loc="left", fontsize=11, fontweight="bold", color=INK)
    ax.set_xlim(low - 0.75 * span, high + 0.75 * span)
    ax.set_ylim(0.65 - height, 0.65)
    ax.set_axis_off()


def _axis(ax: Any, low: float, high: float) -> None:
    ticks: Sequence[float] = [t for t in _steps(low, high) if low <= t <= high]
    ax.plot([low, high], [0, 0], color=INK, lw=1.2)
    for t in ticks:
        ax.plot([t, t], [0, 0.06], color=INK, lw=1.0)
        ax.text(t, 0.1, f"{t:g}", ha="center", va="bottom", fontsize=8, color=INK)


def _steps(low: float, high: float) -> np.ndarray:
    from matplotlib.ticker import MaxNLocator

    return np.asarray(MaxNLocator(6).tick_values(low, high))

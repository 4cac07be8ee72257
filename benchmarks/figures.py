"""Pictures of results, as PNG: the demo, and the lead of our names in studies."""

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from statistics import median
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltr_objectives._files import replacing

TITLES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
COLOURS = {  # the same in every picture and notebook
    "yetiloss:ndcg": "#0072B2", "yetiloss:gap": "#D55E00", "yetiloss:ndcg@10": "#56B4E9", "yetiloss": "#56B4E9",
    "ranknet": "#009E73", "mixture": "#332288",
}  # fmt: skip
OTHERS = ("#CC79A7", "#E69F00", "#882255", "#999933", "#44AA99", "#661100")  # with those of Tol
NATIVE = {  # the library's own ranking objectives that were timed, of which the slowest is drawn first
    "catboost": ("YetiRank", "YetiRank:mode=NDCG;top=10", "QueryRMSE"), "xgboost": ("rank:ndcg",),
    "lightgbm": ("lambdarank",),
}  # fmt: skip
INK, PALE, OURS = "#333333", "#DDDDDD", "#0072B2"


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each objective: its own, or the next of the others.

    >>> colours_of(["queryrmse", "yetiloss:gap", "listnet"])
    {'queryrmse': '#CC79A7', 'yetiloss:gap': '#D55E00', 'listnet': '#E69F00'}
    """
    others = cycle(OTHERS)
    return {label: COLOURS.get(label) or next(others) for label in labels}


def blank(width: float, height: float, title: str) -> Figure:
    """Return an empty figure, in inches."""
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(fill(title, int(11.5 * width)), x=0.01, ha="left", fontsize=11, color=INK)
    return figure


def write(figure: Figure, path: Path) -> Path:
    """Write the PNG; the file appears only when it is complete."""
    with replacing(path) as new:
        figure.savefig(new)
    return path


def quiet(ax: Any) -> None:
    """Remove frame and ticks, and draw pale lines."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.grid(axis="y", color=PALE, lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, length=0, labelsize=9)


def distinct(items: Iterable[Any]) -> list[Any]:
    """Return distinct items in order of first appearance."""
    return list(dict.fromkeys(items))


def lead_dots(table: pd.DataFrame) -> Figure:
    """Draw the lead of our default objectives over native ones, in thousandths, with 95% intervals.

    Each metric has a row, each library a panel. Dots of all kinds of data but the last are hollow.
    """
    metrics, kinds = distinct(table["metric"]), distinct(table["data"])
    libraries = [library for library in TITLES if library in set(table["library"])]
    colours = colours_of(distinct(table["ours"]))
    title = "Thousandths above the library's best objective, with 95% intervals"
    figure = blank(6.4, 0.45 * len(metrics) + 1.9, title)
    axes: Any = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    looks: dict[str, Any] = {kind: {"mfc": "white" if kind != kinds[-1] else None} for kind in kinds}
    for ax, library in zip(axes, libraries, strict=True):
        for _, each in table[table["library"] == library].iterrows():
            row = metrics.index(each["metric"]) + 0.26 * (kinds.index(each["data"]) - (len(kinds) - 1) / 2)
            look = {"color": colours[each["ours"]], **looks[each["data"]]}
            ax.errorbar(1000 * each["difference"], row, xerr=1960 * each["se"], fmt="o", ms=6.5, lw=1.6, **look)
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.set_title(TITLES[library], loc="left", fontsize=11.5, fontweight="bold", color=INK)
        quiet(ax)
        ax.grid(axis="y", lw=0)
        ax.grid(axis="x", color=PALE, lw=0.6)
        ax.locator_params(axis="x", nbins=4)
    axes[0].set_yticks(range(len(metrics)), metrics)
    axes[0].set_ylim(len(metrics) - 0.5, -0.5)
    handles = [Line2D([], [], color=colour, lw=4, label=objective) for objective, colour in colours.items()]
    handles += [Line2D([], [], color=INK, marker="o", label=kind, **look) for kind, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower left", ncols=3, fontsize=9, frameon=False)
    return figure


def seconds(results: Iterable[dict[str, Any]]) -> Figure:
    """Draw the seconds of a training with each library's own ranking objectives, and with our default objective."""
    figure = blank(6.0, 3.3, "Seconds of a training, less is better")
    ax, rows = figure.subplots(), []
    found = {(r["library"], r["objective"]): float(median(r["seconds"])) for r in results}
    for library, objectives in NATIVE.items():
        own = {f"{TITLES[library]}, {name}": (found[library, name], "#BBBBBB") for name in objectives}
        rows += [*own.items(), ("yetiloss:ndcg, our default", (found[library, "yetiloss:ndcg"], OURS)), ("", (0, PALE))]
    for y, (name, (value, colour)) in enumerate(rows[:-1]):
        ax.barh(y, value, 0.8, color=colour)
        ax.text(value + 0.2, y, f"{value:.1f}" if name else "", va="center", fontsize=9, color=INK)
    quiet(ax)
    ax.grid(lw=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks(range(len(rows) - 1), [name for name, _ in rows[:-1]])
    ax.invert_yaxis()
    return figure


def demo_panels(seconds: pd.DataFrame, goals: pd.DataFrame, named: pd.DataFrame) -> Figure:
    """Draw the three comparisons of the demo, with 95% intervals over test queries."""
    figure = blank(9.6, 3.4, "")
    times, both, mean = figure.subplots(1, 3)
    libraries = [library for library in TITLES if library in set(seconds["library"])]
    for row, library in enumerate(libraries):
        own, ours = seconds.loc[seconds["library"] == library, "seconds"]
        for y, value, colour in ((row - 0.18, own, "#BBBBBB"), (row + 0.18, ours, OURS)):
            times.barh(y, value, 0.34, color=colour)
            times.text(value, y, f" {value:.1f}", va="center", fontsize=9, color=INK)
        one = goals[(goals["library"] == library) & (goals["objective"] == goals["objective"].iloc[-1])]
        for dy, colour, (_, line) in zip((-0.12, 0.12), ("#BBBBBB", OURS), one.iterrows(), strict=True):
            d, low, high = (100 * line[key] / line["b"] for key in ("difference", "low", "high"))
            interval(both, row + dy, d, low, high, colour)
        of = named[(named["library"] == library) & ~named["native"] & (named["metric"] == named["metric"].iloc[0])]
        d, error = 1000 * of["difference"].iloc[0], 1960 * of["difference_se"].iloc[0]
        interval(mean, row, d, d - error, d + error, OURS)
    titles = {
        times: "Seconds of a training: the\nlibrary's own objective, and ours",
        both: "One model for two goals, against own\nfor relevance: NDCG (grey), revenue, %",
        mean: "MAP on SelQA, ours minus the\nlibrary's best own, thousandths",
    }
    for ax, title in titles.items():
        ax.set_title(title, loc="left", fontsize=10, color=INK)
        quiet(ax)
        ax.grid(axis="y", lw=0)
        ax.set_yticks(range(len(libraries)), [TITLES[library] for library in libraries] if ax is times else [])
        ax.set_ylim(len(libraries) - 0.5, -0.5)
    for ax in (both, mean):
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.grid(axis="x", color=PALE, lw=0.6)
    times.set_xticks([])
    return figure


def interval(ax: Any, y: float, value: float, low: float, high: float, colour: str) -> None:
    """Draw a dot and its interval."""
    ax.errorbar(value, y, xerr=[[value - low], [high - value]], fmt="o", ms=6.5, lw=1.6, color=colour)

"""Pictures of results, as PNG: the demo, and the lead of our names in studies."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ltr_objectives._files import replacing
from ltr_objectives.adapters import PropensityDisplay, TradeoffDisplay
from ltr_objectives.adapters._tradeoff import Tradeoff
from ltr_objectives.position_bias import PositionOffsets

TITLES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
NATIVE = {  # the library's own ranking objectives that were timed, of which the slowest is drawn first
    "catboost": ("YetiRank", "YetiRank:mode=NDCG;top=10", "QueryRMSE"), "xgboost": ("rank:ndcg",),
    "lightgbm": ("lambdarank",),
}  # fmt: skip
INK, PALE, GREY, OURS = "#333333", "#DDDDDD", "#BBBBBB", "#0072B2"
COLOURS = (OURS, "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#332288", "#56B4E9")  # of kinds of data


def blank(width: float, height: float) -> Figure:
    """Return an empty figure, in inches. Text of 9 points can be read on a phone up to a width of 4.8."""
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_figure(figure: Figure, path: Path) -> Path:
    """Write PNG or SVG, the same bytes each time; the file appears only when it is complete."""
    with replacing(path) as new, rc_context({"svg.hashsalt": path.name}):
        figure.savefig(new, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def quiet(ax: Any, lines: str = "y") -> None:
    """Remove frame and ticks, and draw pale lines from the marks of one axis."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.grid(axis=lines, color=PALE, lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, length=0, labelsize=9)


def distinct(items: Iterable[Any]) -> list[Any]:
    """Return distinct items in order of first appearance."""
    return list(dict.fromkeys(items))


def lead_dots(table: pd.DataFrame) -> Figure:
    """Draw the lead of our default objectives over native ones, in thousandths, with 95% intervals.

    Each library has a panel, each metric a row, each kind of data a colour.
    """
    metrics, kinds = distinct(table["metric"]), distinct(table["data"])
    libraries = [library for library in TITLES if library in set(table["library"])]
    figure = blank(4.8, 0.42 * len(metrics) + 1.5)
    axes: Any = figure.subplots(1, len(libraries), sharex=True, sharey=True, squeeze=False)[0]
    for ax, library in zip(axes, libraries, strict=True):
        ax.axvspan(-5, 5, color="#F0F0F0", lw=0)
        ax.axvline(0.0, color=INK, lw=0.8)
        for _, each in table[table["library"] == library].iterrows():
            kind = kinds.index(each["data"])
            row = metrics.index(each["metric"]) + 0.7 / len(kinds) * (kind - (len(kinds) - 1) / 2)
            d, error = 1000 * each["difference"], 1960 * each["se"]
            interval(ax, row, d, d - error, d + error, COLOURS[kind % len(COLOURS)])
        ax.set_title(TITLES[library], loc="left", fontsize=10, fontweight="bold", color=INK)
        quiet(ax, "x")
        ax.locator_params(axis="x", nbins=4)
    axes[0].set_yticks(range(len(metrics)), [name.replace("precision", "p").upper() for name in metrics])
    axes[0].set_ylim(len(metrics) - 0.5, -0.5)
    figure.supxlabel(
        "thousandths:  \N{LEFTWARDS ARROW} library better | ours better \N{RIGHTWARDS ARROW}", fontsize=10, color=INK
    )
    marks = [Line2D([], [], color=colour, marker="o", label=kind) for kind, colour in zip(kinds, COLOURS, strict=False)]
    marks.append(Line2D([], [], color="#F0F0F0", lw=9, label="within 5"))
    figure.legend(handles=marks, loc="outside upper left", ncols=2, fontsize=9, frameon=False)
    return figure


def seconds(results: Iterable[dict[str, Any]]) -> Figure:
    """Draw the seconds of a training with each library's own ranking objectives, and with our default objective."""
    found = {(r["library"], r["objective"]): float(median(r["seconds"])) for r in results}
    figure = blank(4.8, 3.7)
    axes = figure.subplots(len(NATIVE), 1, sharex=True, height_ratios=[len(own) + 1.4 for own in NATIVE.values()])
    for ax, (library, own) in zip(axes, NATIVE.items(), strict=True):
        bars(ax, {name: found[library, name] for name in (*own, "yetiloss:ndcg")})
        ax.set_title(TITLES[library], loc="left", fontsize=10, fontweight="bold", color=INK)
        ax.set_yticks(ax.get_yticks(), [*own, "yetiloss:ndcg (ours)"])
    figure.supxlabel("seconds of a training, less is better", fontsize=10, color=INK)
    return figure


def bars(ax: Any, values: Mapping[str, float]) -> None:
    """Draw a bar for each value, with its number; the last is ours."""
    for y, value in enumerate(values.values()):
        ax.barh(y, value, 0.75, color=OURS if y == len(values) - 1 else GREY)
        ax.text(value, y, f" {value:.1f}", va="center", fontsize=9, color=INK)
    quiet(ax, "x")
    ax.grid(lw=0)
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.set_yticks(range(len(values)), [*values])
    ax.invert_yaxis()


def pushes(labels: Sequence[float], gradients: Mapping[str, Sequence[float]]) -> Figure:
    """Draw how far each metric pushes the documents of a ranked list: up the list is to the right."""
    figure = blank(4.8, 2.4)
    axes = figure.subplots(1, len(gradients), sharex=True, sharey=True)
    for ax, (metric, gradient) in zip(axes, gradients.items(), strict=True):
        for row, g in enumerate(gradient):
            ax.barh(row, -g, 0.6, color=OURS if g < 0 else GREY)
        ax.axvline(0.0, color=INK, lw=0.8)
        ax.set_title(metric, loc="left", fontsize=10, fontweight="bold", color=INK)
        quiet(ax, "x")
        ax.set_xticks([])
    axes[0].set_yticks(range(len(labels)), [f"rank {i}, label {y:g}" for i, y in enumerate(labels, 1)])
    axes[0].invert_yaxis()
    figure.supxlabel("\N{LEFTWARDS ARROW} pushed down | pushed up \N{RIGHTWARDS ARROW}", fontsize=10, color=INK)
    return figure


def front(found: Tradeoff) -> Figure:
    """Draw a trade-off of relevance and revenue."""
    figure = blank(4.8, 4.6)
    ax = figure.subplots()
    TradeoffDisplay.from_tradeoff(found, ax)
    quiet(ax)
    ax.grid(lw=0)
    better = "better \N{RIGHTWARDS ARROW}"  # along both axes
    ax.set_xlabel(f"change of relevance (NDCG@10), %: {better}", fontsize=10, color=INK)
    ax.set_ylabel(f"change of revenue, %: {better}", fontsize=10, color=INK)
    return figure


def propensities(found: PositionOffsets) -> Figure:
    """Draw how often each position is looked at."""
    figure = blank(4.8, 3.4)
    ax = figure.subplots()
    PropensityDisplay.from_offsets(found, ax)
    quiet(ax)
    return figure


def questions(answers: Mapping[str, tuple[str, str]]) -> Figure:
    """Draw questions from top to bottom, each with the answer of a yes and its link at its right; the last is no."""
    figure = blank(4.8, 0.55 * len(answers))
    ax = figure.subplots()
    box = {"boxstyle": "round,pad=0.5", "fc": "white", "ec": INK, "lw": 0.8}
    arrow = {"arrowstyle": "->", "color": INK, "lw": 0.8}
    for row, (question, (answer, link)) in enumerate(answers.items()):
        last = row == len(answers) - 1
        ax.text(0.0, -row, question, va="center", fontsize=9, color=INK, bbox={**box, "ec": "white" if last else INK})
        ax.text(1.25, -row, answer, va="center", fontsize=9, color="white", url=link,
                bbox={**box, "fc": OURS, "ec": OURS, "url": link})  # fmt: skip
        ax.annotate("", (1.19, -row), (1.03, -row), arrowprops=arrow)
        if not last:
            ax.text(1.11, 0.08 - row, "yes", ha="center", fontsize=8, color=INK)
            ax.annotate("", (0.1, -row - 0.72), (0.1, -row - 0.26), arrowprops=arrow)
            ax.text(0.13, -row - 0.56, "no", fontsize=8, color=INK)
    ax.set(xlim=(-0.04, 2.32), ylim=(0.6 - len(answers), 0.4))
    ax.axis("off")
    return figure


def click_dots(leads: pd.DataFrame) -> Figure:
    """Draw the leads of `position=` over each rival: the mean over worlds with its interval, and the worst world."""
    figure = blank(4.8, 0.3 * len(leads) + 1.2)
    ax = figure.subplots()
    ax.axvline(0.0, color=INK, lw=0.8)
    for row, (mean, error, worst) in enumerate(leads[["mean", "error", "worst"]].to_numpy()):
        interval(ax, row, mean, mean - 1.96 * error, mean + 1.96 * error, OURS)
        ax.plot(worst, row, "x", color=COLOURS[1], ms=6)
    quiet(ax, "x")
    methods = leads["method"].replace("none", "no correction")
    names = [f"{TITLES[library]}: {method}" for library, method in zip(leads["library"], methods, strict=True)]
    ax.set_yticks(range(len(leads)), names)
    ax.set_ylim(len(leads) - 0.5, -0.5)
    label = "thousandths of NDCG@10:  \N{LEFTWARDS ARROW} rival better | position= better \N{RIGHTWARDS ARROW}"
    figure.supxlabel(label, fontsize=9, color=INK)
    marks = [Line2D([], [], color=OURS, marker="o", label="mean, two standard errors"),
             Line2D([], [], color=COLOURS[1], marker="x", lw=0, label="worst of 14 worlds")]  # fmt: skip
    figure.legend(handles=marks, loc="outside upper left", ncols=2, fontsize=9, frameon=False)
    return figure


def demo_panels(goals: pd.DataFrame, clicks: pd.DataFrame, seconds: pd.DataFrame) -> Figure:
    """Draw the three comparisons of the demo, with 95% intervals over test queries.

    Changes are those from the library's own model for NDCG@10, and from its own correction of position bias if it has
    one, else from no correction.
    """
    libraries = distinct(seconds["library"])
    figure = blank(4.8, 2.4 + 1.5 * len(libraries))
    layout: Any = [["NDCG@10", "revenue"], ["clicks", "clicks"], ["seconds", "seconds"]]
    axes: Any = figure.subplot_mosaic(layout, height_ratios=(0.8, 0.8, 1.2))
    better = "\N{LEFTWARDS ARROW} library better | ours better \N{RIGHTWARDS ARROW}"
    texts = {
        "NDCG@10": ("NDCG@10", "change, %; bound: -1"),
        "revenue": ("revenue", "change, %"),
        "clicks": ("Clicks: NDCG@10 of the true grades", f"thousandths:  {better}"),
        "seconds": ("Seconds of a training", "less is better"),
    }
    for name, (title, label) in texts.items():
        axes[name].set_title(title, loc="left", fontsize=10, color=INK)
        axes[name].set_xlabel(label, fontsize=9, color=INK)
    for name in ("NDCG@10", "revenue", "clicks"):
        lines = clicks if name == "clicks" else goals[goals["metric"] == name]
        _panel(axes[name], lines, 1000 if name == "clicks" else 100 / lines["b"], libraries)
    axes["revenue"].set_yticks(range(len(libraries)), [""] * len(libraries))
    values = {f"{TITLES[line['library']]}, {line['objective'].partition(',')[0]}": line["seconds"]
              for _, line in seconds.iterrows()}  # fmt: skip
    bars(axes["seconds"], values)
    for bar, name in zip(axes["seconds"].patches, values, strict=True):
        bar.set_color(OURS if "ours" in name else GREY)
    drawn = {"ours: one model; position=": OURS, "the library's: two models, added; no correction": GREY}
    marks = [Line2D([], [], color=colour, marker="o", label=name) for name, colour in drawn.items()]
    figure.legend(handles=marks, loc="outside upper left", ncols=1, fontsize=9, frameon=False)
    return figure


def _panel(ax: Any, lines: pd.DataFrame, factor: Any, libraries: Sequence[str]) -> None:
    """Draw differences by library, times ``factor``, which is one number or one for each line."""
    ax.axvline(0.0, color=INK, lw=0.8)
    numbers = lines[["difference", "low", "high"]].mul(factor, axis=0)
    for row, library in enumerate(libraries):
        others = numbers[(lines["library"] == library) & (lines["difference"] != 0)][::-1]
        for (d, low, high), place in zip(others.to_numpy(), (0.16, -0.16), strict=False):
            interval(ax, row + place, d, low, high, OURS if place > 0 else GREY)
    quiet(ax, "x")
    ax.set_yticks(range(len(libraries)), [TITLES[library] for library in libraries])
    ax.set_ylim(len(libraries) - 0.5, -0.5)


def interval(ax: Any, y: float, value: float, low: float, high: float, colour: str) -> None:
    """Draw a dot and its interval."""
    ax.errorbar(value, y, xerr=[[value - low], [high - value]], fmt="o", ms=5, lw=1.4, color=colour)

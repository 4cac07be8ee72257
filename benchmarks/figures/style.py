"""The common style of the pictures of a study."""

from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ltr_objectives._files import replacing

OURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito, for colour-blind readers
NATIVE = (("#222222", "-"), ("#888888", "-"), ("#222222", ":"), ("#888888", ":"), ("#222222", "--"))
TITLES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
COLOURS = {  # the same in every picture and notebook
    "yetiloss:ndcg": "#0072B2", "yetiloss:gap": "#D55E00", "yetiloss:ndcg@10": "#56B4E9", "yetiloss": "#56B4E9",
    "ranknet": "#009E73", "mixture": "#332288",
}  # fmt: skip
OTHERS = ("#CC79A7", "#E69F00", "#882255", "#999933", "#44AA99", "#661100")  # with those of Tol
INK, PALE = "#333333", "#DDDDDD"
LIBRARY_COLOURS = dict(zip(TITLES, OURS, strict=False))


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """A colour for each objective: its own, or the next of the others.

    >>> colours_of(["queryrmse", "yetiloss:gap", "listnet"])
    {'queryrmse': '#CC79A7', 'yetiloss:gap': '#D55E00', 'listnet': '#E69F00'}
    """
    others = cycle(OTHERS)
    return {label: COLOURS.get(label) or next(others) for label in labels}


def blank(width: float, height: float, title: str) -> Figure:
    """An empty figure, in inches."""
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


def library_title(library: str) -> str:
    """The library's own spelling."""
    return TITLES.get(library, library)


def distinct(items: Iterable[Any]) -> list[Any]:
    """Distinct items in order of first appearance."""
    return list(dict.fromkeys(items))

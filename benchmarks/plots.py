"""Learning curves: one panel for each library, our objectives in colour, the native ones in grey."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.experiment import Row
from ltr_objectives._files import replacing

OURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: told apart by everyone
NATIVE = (("#222222", "-"), ("#888888", "-"), ("#222222", ":"), ("#888888", ":"), ("#222222", "--"))
TITLES = {"xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
INK, PALE = "#333333", "#DDDDDD"


def learning_curves(rows: Sequence[Row], metric: str, title: str, path: Path) -> Path:
    """Draw the vali metric by iteration to a PNG: a dot where early stopping cut the model, what follows faint."""
    libraries = list(dict.fromkeys(row.library for row in rows))
    names = list(dict.fromkeys(row.objective for row in rows if not row.native))
    colours = {name: OURS[i % len(OURS)] for i, name in enumerate(names)}
    figure = Figure(figsize=(1.5 + 4.4 * len(libraries), 4.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(libraries), sharey=True, squeeze=False)[0]
    for ax, library in zip(axes, libraries, strict=True):
        block = [row for row in rows if row.library == library]
        natives = [row for row in block if row.native]
        for row in [*natives, *(r for r in block if not r.native)]:
            if row.native:
                colour, style = NATIVE[natives.index(row) % len(NATIVE)]
            else:
                colour, style = colours[row.objective], "-"
            trees = np.arange(1, len(row.curve) + 1)
            ax.plot(trees, row.curve, style, color=colour, lw=1.2, alpha=0.3)
            used = slice(row.best_iteration)
            ax.plot(trees[used], row.curve[used], style, color=colour, lw=1.6, label=_label(row))
            ax.plot(row.best_iteration, max(row.curve), "o", color=colour, ms=6, mec="white", mew=1.0, zorder=5)
        ax.set_title(TITLES.get(library, library), loc="left", fontsize=12, fontweight="bold", color=INK)
        ax.set_xlabel("trees", color=INK)
        ax.legend(
            loc="lower right", fontsize=8.5, labelcolor="linecolor", handlelength=1.4,
            facecolor="white", edgecolor="none", framealpha=1.0,
        )  # fmt: skip
        quiet(ax)
    axes[0].set_ylabel(f"vali {metric}", color=INK)
    axes[0].set_ylim(*_limits(rows))
    marks = "dots at the trees that early stopping kept, pale those beyond"
    figure.suptitle(f"{title}; {marks}", x=0.01, ha="left", fontsize=11, color=INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        figure.savefig(new)
    return path


def _label(row: Row) -> str:
    return f"{row.objective} (native)" if row.native else row.objective


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """Room for where the curves differ: the first few trees, far below, are cut off."""
    top = max(max(row.curve) for row in rows)
    low = min(float(np.quantile(row.curve, 0.05)) for row in rows)
    height = max(top - low, 1e-3)
    return low - 0.5 * height, top + 0.06 * height


def quiet(ax: Any) -> None:
    """No frame, no ticks, pale lines."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.grid(axis="y", color=PALE, lw=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(colors=INK, length=0, labelsize=9)

"""``python -m benchmarks order``: the order of objectives in a study, beside the published one."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option, echo

from ltr_objectives.errors import require
from ltr_objectives.workbench.texts import pipe_table, signed

SETS = ("Web10K", "Web30K", "Yahoo S1", "Yahoo S2", "Istella", "Istella-S")
# Lyzhin et al., "Which Tricks Are Important for Learning to Rank?", ICML 2023, table 2, in percent.
PUBLISHED = {
    "ndcg@10": {
        "queryrmse": (50.55, 52.19, 79.10, 78.01, 69.66, 74.83),
        "lambdamart": (49.38, 50.93, 78.63, 77.31, 69.83, 75.55),
        "yetirank": (50.75, 52.31, 79.19, 77.99, 73.02, 77.15),
        "yetiloss": (50.76, 51.90, 78.67, 77.77, 71.60, 76.32),
    },
    "mrr": {
        "queryrmse": (83.47, 85.38, 91.03, 92.56, 96.23, 97.63),
        "lambdamart": (82.59, 84.12, 90.75, 92.34, 95.18, 96.96),
        "yetirank": (84.21, 85.58, 91.20, 93.05, 96.70, 97.58),
        "yetiloss": (84.17, 86.01, 90.88, 93.21, 97.16, 97.97),
    },
    "map": {
        "queryrmse": (62.11, 63.51, 86.06, 88.40, 78.11, 88.59),
        "lambdamart": (57.93, 58.58, 85.91, 89.14, 80.80, 90.28),
        "yetirank": (62.07, 63.39, 85.94, 88.00, 80.01, 89.09),
        "yetiloss": (62.62, 64.03, 86.46, 89.37, 82.66, 91.07),
    },
    "err": {
        "queryrmse": (57.27, 59.30, 66.76, 67.16, 85.29, 85.55),
        "lambdamart": (56.54, 58.76, 66.22, 66.55, 84.71, 85.24),
        "yetirank": (57.41, 59.53, 66.69, 67.27, 87.29, 86.97),
        "yetiloss": (57.46, 59.53, 66.71, 67.15, 86.83, 86.59),
    },
}
BASE = "yetirank"
LABELS = {"queryrmse": "queryrmse", "lambdamart": "lambdamart:{metric}", "yetiloss": "yetiloss:{metric}"}
STUDY = "Folder of a study with yetirank, queryrmse, lambdamart:{metric} and yetiloss:{metric}."
Difference = tuple[float, float]  # and its standard error, NaN if it is not published


def differences(study: Path, library: str) -> dict[str, dict[tuple[str, str], Difference]]:
    """For each data set, by metric and objective: the difference from YetiRank."""
    from ltr_objectives.workbench.statistics import standard_error
    from ltr_objectives.workbench.summary import by_query, chosen

    files = sorted((study / "cells").glob("*.json"))
    require(files, f"{study} has no finished trainings")
    values = by_query(chosen(json.loads(file.read_text()) for file in files))
    found: dict[str, dict[tuple[str, str], Difference]] = {}
    for i, name in enumerate(SETS):
        found[name] = {
            (metric, label): ((row[label][i] - row[BASE][i]) / 100, float("nan"))
            for metric, row in PUBLISHED.items() for label in LABELS
        }  # fmt: skip
    for data in dict.fromkeys(key[0] for key in values):
        for metric in PUBLISHED:
            base = values.get((data, library, BASE, metric))
            for objective, label in LABELS.items():
                other = values.get((data, library, label, metric))
                if base is not None and other is not None:
                    gap = float(np.nanmean(other - base)), standard_error(other - base)
                    found.setdefault(data, {})[metric, objective] = gap
    return found


def table(found: dict[str, dict[tuple[str, str], Difference]]) -> str:
    """Differences in thousandths, a line for each data set, as Markdown."""
    columns = [(metric, label) for metric in PUBLISHED for label in LABELS]
    lines = [["data", *(f"{metric} {label}" for metric, label in columns)]]
    for data, row in found.items():
        cells = [row.get(column) for column in columns]
        lines.append([data, *("" if cell is None else _text(*cell) for cell in cells)])
    return pipe_table(lines, [False, *(True for _ in columns)])


def _text(difference: float, error: float) -> str:
    return signed(1000 * difference, 1000 * error, 1).removesuffix(" (nan)")


def picture(found: dict[str, dict[tuple[str, str], Difference]], path: Path) -> Path:
    """Draw the differences of all data sets, a panel for each metric."""
    from benchmarks.figures.style import INK, OURS, blank, quiet, write

    figure = blank(10, 3.6, "Test metric minus that of YetiRank: published (grey) and here (with 1.96 standard errors)")
    axes: Any = figure.subplots(1, len(PUBLISHED))
    own = [data for data in found if data not in SETS]
    for ax, metric in zip(axes, PUBLISHED, strict=True):
        for x, label in enumerate(LABELS):
            published = [found[name][metric, label][0] for name in SETS]
            ax.plot([x - 0.15] * len(published), published, "o", color="#999999", mfc="none", ms=5)
            for i, data in enumerate(own):
                if (metric, label) in found[data]:
                    value, error = found[data][metric, label]
                    place, colour = x + 0.1 + 0.13 * i, OURS[i % len(OURS)]
                    ax.errorbar([place], [value], [1.96 * error], fmt="o", color=colour, ms=4, label=data)
        ax.axhline(0.0, color=INK, lw=0.8)
        ax.set_xticks(range(len(LABELS)), LABELS, rotation=20)
        ax.set_title(metric, loc="left", fontsize=10, color=INK)
        quiet(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(shown.values(), shown.keys(), loc="outside lower left", ncols=4, frameon=False, fontsize=8)
    return write(figure, path)


def order(
    study: Annotated[Path, Option(help=STUDY)] = Path("results/quality"),
    library: Annotated[str, Option(help="Which library of the study.")] = "lightgbm",
    out: Annotated[Path, Option(help="The picture.")] = Path("order.png"),
) -> None:
    """Compare the order of objectives with the published one.

    A generator whose order differs from that of real data cannot choose defaults.
    """
    found = differences(study, library)
    echo(table(found))
    echo(f"written: {picture(found, out)}")

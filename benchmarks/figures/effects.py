"""The effect of one option: the metric of objectives of the study that differ in that option only."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.figures.style import INK, LIBRARY_COLOURS, blank, distinct, library_title, quiet, save, shown
from ltr_objectives.errors import LTRError
from ltr_objectives.registry import get_objective
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.summary import Values

MARKERS = dict(zip(LIBRARY_COLOURS, "osD", strict=False))


class Effect(NamedTuple):
    """Labels that differ in one option, by its value."""

    name: str  # what they have in common
    option: str
    labels: dict[Any, str]


def find_effects(labels: Sequence[str], metric: str) -> list[Effect]:
    """Every option in which objectives of ours differ while all others are equal, defaults included.

    >>> [found] = find_effects(["yetiloss:{metric};neighbors=1", "yetiloss:{metric}", "queryrmse"], "map")
    >>> found.name, found.option, list(found.labels)
    ('yetiloss:map', 'neighbors', [1, 'all'])
    """
    settings = {}
    for label in labels:
        try:
            objective = get_objective(label.replace("{metric}", metric))
        except LTRError:  # another metric than it takes
            continue
        values = {name: getattr(objective, name) for name in objective.parameters() if name != "seed"}
        settings[label] = objective.name, values
    found: dict[Any, dict[Any, str]] = {}
    for label, (name, values) in settings.items():
        for option, value in values.items():
            if option in ("metric", "preset"):
                continue
            rest = tuple((key, str(v)) for key, v in values.items() if key != option)
            found.setdefault((name, option, rest), {}).setdefault(_plain(value), label)
    return [
        Effect(_common(list(by.values()), option, metric), option, dict(sorted(by.items(), key=lambda x: _order(x[0]))))
        for (_, option, _), by in found.items() if len(by) > 1
    ]  # fmt: skip


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else str(value).lower()


def _order(value: Any) -> tuple[bool, Any]:
    """Sort numbers by size; words follow in their order."""
    return isinstance(value, str), 0 if isinstance(value, str) else value


def _common(labels: Sequence[str], option: str, metric: str) -> str:
    parts = labels[0].replace("{metric}", metric).replace(":", ";", 1).split(";")
    name, *rest = [part for part in parts if part.partition("=")[0].strip() != option]
    return f"{name}:{';'.join(rest)}" if rest else name


def effect_plot(values: Values, effect: Effect, metric: str, out: Path) -> Path | None:
    """Draw the test metric against the option, as differences from its first value over the same queries."""
    first, *_ = effect.labels.values()
    keys = [key for key in values if key[3] == metric and key[2] == first]
    sets, libraries = distinct(key[0] for key in keys), distinct(key[1] for key in keys)
    if not keys:
        return None
    title = f"{effect.name}: test {metric} by {effect.option}, less its value at the first; 95% intervals over queries"
    figure = blank(max(5.0, 1.0 + 2.7 * len(sets)), 3.6, title)
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for ax, data in zip(axes, sets, strict=True):
        ax.axhline(0.0, color=INK, lw=0.8)
        for i, library in enumerate(libraries):
            found = [(k, values.get((data, library, label, metric))) for k, label in enumerate(effect.labels.values())]
            base = found[0][1]
            points = [(k, v - base) for k, v in found if v is not None and base is not None]
            x = [k + 0.09 * (i - (len(libraries) - 1) / 2) for k, _ in points]
            half = [1.96 * standard_error(d) for _, d in points]
            look = {"color": LIBRARY_COLOURS.get(library, INK), "marker": MARKERS.get(library, "^")}
            name = library_title(library) if ax is axes[0] else None
            ax.errorbar(x, [np.nanmean(d) for _, d in points], half, lw=1.3, ms=5, elinewidth=1.0, label=name, **look)
        ax.set_xticks(range(len(effect.labels)), [str(v) for v in effect.labels], fontsize=9)
        ax.set_xlim(-0.4, len(effect.labels) - 0.6)
        ax.set_title(shown(data, metric, 24), loc="left", fontsize=10, fontweight="bold", color=INK)
        ax.set_xlabel(effect.option, color=INK)
        quiet(ax)
    axes[0].set_ylabel(f"difference in test {metric}", color=INK)
    figure.legend(loc="outside lower left", ncols=len(libraries), fontsize=9, frameon=False, labelcolor=INK)
    return save(figure, out, "effect", effect.name, effect.option, metric)

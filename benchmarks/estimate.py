"""How long a study will take, from its earlier trainings or else from a few trees of each library on each data set."""

import math
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import CONSTANT, Cell, library_of, objective_of
from benchmarks.watch import silent
from ltr_objectives.errors import LTRError

TREES = 1, 2, 8  # the first training compiles; the other two give the time of a training and of a tree


def probe(cell: Cell) -> tuple[float, float]:
    """Seconds of this training before its first tree, and of each tree."""
    library = library_of(cell)
    seconds = []
    for trees in TREES:
        library.budget = replace(cell.budget, trees=trees)
        seconds.append(library.run(objective_of(cell), silent).seconds)
    each = max(seconds[2] - seconds[1], 0.0) / (TREES[2] - TREES[1])
    return max(seconds[1] - TREES[1] * each, 0.0), each


def announce(todo: Sequence[Cell], wanted: Sequence[Cell], out: Path, jobs: int, pool: Executor) -> str:
    """The time left for ``todo``, in words; empty if nothing is left."""
    ahead = [cell for cell in todo if cell.objective != CONSTANT]
    if not ahead:
        return ""
    left = set(todo)
    done = recorded([cell for cell in wanted if cell not in left], out)
    probes: dict[Any, Future[tuple[float, float]]] = {}
    for cell in sorted(ahead, key=lambda c: c.native):  # ours first: they cost more
        place = cell.fold.data, cell.library
        if place not in probes and place not in done:
            probes[place] = pool.submit(probe, cell)
    costs = {}
    for place, future in probes.items():
        try:
            costs[place] = future.result()
        except LTRError:  # raised again when it is trained
            continue
    total = 0.0
    for cell in ahead:
        place = cell.fold.data, cell.library
        fixed, each = costs.get(place, (0.0, 0.0))
        full = done.get((*place, cell.label), done.get(place, fixed + each * cell.budget.trees))
        total += full * cell.trainings(out)
    minutes = math.ceil(total / jobs / 60)
    count = sum(cell.trainings(out) for cell in ahead)
    text = f"about {in_words(minutes)} for {count:,} trainings, {jobs} at a time"
    return text + ("; less where they stop early" if costs else "")


def in_words(minutes: int) -> str:
    """Hours and minutes.

    >>> in_words(1), in_words(125)
    ('1 minute', '2 h 5 min')
    """
    if minutes < 60:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{minutes // 60} h {minutes % 60} min"


def recorded(cells: Sequence[Cell], out: Path) -> dict[Any, float]:
    """Mean seconds of a training, by data set and library, and by objective as well."""
    found: dict[Any, list[float]] = {}
    for cell in cells:
        result = cell.result(out)
        if result is not None and cell.library:
            seconds = result["seconds"] / cell.trainings(None)
            for key in ((cell.fold.data, cell.library), (cell.fold.data, cell.library, cell.label)):
                found.setdefault(key, []).append(seconds)
    return {key: float(np.mean(seconds)) for key, seconds in found.items()}

"""The trainings of a study, planned from the names of what is compared."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cells import CONSTANT, Cell
from benchmarks.folds import Fold
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.workbench.cli.options import names_in, python_value
from ltr_objectives.workbench.trials import Budget


def plan(
    folds: Sequence[Fold], libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str],
    metrics: Sequence[str], budgets: Sequence[Budget], param: Sequence[str] = (), smooth: Sequence[str] = (),
) -> list[Cell]:  # fmt: skip
    """Plan every training of the study; those on the same data come together."""
    for library in libraries:
        check_choice("libraries", library, tuple(LIBRARIES))
    tried = {library: list(itertools.product(*values)) for library, values in _params(param, libraries).items()}
    names = tuple(dict.fromkeys(str(get_metric(m)) for m in metrics))
    noisy = tuple(str(get_metric(m)) for m in smooth)
    for name in noisy:
        check_choice("smooth", name, names)
    require(libraries and names and folds and budgets, "name libraries, metrics, seeds and learning rates")
    known = [n for n in natives if n in ("usual", "none") or any(kind.knows(n) for kind in LIBRARIES.values())]
    require(len(known) == len(natives), f"--natives: {', '.join({*natives} - {*known})} is known to no library")
    sources: dict[Any, str] = {}
    planned = []
    for fold in folds:
        one = fold.data, Path(fold.source).name, fold.seed
        require(
            sources.setdefault(one, fold.source) == fold.source,
            f"{sources.get(one)} and {fold.source} have the same names; rename one, or their results are mixed up",
        )
        of_fold = [replace(b, seed=fold.seed) for b in budgets]
        planned.append(Cell("", CONSTANT, CONSTANT, names, replace(of_fold[0], trees=0), fold, noisy))
        for library in libraries:
            at = [replace(b, params=params) for b in of_fold for params in tried[library]]
            facts = LIBRARIES[library]
            usual = [*facts.rivals, *(facts.rivals_for.get(get_metric(name).name, "") for name in names)]
            own = [label for native in natives for label in (usual if native == "usual" else [native])]
            for label in (*filter(facts.knows, own), *objectives):
                planned += labelled(library, label, names, at, fold, noisy)
    return list(dict.fromkeys(planned))


def labelled(
    library: str, label: str, names: tuple[str, ...], budgets: Sequence[Budget], fold: Fold, smooth: tuple[str, ...]
) -> list[Cell]:
    """Return the trainings of a label: one for all metrics, or with ``{metric}`` one for each that the library has."""
    kind, found = LIBRARIES[library], []
    native = kind.knows(label)
    for targets in [(name,) for name in names] if "{metric}" in label else [names]:
        objective = label.replace("{metric}", kind.spelled(targets[0]) if native else targets[0])
        if kind.knows(objective) == native:  # else the library does not have it for this metric
            tried = [b for b in budgets if b.defaults or kind.twin(objective) is not None]
            found += [Cell(library, objective, label, targets, budget, fold, smooth) for budget in tried]
    return found


def _params(given: Sequence[str], libraries: Sequence[str]) -> dict[str, list[list[tuple[str, Any]]]]:
    """Return the values to try of each parameter, with its name, by library."""
    found: dict[str, dict[str, list[tuple[str, Any]]]] = {library: {} for library in libraries}
    for text in given:
        library, _, rest = text.partition(":")
        name, _, values = rest.partition("=")
        require(name and names_in(values), f"--param {text!r} must look like catboost:random_strength=0,1")
        require(library in found, f"--param {text!r}: {library} is not in --libraries")
        require(name not in found[library], f"--param {text!r}: {name} is given twice; put commas between values")
        found[library][name] = [(name, python_value(value)) for value in names_in(values)]
    return {library: [values for _, values in sorted(names.items())] for library, names in found.items()}

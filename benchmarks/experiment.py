"""Which trainings a comparison has, running them with a live display, and what comes out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.libraries import LIBRARIES, Budget, Library
from benchmarks.statistics import compare_with_reference
from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import RankingData, RankingFold
from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective


class Entry(NamedTuple):
    """One training: ``objective`` is ours, or the name of a native one."""

    library: str
    label: str
    objective: str | Objective

    @property
    def native(self) -> bool:
        return isinstance(self.objective, str)


@dataclass
class Row:
    """The result of one training; by metric its test mean, and p and mark against the library's reference."""

    library: str
    objective: str
    native: bool
    reference: bool
    best_iteration: int
    seconds: float
    test: dict[str, float]
    curve: list[float]
    p: dict[str, float] = field(default_factory=dict)
    mark: dict[str, str] = field(default_factory=dict)


def plan(libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str], seed: int = 0) -> list[Entry]:
    """Every training, natives first; ``natives`` may be ``("usual",)`` or ``("none",)``."""
    for library in libraries:
        check_choice("libraries", library, tuple(LIBRARIES))
    ours = [(label, seeded(get_objective(label), seed)) for label in objectives]
    entries = []
    taken: set[str] = set()
    for library in libraries:
        kind = LIBRARIES[library]
        chosen = kind.usual if tuple(natives) == ("usual",) else [n for n in natives if kind.knows(n)]
        taken.update(chosen)
        entries += [Entry(library, name, name) for name in chosen] + [Entry(library, *own) for own in ours]
    if tuple(natives) not in (("usual",), ("none",)):
        known = "; ".join(f"{name}: {', '.join(LIBRARIES[name].natives)}" for name in libraries)
        unknown = ", ".join(repr(n) for n in natives if n not in taken)
        require(not unknown, f"natives: {unknown} is not known in --libraries; there are {known}")
    require(entries, "nothing to train; name at least one library, and objectives or natives")
    return entries


def seeded(objective: Objective, seed: int) -> Objective:
    """The objective with this seed, where it takes one."""
    takes = "seed" in objective.parameters()
    return replace(objective, seed=seed) if takes else objective  # type: ignore[call-arg]  # a field of subclasses


def split_vali(train: RankingData, seed: int, share: float = 0.2) -> tuple[RankingData, RankingData]:
    """Train and vali, of randomly chosen queries, in the order of the data."""
    queries = len(train.group)
    require(queries >= 2, "the data has no vali part, and a single train query cannot be split")
    order = np.random.default_rng(seed).permutation(queries)
    cut = max(1, round(share * queries))
    return train.select(np.sort(order[cut:])), train.select(np.sort(order[:cut]))


def rehearse(entries: Sequence[Entry], fold: RankingFold, metrics: Sequence[Metric], threads: int) -> None:
    """Try all metrics and our objectives on the data, for early errors and to keep compilation out of the times."""
    for part in (fold.vali, fold.test, fold.train):
        assert part is not None
        queries, zeros = Queries(part.y, part.group), np.zeros(len(part.y))
        for metric in metrics:
            metric.values(queries, zeros, n_threads=threads)
    for objective in {entry.objective for entry in entries}:
        if isinstance(objective, Objective):
            objective.compute(queries, zeros, n_threads=threads)  # of the train part, the last


def run(
    entries: Sequence[Entry],
    fold: RankingFold,
    metrics: Sequence[Metric],
    budget: Budget,
    alpha: float = 0.05,
    console: Console | None = None,
) -> list[Row]:
    """Train all entries, stopped on the first metric; compare each with its library's first native objective."""
    console = console or Console()
    rehearse(entries, fold, metrics, budget.threads)
    rows: list[Row] = []
    with _display(console) as progress:
        total = progress.add_task("[bold]trainings", total=len(entries), value="")
        for name in dict.fromkeys(entry.library for entry in entries):
            library = prepare(name, fold, metrics[:1], budget)
            block: list[Row] = []
            values = []
            for entry in (e for e in entries if e.library == name):
                task = progress.add_task(f"{name}  {entry.label}", total=budget.trees, value="")
                best = [-np.inf]

                def show(value: float, task: Any = task, best: list[float] = best) -> None:
                    best[0] = max(best[0], value)
                    progress.update(task, advance=1, value=f"vali {metrics[0]} {value:.4f}, best {best[0]:.4f}")

                training = library.run(entry.objective, show)
                progress.remove_task(task)
                progress.advance(total)
                stop = str(metrics[0])
                curve, trees = training.curves[stop], training.best(stop)
                values.append(per_query(metrics, fold.test, training.scores(fold.test, stop), budget.threads))
                test = {metric: float(np.nanmean(v)) for metric, v in values[-1].items()}
                first = entry.native and not block
                block.append(Row(name, entry.label, entry.native, first, trees, training.seconds, test, curve))
                progress.console.print(
                    f"  {name:<9} {entry.label:<26} vali {stop} {max(curve):.4f} at tree {trees}, "
                    f"{training.seconds:.1f} s"
                )
            mark_against_reference(block, values, alpha)
            rows += block
    return rows


def _display(console: Console) -> Progress:
    text = TextColumn("{task.description:<38}"), TextColumn("{task.fields[value]}")
    return Progress(
        text[0], BarColumn(), MofNCompleteColumn(), text[1], TimeElapsedColumn(), console=console, transient=True
    )


def prepare(name: str, fold: RankingFold, metrics: Sequence[Metric], budget: Budget, *, tuned: bool = False) -> Library:
    """The library with its data sets."""
    try:
        return LIBRARIES[name](fold, metrics, budget, tuned=tuned)
    except ImportError as error:
        raise LTRError(f"{name} is not installed: pip install ltr-objectives[{name}] ({error})") from None
    except Exception as error:  # each library has its own kinds
        raise LTRError(f"{name} refuses the data: {error}") from error


def per_query(metrics: Sequence[Metric], part: RankingData, scores: np.ndarray, threads: int) -> dict[str, np.ndarray]:
    """The value of each query, by metric."""
    queries = Queries(part.y, part.group)
    return {str(m): m.values(queries, scores, n_threads=threads) for m in metrics}


def mark_against_reference(rows: Sequence[Row], values: Sequence[dict[str, np.ndarray]], alpha: float) -> None:
    """Fill in ``p`` and ``mark`` of each row but the reference; without one there is nothing to compare with."""
    others = [i for i, row in enumerate(rows) if not row.reference]
    for at in (i for i, row in enumerate(rows) if row.reference):
        for metric in values[at]:
            found = compare_with_reference([values[i][metric] for i in others], values[at][metric], alpha)
            for i, (p, mark) in zip(others, found, strict=True):
                rows[i].p[metric], rows[i].mark[metric] = p, mark

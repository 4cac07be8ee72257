"""Objectives against each other on the same folds, in the order of the trials, and the table of what they reach."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ltr_objectives.attempts import try_each, warn_without_ours
from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES, named
from ltr_objectives.metrics.base import Metric
from ltr_objectives.statistics import BETTER, WORSE, contest_table, mark
from ltr_objectives.workbench.data import RankingFold
from ltr_objectives.workbench.texts import marked, p_of, show, signed
from ltr_objectives.workbench.trials import Result, Trial, run

CAPTION = (
    "Means over test queries. {0} better, {1} worse than {3}: paired t-test, p < {2:g} after Holm's correction over "
    "the objectives of the library. Bold: best of the library."
)
OWN_BEST = "the library's own best objective for this metric"
DEFAULTS = (
    "In brackets: standard errors of differences. Native n/m: trained with the library's own defaults in n of m folds, "
    "because they were better on validation data; in the others with the settings of our objectives."
)
RISING = "A + after trees: in most folds validation was best at the last tree allowed, and more may be better."
COLUMNS = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
ALPHA = 0.05  # the level of the tests
Key = tuple[str, str]  # library and objective
Results = list[list[Result]]  # of one objective in one library: by fold, with each budget


class Line(NamedTuple):
    """One objective in one library by one metric; those of `Row` are of all test queries."""

    data: str
    library: str
    objective: str
    metric: str
    native: bool
    queries: int
    mean: float
    se: float
    reference: str | None
    difference: float
    difference_se: float
    p: float
    trees: int  # the median over folds of the best numbers
    seconds: float  # of all trainings
    defaults: int  # the folds in which validation chose the library's defaults for a native objective
    rising: bool  # in most folds validation was best at the last tree allowed
    folds: int


def compete(
    planned: Sequence[Trial], folds: Sequence[Callable[[], RankingFold]], metrics: Sequence[Metric], screen: Console, *,
    required: bool,
) -> tuple[dict[Key, Results], dict[str, str]]:  # fmt: skip
    """Train all trials. Return the results, and why others could not be trained; raise instead if ``required``.

    Shows a progress bar on a terminal.
    """
    trials = {key: list(group) for key, group in groupby(planned, lambda trial: (trial.library, trial.objective))}
    with Progress(*COLUMNS, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("", total=len(folds) * len(planned))

        def attempt(key: Key) -> Results:
            progress.update(task, description=" ".join(key))
            return _trained(trials[key], folds, metrics, lambda: progress.advance(task))

        found, left_out = try_each(trials, attempt, required=required)
    for library in dict.fromkeys(library for library, _ in trials):
        objectives = [objective for of, objective in found if of == library]
        warn_without_ours(objectives, {objective: why for (of, objective), why in left_out.items() if of == library})
    return found, {" ".join(key): why for key, why in left_out.items()}


def _trained(
    trials: Sequence[Trial], folds: Sequence[Callable[[], RankingFold]], metrics: Sequence[Metric],
    advance: Callable[[], object],
) -> Results:  # fmt: skip
    rows: Results = []
    for load in folds:
        fold = load()
        rows.append([])
        for trial in trials:
            rows[-1].append(run(trial, fold, metrics))
            advance()
    return rows


def best_trial(results: Results) -> Trial:
    """Return the trial with the largest mean on validation, with the median over folds of its best numbers of trees."""
    best = int(np.mean([[result.vali for result in of_fold] for of_fold in results], axis=0).argmax())
    trees = max(1, round(float(np.median([of_fold[best].rounds for of_fold in results]))))
    trial = results[0][best].trial
    return trial._replace(budget=replace(trial.budget, trees=trees))


def values_of(found: Mapping[Key, Results], ids: Sequence[np.ndarray]) -> pd.DataFrame:
    """Return a row for each library, objective and test query, whose ``ids`` are by fold; a column for each metric."""
    of_folds = []
    for (library, objective), results in found.items():
        for fold, of_fold in enumerate(results):
            values = max(of_fold, key=lambda each: each.vali).values
            row = {"library": library, "objective": objective, "fold": fold, "query": ids[fold], **values}
            of_folds.append(pd.DataFrame(row))
    return pd.concat(of_folds, ignore_index=True)


def table_of(
    found: Mapping[Key, Results], data: str, metrics: Sequence[Metric], reference: str | None = None
) -> list[Line]:
    """Return a line for each library, objective and metric, by the mean of the first metric, best first.

    The lines of a library, and those of an objective, stand together.
    """
    lines: dict[Key, list[Line]] = {key: [] for key in found}
    kept = {key: [max(of_fold, key=lambda each: each.vali) for of_fold in found[key]] for key in found}
    folds = next(iter(kept.values()))
    for library, metric in product(dict.fromkeys(library for library, _ in found), metrics):
        of_folds = [weight for result in folds if (weight := result.weights[str(metric)]) is not None]
        weight = np.concatenate(of_folds) if of_folds else None
        own = {objective: results for (of, objective), results in kept.items() if of == library}
        values = {o: np.concatenate([r.values[str(metric)] for r in results]) for o, results in own.items()}
        for row in contest_table(values, weight, reference, [o for o in own if LIBRARIES[library].knows(o)]):
            key, of = (library, row.objective), own[row.objective]
            lines[key].append(Line(
                data=data, library=library, metric=str(metric), **row._asdict(),
                trees=best_trial(found[key]).budget.trees,
                seconds=sum(result.seconds for of_fold in found[key] for result in of_fold),
                defaults=sum(result.trial.budget.defaults for result in of),
                rising=2 * sum(result.rounds == result.trial.budget.trees for result in of) > len(of),
                folds=len(of),
            ))  # fmt: skip
    keys = sorted(lines, key=lambda key: -lines[key][0].mean)
    libraries = list(dict.fromkeys(library for library, _ in keys))
    return [line for key in sorted(keys, key=lambda key: libraries.index(key[0])) for line in lines[key]]


def rows_of(lines: Sequence[Line], metrics: Sequence[str]) -> list[list[str]]:
    """Return the rows of a printed table: library, objective, and each metric with its mark."""
    best = {(x.library, x.metric): x.mean for x in sorted(lines, key=lambda x: x.mean)}
    blocks: dict[Key, dict[str, Line]] = {}
    for line in lines:
        blocks.setdefault((line.library, line.objective), {})[line.metric] = line

    def cell(line: Line | None) -> str:
        if line is None:
            return ""
        bold = "**" if line.library and line.mean == best[line.library, line.metric] else ""
        return marked(f"{bold}{line.mean:.4f}{bold}", mark(line.difference, line.p, ALPHA))

    return [[key[0], named(*key), *(cell(block.get(metric)) for metric in metrics)] for key, block in blocks.items()]


def print_table(
    console: Console, lines: Sequence[Line], metrics: Sequence[str], title: str,
    notes: Sequence[str] = (), reference: str | None = None,
) -> None:  # fmt: skip
    """Print the table, with differences in the first metric, and an explanation."""
    goal = [line for line in lines if line.metric == metrics[0]]
    references = {(line.library, line.reference) for line in goal}

    def row(line: Line, cells: Sequence[str]) -> list[str]:
        library, objective = line.library, line.objective
        label = f"{objective} (native {line.defaults}/{line.folds})" if line.native else objective
        compared = ["reference" if (library, objective) in references else "", ""]
        if line.reference:
            compared = [signed(line.difference, line.difference_se), p_of(line.p)]
        return [library, label, *cells, *compared, f"{line.trees}{'+' * line.rising}", f"{line.seconds:.1f}"]

    rows = [row(line, cells) for line, (_, _, *cells) in zip(goal, rows_of(lines, metrics), strict=True)]
    head = ["library", "objective", *metrics, f"difference in {metrics[0]}", "p", "trees", "seconds"]
    rising = [RISING] if any(line.rising for line in goal) else []
    others = {x.library for x in goal if x.reference} - {x.library for x in goal if x.objective == reference}
    than = " or ".join([*([reference] if reference else []), *([OWN_BEST] if others or not reference else [])])
    caption = [CAPTION.format(BETTER, WORSE, ALPHA, than), DEFAULTS, *rising]
    show(console, [head, *rows], title, " ".join([*caption, *(f"{n}." for n in notes)]))


def winner_of(lines: Sequence[Line], library: str = "") -> tuple[Line, str]:
    """Return the best line by the first metric, of one library if it is named, and a sentence about its certainty."""
    goal = [x for x in lines if x.metric == lines[0].metric and library in ("", x.library)]
    require(goal, f"no objective of {library} could be trained; leave --save-best out, or see the data")
    winner = max(goal, key=lambda line: line.mean)
    text = f"{winner.library}, {winner.objective}"
    if winner.reference:  # else it is the library's own best, or none was trained
        found = f"significant (p < {ALPHA:g})" if winner.p < ALPHA else "not significant"
        text += f"; its lead over {winner.reference} is {found}"
    return winner, text

"""Objectives against each other on the same folds, in the order of the trials, and the table of what they reach."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console

from ltr_objectives.errors import require
from ltr_objectives.statistics import BETTER, WORSE
from ltr_objectives.workbench.data import RankingFold
from ltr_objectives.workbench.summary import CAPTION, OWN_BEST, by_query, chosen, rows_of, summary
from ltr_objectives.workbench.texts import p_of, show, signed
from ltr_objectives.workbench.trials import Budget, Record, Trial, measure, train, try_each, warn_without_ours

DEFAULTS = (
    "Defaults n/m: in n of m folds vali chose the library's own defaults for a native objective, in the others the "
    "settings of ours."
)
Key = tuple[str, str]  # library and label


class Outcome(NamedTuple):
    """One objective in one library, over all folds."""

    records: list[list[Record]]  # by fold and budget
    budget: Budget  # the one with the largest mean on vali
    trees: int  # the median over folds of its best numbers of trees
    seconds: float


def compete(
    planned: Sequence[Trial], folds: Sequence[Callable[[], RankingFold]], name: str, *, required: bool,
    begin: Callable[[Key], object], done: Callable[[], object],
) -> tuple[dict[Key, Outcome], dict[str, str]]:  # fmt: skip
    """Train everything, and give a reason for what is left out because it cannot be trained, unless it is required.

    ``name`` is that of the data. ``begin`` is called before each objective, ``done`` after each training.
    """
    trials = {key: list(group) for key, group in groupby(planned, lambda trial: (trial.library, trial.label))}

    def attempt(key: Key) -> Outcome:
        begin(key)
        return _outcome(trials[key], folds, name, done)

    found, left_out = try_each(trials, attempt, required=required)
    for library in dict.fromkeys(library for library, _ in trials):
        labels = [label for of, label in found if of == library]
        warn_without_ours(labels, {label: why for (of, label), why in left_out.items() if of == library})
    return found, {" ".join(key): why for key, why in left_out.items()}


def _outcome(trials: Sequence[Trial], folds: Sequence[Callable[[], RankingFold]], name: str, done: Any) -> Outcome:
    records: list[list[Record]] = []
    for i, load in enumerate(folds):
        fold = load()
        if i == 0:  # compiles before the clock runs
            train(replace(trials[0], budget=replace(trials[0].budget, trees=1)), fold.train, fold.vali)
        records.append([])
        for trial in trials:
            records[-1].append(measure(trial, fold, train(trial, fold.train, fold.vali)) | {"fold": [name, i, 0]})
            done()
    first = trials[0].stop
    best = int(np.mean([[r["vali"][first] for r in row] for row in records], axis=0).argmax())
    trees = max(1, round(float(np.median([row[best]["trees"][first] for row in records]))))
    return Outcome(records, trials[best].budget, trees, sum(r["seconds"] for row in records for r in row))


def table_of(
    found: Mapping[Key, Outcome], weights: Mapping[str, np.ndarray | None], reference: str | None = None
) -> pd.DataFrame:
    """A line for each library, objective and metric, by the mean of the first metric, best first.

    ``weights`` of the test queries are by metric. The lines of a library, and those of an objective, stand together.
    ``defaults`` is the number of ``folds`` in which vali chose the library's defaults for a native objective.
    """
    frame = chosen(r for outcome in found.values() for row in outcome.records for r in row)
    table = summary(by_query(frame), randomise=False, weights=weights, reference=reference)
    once = frame[frame["metric"] == table["metric"].iloc[0]]
    defaults = once.groupby(["library", "label"])["defaults"].sum()
    goal = table[table["metric"] == table["metric"].iloc[0]].sort_values("mean", ascending=False, kind="stable")
    order = {name: i for i, name in enumerate(goal["library"].unique())}
    keys = sorted(zip(goal["library"], goal["objective"], strict=True), key=lambda key: order[key[0]])
    place = {key: i for i, key in enumerate(keys)}
    of = pd.Series(list(zip(table["library"], table["objective"], strict=True)))
    table = table.assign(
        trees=[found[key].trees for key in of], seconds=[found[key].seconds for key in of],
        defaults=[int(defaults[key]) for key in of], folds=[len(found[key].records) for key in of],
    )  # fmt: skip
    return table.iloc[np.argsort(of.map(place), kind="stable")].reset_index(drop=True)


def print_table(
    console: Console, rows: pd.DataFrame, metrics: Sequence[str], title: str, alpha: float, notes: Sequence[str] = (),
    reference: str | None = None,
) -> None:  # fmt: skip
    """Print the table, with differences in the first metric, and an explanation."""
    lines, goal = rows_of(rows, metrics, alpha), rows[rows["metric"] == metrics[0]]
    for line, of in zip(lines, goal.to_dict("records"), strict=True):
        line[1] = line[1].replace("(native)", f"(native, defaults {of['defaults']}/{of['folds']})")
        tested = of.get("p", np.nan) >= 0  # else it is the reference, or there is none
        marked = "reference" if of["objective"] in set(goal["reference"][goal["library"] == of["library"]]) else ""
        line += [signed(of["difference"], of["difference_se"]), p_of(of["p"])] if tested else [marked, ""]
        line += [str(of["trees"]), f"{of['seconds']:.1f}"]
    head = ["library", "objective", *metrics, f"difference in {metrics[0]}", "p", "trees", "seconds"]
    caption = CAPTION.format(BETTER, WORSE, alpha, reference or OWN_BEST)
    show(console, [head, *lines], title, " ".join([caption, DEFAULTS, *(f"{n}." for n in notes)]))


def winner_of(rows: pd.DataFrame, metric: str, alpha: float, library: str = "") -> tuple[Any, str]:
    """The best line by ``metric``, of one library if it is named, and a sentence about its certainty."""
    best = rows[(rows["metric"] == metric) & (rows["library"].isin([library] if library else rows["library"]))]
    require(not best.empty, f"no objective of {library} could be trained; leave --save-best out, or see the data")
    winner = best.loc[best["mean"].idxmax()]
    text = f"{winner['library']}, {winner['objective']}"
    if winner.get("p", -1) >= 0:  # else it is the library's own best, or none was trained
        text += f"; its lead over {winner['reference']} is {'beyond' if winner['p'] < alpha else 'within'} chance"
    return winner, text

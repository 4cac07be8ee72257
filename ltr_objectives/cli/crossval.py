"""Cross-validation by query: one fold is the test part, the next stops the trainings, the others train."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._libraries import LIBRARIES
from ltr_objectives.cli.libraries import ranker_of
from ltr_objectives.comparison.budget import Budget, in_documents, params_of
from ltr_objectives.comparison.candidates import labels_for
from ltr_objectives.datasets import RankingData
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.around import UnitHessian
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective


class Fold(NamedTuple):
    """The queries of each part, by their positions in the data."""

    train: np.ndarray
    vali: np.ndarray
    test: np.ndarray


class Outcome(NamedTuple):
    """One objective in one library, over all folds."""

    values: dict[str, np.ndarray]  # by metric, of every query when it was in the test part
    budget: Budget  # the one with the largest mean on vali
    trees: int  # the median over folds of its best numbers of trees
    seconds: float


def folds_of(queries: int, count: int, seed: int) -> list[Fold]:
    """``count`` folds of randomly chosen queries; all parts keep the order of the data."""
    require(queries >= count, f"--folds {count} needs at least as many queries, and the data have {queries}")
    parts = [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(queries), count)]
    found = []
    for i, test in enumerate(parts):
        vali = parts[(i + 1) % count]
        rest = np.setdiff1d(np.arange(queries), np.concatenate([test, vali]))
        found.append(Fold(rest, vali, test))
    return found


def queries_of(data: RankingData) -> Queries:
    """The validated queries."""
    return Queries(data.y, data.group, weight=data.weight)


def fit(library: str, label: str, budget: Budget, metric: Metric, data: RankingData, vali: RankingData | None) -> Any:
    """The ranker, stopped early on ``vali`` if there is one."""
    facts = LIBRARIES[library]
    native = facts.knows(label)
    objective = label if native else get_objective(label)
    if not isinstance(objective, str) and getattr(objective.inner, "preset", None) is not None:
        objective = UnitHessian(objective)  # the ranker does this for all others
    settings = params_of(library, in_documents(library, budget, objective, queries_of(data)))
    stopping: dict[str, Any] = {}
    if vali is not None:
        stopping = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "eval_sample_weight": [vali.weight],
                    "early_stopping_rounds": budget.patience}  # fmt: skip
    y, _ = labels_for(library, label, data.y)
    with ranker_of(library) as ranker_class:
        ranker = ranker_class(objective=objective, eval_metric=metric, n_estimators=budget.trees, **settings)
        return ranker.fit(data.X, y, qid=data.qid, sample_weight=data.weight, **stopping)


def cross_validate(
    library: str, label: str, data: RankingData, folds: Sequence[Fold], metrics: Sequence[Metric],
    budgets: Sequence[Budget], advance: Callable[[], object],
) -> Outcome:  # fmt: skip
    """Train on each fold with each budget; the budget with the best vali value of the first metric counts.

    ``advance`` is called after each training.
    """
    values = {str(metric): np.empty(len(data.group)) for metric in metrics}
    on_vali, trees = np.empty((2, len(folds), len(budgets)))
    seconds = 0.0
    train, vali, _ = (data.select(part) for part in folds[0])
    fit(library, label, replace(budgets[0], trees=1), metrics[0], train, vali)  # compiles before the clock runs
    for i, fold in enumerate(folds):
        train, vali, test = (data.select(part) for part in fold)
        for j, budget in enumerate(budgets):
            start = perf_counter()
            ranker = fit(library, label, budget, metrics[0], train, vali)
            seconds += perf_counter() - start
            scores = ranker.predict(vali.X)
            on_vali[i, j] = metrics[0].mean(queries_of(vali), scores, n_threads=budget.threads)
            trees[i, j] = ranker.best_iteration_
            if on_vali[i, j] > on_vali[i, :j].max(initial=-np.inf):
                scores = ranker.predict(test.X)
                for metric in metrics:
                    found = metric.values(queries_of(test), scores, n_threads=budget.threads)
                    values[str(metric)][fold.test] = found
            advance()
    best = int(on_vali.mean(axis=0).argmax())
    return Outcome(values, budgets[best], max(1, round(float(np.median(trees[:, best])))), seconds)


def refit(library: str, label: str, outcome: Outcome, metric: Metric, data: RankingData) -> Any:
    """The ranker on all queries, with the settings and the number of trees that did best."""
    return fit(library, label, replace(outcome.budget, trees=outcome.trees), metric, data, None)

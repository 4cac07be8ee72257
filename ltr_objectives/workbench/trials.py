"""The engine of trials: one objective in one library, trained with one budget on one fold, and what it reaches."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from time import perf_counter
from traceback import walk_tb
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives import adapters
from ltr_objectives.candidates import hessian_of, labels_for
from ltr_objectives.errors import LTRError, essence, require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.around import UnitHessian, innermost
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.data import RankingData, RankingFold, cut


@dataclass(frozen=True)
class Budget:
    """The settings that every training of a comparison shares."""

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50  # trees without a better validation value
    min_child_weight: float = 1.0  # least Hessian of a leaf, in documents
    documents: float = 20.0  # L2, in documents
    threads: int = 1
    seed: int = 0
    params: tuple[tuple[str, Any], ...] = ()  # by the library's own names; they override the fields above
    defaults: bool = False  # take leaves, least Hessian, L2 and sampling as the library has them, and params


class Trial(NamedTuple):
    """One objective in one library, with one budget."""

    library: str
    objective: str  # ours, or the library's own
    budget: Budget


class Result(NamedTuple):
    """The result of a trial on a fold."""

    trial: Trial
    values: dict[str, np.ndarray]  # by metric, of each test query; NaN without a value
    weights: dict[str, np.ndarray | None]  # by metric, of each test query in the mean
    vali: float  # the first metric, at the rounds kept
    rounds: int
    seconds: float
    curve: list[float]  # the first metric on validation data by round


def trials(library: str, objective: str, budgets: Sequence[Budget]) -> list[Trial]:
    """Return the trials of an objective. A native one is trained at its library's defaults too, and validation chooses.

    If the Hessians of the native one are not known, it is trained at the defaults alone.
    """
    facts = LIBRARIES[library]
    own = [replace(b, defaults=True) for b in budgets] if facts.knows(objective) else []
    like_ours = () if facts.twin(objective) is None else budgets
    return [Trial(library, objective, budget) for budget in (*own, *like_ours)]


def run(trial: Trial, fold: RankingFold, metrics: Sequence[Metric]) -> Result:
    """Train on the train part, stopped by the first metric on the validation part; evaluate on the test part."""
    ranker, seconds = train(trial, fold.train, fold.vali, metrics[:1])
    curve = ranker.evals_result_["validation_0"][str(metrics[0])]
    queries, scores, rounds = queries_of(fold.test), ranker.predict(fold.test.X), ranker.best_iteration_
    values = {str(m): m.values(queries, scores, n_threads=trial.budget.threads) for m in metrics}
    weights = {str(m): m.weight_by_query(queries) for m in metrics}
    return Result(trial, values, weights, curve[rounds - 1], rounds, seconds, curve)


def train(trial: Trial, data: RankingData, vali: RankingData | None, metrics: Sequence[Metric]) -> tuple[Any, float]:
    """Train; return the fitted estimator of a trial, and the seconds of its training."""
    library, name, budget = trial
    data = replace(data, y=labels_for(library, name, data.y, metrics[0])[0])
    objective: str | Objective = name
    if not LIBRARIES[library].knows(name):
        objective = get_objective(name)
        if getattr(innermost(objective), "preset", None) is not None:
            objective = UnitHessian(objective)  # the estimators do this for all others
    params = params_of(library, name, budget, queries_of(data))
    return fit(library, objective, metrics, params, data, vali, budget.patience)


@contextmanager
def estimator(library: str) -> Iterator[Any]:
    """Yield our estimator's class. The library prints to stderr, and its errors become LTRError, but not our bugs."""
    with redirect_stdout(sys.stderr):
        try:
            yield getattr(adapters, LIBRARIES[library].ranker)
        except (LIBRARIES[library].exception(), ValueError, TypeError) as said:
            modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(said.__traceback__))
            packages = (module.strip("_").partition(".")[0] for module in modules)
            *_, owner = (each for each in packages if each in ("ltr_objectives", "sklearn", library))
            if isinstance(said, LTRError) or owner == "ltr_objectives":
                raise
            raise LTRError(f"{library}: {essence(str(said))}") from None


def fit(
    library: str, objective: str | Objective | None, metrics: Sequence[Metric], params: Mapping[str, Any],
    data: RankingData, vali: RankingData | None, patience: int,
) -> tuple[Any, float]:  # fmt: skip
    """Train our estimator with the library's own ``params``; return it and the seconds.

    A single metric stops early on ``vali``, if there is one.
    """
    given: dict[str, Any] = {}
    if vali is not None:
        given = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "eval_sample_weight": [vali.weight]}
        given |= {"early_stopping_rounds": patience} if len(metrics) == 1 else {}
    with estimator(library) as ranker_class:
        start = perf_counter()
        ranker = ranker_class(objective=objective, eval_metric=list(metrics), **params)
        ranker.fit(data.X, data.y, qid=data.qid, sample_weight=data.weight, **given)
    return ranker, perf_counter() - start


def params_of(library: str, objective: str, budget: Budget, queries: Queries) -> dict[str, Any]:
    """Return the library's own parameters with the shape, regularisation, threads and seed of the budget.

    >>> params_of("catboost", "YetiRank", Budget(leaves=31), Queries([1, 0], [2]))["depth"]
    5
    """
    facts, b = LIBRARIES[library], budget
    found: dict[str, Any] = {"n_estimators": b.trees, "learning_rate": b.learning_rate, facts.threads: b.threads}
    found |= {facts.seed: b.seed, **facts.reproducible()}
    if b.defaults:
        return found | dict(b.params)
    document = hessian_of(library, objective, queries, b.threads)
    found |= facts.shaped(b.leaves, l2=document * b.documents, least_hessian=document * b.min_child_weight)
    return found | dict(b.params)


def queries_of(data: RankingData) -> Queries:
    """Return the validated queries."""
    return Queries(data.y, data.group, weight=data.weight)


class Split(NamedTuple):
    """The queries of the parts of a fold, by their positions in the data."""

    train: np.ndarray
    vali: np.ndarray
    test: np.ndarray

    def of(self, data: RankingData) -> RankingFold:
        """Cut the data into the parts."""
        return RankingFold(*(data.select(queries) for queries in self))


def cross_validation(data: RankingData, count: int, seed: int) -> list[Split]:
    """Return ``count`` folds of randomly chosen queries; all parts keep the order of the data.

    In turn one part is test, the next validation, and the others train.
    """
    queries = len(data.group)
    require(queries >= count, f"--folds {count} needs at least as many queries, and the data have {queries}")
    parts = [np.sort(part) for part in np.array_split(np.random.default_rng(seed).permutation(queries), count)]
    found = []
    for i, test in enumerate(parts):
        vali = parts[(i + 1) % count]
        found.append(Split(np.setdiff1d(np.arange(queries), np.concatenate([test, vali])), vali, test))
    return found


def forward(values: np.ndarray, count: int, name: str) -> list[Split]:
    """Return ``count`` folds of queries with ``values``, of the column ``name``, such as dates.

    The sorted values are cut into ``count + 2`` blocks with about equally many queries, no value in two blocks. Each of
    the last ``count`` blocks is once test; the block before it is validation, and all blocks before that train.
    """
    known, of, sizes = np.unique(values, return_inverse=True, return_counts=True)
    require(
        len(known) >= count + 2,
        f"--folds-by {name}: {count} folds need at least {count + 2} different values, and there are {len(known)}; "
        "lower --folds",
    )
    block = np.searchsorted(cut(sizes, count + 2), of, side="right") - 1
    return [Split(*(np.flatnonzero(part) for part in (block < i - 1, block == i - 1, block == i)))
            for i in range(2, count + 2)]  # fmt: skip


def split_vali(train: RankingData, seed: int, share: float = 0.2) -> tuple[RankingData, RankingData]:
    """Split off validation data of randomly chosen queries; both keep the order of the data."""
    queries = len(train.group)
    require(queries >= 2, "the data has no validation part, and a single train query cannot be split")
    order = np.random.default_rng(seed).permutation(queries)
    n_vali = max(1, round(share * queries))
    return train.select(np.sort(order[n_vali:])), train.select(np.sort(order[:n_vali]))

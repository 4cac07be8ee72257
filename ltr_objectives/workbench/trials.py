"""The engine of trials: one objective in one library, trained with one budget on one fold, and what it reaches.

:func:`train` trains a :class:`Trial` with our estimators. :func:`measure` adds the values of the test queries, in a
record that :mod:`ltr_objectives.workbench.summary` pools over folds and tests against the library's own objectives.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_choice
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.kernels.records import Terms
from ltr_objectives.libraries import LIBRARIES, is_native
from ltr_objectives.metrics.base import Metric, get_metric
from ltr_objectives.objectives.around import UnitHessian
from ltr_objectives.objectives.base import Objective, get_objective
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.candidates import labels_for
from ltr_objectives.workbench.data import RankingData, RankingFold, cut

DRAWS, NOISE = 8, 0.1  # of a smoothed metric: noisy scores, and their noise in standard deviations of the scores
Record = dict[str, Any]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True)
class Budget:
    """The settings that every training of a comparison shares."""

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50  # trees without a better vali value
    min_child_weight: float = 1e-3
    l2: float = 0.0
    threads: int = 1
    seed: int = 0
    params: tuple[tuple[str, Any], ...] = ()  # by the library's own names; they override the fields above
    documents: float = 0.0  # L2 in documents; min_child_weight is then in documents, too; 0 takes the L2 above
    smooth: tuple[str, ...] = ()  # metrics whose vali value is the mean over slightly noisy scores
    defaults: bool = False  # take leaves, least Hessian, L2 and sampling as the library has them, and params


def params_of(library: str, budget: Budget) -> dict[str, Any]:
    """The library's own parameters with the shape, regularisation, threads and seed of the budget.

    >>> params_of("catboost", Budget(leaves=31))["depth"]
    5
    """
    check_choice("library", library, tuple(LIBRARIES))
    b = budget
    found: dict[str, Any] = {"learning_rate": b.learning_rate, LIBRARIES[library].threads: b.threads}
    found["random_seed" if library == "catboost" else "seed"] = b.seed
    if library == "lightgbm":  # else timing chooses an algorithm, and so the last digits
        found |= {"deterministic": True, "force_col_wise": True}
    if b.defaults:
        return found | dict(b.params)
    if library == "xgboost":
        found |= {
            "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": b.leaves, "max_depth": 0,
            "min_child_weight": b.min_child_weight, "reg_lambda": b.l2,
        }  # fmt: skip
    elif library == "lightgbm":
        found |= {"num_leaves": b.leaves, "lambda_l2": b.l2, "min_sum_hessian_in_leaf": b.min_child_weight}
    else:
        found |= {
            "depth": max(1, round(np.log2(b.leaves))), "l2_leaf_reg": b.l2, "bootstrap_type": "No",
            "boosting_type": "Plain", "leaf_estimation_backtracking": "No", "random_strength": 0,
        }  # fmt: skip
    return found | dict(b.params)


def regularised(library: str, budget: Budget, objective: str | Objective, queries: Queries) -> Budget:
    """The budget with least Hessian and L2 in the units of the Hessians that the library sees on ``queries``.

    Of a native objective (a string) it sees the Hessians of its twin, of ours those that our estimators scale to
    documents. A document is the mean Hessian of a row.
    """
    if budget.defaults:
        return budget
    native = isinstance(objective, str)
    twin = LIBRARIES[library].natives.get(objective, "") if isinstance(objective, str) else objective
    document = typical(get_objective(twin), queries, budget.threads).hessian if twin else 1.0
    if budget.documents > 0:  # the budget is in documents
        scale, l2 = document if native else 1.0, budget.documents
    else:  # the budget is in the units of the objective itself
        scale, l2 = 1.0 if native or document < SMALLEST else 1.0 / document, budget.l2
    return replace(budget, l2=scale * l2, min_child_weight=scale * budget.min_child_weight)


@dataclass(frozen=True)
class Trial:
    """One training. Each metric is computed at its own early stop, or all of them at that of the metric ``stop``."""

    library: str
    objective: str  # ours, or the library's own
    label: str  # the objective as asked for, with {metric} not replaced
    metrics: tuple[str, ...]
    budget: Budget
    stop: str = field(default="", kw_only=True)

    @property
    def native(self) -> bool:
        """True if the objective is the library's own."""
        return LIBRARIES[self.library].knows(self.objective)

    @property
    def goal(self) -> Metric:
        """The metric that stops the training, else the first."""
        return get_metric(self.stop or self.metrics[0])

    @property
    def stops(self) -> dict[str, tuple[str, ...]]:
        """For each metric that stops the training, the metrics computed there."""
        return {self.stop: self.metrics} if self.stop else {metric: (metric,) for metric in self.metrics}


class Training(NamedTuple):
    """A finished training."""

    ranker: Any
    curves: dict[str, list[float]]  # vali values by metric and tree
    seconds: float
    patience: int

    def best(self, metric: str) -> int:
        """The best number of trees if early stopping watched this metric alone; the first of ties."""
        curve, best = self.curves[metric], 0
        for i, value in enumerate(curve):
            if value > curve[best]:
                best = i
            if i - best >= self.patience:
                break
        return best + 1

    def scores(self, X: Any, trees: int) -> np.ndarray:
        """Predictions of the first ``trees`` trees."""
        name = LIBRARIES[self.ranker.library.name].first_trees
        first = {name: (0, trees) if name == "iteration_range" else trees}
        return np.asarray(self.ranker.predict(X, **first), np.float64)


@dataclass(frozen=True)
class Smoothed(Metric):
    """A metric whose mean is that over slightly noisy scores of so many rows."""

    of: Any = None
    rows: int = 0

    name = "smoothed"
    maximum = None

    @cached_property
    def noise(self) -> np.ndarray:
        """By draw and row."""
        return np.random.default_rng(0).standard_normal((DRAWS, self.rows))

    def __str__(self) -> str:
        return str(self.of)

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        s = np.asarray(scores, np.float64)
        exact = partial(self.of.mean, queries, n_threads=n_threads)
        if len(s) != self.rows:  # other data, which CatBoost evaluates too
            return exact(s)
        return float(np.mean([exact(s + NOISE * s.std() * noise) for noise in self.noise]))

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        return self.of.layers(queries)

    def gain(self, labels: np.ndarray) -> np.ndarray:
        return self.of.gain(labels)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return self.of.discount(ranks)

    def reference(self, labels: np.ndarray) -> float:
        return self.of.reference(labels)


def try_each(
    keys: Iterable[K], attempt: Callable[[K], V], *, required: bool = False
) -> tuple[dict[K, V], dict[K, str]]:
    """Call ``attempt`` for each key; return the results, and a reason for each key that cannot be trained.

    Raise if nothing can be trained, and with ``required`` at the first error.
    """
    found: dict[K, V] = {}
    left_out: dict[K, str] = {}
    for key in keys:
        try:
            found[key] = attempt(key)
        except LTRError as error:
            if required:
                raise
            left_out[key] = " ".join(str(error).split())
    require(found, f"no objective could be trained: {next(iter(left_out.values()), '')}")
    return found, left_out


def warn_without_ours(found: Collection[str], left_out: Mapping[str, str]) -> None:
    """Warn if every objective of ours was left out, and the libraries' own were found. Both are by name."""
    native = {name for name in (*left_out, *found) for library in LIBRARIES if is_native(library, name)}
    ours = {name: why for name, why in left_out.items() if name not in native}
    if ours and native.issuperset(found):
        name, why = next(iter(ours.items()))
        warn(f"no objective of ours could be trained, so only native ones are compared; {name}: {why}")


def seeded(objective: Objective, seed: int) -> Objective:
    """The objective with this seed, in all of its parts."""
    objective = objective._around(*(seeded(member.objective, seed) for member in objective.members))
    takes = "seed" in objective.parameters()
    return replace(objective, seed=seed) if takes else objective  # type: ignore[call-arg]  # of subclasses


def objective_of(trial: Trial) -> str | Objective:
    """The name of a native objective, or ours with the seed of the budget."""
    return trial.objective if trial.native else seeded(get_objective(trial.objective), trial.budget.seed)


def queries_of(data: RankingData) -> Queries:
    """The validated queries."""
    return Queries(data.y, data.group, weight=data.weight)


def fit(
    library: str, objective: str | Objective, metrics: Sequence[Metric], params: Mapping[str, Any], data: RankingData,
    vali: RankingData | None, patience: int,
) -> tuple[Any, float]:  # fmt: skip
    """Train our estimator with the library's own ``params``; return it and the seconds.

    A single metric stops early on ``vali``, if there is one. Natives without grades learn what is relevant to it.
    """
    y = labels_for(library, str(objective), data.y, metrics[0])[0]
    given: dict[str, Any] = {}
    if vali is not None:
        given = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "eval_sample_weight": [vali.weight]}
        given |= {"early_stopping_rounds": patience} if len(metrics) == 1 else {}
    with LIBRARIES[library].estimator() as estimator:
        start = perf_counter()
        ranker = estimator(objective=objective, eval_metric=list(metrics), **params)
        ranker.fit(data.X, y, qid=data.qid, sample_weight=data.weight, **given)
    return ranker, perf_counter() - start


def train(
    trial: Trial, data: RankingData, vali: RankingData | None, objective: str | Objective | None = None, **params: Any
) -> Training:
    """Train, stopped early on ``vali`` if there is one and one metric stops; several metrics take all trees.

    ``objective`` and ``params``, by the library's own names, replace those of the trial.
    """
    budget = trial.budget
    objective = objective_of(trial) if objective is None else objective
    settings = params_of(trial.library, regularised(trial.library, budget, objective, queries_of(data))) | params
    if not isinstance(objective, str) and getattr(objective.inner, "preset", None) is not None:
        objective = UnitHessian(objective)  # the estimators do this for all others
    metrics = [get_metric(name) for name in trial.stops]
    if vali is not None:
        metrics = [Smoothed(of=m, rows=len(vali.y)) if str(m) in budget.smooth else m for m in metrics]
    settings["n_estimators"] = budget.trees
    ranker, seconds = fit(trial.library, objective, metrics, settings, data, vali, budget.patience)
    curves = ranker.evals_result_["validation_0"] if vali is not None else {}
    return Training(ranker, {name: list(curve) for name, curve in curves.items()}, seconds, budget.patience)


def measure(trial: Trial, fold: RankingFold, training: Training) -> Record:
    """Record for each metric the values of the test queries, and the number of trees at its early stop."""
    record = unmeasured(trial) | {"seconds": training.seconds}
    record["curves"] = {name: numbers(np.array(curve)) for name, curve in training.curves.items()}
    for stop, names in trial.stops.items():
        trees = training.best(stop)
        record["vali"][stop] = training.curves[stop][trees - 1]
        on_train, on_test = (training.scores(part.X, trees) for part in (fold.train, fold.test))
        for name in names:
            metric, threads = get_metric(name), trial.budget.threads
            record["trees"][name] = trees
            record["train"][name] = metric.mean(queries_of(fold.train), on_train, n_threads=threads)
            record["test"][name] = per_query(metric, fold.test, on_test, threads)
    return record


def unmeasured(trial: Trial) -> Record:
    """The record of a trial without results."""
    return {**asdict(trial), "test": {}, "vali": {}, "train": {}, "trees": {}, "seconds": 0.0}


def per_query(metric: Metric, part: RankingData, scores: np.ndarray, threads: int) -> list[float | None]:
    """The value of each query; None without one."""
    return numbers(metric.values(queries_of(part), scores, n_threads=threads))


def numbers(values: np.ndarray) -> list[float | None]:
    """Values for JSON, which has no NaN."""
    return [None if np.isnan(v) else float(v) for v in values]


class Split(NamedTuple):
    """The queries of the parts of a fold, by their positions in the data."""

    train: np.ndarray
    vali: np.ndarray
    test: np.ndarray

    def of(self, data: RankingData) -> RankingFold:
        """The parts of the data."""
        return RankingFold(*(data.select(queries) for queries in self))


def cross_validation(data: RankingData, count: int, seed: int) -> list[Split]:
    """``count`` folds of randomly chosen queries; all parts keep the order of the data.

    In turn one part is test, the next is vali, and the others train.
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
    """``count`` folds of queries with ``values``, of the column ``name``, such as dates.

    The sorted values are cut into ``count + 2`` blocks with about equally many queries, no value in two blocks. Each of
    the last ``count`` blocks is once test; the block before it is vali, and all blocks before that train.
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
    """Train and vali of randomly chosen queries; both keep the order of the data."""
    queries = len(train.group)
    require(queries >= 2, "the data has no vali part, and a single train query cannot be split")
    order = np.random.default_rng(seed).permutation(queries)
    cut = max(1, round(share * queries))
    return train.select(np.sort(order[cut:])), train.select(np.sort(order[:cut]))


def plan(
    libraries: Sequence[str], objectives: Sequence[str], natives: Sequence[str], metrics: Sequence[str],
    budgets: Sequence[Budget], *, stop: str = "",
) -> list[Trial]:  # fmt: skip
    """Every trial: each library with its own of ``natives`` and all ``objectives``, and each budget.

    A native objective is also trained at its library's defaults; vali chooses between these and the budgets.
    ``{metric}`` in a name is each of ``metrics`` in turn, as the library spells it.
    """
    planned = []
    for library in (LIBRARIES[name] for name in libraries):
        for label in (*filter(library.knows, natives), *objectives):
            for targets in [(m,) for m in metrics] if "{metric}" in label else [tuple(metrics)]:
                native = library.knows(label)
                objective = label.replace("{metric}", library.spelled(targets[0]) if native else targets[0])
                own = [replace(b, defaults=True) for b in budgets] if native else []
                if not native or library.knows(objective):  # else the library does not have it for this metric
                    planned += [Trial(library.name, objective, label, targets, b, stop=stop) for b in (*own, *budgets)]
    return list(dict.fromkeys(planned))

"""One training of an estimator, validated before it begins: objective, metrics, data."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.adapters._parameters import refuse_unread
from ltr_objectives.adapters._ranker_inputs import Part
from ltr_objectives.checks import check_integer, check_list
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.goals import check_read, split_goal
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric, get_metric, get_metrics, own_metric
from ltr_objectives.objectives.around import UnitHessian
from ltr_objectives.objectives.base import Objective, get_objective
from ltr_objectives.queries import to_numpy
from ltr_objectives.registry import metrics

EvalMetric = str | Metric | Sequence[str | Metric] | None
Gradients = Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]
DOCUMENTS = 20.0  # the L2 of leaf values for ours
OF_THE_END = ("save_snapshot", "use_best_model", "od_type", "od_wait", "od_pval")  # of CatBoost
ROUNDS = ("n_estimators", "iterations", "num_boost_round", "num_iterations")


class Plan(NamedTuple):
    """One training, validated."""

    train: Part
    evals: tuple[Part, ...]
    params: dict[str, Any]  # the library's, of the training
    of_the_data: dict[str, Any]  # the library's, of its data sets
    objective: Objective | str  # a string is the library's own
    metrics: tuple[Metric | str, ...]
    early_stopping_rounds: int | None
    callbacks: list[Any]
    verbose: bool | int
    n_threads: int | None
    init_model: Any  # the library's

    def gradients(self, kind: type[ObjectiveCallable], params: dict[str, Any]) -> Gradients | None:
        """Our objective as the library calls it in a training with ``params``; None if it is the library's own."""
        if isinstance(self.objective, str):
            return None
        made, queries = kind(self.objective, n_threads=self.n_threads, labels=self.labels), self.train.queries
        return lambda scores, data: made.gradients(queries, scores, params)

    @property
    def start(self) -> float:
        """The score at which our objective starts; 0 if the training goes on from a model, or if the library does."""
        off = str(self.params.get("boost_from_average")).lower() in ("false", "0")  # LightGBM's and CatBoost's
        if off or self.init_model is not None or not isinstance(self.objective, Objective):
            return 0.0
        return self.objective._start(self.train.queries)

    def with_l2(self, params: dict[str, Any], library: Library) -> dict[str, Any]:
        """``params``, with an L2 of ``DOCUMENTS`` if Hessians are in documents and ``params`` has no L2."""
        if not isinstance(self.objective, UnitHessian) or library.given(library.l2, params):
            return params
        return {**params, library.l2: DOCUMENTS}

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals that our objective reads."""
        return self.objective.facts.goals if isinstance(self.objective, Objective) else ()

    @property
    def labels(self) -> dict[str, np.ndarray]:
        """The labels of these goals."""
        return {goal: self.train.queries.of(goal).labels for goal in self.goals}

    def metric_values(self, evals: Sequence[Any]) -> Callable[[Any, Any], list[tuple[str, float]]]:
        """Our metrics on the library's data sets ``evals``. Weights may be by row, which a DMatrix cannot hold."""
        known = [(data, part.queries) for data, part in zip(evals, self.evals, strict=True)]

        def values(scores: Any, data: Any) -> list[tuple[str, float]]:
            queries = next(queries for each, queries in known if each is data)
            s = to_numpy(scores, "scores").reshape(-1)
            return [(str(m), m.mean(queries, s, n_threads=self.n_threads)) for m in self.own_metrics]

        return values

    @property
    def own_metrics(self) -> tuple[Metric, ...]:
        """Our metrics."""
        return tuple(m for m in self.metrics if isinstance(m, Metric))

    @property
    def native_metrics(self) -> list[str]:
        """The library's metrics."""
        return [m for m in self.metrics if isinstance(m, str)]


def in_documents(objective: Objective | str) -> Objective | str:
    """Our objective with Hessians in documents; presets keep the Hessians of their library."""
    if isinstance(objective, str | UnitHessian) or getattr(objective.inner, "preset", None) is not None:
        return objective
    return UnitHessian(objective)


def own_or_native(objective: Any, library: Library) -> Objective | str:
    """Our objective, or text for the library: its own spelling in CatBoost, and all text that is not of ours."""
    if not isinstance(objective, str):
        return get_objective(objective)
    head = objective.partition(":")[0].strip()
    native = library.capitals and head in ("RMSE", *library.natives)
    ours = head.lower() in Objective.named or "+" in objective or split_goal(objective)[1]
    return objective if native or not ours else get_objective(objective)


def read_metrics(
    eval_metric: EvalMetric, objective: Objective | str, knows: Callable[[str], bool], convention: str | None = None
) -> tuple[Metric | str, ...]:
    """The metrics to evaluate, by default :func:`optimised`. A string in the result is the library's own metric.

    ``knows(name)`` is true for the names of the library's metrics.
    """
    if eval_metric is None:
        return tuple(get_metric(m, convention) for m in optimised(objective))
    one = isinstance(eval_metric, str | Metric) or callable(eval_metric)
    given: list[Any] = [eval_metric] if one else check_list("eval_metric", eval_metric, "metrics, or one")
    found = tuple(m if isinstance(m, str) and _is_native(m, knows) else get_metric(m, convention) for m in given)
    own = [m for m in found if isinstance(m, Metric)]
    if own or not found:
        get_metrics(own)  # raises for two of one name, and for none
    return found


def optimised(objective: Objective | str) -> tuple[Metric, ...]:
    """The metric that our objective optimises, or NDCG; none if the objective is the library's own."""
    if isinstance(objective, str):
        return ()
    metric = getattr(objective, "metric", None)
    return (metric if isinstance(metric, Metric) else get_metric("ndcg"),)


def _is_native(metric: str, knows: Callable[[str], bool]) -> bool:
    """True if the metric is the library's own; raises if it is neither that nor ours."""
    if own_metric(metric) and not (metric[:1].isupper() and knows(metric)):  # CatBoost's have capitals
        return False
    meant = did_you_mean(metric.partition("@")[0], metrics())
    require(
        knows(metric), f"eval_metric={metric!r} is neither ours, such as 'ndcg@10' or 'map', nor the library's{meant}"
    )
    return True


def refuse_dart(setting: str, stops: object) -> None:
    """Raise for early stopping with a ``setting`` such as "booster='dart'"; an empty one never raises."""
    require(
        not (setting and stops),
        f"{setting} changes earlier rounds in later ones, so that the best round cannot be kept; leave early stopping "
        "out",
    )


def read_param(name: str, value: Any) -> Any:
    """A parameter as the libraries read it: rounds as a whole number, and a generator as a seed."""
    if name in ROUNDS:
        return check_integer(name, value, least=0)
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31 - 1))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    return value


def check_plan(plan: Plan, library: Library) -> None:
    """Raise before training for what cannot be right. The objective itself checks the labels at the first gradient."""
    if plan.early_stopping_rounds is not None:
        require(plan.evals, "early_stopping_rounds needs an eval_set to look at; pass eval_set=[(X, y)] and eval_qid=")
    # LightGBM's are functions; those of XGBoost and CatBoost have a method that is called after each round
    good = all(callable(callback) or hasattr(callback, "after_iteration") for callback in plan.callbacks)
    require(good, f"callbacks must be a list of {library.name}'s callbacks, got {plan.callbacks}")
    if isinstance(plan.objective, Objective):
        refuse_unread(library, plan.params)
    else:
        require(
            plan.train.queries.propensity is None and plan.train.queries.position is None,
            f"objective={plan.objective!r} is the library's own; leave propensity= and position= out",
        )
    _check_goals(plan)
    for metric in plan.own_metrics:
        for part in plan.evals:
            scores = np.arange(part.queries.rows, dtype=np.float64)  # without ties, of which a correlation may be empty
            metric.mean(part.queries, scores, n_threads=plan.n_threads)


def _check_goals(plan: Plan) -> None:
    """Raise for labels of goals that nothing reads, and for goals without labels."""
    evaluated = [metric.goal for metric in plan.own_metrics if metric.goal is not None]
    for part in (plan.train, *plan.evals):
        check_read(part.queries.goals, (*plan.goals, *evaluated), "the ranker")
    for goal in plan.goals:
        plan.train.queries.of(goal)
    for i, part in enumerate(plan.evals):
        for goal in evaluated:
            try:
                part.queries.of(goal)
            except LTRError as error:
                in_list = re.sub(r"labels=(\{.*?\})", r"eval_labels=[\1]", str(error))
                raise LTRError(f"eval_set[{i}]: {in_list}") from None

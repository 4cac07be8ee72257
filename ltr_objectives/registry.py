"""Every objective and metric by name. CONTRIBUTING.md says how to add one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from ltr_objectives.errors import LTRError, did_you_mean, require, shown
from ltr_objectives.goals import split_goal, with_goal
from ltr_objectives.objectives import text

if TYPE_CHECKING:
    from ltr_objectives.metrics.base import Metric
    from ltr_objectives.objectives.base import Objective

OBJECTIVES = {
    "lambdamart": "lambdamart:LambdaMART",
    "yetirank": "yetirank:YetiRank",
    "yetiloss": "yetiloss:YetiLoss",
    "stochasticrank": "stochasticrank:StochasticRank",
    "queryrmse": "queryrmse:QueryRMSE",
    "ranknet": "ranknet:RankNet",
    "hinge": "hinge:Hinge",
    "plrank": "plrank:PLRank",
    "listnet": "listnet:ListNet",
    "xendcg": "xendcg:XENDCG",
    "listmle": "listmle:ListMLE",
    "lambdaloss": "lambdaloss:LambdaLoss",
    "approxndcg": "approx:ApproxNDCG",
    "approxmrr": "approx:ApproxMRR",
    "approxmap": "approx:ApproxMAP",
    "rmse": "rmse:RMSE",
    "ordinal": "ordinal:Ordinal",
    "neuralndcg": "neuralndcg:NeuralNDCG",
    "neuralsort": "neuralndcg:NeuralSort",
    "softrank": "softrank:SoftRank",
}
# what to train for a metric, if not YetiLoss for the metric itself; docs/results.md has the measurements
BEST_FOR = {
    **dict.fromkeys(("ndcg", "precision", "recall"), "yetiloss:ndcg"),  # without the cutoff
    "map": "yetiloss:gap",
    **dict.fromkeys(("mrr", "hit", "err"), "yetiloss:ndcg@10"),
}
METRICS = {
    "ndcg": "linear:NDCG",
    "dcg": "linear:DCG",
    "expdcg": "linear:ExpDCG",
    "precision": "binary:Precision",
    "recall": "binary:Recall",
    "auc": "binary:AUC",
    "rbp": "binary:RBP",
    "mrr": "cascade:MRR",
    "hit": "cascade:Hit",
    "err": "cascade:ERR",
    "pfound": "cascade:PFound",
    "map": "average_precision:MAP",
    "gap": "average_precision:GAP",
    "spearman": "correlation:Spearman",
    "kendall": "correlation:Kendall",
}
ONLY_EVALUATED = {  # less of them is better
    "rmse": "only_evaluated:RootMeanSquaredError",
    "mae": "only_evaluated:MeanAbsoluteError",
    "first": "only_evaluated:FirstRelevant",
}
COUNTING = {"ties", "empty", "query_weights"}  # options that change the value of a ranking, not which is better


def _load(kind: str, entry: str) -> Any:
    module, name = entry.split(":")
    return getattr(importlib.import_module(f"ltr_objectives.{kind}.{module}"), name)


def public_classes() -> dict[str, tuple[str, str]]:
    """Class name -> (folder, entry) of every registered class."""
    tables = (("objectives", OBJECTIVES), ("metrics", METRICS))
    return {entry.split(":")[1]: (kind, entry) for kind, table in tables for entry in table.values()}


def load_public(name: str) -> Any:
    """The registered class of that name."""
    return _load(*public_classes()[name])


def objectives() -> tuple[str, ...]:
    """Names of all objectives.

    >>> "lambdamart" in objectives()
    True
    """
    return tuple(OBJECTIVES)


def metrics() -> tuple[str, ...]:
    """Names of all metrics. :func:`evaluate` also takes "rmse", "mae" and "first", of which lower is better.

    >>> "ndcg" in metrics()
    True
    """
    return tuple(METRICS)


def objective_class(name: str) -> type[Objective]:
    """The class behind a registered objective name."""
    known = ", ".join(OBJECTIVES)
    require(name in OBJECTIVES, f"unknown objective {shown(name)}; there are {known}{did_you_mean(name, OBJECTIVES)}")
    found: type[Objective] = _load("objectives", OBJECTIVES[name])
    return found


def metric_class(name: str) -> type[Metric]:
    """The class behind a registered metric name."""
    table = METRICS | ONLY_EVALUATED
    require(name in table, f"unknown metric {shown(name)}; there are {', '.join(METRICS)}{did_you_mean(name, table)}")
    found: type[Metric] = _load("metrics", table[name])
    return found


def own_metric(written: str) -> str | None:
    """The name of our metric in a text, in small letters; None if the text does not name one of ours.

    >>> own_metric("NDCG@10[revenue]"), own_metric("ndcg@10-"), own_metric("NDCG:top=10")
    ('ndcg', None, None)
    """
    split = text.split_metric(split_goal(written.strip())[0])
    return split[0] if split and split[0] in METRICS else None


def get_metric(metric: str | Metric | None, convention: str | None = None) -> Metric:
    """The metric of a name, with parameters in brackets, ``@k`` for a cutoff, and ``[goal]`` for its labels.

    As text it is written as it was given: ``str(get_metric("map(threshold=2.5)@10"))`` is ``"map(threshold=2.5)@10"``.

    ``convention`` is "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "scipy": compute the metric as that
    library does. Options in the text are kept, and those of a metric object that differ from their default.

    >>> get_metric("ndcg@10").k
    10
    >>> get_metric("ndcg@10", "lightgbm").empty
    1.0
    >>> get_metric("ndcg@10[revenue]").goal
    'revenue'
    >>> get_metric("ndcg(gain_type=linear)@5").gain_type
    'linear'
    """
    found = any_metric(metric, convention)
    require(
        found.name not in ONLY_EVALUATED or type(found) is not metric_class(found.name),
        f"less {found.name} is better, and it does not measure a whole ranking, so only evaluate computes it; take a "
        "ranking metric, such as 'ndcg@10', or a metric of the library itself",
    )
    return found


def any_metric(metric: str | Metric | None, convention: str | None = None) -> Metric:
    """As :func:`get_metric`, also of ``ONLY_EVALUATED``."""
    from ltr_objectives.metrics.base import Metric

    written, values = None, {}
    if isinstance(metric, str):
        plain, goal = split_goal(metric.strip())
        split = text.split_metric(plain)
        if split is None:
            raise LTRError(
                f"metric {shown(metric)} is not of the form name, name@k or name(parameter=value)@k, such as 'ndcg@10'"
            )
        name, settings, k = split
        made = metric_class(name)
        known = options_of(made)
        values = text.read_values(text.split_list(settings) if settings.strip() else [], metric, name, known)
        written = text.metric_text(name, values)
        metric = made(k=k, goal=goal, **values)
    if not isinstance(metric, Metric):
        of = "a string such as 'ndcg@10' or an ltr_objectives.Metric"
        raise LTRError(f"metric must be {of}, got {described(metric)}")
    metric = metric if convention is None else metric.with_convention(convention)._with(**values)
    if written is not None:
        object.__setattr__(metric, "_written", written)  # no field: equal metrics stay equal
    return metric


def options_of(metric: type[Metric]) -> tuple[str, ...]:
    """Names of the parameters that stand in brackets."""
    return tuple(field.name for field in fields(metric) if field.name not in ("k", "goal"))


def get_metrics(
    metrics: Iterable[str | Metric], convention: str | None = None, find: Callable[..., Metric] = get_metric
) -> tuple[Metric, ...]:
    """:func:`get_metric` of each. Their names must differ, because they are the keys of the results."""
    found = tuple(find(metric, convention) for metric in metrics)
    require(found, "give at least one metric, such as 'ndcg@10'")
    names = [str(metric) for metric in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(
        twice is None,
        f"two metrics are both called {twice}, and results are keyed by name; leave one out, or compute it by itself",
    )
    return found


def described(thing: object) -> str:
    """A description of what was given instead of a metric or objective, and what to do."""
    if isinstance(thing, type):
        return f"the class {thing.__name__}; pass an object, such as {thing.__name__}()"
    if hasattr(thing, "library"):  # of ltr_objectives.adapters
        return f"a callable for {thing.library.name}'s own functions; pass the objective or metric itself"
    if callable(thing):
        return f"{type(thing).__name__}; 'Write a metric or an objective' in the documentation makes one of a formula"
    return type(thing).__name__


def metric_to_learn(metric: str | Metric) -> Metric:
    """The metric of an objective, which reads the labels of the objective."""
    found = get_metric(metric)
    require(found.name != "kendall", "no objective trains for kendall; take another metric, such as 'spearman'")
    require(
        found.goal is None,
        f"metric={str(found)!r}: an objective names the labels that it reads, not its metric; as text put the goal at "
        f"the end, as in 'yetiloss:map;sigma=2[{found.goal}]', or write Mixture([objective], labels=[{found.goal!r}])",
    )
    return found


def get_objective(objective: str | Objective) -> Objective:
    """An objective from ``"name"``, ``"name:metric"`` or ``"name:metric;parameter=value;..."``, or a sum of these.

    Parts of a sum may have weights, and goals at their end, whose labels they read: see
    :class:`ltr_objectives.Mixture`.

    >>> str(get_objective("yetiloss:map@5").metric)
    'map@5'
    >>> get_objective("lambdamart:sigma=2;hessian=ones").sigma
    2
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:mrr").weights
    (1.0, 0.3)
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:ndcg@10[revenue]").labels
    (None, 'revenue')
    """
    from ltr_objectives.objectives.base import Objective

    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str):
        of = "a string such as 'yetiloss:map' or an ltr_objectives.Objective"
        raise LTRError(f"objective must be {of}, got {described(objective)}")
    parts = text.split_sum(objective)
    if len(parts) == 1:
        return _on_goal(*read_part(objective))
    from ltr_objectives.objectives.mixture import Mixture

    weighted = [text.split_weight(part) for part in parts]
    return Mixture([part for _, part in weighted], [1.0 if weight is None else weight for weight, _ in weighted])


def read_part(objective: str | Objective) -> tuple[Objective, str | None]:
    """An objective, and the goal at the end of its text."""
    if not isinstance(objective, str) or len(text.split_sum(objective)) > 1:
        return get_objective(objective), None
    plain, goal = split_goal(objective)
    name, settings = text.split_objective(plain.strip())
    found = objective_class(name)
    return found(**text.read_settings(settings, name, found.parameters())), goal


def text_of(objective: Objective) -> str | None:
    """The text of an objective, which :func:`get_objective` reads; None without one, as for wrappers.

    >>> from ltr_objectives import GAP, Mixture, YetiLoss
    >>> text_of(YetiLoss(GAP(10), permutations=20))
    'yetiloss:gap@10;permutations=20'
    >>> text_of(Mixture(["yetiloss:ndcg", "listnet[revenue]"], [1, 0.3]))
    'yetiloss:ndcg+0.3*listnet[revenue]'
    """
    from ltr_objectives.objectives.mixture import Mixture

    if isinstance(objective, Mixture):
        parts: Any = zip(*map(vars(objective).get, ("weights", "parts", "labels")), strict=True)
        found = "+".join(f"{'' if w == 1 else f'{w}*'}{with_goal(str(text_of(part)), goal)}" for w, part, goal in parts)
    elif OBJECTIVES.get(objective.name, "").partition(":")[2] == type(objective).__name__:
        preset = {"preset": value} if (value := getattr(objective, "preset", None)) else {}
        default = type(objective)(**preset).settings()
        changed = preset | {name: value for name, value in objective.settings().items() if value != default[name]}
        metric = [str(replace(changed.pop("metric")))] if "metric" in changed else []  # also if made from other text
        found = ":".join([objective.name, ";".join([*metric, *text.setting_texts(changed)])]).removesuffix(":")
    else:
        return None
    with suppress(LTRError):  # of a value that has no text
        return found if get_objective(found) == objective else None
    return None


def _on_goal(objective: Objective, goal: str | None) -> Objective:
    """The objective on the labels of a goal."""
    from ltr_objectives.objectives.mixture import Mixture

    return objective if goal is None else Mixture([objective], labels=[goal], normalize=False)


def objective_for(metric: str | Metric) -> Objective:
    """The objective to train for a metric: YetiLoss for it, or one whose models had a larger value in our studies.

    A metric that looks at few documents or grades gives few gradients, so an objective for another one can do better.

    >>> str(objective_for("map@10").metric)
    'gap'
    >>> str(objective_for("ndcg@5").metric)
    'ndcg'
    """
    given = get_metric(metric)
    found = given._with(goal=None)
    best = BEST_FOR.get(found.name)
    usual = best is not None and type(found) is metric_class(found.name)
    usual = usual and found._changed().keys() <= COUNTING
    return _on_goal(get_objective(best) if best and usual else objective_class("yetiloss")(metric=found), given.goal)

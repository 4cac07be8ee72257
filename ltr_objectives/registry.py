"""The names of all objectives and metrics, and the objective for a metric."""

from ltr_objectives.metrics.base import Metric, get_metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective, on_goal
from ltr_objectives.objectives.yetiloss import YetiLoss

# what to train for a metric, if not YetiLoss for the metric itself; docs/results.md has the measurements
BEST_FOR = {
    **dict.fromkeys(("ndcg", "precision", "recall"), "yetiloss:ndcg"),  # without the cutoff
    "map": "yetiloss:gap",
    **dict.fromkeys(("mrr", "hit", "err"), "yetiloss:ndcg@10"),
}
COUNTING = {"ties", "empty", "query_weights"}  # options that change the value of a ranking, not which is better


def objective_names() -> tuple[str, ...]:
    """Names of all objectives.

    >>> "lambdamart" in objective_names()
    True
    """
    return tuple(sorted(Objective.named))


def metric_names() -> tuple[str, ...]:
    """Names of all metrics. :func:`evaluate` also takes "rmse", "mae" and "first", of which lower is better.

    >>> "ndcg" in metric_names()
    True
    """
    return tuple(sorted(name for name, each in Metric.named.items() if not each.only_evaluated))


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
    usual = best is not None and type(found) is Metric.named[found.name]
    usual = usual and COUNTING.issuperset(found._changed())
    return on_goal(get_objective(best) if best and usual else YetiLoss(found), given.goal)

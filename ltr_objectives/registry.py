"""The names of all objectives and metrics, and the objective for a metric."""

from ltr_objectives.metrics.average_precision import MAP
from ltr_objectives.metrics.base import Metric, get_metric
from ltr_objectives.metrics.binary import RPrecision
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import on_goal
from ltr_objectives.objectives.yetiloss import YetiLoss

# Metrics for which YetiLoss for NDCG, without a cutoff, is behind on no kind of data; docs/studies.md has the study.
USUAL = {"ndcg", "precision", "recall", "map", "mrr", "hit", "err"}
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
    """The objective to train for a metric: YetiLoss for it, or for NDCG if that had more of it in our studies.

    A metric that looks at few documents or grades gives few gradients, so an objective for another one can do better.

    >>> str(objective_for("map@10")), str(objective_for("map(threshold=2)"))
    ('yetiloss:ndcg', 'yetiloss:map(threshold=2)')
    """
    given = get_metric(metric)
    found = learnable(given._with(goal=None))
    usual = found.name in USUAL and type(found) is Metric.named[found.name] and COUNTING.issuperset(found._changed())
    return on_goal(YetiLoss("ndcg" if usual else found), given.goal)


def learnable(metric: Metric) -> Metric:
    """Return the metric, or the nearest one if no objective trains for it."""
    return MAP(threshold=metric.threshold) if type(metric) is RPrecision else metric

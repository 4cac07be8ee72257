"""The names of all objectives and metrics, and the objective for a metric."""

from collections.abc import Callable, Sequence

import numpy as np

from ltr_objectives.metrics.average_precision import MAP
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.binary import Binary, RPrecision
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import Mixture, on_goal
from ltr_objectives.objectives.yetiloss import YetiLoss
from ltr_objectives.queries import Queries

# Metrics that YetiLoss for NDCG, without a cutoff, trains as well as its rivals: docs/results.md has the measurements
USUAL = {"ndcg", "precision", "recall", "map", "mrr", "hit", "err"}
Maker = Callable[[Metric, str | None], Sequence[Objective]]  # takes a metric and its goal
# options that change the value of a ranking, not which is better
COUNTING = {"ties", "empty", "query_weights", "short_lists", "normalizer"}
LARGEST_STUDIED = 5  # of the labels in these measurements, which are whole numbers


def objective_names() -> tuple[str, ...]:
    """Return the names of all objectives.

    >>> "lambdamart" in objective_names()
    True
    """
    return tuple(sorted(Objective.named))


def metric_names() -> tuple[str, ...]:
    """Return the names of all metrics; :func:`evaluate` also takes "rmse", "mae" and "first" (lower is better).

    >>> "ndcg" in metric_names()
    True
    """
    return tuple(sorted(name for name, cls in Metric.named.items() if not cls.lower_is_better))


def objective_for(metric: str | Metric, queries: Queries | None = None) -> Objective:
    """Return the objective to train for a metric: YetiLoss for NDCG, for the metric, or for both, by our studies.

    A metric that looks at few documents or grades gives few gradients, and NDCG uses all of them: it is trained for the
    usual metrics, and added to those with a threshold.

    ``queries`` are all the data that it is trained on. With them a threshold counts only if labels lie between it and
    0. A metric that asks which documents are relevant is trained alone if no label is above its threshold, or if the
    labels are amounts: not whole numbers up to 5. The largest amounts would outweigh all others in NDCG.

    For a sum of metrics it is the sum of the objectives for them, which share the weight of their metric.

    >>> str(objective_for("map@10")), str(objective_for("auc"))
    ('yetiloss:ndcg', 'yetiloss:auc')
    >>> str(objective_for("map(threshold=2)"))
    'yetiloss:ndcg+yetiloss:map(threshold=2)'
    >>> str(objective_for("map@10", Queries([0, 12.5, 0], group=[3])))
    'yetiloss:map@10'
    >>> str(objective_for("ndcg@10 + 0.3*map[liked]"))
    'yetiloss:ndcg+0.3*yetiloss:ndcg[liked]'
    """

    def best(plain: Metric, goal: str | None) -> tuple[Objective, ...]:
        found = learnable(plain)
        usual = type(found) is Metric.named.get(found.name) and found.name in USUAL
        if not usual or not set(found._changed()) - COUNTING <= {"threshold"}:
            return (YetiLoss(found),)
        if not isinstance(found, Binary):
            return (YetiLoss("ndcg"),)
        labels = None if queries is None else queries.for_goal(goal).labels
        alone, counts = False, found.threshold != 0
        if labels is not None:
            relevant = labels > found.threshold
            alone = not relevant.any() or labels.max() > LARGEST_STUDIED or bool((labels % 1).any())
            counts = not np.array_equal(relevant, labels > 0)
        return (YetiLoss(found),) if alone else (YetiLoss("ndcg"), *([YetiLoss(found)] if counts else []))

    return for_parts(get_metric(metric), best)


def for_parts(metric: Metric, make: Maker) -> Objective:
    """Return the sum of what ``make`` returns for the metric without its goal and the goal; for a sum, of all parts.

    The objectives for a part share its weight. Equal objectives are one part of the result, because each part takes the
    time of a training.
    """
    found: dict[tuple[Objective, str | None], float] = {}
    for weight, part in metric.parts:
        for objective in (made := make(part._with(goal=None), part.goal)):
            key = objective, part.goal
            found[key] = found.get(key, 0.0) + weight / (len(made) if len(metric.parts) > 1 else 1)
    objectives, goals = zip(*found, strict=True)
    return on_goal(objectives[0], goals[0]) if len(found) == 1 else Mixture(objectives, [*found.values()], labels=goals)


def learnable(metric: Metric) -> Metric:
    """Return the metric, or the nearest one if no objective trains for it."""
    return MAP(threshold=metric.threshold) if type(metric) is RPrecision else metric

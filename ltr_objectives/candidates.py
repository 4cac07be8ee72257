"""The objectives to try for a metric: ours that ranked well for some data in our studies, and the library's own."""

import numpy as np

from ltr_objectives.errors import require
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.gains import LARGEST_GRADE
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.objectives.yetiloss import YetiLoss
from ltr_objectives.queries import Queries
from ltr_objectives.registry import for_parts, learnable, objective_for

OTHERS = ("yetiloss:ndcg", "yetiloss:ndcg@10", "yetiloss:gap", "lambdamart:ndcg", "queryrmse")


def ours_for(metric: Metric, queries: Queries | None = None) -> dict[str, Objective]:
    """Return our objectives by name: what :func:`ltr_objectives.objective_for` names, YetiLoss for it, and others.

    Of labels in ``queries`` above 31, NDCG among the others has linear gains.

    >>> from ltr_objectives import get_metric
    >>> list(ours_for(get_metric("map")))
    ['yetiloss:ndcg', 'yetiloss:map', 'yetiloss:ndcg@10', 'yetiloss:gap', 'lambdamart:ndcg', 'queryrmse']
    >>> list(ours_for(get_metric("ndcg@10[liked]")))
    ['yetiloss:ndcg[liked]', 'yetiloss[liked]', 'yetiloss:gap[liked]', 'lambdamart[liked]', 'queryrmse[liked]']
    """

    def other(label: str) -> Objective:
        return for_parts(metric, lambda plain, goal: [get_objective(_for_amounts(label, queries, goal))])

    first = objective_for(metric, queries)
    itself = for_parts(metric, lambda plain, goal: [YetiLoss(learnable(plain))])
    names = {each: str(each) for each in (first, itself, *map(other, OTHERS))}  # equal ones are one
    if len(metric.parts) == 1 and metric.goal is None:  # a name has the metric, also if that is the default
        plain = learnable(metric)
        names |= {other(label): _for_amounts(label, queries) for label in OTHERS}
        names |= {first: str(first), itself: f"yetiloss:{plain._text(plain._changed())}"}  # with a convention's options
    return {name: each for each, name in names.items()}


def _for_amounts(label: str, queries: Queries | None, goal: str | None = None) -> str:
    amounts = queries is not None and queries.for_goal(goal).labels.max() > LARGEST_GRADE
    return label.replace("ndcg", "ndcg(gain_type=linear)") if amounts else label


def natives_for(library: str, metric: Metric) -> tuple[str, ...]:
    """Return the native objectives to compare with; none for the labels of a goal, which they do not read.

    >>> from ltr_objectives import get_metric
    >>> natives_for("catboost", get_metric("ndcg@5"))
    ('YetiRank', 'QueryRMSE', 'YetiRank:mode=NDCG;top=5')
    """
    if metric.goal is not None:
        return ()
    facts = LIBRARIES[library]
    further = facts.rivals_for.get(metric.name, "").replace("{metric}", facts.spelled(str(metric)))
    return (*facts.rivals, further) if further else facts.rivals


def hessian_of(library: str, objective: str, queries: Queries, n_threads: int | None = None) -> float:
    """Return the mean Hessian of a row, the unit of L2; for a native objective, that of its twin.

    It is 1 for other objectives, because our estimators scale their Hessians to documents.
    """
    twin = LIBRARIES[library].twin(objective)
    return float(typical_size(get_objective(twin), queries, n_threads).hessian) if twin else 1.0


def check_comparable(metric: Metric, queries: Queries, data: str) -> None:
    """Raise if the metric is the same for every order of the documents of ``data``, so that nothing is better."""
    labels = queries.for_goal(metric.goal).labels
    require(
        not metric._same_for_every_order(queries),
        f"{data}: every order of the documents has the same {metric}, so that nothing can be compared: no query has "
        f"labels that differ in gain (they are from {labels.min():g} to {labels.max():g}); correct the labels, choose "
        "another metric, or another threshold, as in 'map(threshold=2)'",
    )


def labels_for(library: str, objective: str, labels: np.ndarray, metric: Metric) -> tuple[np.ndarray, str]:
    """Return the labels that an objective takes if ``metric`` is the goal, and a note if they are not those given.

    >>> from ltr_objectives import get_metric
    >>> labels_for("xgboost", "rank:map", np.array([0, 2, 3]), get_metric("map(threshold=2)"))
    (array([0., 0., 1.]), 'rank:map learns only which labels are above 2')
    """
    facts = LIBRARIES[library]
    if facts.is_binary(objective):
        threshold = getattr(metric, "threshold", 0.0)
        found, note = (labels > threshold).astype(np.float64), f"which labels are above {threshold:g}"
    elif metric.name == "err" and any(part in objective for part in facts.chances):
        found, note = metric.gain(labels), f"the chances that {metric} reads from labels"
    else:
        return labels, ""
    return (labels, "") if np.array_equal(found, labels) else (found, f"{objective} learns only {note}")

"""Labels of several goals beside the data sets of the libraries, which have one label a row."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import require
from ltr_objectives.goals import check_goal, check_read
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import vector

ByGoal = Mapping[str, ArrayLike]


def read_labels(labels: ByGoal | None, name: str = "labels") -> dict[str, np.ndarray]:
    """Copies of labels by goal, as numbers; ``name`` is that of the argument."""
    good = labels is None or isinstance(labels, Mapping)
    given = type(labels).__name__
    require(good, f"{name} must be a mapping of goals to arrays, such as {{'revenue': array}}, got {given}")
    found = {}
    for goal, values in (labels or {}).items():
        check_goal(goal)
        found[goal] = vector(f"{name}[{goal!r}]", values).copy()
    return found


def labels_for(objective: Objective, labels: ByGoal | None) -> dict[str, np.ndarray]:
    """The labels of every goal that the objective reads; raises if one is missing, or not read."""
    found = read_labels(labels)
    check_read(found, objective.goals, objective.name)
    missing = next((goal for goal in objective.goals if goal not in found), None)
    require(
        missing is None,
        f"{objective.name} reads labels {missing!r}; pass labels={{{missing!r}: array}} with one number for each row "
        "of the training set",
    )
    return found

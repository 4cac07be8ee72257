"""Labels of several goals beside the data sets of the libraries, which have one label a row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_list
from ltr_objectives.errors import require
from ltr_objectives.goals import check_goal, check_read
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, to_numpy, vector

ByGoal = Mapping[str, ArrayLike]
Mappings = Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]]


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


class Subset(NamedTuple):
    """Rows that LightGBM took of a Dataset, for a fold of ``lgb.cv`` or in ``Dataset.subset``."""

    rows: np.ndarray
    whole: Any  # the Dataset


def taken(values: ArrayLike | None, subset: Subset | None) -> Any:
    """The values of a subset, out of those of the whole Dataset or of the subset; all without a subset."""
    if values is None or subset is None:
        return values
    array = to_numpy(values)
    return array[subset.rows] if len(array) == subset.whole.num_data() else array


class LabelSets:
    """The labels of evaluated data sets, known by their first labels: libraries hand over nothing else."""

    def __init__(self, labels: Mappings | None, metrics: Iterable[Metric]) -> None:
        self.goals = tuple(dict.fromkeys(m.goal for m in metrics if m.goal is not None))
        one = labels is None or isinstance(labels, Mapping)
        given: list[Any] = ([] if labels is None else [labels]) if one else check_list("labels", labels, "mappings")
        names = ", ".join(map(repr, self.goals))
        require(
            given or not self.goals,
            f"a metric reads the labels of {names}; pass labels={{'relevance': y, 'revenue': r}}, or a list of such "
            "mappings, one for each data set that is evaluated: the first are the labels that the data set has",
        )
        self._known: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        for i, mapping in enumerate(given):
            require(
                isinstance(mapping, Mapping) and mapping,
                f"labels[{i}] must be a mapping of goals to arrays, such as {{'relevance': y, 'revenue': r}}, got "
                f"{mapping if isinstance(mapping, Mapping) else type(mapping).__name__}",
            )
            queries = Queries(mapping, [to_numpy(next(iter(mapping.values()))).size])
            for goal in self.goals:
                queries.of(goal)
            check_read([goal for goal, y in queries.goals.items() if y is not queries.labels], self.goals, "the metric")
            own = queries.labels.astype(np.float32)
            require(self._find(own) is None, f"labels[{i}] has the same first labels as another; their goals would mix")
            self._known.append((own, queries.goals))

    def _find(self, own: np.ndarray) -> dict[str, np.ndarray] | None:
        return next((goals for known, goals in self._known if np.array_equal(known, own)), None)

    def of(self, labels: Any, subset: Subset | None = None) -> dict[str, np.ndarray]:
        """The labels by goal of the data set with these labels, or of the whole that it is a subset of."""
        if not self.goals:
            return {}
        found = self._find(to_numpy(labels, "labels").astype(np.float32))
        if found is None and subset is not None:
            found = self._find(to_numpy(subset.whole.get_label(), "labels").astype(np.float32))
        require(
            found is not None,
            "a metric reads the labels of a goal, but a data set is evaluated whose own labels are not the first of "
            "any mapping in labels=; add a mapping for it, also for the training set if that is evaluated (on a "
            "worker: for its rows)",
        )
        return {goal: taken(y, subset) for goal, y in (found or {}).items()}

"""Bounds in trainings by the libraries' own functions: an objective and a metric that share the multipliers."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._bounds import Kept, Limits, read_bounds
from ltr_objectives.adapters._callables import ByGoal, MetricCallable, ObjectiveCallable, read_labels
from ltr_objectives.adapters._catboost_callables import CatBoostMetric, CatBoostObjective
from ltr_objectives.adapters._catboost_fit import Fit, Rows, given_weight, rows_of
from ltr_objectives.adapters._catboost_passes import Passes
from ltr_objectives.adapters._frames import calls_of
from ltr_objectives.adapters._lightgbm_callables import LightGBMMetric, LightGBMObjective
from ltr_objectives.adapters._xgboost_callables import XGBoostMetric, XGBoostObjective, read_matrix, workers
from ltr_objectives.errors import require
from ltr_objectives.goals import check_read
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.bounded import Bounded
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries, labels_by_goal, to_numpy
from ltr_objectives.registry import objective_for

Made = tuple[Bounded, Kept]


class Shared:
    """What an objective and a metric share: the multipliers of each training, known by the library's model.

    Copies are the same object, because LightGBM copies its parameters.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self.make = make
        self.trainings: weakref.WeakKeyDictionary[Any, Made] = weakref.WeakKeyDictionary()
        self.of_thread = threading.local()  # the training of CatBoost, which shows metrics no model
        self.last: Made | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Shared:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Shared, (self.make,)

    def of(self, training: Any) -> Made:
        """Return objective and metric of a training, new ones at its start."""
        if training not in self.trainings:
            self.trainings[training] = self.last = self.make()
        return self.trainings[training]


class BoundedObjective(ObjectiveCallable):
    """An objective whose multipliers the metric of its pair moves after each round."""

    shared: Shared

    @property
    def history(self) -> dict[str, dict[str, list[float]]]:
        """By metric with a bound, its value after each round of the last training, and the multiplier of the round."""
        if self.shared.last is None:
            return {}
        _, kept = self.shared.last
        of_rounds = kept.multipliers.values, kept.multipliers.used
        rounds = zip(*(np.reshape(x, (-1, len(kept.multipliers.bounds))).T.tolist() for x in of_rounds), strict=True)
        return {name: {"value": v, "multiplier": a} for name, (v, a) in kept.by_metric(rounds).items()}

    def gradients(
        self, queries: Queries, scores: Any, params: Any = None, *, training: Any = None, new_tree: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        made, _ = self.shared.of(queries if training is None else training)
        if training is not None and new_tree:
            require(
                made.multipliers.begun == len(made.multipliers.used),
                "the metric of the pair did not see valid after the last round; evaluate valid after each, by this "
                "metric",
            )
            made.multipliers.begun += 1
        twin = copy.copy(self)
        twin.objective = made
        return ObjectiveCallable.gradients(twin, queries, scores, params, training=training, new_tree=new_tree)


class BoundedMetric(MetricCallable):
    """The first metric if all bounds are kept, else far below; on ``valid`` it ends a round."""

    shared: Shared
    valid: Any
    of_valid: tuple[Rows, Queries]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the data sets out, which no other process has; the objective refuses trainings there."""
        return {**vars(self), "valid": None, "labels": []}

    def queries(self, data: Any, labels: Any, group: Any, weight: Any) -> Queries:
        if data is not self.valid:
            return super().queries(data, labels, group, weight)
        rows, queries = self.of_valid
        rows.check_same(_as_rows(labels, group, weight), "the one given to bounded", "valid")
        return queries

    def means(self, queries: Queries, scores: Any, params: Any) -> list[tuple[Metric, float]]:
        booster = calls_of(self.library).booster
        _, kept = self.shared.of(queries if booster is None else booster)
        s, n_threads = to_numpy(scores, "scores").reshape(-1), self.library.n_threads(params, self.n_threads)
        return [(kept, kept.mean(queries, s, n_threads=n_threads))]


class LightGBMBounded(BoundedObjective, LightGBMObjective):
    """For ``lgb.train``."""


class LightGBMKept(BoundedMetric, LightGBMMetric):
    """For ``lgb.train``."""


class XGBoostBounded(BoundedObjective, XGBoostObjective):
    """For ``xgb.train`` in one process."""

    def __call__(self, predictions: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        require(workers() == 1, "bounds= need one process, and this training has several workers")
        return super().__call__(predictions, data)


class XGBoostKept(BoundedMetric, XGBoostMetric):
    """For ``xgb.train``."""


class CatBoostBounded(BoundedObjective, CatBoostObjective):
    """For ``CatBoost.fit``."""

    def _follow(self, fit: Fit) -> Passes:
        self.shared.of_thread.made = self.shared.of(self)
        return super()._follow(fit)


@dataclass(frozen=True)
class OfFit(Kept):
    """The metric in the training of CatBoost that runs in this thread."""

    shared: Any = field(default=None, kw_only=True, compare=False)

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        _, kept = self.shared.of_thread.made
        return float(kept.mean(queries, scores, n_threads=n_threads))


CLASSES = {"lightgbm": (LightGBMBounded, LightGBMKept), "xgboost": (XGBoostBounded, XGBoostKept)}


class Pair(NamedTuple):
    """What :func:`bounded` returns.

    Attributes
    ----------
    objective
        For the library; ``objective.history`` has the values and multipliers of the last training, by round.
    metric
        For the library, to stop early and to choose the best round; called "kept".
    """

    objective: Any
    metric: Any


def bounded(
    metric: str | Metric, bounds: Limits, train: Any, valid: Any, *, objective: str | Objective | None = None,
    labels: ByGoal | None = None, valid_labels: ByGoal | None = None, convention: Convention | None = None,
    n_threads: int | None = None,
) -> Pair:  # fmt: skip
    """Return an objective and a metric that maximise one metric while others keep their bounds on ``valid``.

    They are for ``lgb.train``, ``xgb.train`` and ``CatBoost.fit``; the estimators have ``bounds=``. The metric must see
    ``valid`` after each round. It is the first metric if all bounds are kept, and far below otherwise, so early
    stopping on it keeps the best round.

    Parameters
    ----------
    metric : str or Metric
        What is maximised.
    bounds : mapping of metrics to numbers
        The least values on ``valid``, above 0, such as ``{"ndcg@10": 0.74}``.
    train : lightgbm.Dataset, xgboost.DMatrix or catboost.Pool
        The training data, with labels and queries.
    valid : lightgbm.Dataset, xgboost.DMatrix or catboost.Pool
        The data on which bounds are kept, the last that is evaluated.
    objective : str or Objective, optional
        What is trained for ``metric``; by default :func:`ltr_objectives.objective_for`.
    labels, valid_labels : mapping of goals to arrays of shape (rows,), optional
        Of ``train`` and ``valid``.
    convention : str, optional
        As in :func:`ltr_objectives.get_metric`.
    n_threads : int, optional
        By default that of the training.

    Returns
    -------
    Pair
        ``(objective, metric)``. It can be used again; each training has its own multipliers.

    Raises
    ------
    LTRError
        For bounds that cannot be followed; in the training if the metric did not see ``valid``, as in ``lgb.cv``.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    >>> train, valid = lgb.Dataset(X, y, group=[20] * 3), lgb.Dataset(X, y, group=[20] * 3)
    >>> objective, metric = bounded("mrr", {"ndcg@10": 0.3}, train, valid)
    >>> params = {"objective": objective, "metric": "None", "min_data_in_leaf": 5, "verbose": -1}
    >>> model = lgb.train(params, train, 3, valid_sets=[valid], feval=metric)
    >>> [len(values) for values in objective.history["ndcg@10"].values()]
    [3, 3]
    """
    names = [type(data).__module__.partition(".")[0] for data in (train, valid)]
    require(
        names[0] == names[1] and names[0] in LIBRARIES,
        f"train and valid must be two data sets of one library, got {' and '.join(names)}; make them by Dataset(X, y, "
        "group=sizes), DMatrix(X, y, group=sizes) or Pool(X, y, group_id=ids)",
    )
    chosen = get_metric(metric, convention)
    goals, rows = (read_labels(labels), read_labels(valid_labels)), [_rows(names[0], data) for data in (train, valid)]
    queries = [
        Queries(labels_by_goal(each.labels, given), each.group, weight=each.weight)
        for each, given in zip(rows, goals, strict=True)
    ]
    own = objective_for(chosen, queries[0]) if objective is None else get_objective(objective)
    shared = Shared(partial(read_bounds, bounds, chosen, own, convention, *queries))
    made, kept = shared.make()
    for data, reader, read in zip(queries, (made, kept), (made.facts.goals, kept.goals), strict=True):
        check_read(data.goals, read, reader.name)
        for goal in read:
            data.for_goal(goal)  # raises without labels
    if names[0] == "catboost":
        of_fit = OfFit(parts=kept.parts, shared=shared)
        first: Any = CatBoostBounded(made, rows[0], queries[0], newton_splits=True, n_threads=n_threads).prepare(train)
        second: Any = CatBoostMetric(of_fit, tuple(rows), tuple(queries), n_threads)
    else:
        of_objective, of_metric = CLASSES[names[0]]
        first = of_objective(made, labels=goals[0], n_threads=n_threads)
        second = of_metric((kept,), n_threads, {valid: goals[1]})
        second.shared, second.valid, second.of_valid = shared, valid, (rows[1], queries[1])
    first.shared = shared
    return Pair(first, second)


def _rows(library: str, data: Any) -> Rows:
    """Return the rows of a library's data set."""
    if library == "catboost":
        return rows_of(data)
    if library == "xgboost":
        return _as_rows(*read_matrix(data))
    require(data.get_group() is not None, "the Dataset has no queries; make it with Dataset(X, y, group=sizes)")
    return _as_rows(data.get_label(), data.get_group(), data.weight)  # get_weight needs one that is constructed


def _as_rows(labels: Any, group: Any, weight: Any) -> Rows:
    """Return the rows as XGBoost and LightGBM store them: in float32."""
    by_row = None if weight is None else given_weight(np.asarray(weight, np.float32))
    return Rows(np.asarray(labels, np.float32), np.asarray(group), by_row, None)

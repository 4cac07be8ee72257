"""CatBoost: the object behind ``eval_metric``."""

from typing import Any

import numpy as np

from ltr_objectives.adapters._catboost_fit import NOT_A_FIT, Fit, Rows, fit_under_way, given_weight, rows_of
from ltr_objectives.adapters._catboost_passes import address_of
from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


class CatBoostMetric:
    """What CatBoost takes as ``eval_metric``; made by :func:`catboost_metric`. Holds configuration only."""

    no_jit = True

    def __new__(cls, metric: Metric, *arguments: Any) -> "CatBoostMetric":
        """An instance of a class named like the metric, since that is the name CatBoost records values under."""
        return object.__new__(type(str(metric), (cls,), {}))

    def __init__(self, metric: Metric, sets: tuple[Rows, ...], n_threads: int | None) -> None:
        self.metric = metric
        self.n_threads = n_threads
        self._sets = sets
        self._others: tuple[Metric, ...] = ()
        self._records: list[dict[str, list[float]]] = []
        self._seen: dict[int, tuple[Queries, np.ndarray | None, int]] | None = None  # by address of the labels

    def __repr__(self) -> str:
        return f"catboost_metric({self.metric!r}, {len(self._sets)} pools)"

    def __reduce__(self) -> tuple[Any, ...]:
        return CatBoostMetric, (self.metric, self._sets, self.n_threads)

    def record(self, *others: Metric) -> list[dict[str, list[float]]]:
        """Compute ``others`` too: CatBoost takes one metric object. Training fills in their values on each eval set."""
        self._others = others
        self._records = [{str(metric): [] for metric in others} for _ in self._sets[1:]]
        return self._records

    def __deepcopy__(self, memo: dict[int, Any]) -> "CatBoostMetric":
        twin = CatBoostMetric(self.metric, self._sets, self.n_threads)
        twin._others, twin._records = self._others, self._records
        fit = fit_under_way()
        if fit is not None:
            self._check(fit)
            twin.n_threads = fit.n_threads(self.n_threads)
            twin._seen = {}
        return twin

    def _check(self, fit: Fit) -> None:
        pools = (fit.pool, *fit.eval_sets)
        require(
            len(pools) == len(self._sets),
            f"fit has {len(pools) - 1} eval sets beside the training pool, but catboost_metric was given "
            f"{len(self._sets)} pools; "
            "pass catboost_metric the training pool, then each pool of eval_set in order",
        )
        for i, (known, pool) in enumerate(zip(self._sets, pools, strict=True)):
            name = f"fit's eval set {i - 1}" if i else "fit's training pool"
            known.check_same(rows_of(pool, name), f"pool {i} of catboost_metric", name)
            self.metric.terms(Queries(known.labels, known.group))  # labels that the metric refuses, before training
        fit.require_cpu()
        fit.require_pool_order()
        fit.require_plain_leaves()

    def is_max_optimal(self) -> bool:
        """All metrics are maximised."""
        return True

    def get_final_error(self, error: float, weight: float) -> float:
        """The value itself: ``evaluate`` sees whole data sets."""
        return error

    def evaluate(
        self, approxes: list[np.ndarray], target: np.ndarray, weight: np.ndarray | None
    ) -> tuple[float, float]:
        """The metric's mean over one data set, known by the address of its labels."""
        if self._seen is None:
            raise LTRError(NOT_A_FIT)
        address, weight = address_of(target), given_weight(weight)
        if address not in self._seen:  # in the first round: the training set, then the eval sets
            i = len(self._seen)
            known = i < len(self._sets) and np.array_equal(target, self._sets[i].labels)
            require(known, "CatBoost evaluates other rows, or another order, than the pools given to catboost_metric")
            self._seen[address] = Queries(target, self._sets[i].group, weight=weight), weight, i
        queries, before, i = self._seen[address]
        same = weight is before if weight is None or before is None else np.array_equal(weight, before)
        require(same and queries.rows == len(target), "CatBoost evaluates with other rows or weights than before")
        if i > 0:
            for other in self._others:
                value = other.mean(queries, approxes[0], n_threads=self.n_threads)
                self._records[i - 1][str(other)].append(value)
        return self.metric.mean(queries, approxes[0], n_threads=self.n_threads), 1.0

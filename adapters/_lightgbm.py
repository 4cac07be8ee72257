"""LightGBM: one callable for ``lgb.train``, ``Booster.update(fobj=)`` and ``LGBMRanker``."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._common import QueriesMemo, gradients_float32, training, warn_if_no_split
from ltr_objectives.errors import require
from ltr_objectives.kernels.threads import at_most
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, to_numpy
from ltr_objectives.registry import get_metrics, get_objective


def _unpack(
    memo: QueriesMemo,
    first: Any,
    second: Any,
    weight: Any,
    group: Any,
    propensity: Any = None,
    position: Any = None,
) -> tuple[Queries, np.ndarray]:
    """Queries and scores from ``(predictions, Dataset)`` or from ``(labels, predictions, weight, group)``."""
    if hasattr(second, "get_group"):
        _refuse_cut(second)
        labels, scores, weight, group = second.get_label(), first, second.get_weight(), second.get_group()
    else:
        labels, scores = first, second
    require(
        group is not None, "the data has no queries; make it with Dataset(X, y, group=sizes) or fit(X, y, group=sizes)"
    )
    return memo.find(labels, group, weight, propensity, position), to_numpy(scores).reshape(-1)


def _refuse_cut(data: Any) -> None:
    """Raise for a subset with parts of queries, which `lgb.cv` makes unless told how to fold."""
    rows, whole = getattr(data, "used_indices", None), getattr(data, "reference", None)
    sizes = None if rows is None or whole is None else whole.get_group()
    if sizes is None:
        return
    sizes = np.asarray(sizes, np.int64)
    taken = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[rows], minlength=len(sizes))
    require(
        ((taken == 0) | (taken == sizes)).all(),
        "the data is a subset that cuts queries in two; lgb.cv needs folds=GroupKFold(n) of scikit-learn, or pairs of "
        "row indices that keep queries whole",
    )


def _position(data: Any) -> Any:
    """The positions of a Dataset; LightGBM leaves them out of subsets."""
    rows, whole = getattr(data, "used_indices", None), getattr(data, "reference", None)
    position = data.get_position()
    if position is not None or rows is None or whole is None:
        return position
    position = whole.get_position()
    return None if position is None else np.asarray(position)[rows]


NUM_THREADS = ("num_threads", "num_thread", "nthread", "nthreads", "n_jobs")


def _n_threads(chosen: int | None, booster: Any) -> int | None:
    """The caller's choice, or the number that the training was given under any of its names."""
    if chosen is not None or booster is None:
        return chosen
    asked = [at_most(int(booster.params[name])) for name in NUM_THREADS if booster.params.get(name) is not None]
    return min((n for n in asked if n is not None), default=None)


LEAST_HESSIAN = (
    "min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian", "min_child_weight"
)  # fmt: skip


def _least_hessian(booster: Any) -> tuple[str, float]:
    """What a leaf must have: the parameter's name and value."""
    given = [(name, float(booster.params[name])) for name in LEAST_HESSIAN if booster.params.get(name) is not None]
    return given[0] if given else (LEAST_HESSIAN[0], 1e-3)  # LightGBM's default


class LightGBMObjective:
    """Callable for LightGBM; made by :func:`lightgbm_objective`."""

    def __init__(self, objective: Objective, n_threads: int | None, propensity: Any, position: Any) -> None:
        self.objective = objective
        self.propensity = propensity
        self.position = position
        self.n_threads = n_threads
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"lightgbm_objective({self.objective!r})"

    # LGBMRanker counts the parameters and hands over the groups only where there are four; lgb.train passes two.
    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[np.ndarray, np.ndarray]:
        booster = training(sys._getframe(1), "lightgbm")
        params = {**(getattr(second, "params", None) or {}), **(getattr(booster, "params", None) or {})}
        by_query = str(params.get("bagging_by_query", False)).lower()
        require(
            by_query in ("false", "0"),
            "with bagging_by_query LightGBM learns nothing from any custom objective, without saying so; leave it out",
        )
        position = self.position
        if position is None and self.propensity is None and hasattr(second, "get_position"):
            position = _position(second)
        queries, scores = _unpack(self._memo, first, second, weight, group, self.propensity, position)
        grad, hess = gradients_float32(self.objective, queries, scores, _n_threads(self.n_threads, booster))
        if booster is not None:
            name, least = _least_hessian(booster)
            warn_if_no_split(queries, hess, name, lambda: least)
        return grad, hess


def lightgbm_objective(
    objective: str | Objective,
    *,
    propensity: ArrayLike | None = None,
    position: ArrayLike | None = None,
    n_threads: int | None = None,
) -> LightGBMObjective:
    """An objective for ``lgb.train({"objective": ...})``, ``Booster.update(fobj=...)`` and ``LGBMRanker``.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    propensity, position : array of shape (rows,), optional
        Where labels are clicks: how likely each document of the training set was looked at, or where it was shown, for
        pairwise objectives. See :meth:`ltr_objectives.Objective.gradient_hessian`. With neither, the position of the
        ``Dataset`` is taken where it has one (LightGBM 4.1 or newer).
    n_threads : int, optional
        Threads of the gradient computation; by default ``num_threads`` of the training, at most all processors. The
        model does not depend on it.

    Returns
    -------
    callable
        ``(predictions, Dataset)`` or ``(labels, predictions, weight, group)`` to ``(gradient, Hessian)``, float32
        arrays of shape (rows,). The data needs ``group``; weights, one per row, multiply gradient and Hessian.

    Raises
    ------
    LTRError
        At the first iteration, for data that cannot be right.

    Examples
    --------
    >>> import lightgbm as lgb, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    >>> dtrain = lgb.Dataset(X, y, group=[20, 20, 20])
    >>> params = {"objective": lightgbm_objective("yetiloss:map"), "min_data_in_leaf": 5, "verbose": -1}
    >>> lgb.train(params, dtrain, 3).predict(X).shape
    (60,)
    """
    return LightGBMObjective(get_objective(objective), n_threads, propensity, position)


class LightGBMMetric:
    """Callable for LightGBM; made by :func:`lightgbm_metric`."""

    def __init__(self, metrics: tuple[Metric, ...], n_threads: int | None) -> None:
        self.metrics = metrics
        self.n_threads = n_threads
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"lightgbm_metric({', '.join(map(repr, self.metrics))})"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> list[tuple[str, float, bool]]:
        queries, scores = _unpack(self._memo, first, second, weight, group)
        n_threads = _n_threads(self.n_threads, training(sys._getframe(1), "lightgbm"))
        return [(str(m), m.mean(queries, scores, n_threads=n_threads), True) for m in self.metrics]


def lightgbm_metric(
    *metrics: str | Metric, convention: str | None = None, n_threads: int | None = None
) -> LightGBMMetric:
    """A metric, or several, for ``lgb.train(..., feval=...)`` and ``LGBMRanker.fit(..., eval_metric=...)``.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``. Set ``"metric": "None"`` in the parameters to evaluate nothing else.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": how that library defines the metrics.
    n_threads : int, optional
        By default ``num_threads`` of the training, at most all processors.

    Returns
    -------
    callable
        To ``[(name, value, True), ...]``, means over queries; a query's weight is the mean of its rows'.

    Examples
    --------
    >>> lightgbm_metric("map")  # doctest: +ELLIPSIS
    lightgbm_metric(MAP(...))
    """
    return LightGBMMetric(get_metrics(metrics, convention), n_threads)

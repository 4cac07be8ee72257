"""LightGBM: the callables for its own functions and estimators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._callables import ByGoal, MetricCallable, ObjectiveCallable, Params
from ltr_objectives.adapters._frames import calls_of
from ltr_objectives.adapters._lightgbm import LIBRARY, refuse_bagging_by_query
from ltr_objectives.errors import require, shown
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.text import get_metrics
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective


def _unpack(first: Any, second: Any, weight: Any, group: Any) -> tuple[Any, Any, Any, Any]:
    """Return labels, sizes, weights and scores of ``(predictions, Dataset)`` or ``(labels, predictions, ...)``."""
    labels, scores = first, second
    require(
        not hasattr(second, "num_row"),
        f"an objective or a metric for LightGBM reads a Dataset, got {type(second).__name__}; for another library make "
        "its own, such as xgboost_objective",
    )
    if hasattr(second, "get_init_score"):
        labels, scores, weight, group = second.get_label(), first, second.get_weight(), second.get_group()
    require(group is not None, "the data has no queries; make it with Dataset(X, y, group=sizes), or take LGBMRanker")
    return labels, group, weight, scores


def _refuse_subset(data: Any) -> None:
    """Raise if the data is a subset of a Dataset, such as a fold of `lgb.cv`, that cuts queries."""
    rows, whole = getattr(data, "used_indices", None), getattr(data, "reference", None)
    if rows is None or whole is None:
        return
    sizes = whole.get_group()
    if sizes is not None:
        taken = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[rows], minlength=len(sizes))
        require(
            ((taken == 0) | (taken == sizes)).all(),
            "the data is a subset that cuts queries in two; lgb.cv needs folds=GroupKFold(n) of scikit-learn, or pairs "
            "of row indices that keep queries whole",
        )
    _refuse_subset(whole)


class LightGBMObjective(ObjectiveCallable):
    """Callable for LightGBM; made by :func:`lightgbm_objective`."""

    of = "lightgbm"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> tuple[np.ndarray, np.ndarray]:
        booster = calls_of(LIBRARY).booster
        params = getattr(booster, "params", None) or {}
        refuse_our_text(params)
        of_both = {**(getattr(second, "params", None) or {}), **params}
        refuse_bagging_by_query(of_both)
        _refuse_subset(second)
        require(
            not hasattr(second, "get_position") or second.get_position() is None,
            "our objectives do not read position= of a Dataset; pass init_score=offsets.at(position) of "
            "ltr_objectives.adapters.position_offsets instead",
        )
        labels, group, weight, scores = _unpack(first, second, weight, group)
        queries = self.queries(labels, group, weight)
        return self.gradients(queries, scores, params or None, training=booster)


def refuse_our_text(params: Params) -> None:
    """Raise for our text as LightGBM's own objective or metric: it drops a text with an equals sign."""
    for name, wrapped in (("objective", "lightgbm_objective({!r})"), ("metric", "feval=lightgbm_metric({!r})")):
        for given, value in LIBRARY.given(name, params).items():
            texts = value if isinstance(value, list | tuple) else [value]
            text = next((each for each in texts if "=" in str(each)), None)
            remedy = f"LightGBM does not know our names, and drops this text; give {wrapped.format(text)}"
            require(text is None, f"{given}={shown(value)}: {remedy}")


class LightGBMMetric(MetricCallable):
    """Callable for LightGBM; made by :func:`lightgbm_metric`."""

    of = "lightgbm"

    def __call__(self, first: Any, second: Any, weight: Any = None, group: Any = None) -> list[tuple[str, float, bool]]:
        _refuse_subset(second)
        labels, group, weight, scores = _unpack(first, second, weight, group)
        params = getattr(calls_of(LIBRARY).booster, "params", None)
        refuse_our_text(params or {})
        means = self.means(self.queries(second, labels, group, weight), scores, params)
        return [(str(m), mean, True) for m, mean in means]


def lightgbm_objective(
    objective: str | Objective, *, propensity: ArrayLike | None = None, labels: ByGoal | None = None,
    n_threads: int | None = None,
) -> LightGBMObjective:  # fmt: skip
    """Make an objective for ``lgb.train({"objective": ...})``, ``Booster.update(fobj=...)`` and its own ranker.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    propensity, labels
        Of the rows of the training set, as in :class:`ltr_objectives.Queries`; ``labels`` by goal beside its own.
    n_threads : int, optional
        By default ``num_threads`` of the training, at most all processors. The model does not depend on it.

    Returns
    -------
    callable
        ``(predictions, Dataset)`` or ``(labels, predictions, weight, group)`` to ``(gradient, Hessian)``, float32
        arrays of shape (rows,). The data needs ``group``; weights, one per row, multiply gradient and Hessian.

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
    return LightGBMObjective(get_objective(objective), labels=labels, n_threads=n_threads, propensity=propensity)


def lightgbm_metric(
    *metrics: str | Metric, convention: Convention | None = None, labels: Mapping[Any, ByGoal] | None = None,
    n_threads: int | None = None,
) -> LightGBMMetric:  # fmt: skip
    """Make a metric, or several, for ``lgb.train(..., feval=...)`` and ``lightgbm.LGBMRanker.fit(eval_metric=...)``.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``. Set ``"metric": "None"`` in the parameters, else LightGBM's own NDCG may be
        the metric that stops the training.
    convention : str, optional
        As in :func:`ltr_objectives.get_metric`.
    labels : mapping of Datasets to mappings of goals to arrays, optional
        For metrics of goals, such as ``"ndcg@10 + 0.3*dcg(gain_type=linear)@10[revenue]"``: ``{dvalid: {"revenue":
        array}}``, for each Dataset that is evaluated.
    n_threads : int, optional
        By default ``num_threads`` of the training, at most all processors.

    Returns
    -------
    callable
        From the arguments of a :func:`lightgbm_objective` to ``[(name, value, True), ...]``, means over queries. The
        weight of a query is the mean of its rows' weights.

    Examples
    --------
    >>> lightgbm_metric("map")  # doctest: +ELLIPSIS
    lightgbm_metric(MAP(...))
    """
    return LightGBMMetric(get_metrics(metrics, convention), n_threads, labels)

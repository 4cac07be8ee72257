"""XGBoost: a custom objective and a custom metric for ``xgb.train``."""

from __future__ import annotations

import json
import sys
import weakref
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._common import (
    QueriesMemo,
    called_by,
    gradients_float32,
    training,
    warn_if_no_split,
)
from ltr_objectives.adapters._xgboost_workers import added, agreed, workers
from ltr_objectives.errors import require
from ltr_objectives.kernels.threads import at_most
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, to_numpy
from ltr_objectives.registry import get_metrics, get_objective

MAXIMISED = ("auc", "pre", "map", "ndcg")  # XGBoost's early stopping maximises what starts so, and minimises the rest

BY_QUERY = ("auc", "aucpr", "pre", "map", "ndcg")  # what it can weigh by query; any other aborts the process


def by_query(metric: str) -> bool:
    """Whether XGBoost evaluates its ``metric``, such as "ndcg@10-", query by query."""
    return metric.partition("@")[0].rstrip("-") in BY_QUERY


def _queries(memo: QueriesMemo, data: Any, weight: Any = None, propensity: Any = None, position: Any = None) -> Queries:
    require(
        hasattr(data, "get_uint_info"),
        "XGBoost's scikit-learn estimators hand over no queries; use xgb.train with a DMatrix that has qid",
    )
    ptr = data.get_uint_info("group_ptr")
    require(len(ptr) > 1, "the DMatrix has no queries; make it with DMatrix(X, y, group=sizes)")
    labels = data.get_label()
    require(len(labels) > 0, "the DMatrix has no labels; make it with DMatrix(X, y, group=sizes)")
    require(
        not ((labels != 0) & (np.abs(labels) < np.finfo(np.float32).tiny)).any(),
        "the DMatrix has labels below 1e-37, as where XGBoost is given an array of another byte order, which it does "
        "not look at: convert X, y and qid to native byte order, as with X.astype(np.float32)",
    )
    weight = data.get_weight() if weight is None else weight
    return memo.find(labels, np.diff(ptr.astype(np.int64)), weight, propensity, position)


class XGBoostObjective:
    """Callable ``(predictions, DMatrix) -> (gradient, Hessian)``; made by :func:`xgboost_objective`."""

    def __init__(
        self, objective: Objective, n_threads: int | None, weight: Any, propensity: Any, position: Any
    ) -> None:
        self.objective = objective
        self.weight = weight
        self.propensity = propensity
        self.position = position
        self.n_threads = n_threads
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"xgboost_objective({self.objective!r})"

    def __call__(self, predictions: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        caller = called_by(sys._getframe(1), "xgboost")

        def compute() -> tuple[np.ndarray, np.ndarray]:
            queries = _queries(self._memo, data, self.weight, self.propensity, self.position)
            booster = training(caller, "xgboost")
            if booster is not None and booster not in _seen:
                _refuse_abort(booster, caller, data)
                _seen.add(booster)
            n_threads = _n_threads(self.n_threads, booster)
            if booster is not None and self.n_threads is None:
                _this_round[booster] = n_threads
            grad, hess = gradients_float32(self.objective, queries, predictions, n_threads)
            if booster is not None:
                warn_if_no_split(queries, hess, "min_child_weight", lambda: _least_hessian(booster))
            return grad, hess

        if workers() == 1:
            return compute()
        return agreed(compute, len(predictions), (np.zeros(0, np.float32), np.zeros(0, np.float32)))


_seen: weakref.WeakSet[Any] = weakref.WeakSet()  # boosters whose parameters were looked at
# Threads of the present round, which the objective reads from the configuration, for the metrics after it.
_this_round: weakref.WeakKeyDictionary[Any, int | None] = weakref.WeakKeyDictionary()


def _learner(booster: Any) -> dict[str, Any]:
    """The learner's part of a booster's configuration: every parameter as XGBoost read it."""
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config


def _n_threads(chosen: int | None, booster: Any) -> int | None:
    """The caller's choice, or the number that the training was given, in its parameters or for all of XGBoost."""
    if chosen is not None or booster is None:
        return chosen
    import xgboost

    mine = int(_learner(booster)["generic_param"]["nthread"])
    return at_most(mine if mine > 0 else xgboost.get_config().get("nthread"))


def _least_hessian(booster: Any) -> float:
    """What a leaf must have."""
    model = _learner(booster)["gradient_booster"]
    model = model.get("gbtree", model)  # where the booster is dart
    return float(model.get("tree_train_param", {}).get("min_child_weight", 0.0))


def _refuse_abort(booster: Any, frame: FrameType | None, data: Any) -> None:
    """Raise where XGBoost would abort the process, or drop the weights.

    With weights by query, metrics by row, such as its default for custom objectives (rmse), stop the process. Neither
    the predictions nor the DMatrix tell which metrics are on and what is evaluated, but the callers do.
    """
    evaluated = [data]  # what a loop of the user's own evaluates is not to be seen
    while frame is not None and frame.f_globals.get("__name__", "").startswith("xgboost"):
        if frame.f_code.co_name == "cv" and "dtrain" in frame.f_locals:
            kept = len(data.get_weight()) > 0 or len(frame.f_locals["dtrain"].get_weight()) == 0
            require(kept, "xgb.cv drops weights by query without saying so; call xgb.train on folds of your own")
        if frame.f_code.co_name == "train" and "evals" in frame.f_locals:
            evaluated = [item[0] for item in frame.f_locals["evals"] or ()]
            break
        frame = frame.f_back
    if not any(len(d.get_weight()) and len(d.get_uint_info("group_ptr")) for d in evaluated):
        return
    learner = _learner(booster)
    params = learner["learner_train_param"]
    names = [metric["name"] for metric in learner.get("metrics", ())]
    off = params.get("disable_default_eval_metric") == "1" or names or params["objective"].startswith("rank:")
    require(
        off,
        "XGBoost cannot evaluate its default metric with weights by query, and would abort the process: "
        "add 'disable_default_eval_metric': 1 to the parameters",
    )
    by_row = [name for name in names if not by_query(name)]
    require(
        not by_row,
        f"XGBoost cannot evaluate eval_metric={', '.join(by_row)} with weights by query, and would abort the process: "
        "leave it out, and pass custom_metric=xgboost_metric(...); where it comes with xgb_model, train that with "
        "'disable_default_eval_metric': 1",
    )


def xgboost_objective(
    objective: str | Objective,
    *,
    weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    position: ArrayLike | None = None,
    n_threads: int | None = None,
) -> XGBoostObjective:
    """An objective for ``xgb.train(..., obj=...)``.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    weight : array of shape (queries,) or (rows,), optional
        Instead of those of the training DMatrix, which carries weights by query only.
    propensity, position : array of shape (rows,), optional
        Where labels are clicks: how likely each document of the training set was looked at, or where it was shown, for
        pairwise objectives. See :meth:`ltr_objectives.Objective.gradient_hessian`.
    n_threads : int, optional
        Threads of the gradient computation; by default ``nthread`` of the training, at most all processors. The model
        does not depend on it.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> (gradient, Hessian)``, float32 arrays of shape (rows,). The DMatrix needs ``group``
        or an ascending ``qid``; its weights are one per query. With weights, set ``disable_default_eval_metric`` to 1.

    Raises
    ------
    LTRError
        At the first iteration, for data that cannot be right.

    Examples
    --------
    >>> import numpy as np, xgboost as xgb
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> dtrain = xgb.DMatrix(X, y, qid=qid)
    >>> booster = xgb.train({"max_depth": 2}, dtrain, 3, obj=xgboost_objective("yetiloss:map"))
    >>> booster.predict(dtrain).shape
    (60,)
    """
    return XGBoostObjective(get_objective(objective), n_threads, weight, propensity, position)


class XGBoostMetric:
    """Callable ``(predictions, DMatrix) -> [(name, value), ...]``; made by :func:`xgboost_metric`."""

    def __init__(self, metrics: tuple[Metric, ...], n_threads: int | None) -> None:
        self.metrics = metrics
        self.n_threads = n_threads
        self._memo = QueriesMemo()

    def __repr__(self) -> str:
        return f"xgboost_metric({', '.join(map(repr, self.metrics))})"

    def __call__(self, predictions: Any, data: Any) -> list[tuple[str, float]]:
        booster, n_threads = training(sys._getframe(1), "xgboost"), self.n_threads
        if n_threads is None and booster is not None:
            n_threads = _this_round[booster] if booster in _this_round else _n_threads(None, booster)

        def prepare() -> tuple[Queries, np.ndarray]:
            return _queries(self._memo, data), to_numpy(predictions).reshape(-1)

        def sums() -> np.ndarray:
            queries, scores = prepare()
            values = (m.values(queries, scores, n_threads=n_threads) for m in self.metrics)
            return np.array([m.sums(v, queries.weight_by_query) for m, v in zip(self.metrics, values, strict=True)])

        if workers() == 1:
            means = [m.mean(*prepare(), n_threads=n_threads) for m in self.metrics]
        else:
            total = added(agreed(sums, len(predictions), np.zeros((len(self.metrics), 2))))
            means = [m.average(*pair) for m, pair in zip(self.metrics, total.tolist(), strict=True)]
        return [_as_xgboost(m, mean) for m, mean in zip(self.metrics, means, strict=True)]


def _as_xgboost(metric: Metric, value: float) -> tuple[str, float]:
    name = str(metric)
    if name.startswith(MAXIMISED):
        return name, value
    return (f"-{name}", -value) if metric.maximum is None else (f"1-{name}", 1.0 - value)


def xgboost_metric(
    *metrics: str | Metric, convention: str | None = None, n_threads: int | None = None
) -> XGBoostMetric:
    """A metric, or several, for ``xgb.train(..., custom_metric=...)``.

    XGBoost's early stopping maximises only metrics whose name starts like one of its own. So that it never goes the
    wrong way, the others are reported as a loss: ``mrr`` as ``1-mrr``, ``dcg`` as ``-dcg``. Nothing need be told to
    XGBoost.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": how that library defines the metrics.
    n_threads : int, optional
        By default ``nthread`` of the training, at most all processors.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> [(name, value), ...]``, means over queries, weighted by the DMatrix's weights.

    Examples
    --------
    ``xgb.train(..., early_stopping_rounds=)`` looks at the last metric on the last of ``evals``. A callback looks at
    another, under the name that XGBoost prints:

    >>> import numpy as np, xgboost as xgb
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> dtrain = xgb.DMatrix(X, y, qid=qid)
    >>> stop = xgb.callback.EarlyStopping(rounds=5, metric_name="map", data_name="valid", save_best=True)
    >>> params, metrics = {"disable_default_eval_metric": 1}, xgboost_metric("map", "mrr@10")
    >>> how = {"obj": xgboost_objective("yetiloss:map"), "custom_metric": metrics, "callbacks": [stop]}
    >>> booster = xgb.train(params, dtrain, 3, evals=[(dtrain, "valid")], verbose_eval=False, **how)
    >>> sorted(stop.stopping_history["valid"])
    ['map']

    With ``booster="dart"`` leave early stopping out: later rounds change the earlier ones, so that the best round is
    not what its metric was measured on.
    """
    return XGBoostMetric(get_metrics(metrics, convention), n_threads)

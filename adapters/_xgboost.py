"""XGBoost: a custom objective and a custom metric for ``xgb.train``."""

import json
import sys
import weakref
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._common import QueriesMemo, distinct, gradients_float32
from ltr_objectives.adapters._xgboost_workers import added, agreed, workers
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, to_numpy
from ltr_objectives.registry import get_objective

MAXIMISED = ("auc", "pre", "map", "ndcg")  # XGBoost's early stopping maximises what starts so, and minimises the rest


def _queries(memo: QueriesMemo, data: Any, weight: Any = None, propensity: Any = None, position: Any = None) -> Queries:
    require(
        hasattr(data, "get_uint_info"),
        "XGBoost's scikit-learn estimators hand over no queries; use xgb.train with a DMatrix that has qid",
    )
    ptr = data.get_uint_info("group_ptr")
    require(len(ptr) > 1, "the DMatrix has no queries; make it with DMatrix(X, y, qid=qid) or call set_group(sizes)")
    labels = data.get_label()
    require(len(labels) > 0, "the DMatrix has no labels; make it with DMatrix(X, y, qid=qid)")
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
        caller = sys._getframe(1)

        def compute() -> tuple[np.ndarray, np.ndarray]:
            queries = _queries(self._memo, data, self.weight, self.propensity, self.position)
            _refuse_abort(caller, data)
            return gradients_float32(self.objective, queries, predictions, self.n_threads)

        if workers() == 1:
            return compute()
        return agreed(compute, len(predictions), (np.zeros(0, np.float32), np.zeros(0, np.float32)))


_seen: weakref.WeakSet[Any] = weakref.WeakSet()  # boosters whose parameters were looked at


def _refuse_abort(frame: FrameType | None, data: Any) -> None:
    """Raise where XGBoost would abort the process.

    With weights by query, its default metric for custom objectives (rmse) stops the process. Neither the predictions
    nor the DMatrix tell whether that metric is on and what is evaluated, but the callers do: Booster and ``xgb.train``.
    """
    booster: Any = None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("xgboost"):
        caller = frame.f_locals.get("self")
        if booster is None and hasattr(caller, "save_config"):
            booster = caller
            if booster in _seen:
                return
            _seen.add(booster)
        if frame.f_code.co_name == "train" and "evals" in frame.f_locals:
            evaluated = [item[0] for item in frame.f_locals["evals"] or ()]
            break
        frame = frame.f_back
    else:
        evaluated = [data]  # what a loop of the user's own evaluates is not to be seen
    if booster is None or not any(len(d.get_weight()) and len(d.get_uint_info("group_ptr")) for d in evaluated):
        return
    learner = json.loads(booster.save_config())["learner"]
    params = learner["learner_train_param"]
    off = params.get("disable_default_eval_metric") == "1" or bool(learner.get("metrics"))
    require(
        off or params["objective"].startswith("rank:"),
        "XGBoost cannot evaluate its default metric with weights by query, and would abort the process: "
        "add 'disable_default_eval_metric': 1 to the parameters",
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
        Threads of the gradient computation; all processors by default. The model does not depend on it.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> (gradient, Hessian)``, float32 arrays of shape (rows,). The DMatrix needs ``qid`` or
        groups; its weights are one per query. With weights, set ``disable_default_eval_metric`` to 1.

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
        def prepare() -> tuple[Queries, np.ndarray]:
            return _queries(self._memo, data), to_numpy(predictions).reshape(-1)

        def sums() -> np.ndarray:
            queries, scores = prepare()
            values = (m.values(queries, scores, n_threads=self.n_threads) for m in self.metrics)
            return np.array([m.sums(v, queries.weight_by_query) for m, v in zip(self.metrics, values, strict=True)])

        if workers() == 1:
            means = [m.mean(*prepare(), n_threads=self.n_threads) for m in self.metrics]
        else:
            total = added(agreed(sums, len(predictions), np.zeros((len(self.metrics), 2))))
            means = [m.average(*pair) for m, pair in zip(self.metrics, total.tolist(), strict=True)]
        return [_as_xgboost(m, mean) for m, mean in zip(self.metrics, means, strict=True)]


def _as_xgboost(metric: Metric, value: float) -> tuple[str, float]:
    name = str(metric)
    if name.startswith(MAXIMISED):
        return name, value
    return (f"-{name}", -value) if metric.maximum is None else (f"1-{name}", 1.0 - value)


def xgboost_metric(*metrics: str | Metric, n_threads: int | None = None) -> XGBoostMetric:
    """A metric, or several, for ``xgb.train(..., custom_metric=...)``.

    XGBoost's early stopping maximises only metrics whose name starts like one of its own. So that it never goes the
    wrong way, the others are reported as a loss: ``mrr`` as ``1-mrr``, ``dcg`` as ``-dcg``. Nothing need be told to
    XGBoost.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``; early stopping looks at the last one unless told otherwise.
    n_threads : int, optional
        All processors by default.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> [(name, value), ...]``, means over queries, weighted by the DMatrix's weights.

    Examples
    --------
    >>> xgboost_metric("map", "mrr@10")  # doctest: +ELLIPSIS
    xgboost_metric(MAP(...), MRR(k=10, ...))
    """
    return XGBoostMetric(distinct(metrics), n_threads)

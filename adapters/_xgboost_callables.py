"""XGBoost: a custom objective and a custom metric for ``xgb.train``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._callables import ByGoal, Memo, MetricCallable, ObjectiveCallable, Params
from ltr_objectives.adapters._frames import Calls, calls_of
from ltr_objectives.adapters._xgboost import LIBRARY, learner_of, metrics_of, refuse_by_row
from ltr_objectives.errors import LTRError, require
from ltr_objectives.kernels.threads import at_most
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.text import get_metrics
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import to_numpy

T = TypeVar("T")

# XGBoost's early stopping maximises metrics whose names start so, and minimises others
MAXIMISED = ("auc", "pre", "map", "ndcg")


def read_matrix(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return labels, sizes of queries and weights, if any, of a DMatrix of XGBoost or a library with its interface."""
    kind = type(data).__name__
    require(
        hasattr(data, "get_label") and hasattr(data, "num_row"),
        f"an objective or a metric for XGBoost reads a DMatrix, got {kind}; for another library make its own, and "
        "instead of XGBoost's estimators take ltr_objectives.adapters.XGBRanker",
    )
    has_ptr = hasattr(data, "get_uint_info")  # in version 3.4 perhaps an array of CuPy, as labels and weights
    sizes = np.diff(to_numpy(data.get_uint_info("group_ptr")).astype(np.int64)) if has_ptr else data.get_group()
    require(len(sizes) > 0, "the DMatrix has no queries; make it with DMatrix(X, y, group=sizes)")
    labels = data.get_label()
    require(min(len(labels), data.num_row()) > 0, "the DMatrix has no labels; make it with DMatrix(X, y, group=sizes)")
    weight = data.get_weight()
    return labels, sizes, weight if len(weight) else None


class XGBoostObjective(ObjectiveCallable):
    """Callable ``(predictions, DMatrix) -> (gradient, Hessian)``; made by :func:`xgboost_objective`."""

    of = "xgboost"

    def __call__(self, predictions: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        calls = calls_of(LIBRARY)

        def compute() -> tuple[np.ndarray, np.ndarray]:
            params = _params(self._memo, calls, data)
            return self.gradients(self.queries(*read_matrix(data)), predictions, params, training=calls.booster)

        return _agreed(compute, predictions, (np.zeros(0, np.float32), np.zeros(0, np.float32)))


class XGBoostMetric(MetricCallable):
    """Callable ``(predictions, DMatrix) -> [(name, value), ...]``; made by :func:`xgboost_metric`."""

    of = "xgboost"

    def __call__(self, predictions: Any, data: Any) -> list[tuple[str, float]]:
        params = _params(self._memo, calls_of(LIBRARY))
        parts = [part for m in self.metrics for _, part in m.parts]

        def sums() -> np.ndarray:
            """Return for each part the weighted sum over queries, and the sum of the weights."""
            queries, s = self.queries(data, *read_matrix(data)), to_numpy(predictions, "predictions").reshape(-1)
            n_threads = LIBRARY.n_threads(params, self.n_threads)
            values = [(m, m.values(queries, s, n_threads=n_threads)) for m in parts]
            return np.array([m.sums(v, m.weight_by_query(queries)) for m, v in values])

        if workers() == 1:  # by `mean`, which a metric may define in its own way
            found = self.means(self.queries(data, *read_matrix(data)), predictions, params)
        else:
            from xgboost import collective

            here = _agreed(sums, predictions, np.zeros((len(parts), 2)))
            total = collective.allreduce(here, collective.Op.SUM).reshape(here.shape)
            mean = {m: m.average(*pair) for m, pair in zip(parts, total.tolist(), strict=True)}.__getitem__
            found = [(m, m.of_parts(mean)) for m in self.metrics]
        return [_as_xgboost(m, mean) for m, mean in found]


def _as_xgboost(metric: Metric, value: float) -> tuple[str, float]:
    name = str(metric)
    if name.startswith(MAXIMISED):
        return name, value
    return (f"-{name}", -value) if metric.maximum is None else (f"1-{name}", 1.0 - value)


def _params(memo: Memo, calls: Calls, data: Any = None) -> Params | None:
    """Return the parameters of the training that makes these calls, as its first round had them.

    With ``data``, whose gradient is asked for, raises in the first round for what would abort the process.
    """
    if calls.booster is None:
        return None
    training = memo.training(calls.booster)
    if training.params is None:
        learner = learner_of(calls.booster)
        if data is not None:
            _refuse_abort(calls, data, learner)
        training.params = read_params(learner)
    return training.params


def read_params(learner: dict[str, Any]) -> Params:
    """Return limits of leaves, and the number of threads. The latter may also be set for all of XGBoost."""
    import xgboost

    model = learner["gradient_booster"]
    model = model.get("gbtree", model)  # if the booster is dart
    n_threads = at_most(learner["generic_param"]["nthread"]) or xgboost.get_config().get("nthread")
    return {**model.get("tree_train_param", {}), "nthread": n_threads}


def _refuse_abort(calls: Calls, data: Any, learner: dict[str, Any]) -> None:
    """Raise if XGBoost would abort the process, or drop the weights.

    With weights by query it aborts on metrics by row, such as rmse, its default for custom objectives. Neither the
    predictions nor the DMatrix show which data sets are evaluated; the calling functions do.
    """
    whole = calls.local("cv").get("dtrain")
    require(
        whole is None or len(data.get_weight()) > 0 or len(whole.get_weight()) == 0,
        "xgb.cv drops weights by query without saying so; call xgb.train on folds of your own",
    )
    train = calls.local("train")  # in the user's own loop around Booster.update nothing shows what else is evaluated
    evaluated = [item[0] for item in train["evals"] or ()] if "evals" in train else [data]
    if not any(len(d.get_weight()) and len(d.get_uint_info("group_ptr")) for d in evaluated):
        return
    params, names = learner["learner_train_param"], metrics_of(learner)
    known = params.get("disable_default_eval_metric") == "1" or names or params["objective"].startswith("rank:")
    refuse_by_row(
        names, "" if known else "its default metric", "add 'disable_default_eval_metric': 1 to the parameters"
    )


def workers() -> int:
    """Return the number of workers of the training, 1 without a cluster."""
    if sys.modules.get("xgboost") is None:  # the DMatrix is another library's
        return 1
    from xgboost import collective

    return int(collective.get_world_size())


def _agreed(compute: Callable[[], T], predictions: Any, empty: T) -> T:
    """Return ``compute()``, or ``empty`` on a worker without rows; an error of one worker is raised on all.

    Dask, Spark and the like train one model on several workers. Without this the others would wait for one that failed.
    """
    if workers() == 1:
        return compute()
    from xgboost import collective

    result, failure = empty, None
    try:
        if np.size(predictions):
            result = compute()
    except Exception as error:
        failure = error
    here = 0 if failure is None else collective.get_rank() + 1
    failed = int(collective.allreduce(np.array([here], np.int32), collective.Op.MAX)[0])
    if failed:
        message = collective.broadcast(str(failure), failed - 1)
        raise failure or LTRError(message)
    return result


def xgboost_objective(
    objective: str | Objective, *, weight: ArrayLike | None = None, propensity: ArrayLike | None = None,
    labels: ByGoal | None = None, n_threads: int | None = None,
) -> XGBoostObjective:  # fmt: skip
    """Make an objective for ``xgb.train(..., obj=...)``.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    weight : array of shape (queries,) or (rows,), optional
        Used instead of the weights of the training DMatrix, which holds weights by query only.
    propensity, labels
        Of the rows of the training set, as in :class:`ltr_objectives.Queries`; ``labels`` by goal beside its own.
    n_threads : int, optional
        By default ``nthread`` of the training, at most all processors. The model does not depend on it.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> (gradient, Hessian)``, float32 arrays of shape (rows,). The DMatrix needs ``group``
        or an ascending ``qid``; its weights are one per query. With weights, set ``disable_default_eval_metric`` to 1.

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
    own, by_row = get_objective(objective), {"weight": weight, "propensity": propensity}
    return XGBoostObjective(own, labels=labels, n_threads=n_threads, **by_row)


def xgboost_metric(
    *metrics: str | Metric, convention: Convention | None = None, labels: Mapping[Any, ByGoal] | None = None,
    n_threads: int | None = None,
) -> XGBoostMetric:  # fmt: skip
    """Make a metric, or several, for ``xgb.train(..., custom_metric=...)``.

    XGBoost's early stopping maximises metrics whose name starts with auc, pre, map or ndcg, and minimises others. So
    the others are reported as losses: ``mrr`` as ``1-mrr``, ``dcg`` as ``-dcg``. Leave ``maximize`` out: if True,
    XGBoost would maximise these losses. ``early_stopping_rounds`` looks at the last metric on the last of ``evals``;
    ``xgb.callback.EarlyStopping(rounds, metric_name="map", data_name="valid")`` looks at another. Leave both out with
    ``booster="dart"``, whose later rounds change the earlier ones.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``.
    convention : str, optional
        As in :func:`ltr_objectives.get_metric`.
    labels : mapping of DMatrices to mappings of goals to arrays, optional
        For metrics of goals, such as ``"ndcg@10 + 0.3*dcg(gain_type=linear)@10[revenue]"``: ``{dvalid: {"revenue":
        array}}``, for each DMatrix that is evaluated.
    n_threads : int, optional
        By default ``nthread`` of the training, at most all processors.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> [(name, value), ...]``, means over queries, weighted by the DMatrix's weights.

    Examples
    --------
    >>> xgboost_metric("map")  # doctest: +ELLIPSIS
    xgboost_metric(MAP(...))
    """
    return XGBoostMetric(get_metrics(metrics, convention), n_threads, labels)

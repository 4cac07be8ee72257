"""XGBoost's ranker with our objectives and metrics, trained by ``xgb.train``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ltr_objectives.adapters._bounds import Limits
from ltr_objectives.adapters._names import AnyObjective, Array, Arrays, EvalMetric, Goals, read_param
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._xgboost import LIBRARY
from ltr_objectives.metrics.base import Convention

xgb: Any = LIBRARY.load()
if TYPE_CHECKING:
    from xgboost import Booster
    from xgboost import XGBRanker as Base
else:
    Base = xgb.XGBRanker

DEFAULTS = {name: p.default for name, p in inspect.signature(xgb.XGBModel.__init__).parameters.items()}


class XGBRanker(Ranker, Base):  # type: ignore[misc]  # fit, predict and score differ
    """``xgboost.XGBRanker`` with any objective and metric.

    Parameters
    ----------
    objective : str, Objective or function, optional
        Ours, such as ``"yetiloss:map"``, or XGBoost's own, such as ``"rank:ndcg"``; a function as in
        ``xgboost.XGBRegressor``. By default the one for the first metric: :func:`ltr_objectives.objective_for`.
        ``"auto"`` tries several, and keeps the best on ``eval_set``.
    eval_metric : str, Metric, function or list, optional
        Ours, such as ``"map"``; a name that only XGBoost knows, such as ``"ndcg@10-"``, is XGBoost's, and functions are
        as in ``xgboost.XGBRanker``. Early stopping minimises a function, unless its name begins with auc, pre, map
        (but mape) or ndcg.
    convention, bounds
        As in :class:`LGBMRanker`.
    n_estimators, learning_rate, max_depth, min_child_weight, reg_lambda, random_state, n_jobs, **params
        As in ``xgboost.XGBRanker``. For our objectives two defaults differ. ``reg_lambda=20`` counts as 20 documents,
        because Hessians are those of :class:`ltr_objectives.UnitHessian`. XGBoost's own ``reg_lambda`` stays with
        ``booster="gblinear"``, and with a ``preset``, which also keeps its own Hessians. ``base_score=0``, because a
        ranking has no mean to start from; for :class:`ltr_objectives.RMSE` and sums with it the weighted mean of the
        labels.

    Notes
    -----
    ``predict`` gives what the trees add to ``base_margin``, an argument that it has too.

    ``evals_result_`` has six digits, as XGBoost prints them. XGBoost warns of names of parameters that it does not
    know. Early stopping is refused with ``booster="dart"``, whose later rounds change the earlier ones, and with
    ``"gblinear"``. Columns of dtype category are categorical features without ``enable_categorical``. Entries that a
    sparse matrix does not store are missing values in XGBoost, zeros in the other libraries. Weights by row, which
    XGBoost itself refuses for ranking, work with our objectives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = XGBRanker(objective="yetiloss:map", n_estimators=3).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = LIBRARY
    if TYPE_CHECKING:
        booster_: Booster
    _defaults = DEFAULTS
    _margins = "base_margin", "base_margin_eval_set"
    _aliases: ClassVar = {"eval_sample_weight": "sample_weight_eval_set", "init_model": "xgb_model"}

    def __init__(
        self, *, objective: AnyObjective | None = None, eval_metric: EvalMetric = None,
        convention: Convention | None = None, bounds: Limits | None = None, n_estimators: int | None = None,
        learning_rate: float | None = None, max_depth: int | None = None, min_child_weight: float | None = None,
        reg_lambda: float | None = None, random_state: Any = None, n_jobs: int | None = None, **params: Any,
    ) -> None:  # fmt: skip
        # XGBRanker's own constructor refuses objectives that are not XGBoost's
        xgb.XGBModel.__init__(
            self, objective=objective, eval_metric=eval_metric, n_estimators=n_estimators,
            learning_rate=learning_rate, max_depth=max_depth, min_child_weight=min_child_weight,
            reg_lambda=reg_lambda, random_state=random_state, n_jobs=n_jobs, **params,
        )  # fmt: skip
        self.convention = convention
        self.bounds = bounds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, without those that XGBoost adds and the constructor of a subclass may lack."""
        return {**{name: getattr(self, name) for name in self._get_param_names()}, **vars(self).get("kwargs", {})}

    def fit(
        self, X: Any, y: Array = None, *, group: Array = None, qid: Array = None, sample_weight: Array = None,
        base_margin: Array = None, propensity: Array = None, position: Array = None, labels: Goals | None = None,
        init_model: Any = None, xgb_model: Any = None, eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_group: Arrays = None, eval_qid: Arrays = None, eval_sample_weight: Arrays = None,
        sample_weight_eval_set: Arrays = None, base_margin_eval_set: Arrays = None,
        eval_labels: Sequence[Goals | None] | None = None, early_stopping_rounds: int | None = None,
        feature_weights: Array = None, callbacks: Sequence[Any] | None = None, verbose: bool | int = False,
    ) -> Self:  # fmt: skip
        return self._fit_with(locals())

    def get_xgb_params(self) -> dict[str, Any]:
        """Return the parameters that XGBoost knows: without objective and metrics, which may be ours."""
        ours = ("objective", "eval_metric", "convention", "bounds")
        return {name: read_param(value) for name, value in super().get_xgb_params().items() if name not in ours}

    def apply(self, X: Any, iteration_range: Any = None) -> np.ndarray:
        """Return the leaf of each row in each tree, shape (rows, trees)."""
        leaves = self.predict(X, pred_leaf=True, iteration_range=iteration_range)
        return leaves if leaves.ndim == 2 else leaves[:, None]  # of one tree

    def _knows_parameter(self, name: str) -> bool:
        return name in DEFAULTS or name in vars(self).get("kwargs", {})

    def _adopt(self, model: Any) -> None:
        n_threads = LIBRARY.n_threads(self._given())
        if n_threads is not None:
            model.set_param({"nthread": n_threads})  # which a file does not have
        super()._adopt(model)

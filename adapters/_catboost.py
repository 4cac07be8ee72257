"""CatBoost: a custom objective and a custom metric that see whole queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ltr_objectives.adapters._catboost_fit import rows_of
from ltr_objectives.adapters._catboost_metric import CatBoostMetric
from ltr_objectives.adapters._catboost_objective import CatBoostObjective, predictions
from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require
from ltr_objectives.registry import get_metric, get_objective

if TYPE_CHECKING:
    from ltr_objectives.metrics.base import Metric
    from ltr_objectives.objectives.base import Objective


def catboost_objective(
    objective: str | Objective,
    pool: Any,
    *,
    group_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    position: ArrayLike | None = None,
    init_model: Any = None,
    n_threads: int | None = None,
    newton_splits: bool = True,
) -> CatBoostObjective:
    r"""An objective for CatBoost's ``loss_function``.

    CatBoost shows user-defined objectives blocks of rows without queries. This object knows the queries from the pool,
    and puts the blocks together again; it computes the gradients of each pass once, over all queries, and checks
    everything that it is shown. Whatever does not fit ends in an error.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    pool : catboost.Pool
        The pool that ``fit`` will get, or one with the same labels, queries, weights and baseline; with ``group_id``.
    group_weight : array of shape (queries,) or (rows,), optional
        What the pool was made with as ``group_weight``: CatBoost does not give it back. Weights by row are read from
        the pool.
    propensity, position : array of shape (rows,), optional
        Where labels are clicks: how likely each document of the training set was looked at, or where it was shown, for
        pairwise objectives. See :meth:`ltr_objectives.Objective.gradient_hessian`.
    init_model : CatBoost model or file name, optional
        The model whose predictions training starts from, where CatBoost does not say so: when it resumes a snapshot.
        That model is what ``fit`` gives with ``iterations=1`` and the same ``snapshot_file``. For ``fit(init_model=)``
        it need not be given.
    n_threads : int, optional
        Threads of the gradient computation; by default ``thread_count`` of the training, at most all processors. The
        model does not depend on it.
    newton_splits : bool
        Score splits by :math:`(\sum g)^2 / \sum h`, as XGBoost and LightGBM do, and not by :math:`(\sum g)^2 / n`, as
        CatBoost does for user-defined objectives. See the notes.

    Returns
    -------
    CatBoostObjective
        For ``CatBoost({"loss_function": ..., "eval_metric": ...}).fit(pool)``. CatBoost needs some ``eval_metric``: a
        name such as ``"NDCG"``, or a :func:`catboost_metric`. The object can be pickled, used again, and used for
        trainings at the same time.

    Raises
    ------
    LTRError
        Here, for a pool or labels that cannot be right. From ``fit``, for another pool, for categorical features
        without ``has_time=True``, and for ``boosting_type="Ordered"``, ``task_type="GPU"``, ``eval_fraction``,
        ``leaf_estimation_backtracking``, ``dev_leafwise_approxes`` and weights by class. What is seen only during
        training, as in ``cv`` and ``grid_search``, comes as a ``CatBoostError`` with the message in it.
    ImportError
        If CatBoost is not installed.

    Notes
    -----
    CatBoost divides sums of gradients by sums of weights when it scores splits. With ``newton_splits`` these weights
    are, while a tree is grown, the Hessians, negative ones counted as 0. Nothing else sees them: leaves, metrics and
    the pool have the weights that were given. A pool without weights gets some here, which are 1, and 1 + 1.2e-7 in the
    first row, since otherwise CatBoost keeps none; it then records most metrics of its own in ``custom_metric`` twice,
    with and without weights, as ``"MRR:use_weights=true"``.

    CatBoost adds noise to the scores of splits. Its share grows with the Hessians and with the weights: set
    ``random_strength=0``, as :class:`CatBoostRanker` does, or try both. With categorical features set
    ``one_hot_max_size=10``, as CatBoost does for its own ranking losses.

    CatBoost's default bootstrap, MVS, stops with "Too few sampling units" when (nearly) all gradients are zero, as with
    an objective that has nothing left to order. Set ``bootstrap_type="Bernoulli"`` or ``"No"`` then.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoost, Pool
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> pool = Pool(X, y, group_id=qid)
    >>> parameters = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    >>> loss = catboost_objective("yetiloss:map", pool)
    >>> model = CatBoost({"loss_function": loss, "eval_metric": "NDCG", **parameters}).fit(pool)
    >>> model.predict(pool).shape
    (60,)
    """
    rows = rows_of(pool)
    start = None if init_model is None else predictions(init_model, pool)
    check_choice("newton_splits", newton_splits, (True, False))
    made = get_objective(objective), rows, start, group_weight, n_threads, propensity, position, newton_splits
    return CatBoostObjective(*made).prepare(pool)


def catboost_metric(
    metric: str | Metric, *pools: Any, convention: str | None = None, n_threads: int | None = None
) -> CatBoostMetric:
    """A metric for CatBoost's ``eval_metric``; early stopping and ``use_best_model`` maximise it.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    *pools : catboost.Pool
        The training pool, then each pool of ``eval_set`` in order; each with ``group_id``.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": how that library defines the metric.
    n_threads : int, optional
        By default ``thread_count`` of the training, at most all processors. The value does not depend on it.

    Returns
    -------
    CatBoostMetric
        Its values are means over queries, weighted by the pools' weights, as of :func:`ltr_objectives.evaluate`. It
        also works beside CatBoost's own losses.

    Raises
    ------
    LTRError
        Here or from ``fit``, for pools that are not those of the training, and for the parameters that
        :func:`catboost_objective` refuses.
    ImportError
        If CatBoost is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoost, Pool
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> train, valid = Pool(X, y, group_id=qid), Pool(X[::-1], y[::-1], group_id=qid)
    >>> parameters = {"loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg@10", train, valid)}
    >>> model = CatBoost({"iterations": 3, "verbose": False, "allow_writing_files": False, **parameters})
    >>> sorted(model.fit(train, eval_set=valid).evals_result_)
    ['learn', 'validation']
    """
    require(len(pools) > 0, "catboost_metric needs the training pool, then the pools of eval_set in order")
    rows = tuple(rows_of(pool, f"pool {i}") for i, pool in enumerate(pools))
    return CatBoostMetric(get_metric(metric, convention), rows, n_threads)

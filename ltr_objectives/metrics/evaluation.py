"""``evaluate``: one call for any metric."""

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_metric


def evaluate(
    metric: str | Metric,
    scores: ArrayLike,
    labels: ArrayLike,
    group: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    convention: str | None = None,
    per_query: bool = False,
    n_threads: int | None = None,
) -> float | np.ndarray:
    """The value of a ranking metric, averaged over queries.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``, ``"map"`` or ``NDCG(k=10, gain_type="linear")``; see :func:`ltr_objectives.metrics`.
    scores, labels : arrays of shape (rows,)
        Finite numbers; higher scores rank first.
    group : array of shape (queries,), optional
        Group sizes; or ``qid``, one id per row.
    weight : array of shape (queries,) or (rows,), optional
        Queries count by their weight, or by the mean weight of their rows.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": how that library defines the metric. Options of a
        metric object that differ from their default stay.
    per_query : bool
        Return the value of each query instead of the mean; float64, shape (queries,).
    n_threads : int, optional
        All processors by default; the result does not depend on it.

    Raises
    ------
    LTRError
        For bad input, an unknown metric or an unknown convention.

    Examples
    --------
    >>> evaluate("mrr", [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], group=[2, 2])
    0.5
    >>> evaluate("mrr", [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], qid=[1, 1, 2, 2], per_query=True)
    array([0.5, 0.5])
    """
    chosen = get_metric(metric)
    if convention is not None:
        chosen = chosen.with_convention(convention)
    queries = Queries(labels, group, qid=qid, weight=weight)
    if per_query:
        return chosen.values(queries, scores, n_threads=n_threads)
    return chosen.mean(queries, scores, n_threads=n_threads)

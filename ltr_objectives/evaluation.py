"""``evaluate``: one call for one metric or several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.equal_orders import warn_if_all_relevant
from ltr_objectives.metrics.text import any_metric, distinct
from ltr_objectives.queries import Labels, Queries, check_rows, read_labels, vector

Unjudged = Literal["refuse", "drop"]
OneMetric = str | Metric | Callable[[np.ndarray, np.ndarray], float]


def evaluate(
    metric: OneMetric | Sequence[OneMetric],
    scores: ArrayLike,
    labels: Labels,
    group: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    convention: Convention | None = None,
    per_query: bool = False,
    unjudged: Unjudged = "refuse",
    retrieved: ArrayLike | None = None,
    n_threads: int | None = None,
) -> Any:
    """Average the value of a ranking metric, or of several, over queries; also RMSE and MAE over all rows.

    See also :func:`ltr_objectives.compare_scores` for the difference of two models and its uncertainty.

    Parameters
    ----------
    metric : str, Metric, function or list
        Such as ``"ndcg@10"``, ``"map"`` or ``NDCG(k=10, gain_type="linear")``; see :func:`ltr_objectives.metric_names`.
        For "rmse" and "mae", errors of scores as estimates of labels, and "first", the rank of the first relevant
        document, lower is better. No objective trains for these three, nor for a function, which gets the scores and
        the labels of one query and returns its value; NaN leaves the query out.
    scores : array of shape (rows,)
        Finite numbers; higher scores rank first.
    labels : array of shape (rows,), or mapping of goals to such arrays
        Finite numbers; higher is more relevant. Metrics such as ``"dcg(gain_type=linear)@10[revenue]"`` read the labels
        of their goal, and metrics that name no goal the first.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row.
    weight : array of shape (queries,) or (rows,), optional
        A query counts by its weight, or by the mean weight of its rows.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": compute the metric as that library does.
        Options that are written in the text or in the metric object are kept.
    per_query : bool
        Return the value of each query instead of the mean; float64, shape (queries,). Under the conventions "lightgbm"
        and "xgboost" an empty query has 1 over its weight, so that the weighted mean is that of the library.
    unjudged : "refuse" or "drop"
        Documents that nobody judged, whose labels are NaN. "drop" leaves them out of the ranking (condensed lists:
        Sakai, "Alternatives to Bpref", SIGIR 2007), for each goal by its own labels. A query without a judged document
        is NaN, and the mean leaves it out.
    retrieved : array of bool of shape (rows,), optional
        False for judged documents that a search did not find. They have no rank, but are among the relevant documents
        of recall, MAP and NDCG. Their scores are not read and may be NaN.
    n_threads : int, optional
        All processors by default; the result does not depend on it.

    Returns
    -------
    float or array of shape (queries,)
        The array with ``per_query``. For a list of metrics, a dict of these by metric name.

    Raises
    ------
    LTRError
        For invalid input, an unknown metric or convention, or two metrics with the same name.

    Examples
    --------
    >>> evaluate("mrr", [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], group=[2, 2])
    0.5
    >>> evaluate("mrr", [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], qid=[1, 1, 2, 2], per_query=True)
    array([0.5, 0.5])
    >>> evaluate(["mrr", "precision@1"], [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], group=[2, 2])
    {'mrr': 0.5, 'precision@1': 0.0}
    >>> labels = {"relevance": [1, 0, 0, 1], "liked": [0, 1, 0, 1]}
    >>> evaluate(["mrr", "mrr[liked]"], [0.1, 0.9, 0.5, 0.2], labels, group=[2, 2])
    {'mrr': 0.5, 'mrr[liked]': 0.75}
    >>> evaluate("mrr", [3.0, 2.0, 1.0], [float("nan"), 0, 1], group=[3], unjudged="drop")
    0.5
    >>> evaluate("recall@10", [2.0, 1.0, float("nan")], [0, 1, 1], group=[3], retrieved=[True, True, False])
    0.5
    >>> def reciprocal_of_the_best(scores, labels):
    ...     return 1 / (1 + (scores > scores[labels.argmax()]).sum())
    >>> evaluate(reciprocal_of_the_best, [0.1, 0.9, 0.5, 0.2], [1, 0, 0, 1], group=[2, 2])
    0.5
    """
    check_choice("unjudged", unjudged, ("refuse", "drop"))
    several: Any = metric if isinstance(metric, list | tuple) else [metric]
    chosen = distinct(any_metric(each, convention) for each in several)
    judged: dict[str | None, np.ndarray] = {}
    given, drop = labels, unjudged == "drop"
    if drop or retrieved is not None:
        read = read_labels(labels)
        judged = {goal: ~np.isnan(y) if drop else np.ones(len(y), bool) for goal, y in read}
        labels = {goal: np.where(judged[goal], y, 0.0) for goal, y in read}
    queries = Queries(labels, group, qid=qid, weight=weight)
    if judged:
        queries.check_order({"labels": given, "scores": scores, "retrieved": retrieved})
    found = None if retrieved is None else _read_retrieved(retrieved, queries.rows)
    if found is not None:
        scores = vector("scores", scores)
        check_rows("scores", scores, queries.rows)
        scores = np.where(
            found, scores, np.nextafter(np.fmin.reduce(scores[found], initial=0.0), -np.inf)
        )  # below all others
    s = queries.check_scores(scores, n_threads).values

    def kept_of(goal: str | None) -> np.ndarray:
        return judged.get(goal, next(iter(judged.values())))

    def judged_of(goal: str | None) -> Queries:
        own = queries.for_goal(goal)
        return own._condensed(kept_of(goal))[0] if judged else own

    def value(m: Metric) -> Any:
        if not judged:
            return (m.values if per_query else m.mean)(queries, s, n_threads=n_threads)
        kept = kept_of(m.goal)
        part, of = queries.for_goal(m.goal)._condensed(kept)
        m = replace(m, goal=None)
        if found is not None:
            part = of_a_run(m, part, found[kept])
        if not per_query:
            return m.mean(part, s[kept], n_threads=n_threads)
        values = np.full(len(queries), np.nan)
        values[of] = m.values(part, s[kept], n_threads=n_threads)
        return values

    if not judged:
        warn_if_all_relevant(chosen, queries, "these labels", n_threads)
    results = {str(m): m.of_parts(value, judged_of) for m in chosen}
    return results if isinstance(metric, list | tuple) else results[str(chosen[0])]


def _read_retrieved(retrieved: ArrayLike, rows: int) -> np.ndarray:
    """Return which rows were retrieved."""
    given = vector("retrieved", retrieved)
    check_rows("retrieved", given, rows)
    require(((given == 0) | (given == 1)).all(), "retrieved must be True or False in each row")
    return given == 1


def of_a_run(metric: Metric, queries: Queries, retrieved: np.ndarray) -> Queries:
    """Return queries with gain 0 of the documents that were not retrieved, which count in the scale of ``metric``.

    Their scores must be below all others. Neither ``metric`` nor ``queries`` may have a goal.
    """
    whole = metric.cutoff != "none" and type(metric).values is Metric.values
    require(whole, f"{metric} needs the rank of every document, which documents that were not retrieved do not have")
    layers = metric.layers(queries)
    found = Queries(queries.labels, np.diff(queries.ptr), weight=queries.weight_by_row)
    found.cached(metric, lambda: tuple(t._replace(gain=np.where(retrieved, t.gain, 0.0)) for t in layers))
    return found

r"""Differences between two models on the same queries, and tests of their significance.

If queries have shares :math:`w_q` of the sum of weights, the mean of differences is
:math:`\bar d = \sum_q w_q d_q`. Its standard error, HC2, holds whatever the variance of each query:
:math:`\sqrt{\sum_q w_q^2 (d_q - \bar d)^2 / (1 - w_q)}`. The t-test has :math:`1 / \sum_q w_q^2 - 1` degrees of
freedom. For equal weights all three are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_integer, check_seed, is_number, refuse
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.equal_orders import warn_of_equal_orders
from ltr_objectives.metrics.only_evaluated import of_function
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.queries import Labels, Queries, codes_of, ids_of

BETTER, WORSE, SAME = "▲", "▼", ""


def mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the mean over the queries that have a value.

    >>> mean(np.array([1.0, np.nan, 0.5]), np.array([1.0, 1.0, 3.0]))
    0.625
    """
    if weight is None:
        return float(np.nanmean(values))
    kept = ~np.isnan(values)
    return float(np.average(values[kept], weights=weight[kept]))


def standard_error(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the standard error of the mean over queries that have a value; NaN if fewer than two have one."""
    share = query_shares(values, weight)
    if degrees_of_freedom(share) <= 0.0:
        return float("nan")
    d = values[share > 0]
    w = share[share > 0]
    return float(np.sqrt((w**2 * (d - w @ d) ** 2 / (1.0 - w)).sum()))


def query_shares(values: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the part of each query in the mean; 0 without a value."""
    share = np.where(np.isnan(values), 0.0, 1.0 if weight is None else weight)
    return share / max(share.sum(), np.finfo(float).tiny)


def degrees_of_freedom(share: np.ndarray) -> float:
    """Return the degrees of freedom of the t-test; 0 if one query has all the weight.

    >>> degrees_of_freedom(np.array([0.25, 0.25, 0.25, 0.25])), degrees_of_freedom(np.array([0.5, 0.5, 0.0]))
    (3.0, 1.0)
    """
    return float(1.0 / (share @ share) - 1.0) if share.any() and share.max() < 1.0 else 0.0


def paired_p(a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the two-sided p of Student's paired test; queries that are NaN in either are left out.

    >>> paired_p(np.array([0.5, 0.25, 0.75]), np.array([0.5, 0.25, 0.75]))
    1.0
    """
    share = query_shares(a - b, weight)
    difference = (a - b)[share > 0]
    if degrees_of_freedom(share) <= 0.0 or not difference.any():
        return 1.0
    if np.ptp(difference) == 0.0:  # equal in every query: the test would divide by zero
        return 0.0
    t = mean(a - b, weight) / standard_error(a - b, weight)
    return float(2 * _student().sf(abs(t), degrees_of_freedom(share)))


def _student() -> Any:
    """Return the t distribution of SciPy."""
    try:
        from scipy.stats import t
    except ModuleNotFoundError:
        raise ImportError("tests of two models need SciPy: pip install scipy") from None
    return t


def interval(gap: np.ndarray, weight: np.ndarray | None = None, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of differences by query, and the ends of its confidence interval.

    >>> [round(x, 3) for x in interval(np.array([0.0, 1.0, 0.0]))]
    [0.333, -1.101, 1.768]
    """
    difference = mean(gap, weight)
    reach = float(_student().ppf((1 + level) / 2, degrees_of_freedom(query_shares(gap, weight)))) * standard_error(
        gap, weight
    )
    return difference, difference - reach, difference + reach


def holm(p: list[float]) -> list[float]:
    """Adjust p values for multiple tests by Holm's method.

    Holm, "A simple sequentially rejective multiple test procedure", 1979.

    >>> holm([0.25, 0.125])
    [0.25, 0.25]
    """
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(x) for x in adjusted]


class Row(NamedTuple):
    """One of several models on the same queries."""

    objective: str
    native: bool  # the library's own
    queries: int  # with a value
    mean: float
    se: float
    reference: str | None = None  # whose mean the next fields compare with; None of the reference itself
    difference: float = float("nan")
    difference_se: float = float("nan")
    p: float = float("nan")  # of the paired t-test, after Holm's correction over the models


def contest_table(
    values: Mapping[str, np.ndarray], weight: np.ndarray | None = None, reference: str | None = None,
    natives: Collection[str] = (),
) -> list[Row]:  # fmt: skip
    """Return a row for each model, from its values by query. The others are tested against ``reference``.

    If ``values`` has no ``reference``, the best of ``natives`` takes its place; without natives nothing is tested.

    >>> values = {"ours": np.array([0.5, 0.75, 0.5]), "lambdarank": np.array([0.25, 0.75, 0.5])}
    >>> rows = contest_table(values, None, "lambdarank")
    >>> rows[0].reference, round(rows[0].difference, 3), round(rows[0].p, 3)
    ('lambdarank', 0.083, 0.423)
    """
    own = {name: v for name, v in values.items() if name in natives}
    rival = reference if reference is not None and reference in values else best_of(own, weight)
    others = [name for name in values if rival and name != rival]
    adjusted = dict(zip(others, holm([paired_p(values[n], values[rival], weight) for n in others]), strict=True))
    rows = []
    for name, v in values.items():
        row = Row(name, name in natives, int((~np.isnan(v)).sum()), mean(v, weight), standard_error(v, weight))
        if name in adjusted:
            gap = v - values[rival]
            row = row._replace(
                reference=rival, difference=mean(gap, weight), difference_se=standard_error(gap, weight),
                p=adjusted[name],
            )  # fmt: skip
        rows.append(row)
    return rows


def best_of(values: Mapping[str, np.ndarray], weight: np.ndarray | None = None) -> str:
    """Return the model with the largest mean, the first of equal ones; "" without models."""
    return max(values, key=lambda name: mean(values[name], weight), default="")


class Comparison(NamedTuple):
    """Two models on the same queries.

    Attributes
    ----------
    a : float
        Mean of the metric of the first model.
    b : float
        Mean of the metric of the second model.
    difference : float
        Mean difference, a - b.
    low : float
        Lower end of the confidence interval of the difference; NaN if fewer than two queries count.
    high : float
        Its upper end.
    p : float
        Two-sided p of the paired t-test.
    queries : int
        The queries that count: those with a value, and with a weight above 0.
    """

    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float
    queries: int


def compare_scores(
    metric: str | Metric | Callable[[np.ndarray, np.ndarray], float], scores_a: ArrayLike, scores_b: ArrayLike,
    labels: Labels, group: ArrayLike | None = None,
    weight: ArrayLike | None = None, *, qid: ArrayLike | None = None, convention: str | None = None,
    level: float = 0.95, user: ArrayLike | None = None, buckets: int | None = None, seed: int = 0,
    n_threads: int | None = None,
) -> Comparison:  # fmt: skip
    """Compare two models in a metric by the paired t-test over queries, with an interval of the difference.

    The test assumes independent queries, and models that were not selected on them. Queries of one user are not
    independent: with ``user`` the paired t-test is over users, or over random buckets of users of equal size.

    Parameters
    ----------
    metric, labels, group, weight, qid, convention, n_threads
        As in :func:`ltr_objectives.evaluate`; one metric or function, of which more is better.
    scores_a : array of shape (rows,)
        Scores of the first model.
    scores_b : array of shape (rows,)
        Scores of the second model for the same rows.
    level : float
        Confidence level of the interval, between 0 and 1.
    user : array of shape (queries,), optional
        The user of each query, a number or string. The test then compares the means of each user, or of each bucket;
        each mean has the total weight of its queries.
    buckets : int, optional
        With ``user``: the number of random buckets into which the users are divided, at least 2.
    seed : int
        Seed of the division into buckets.

    Returns
    -------
    Comparison
        ``queries`` is the number of queries that count, also with ``user``. A sum of metrics counts in queries in which
        all its parts have a value; :func:`ltr_objectives.evaluate` adds the means of the parts instead.

    Raises
    ------
    LTRError
        For what :func:`ltr_objectives.evaluate` refuses, a level that is not between 0 and 1, and users or buckets that
        do not fit the queries.

    See Also
    --------
    evaluate : The value of one model.

    Examples
    --------
    >>> qid = [1, 1, 2, 2, 3, 3]
    >>> found = compare_scores("mrr", [1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1], [1, 0, 0, 1, 1, 0], qid=qid)
    >>> found.a, round(found.difference, 3), round(found.low, 3), round(found.high, 3), round(found.p, 3)
    (1.0, 0.333, -0.384, 1.05, 0.184)
    >>> found = compare_scores(
    ...     "mrr", [1, 0, 0, 1, 1, 0], [0, 1, 0, 1, 0, 1], [1, 0, 0, 1, 1, 0], qid=qid, user=["ann", "ann", "bob"]
    ... )
    >>> round(found.difference, 3), round(found.p, 3)
    (0.333, 0.264)
    """
    if not (is_number(level) and 0 < level < 1):
        refuse("level", level, "must be a number between 0 and 1")
    chosen: Metric = of_function(metric, convention) or get_metric(metric, convention)  # type: ignore[arg-type]
    queries = Queries(labels, group, qid=qid, weight=weight)
    warn_of_equal_orders([chosen], queries, "these labels", n_threads)
    a, b = (
        chosen.values(queries, queries.check_scores(scores, n_threads, name).values, n_threads=n_threads)
        for name, scores in (("scores_a", scores_a), ("scores_b", scores_b))
    )
    of = chosen.weight_by_query(queries)
    mean_a, mean_b = (chosen.average(*chosen.sums(values, of)) for values in (a, b))
    gap, weights = a - b, of
    count = int(np.count_nonzero(query_shares(gap, of)))
    require(user is not None or buckets is None, f"buckets={buckets!r} divides users; pass user=, one id per query")
    if user is not None:
        queries.check_order({"qid": qid, "user": user})
        gap, weights = _means(gap, of, _buckets(ids_of(user, "user"), len(queries), buckets, seed))
    p = paired_p(gap, np.zeros(len(gap)), weights)
    return Comparison(mean_a, mean_b, *interval(gap, weights, level), p, count)


def _buckets(user: np.ndarray, queries: int, buckets: int | None, seed: int) -> np.ndarray:
    """Return the bucket of each query: its user, or one of ``buckets`` random ones with equally many users."""
    require(len(user) == queries, f"user has {len(user)} entries, but there are {queries} queries; pass one id each")
    names, which = codes_of(user)
    if buckets is None:
        return which
    count = check_integer("buckets", buckets, least=2)
    require(count <= len(names), f"buckets={count} is more than the {len(names)} users; pass fewer, or leave it out")
    return (np.random.default_rng(check_seed("seed", seed)).permutation(len(names)) % count)[which]


def _means(values: np.ndarray, weight: np.ndarray | None, bucket: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each bucket over the queries that have a value, and the sum of their weights."""
    w = np.where(np.isnan(values), 0.0, 1.0 if weight is None else weight)
    total, sums = (np.bincount(bucket, x) for x in (w, w * np.nan_to_num(values)))
    kept = total > 0
    return sums[kept] / total[kept], total[kept]


def mark(difference: float, p: float, alpha: float) -> str:
    """Return the mark for better or worse; none if the difference is not significant or p is NaN.

    >>> mark(-0.25, 0.01, 0.05)
    '▼'
    """
    return SAME if not p < alpha else BETTER if difference > 0 else WORSE

r"""Differences between two models on the same queries, and tests of whether they are beyond chance.

If queries have weights :math:`w_q`, the mean of differences is
:math:`\bar d = \sum_q w_q d_q / \sum_q w_q`, and its standard error is the one that holds whatever the variance of each
query: :math:`\sqrt{n / (n - 1) \sum_q w_q^2 (d_q - \bar d)^2} / \sum_q w_q` over the n queries with a weight. For equal
weights both are the usual ones.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

BETTER, WORSE, SAME = "▲", "▼", ""


def mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The mean over the queries that have a value.

    >>> mean(np.array([1.0, np.nan, 0.5]), np.array([1.0, 1.0, 3.0]))
    0.625
    """
    if weight is None:
        return float(np.nanmean(values))
    kept = ~np.isnan(values)
    return float(np.average(values[kept], weights=weight[kept]))


def standard_error(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Standard error of the mean over the queries that have a value; NaN if fewer than two have one."""
    kept = ~np.isnan(values) & (True if weight is None else weight > 0)
    if kept.sum() < 2:
        return float("nan")
    if weight is None:
        return float(stats.sem(values, nan_policy="omit"))
    v, w = values[kept], weight[kept]
    spread = float((w**2 * (v - mean(v, w)) ** 2).sum())
    return float(np.sqrt(spread * len(v) / (len(v) - 1)) / w.sum())


def paired_p(a: np.ndarray, b: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Two-sided p of Student's paired test; queries that are NaN in either are left out.

    >>> paired_p(np.array([0.5, 0.25, 0.75]), np.array([0.5, 0.25, 0.75]))
    1.0
    """
    kept = ~np.isnan(a - b) & (True if weight is None else weight > 0)
    difference = (a - b)[kept]
    if len(difference) < 2 or not difference.any():
        return 1.0
    if np.ptp(difference) == 0.0:  # equal in every query, where the test would divide by zero
        return 0.0
    if weight is None:
        return float(stats.ttest_rel(difference, np.zeros(len(difference))).pvalue)
    t = mean(difference, weight[kept]) / standard_error(difference, weight[kept])
    return float(2 * stats.t.sf(abs(t), len(difference) - 1))


def holm(p: list[float]) -> list[float]:
    """p values adjusted for their number, so that a family of tests has as few chance marks as a single test.

    Holm, "A simple sequentially rejective multiple test procedure", 1979.

    >>> holm([0.25, 0.125])
    [0.25, 0.25]
    """
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(x) for x in adjusted]


def differences(
    values: Mapping[str, np.ndarray], reference: np.ndarray, weight: np.ndarray | None = None
) -> dict[str, dict[str, float]]:
    """For each model, the mean difference from ``reference`` over queries, its standard error, and adjusted p."""
    adjusted = holm([paired_p(v, reference, weight) for v in values.values()])
    return {
        label: {"difference": mean(v - reference, weight), "se": standard_error(v - reference, weight), "p": p}
        for (label, v), p in zip(values.items(), adjusted, strict=True)
    }


def mark(difference: float, p: float, alpha: float) -> str:
    """The mark for better or worse; none if the difference is within chance or p is NaN.

    >>> mark(-0.25, 0.01, 0.05)
    '▼'
    """
    return SAME if not p < alpha else BETTER if difference > 0 else WORSE

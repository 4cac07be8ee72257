"""Which differences between two models on the same queries are beyond chance."""

from collections.abc import Mapping

import numpy as np
from scipy import stats

BETTER, WORSE, SAME = "▲", "▼", ""


def paired_p(a: np.ndarray, b: np.ndarray) -> float:
    """Two-sided p of Student's paired test; queries that are NaN in either are left out.

    >>> paired_p(np.array([0.5, 0.25, 0.75]), np.array([0.5, 0.25, 0.75]))
    1.0
    """
    difference = (a - b)[~np.isnan(a - b)]
    if len(difference) < 2 or not difference.any():
        return 1.0
    if np.ptp(difference) == 0.0:  # equal in every query, where the test would divide by zero
        return 0.0
    return float(stats.ttest_rel(difference, np.zeros(len(difference))).pvalue)


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


def differences(values: Mapping[str, np.ndarray], reference: np.ndarray) -> dict[str, dict[str, float]]:
    """For each model, the mean difference from ``reference`` over queries, its standard error, and adjusted p."""
    adjusted = holm([paired_p(v, reference) for v in values.values()])
    return {
        label: {"difference": float(np.nanmean(v - reference)), "se": standard_error(v - reference), "p": p}
        for (label, v), p in zip(values.items(), adjusted, strict=True)
    }


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean over the queries that have a value."""
    return float(stats.sem(values, nan_policy="omit"))


def mark(difference: float, p: float, alpha: float) -> str:
    """The mark for better or worse; none if the difference is within chance or p is NaN.

    >>> mark(-0.25, 0.01, 0.05)
    '▼'
    """
    return SAME if not p < alpha else BETTER if difference > 0 else WORSE

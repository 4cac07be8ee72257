"""Which differences between two models on the same queries are more than chance."""

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
    if np.ptp(difference) == 0.0:  # the same step in every query; the test would divide by zero
        return 0.0
    return float(stats.ttest_rel(difference, np.zeros(len(difference))).pvalue)


def holm(p: list[float]) -> list[float]:
    """p values adjusted for their number, so that one chance mark in a whole family stays as rare as in one test.

    Holm, "A simple sequentially rejective multiple test procedure", 1979.

    >>> holm([0.25, 0.125])
    [0.25, 0.25]
    """
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(x) for x in adjusted]


def compare_with_reference(
    values: list[np.ndarray], reference: np.ndarray, alpha: float = 0.05
) -> list[tuple[float, str]]:
    """Adjusted p and mark of each model's per-query ``values`` against the ``reference`` model's."""
    adjusted = holm([paired_p(v, reference) for v in values])
    signs = [BETTER if np.nanmean(v - reference) > 0 else WORSE for v in values]
    return [(p, sign if p < alpha else SAME) for p, sign in zip(adjusted, signs, strict=True)]

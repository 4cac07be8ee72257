"""Paired tests whose queries have weights: the linear model's robust error, and the usual test for equal weights."""

import numpy as np
import pytest

stats = pytest.importorskip("scipy.stats")

from ltr_objectives.workbench.statistics import differences, mean, paired_p, standard_error  # noqa: E402 - as above

RNG = np.random.default_rng(0)
A, B, WEIGHT = RNG.random(40), RNG.random(40), RNG.uniform(0.1, 4, 40)


def test_equal_weights_are_as_none():
    gaps = A.copy()
    gaps[::7] = np.nan
    for a in (A, gaps):
        same = np.full(40, 2.5)
        assert mean(a, same) == pytest.approx(mean(a))
        assert standard_error(a, same) == pytest.approx(standard_error(a))
        assert standard_error(a) == pytest.approx(stats.sem(a[~np.isnan(a)]))
        assert paired_p(a, B, same) == pytest.approx(paired_p(a, B))
        kept = ~np.isnan(a)
        assert paired_p(a, B) == pytest.approx(stats.ttest_rel(a[kept], B[kept]).pvalue)


def test_weights_give_the_robust_error_of_a_regression_on_a_constant():
    """White's estimator with the factor n / (n - 1), by its matrices."""
    d, one = A - B, np.ones((40, 1))
    bread = np.linalg.inv(one.T @ np.diag(WEIGHT) @ one)
    fit = bread @ one.T @ (WEIGHT * d)
    left = np.diag(WEIGHT * (d - fit[0]))
    error = np.sqrt((bread @ one.T @ left @ left @ one @ bread)[0, 0] * 40 / 39)
    found = differences({"a": A}, B, WEIGHT)["a"]
    assert found["difference"] == pytest.approx(fit[0])
    assert found["se"] == pytest.approx(error)
    assert found["p"] == pytest.approx(2 * stats.t.sf(abs(fit[0]) / error, 39))


def test_queries_of_weight_zero_do_not_count():
    some = WEIGHT * (np.arange(40) % 3 > 0)
    kept = some > 0
    assert standard_error(A, some) == pytest.approx(standard_error(A[kept], some[kept]))
    assert paired_p(A, B, some) == pytest.approx(paired_p(A[kept], B[kept], some[kept]))


def test_a_single_query_has_no_error():
    assert np.isnan(standard_error(A[:1]))
    assert np.isnan(standard_error(A, (np.arange(40) == 3).astype(float)))
    assert paired_p(A[:1], B[:1]) == 1.0

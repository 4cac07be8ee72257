"""Rank correlations against SciPy: any labels, ties in labels and scores; and what is refused."""

import warnings

import numpy as np
import pytest
from scipy import stats

from ltr_objectives import Kendall, LambdaMART, LTRError, Metric, Queries, Spearman, StochasticRank, evaluate
from ltr_objectives.metrics.base import TIES
from ltr_objectives.testing import _compare_value, _lists, _untied

SCIPY = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("name", SCIPY)
@pytest.mark.parametrize("labels", [[-3.5, -0.25, 0, 7, 1e300], [1, 1, 1, 1, 2], [0, 1]], ids=str)
def test_without_tied_scores_the_value_is_scipy_s(name, labels, rng):
    for n in (2, 3, 17, 1000):
        y, s = rng.choice(labels, n), rng.permutation(n)
        y[:2] = labels[:1] + labels[-1:]
        expected = SCIPY[name](s, y).statistic
        assert evaluate(name, s, y, [n]) == pytest.approx(expected, abs=1e-13)
        assert evaluate(name, s, y, [n], convention="scipy") == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", SCIPY)
def test_queries_with_equal_scores_or_labels_are_nan_as_in_scipy(name, rng):
    y, s, group = rng.integers(0, 3, 300), rng.integers(0, 3, 300), rng.integers(1, 5, 300)
    group = group[np.cumsum(group) <= 300]
    rows = group.sum()
    ends = np.cumsum(group)[:-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of constant input
        expected = [
            SCIPY[name](a, b).statistic if len(a) > 1 else np.nan
            for a, b in zip(np.split(s[:rows], ends), np.split(y[:rows], ends), strict=True)
        ]
    found = evaluate(name, s[:rows], y[:rows], group, convention="scipy", per_query=True)
    assert 0 < np.isnan(expected).sum() < len(group)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("ties", TIES)
def test_kendall_of_tied_scores_is_that_of_the_definition(ties):
    """``check_metric`` compares other metrics."""
    for s, y in _lists(Kendall(), Metric, None, longest=100)[0]:
        if len(s) <= 5 or _untied(s):
            _compare_value(Kendall(ties=ties), s, y)


@pytest.mark.parametrize("make", [LambdaMART, StochasticRank])
def test_only_the_order_of_the_labels_counts(make, rng):
    y, s = rng.integers(0, 5, 60), rng.normal(size=60)
    kendall, expected = evaluate("kendall", s, y, [20, 40]), make("spearman").gradient_hessian(s, y, [20, 40])
    assert expected[0].any()
    for other in (y - 2, np.exp(y), 0.1 * y - 1e6):
        assert evaluate("kendall", s, other, [20, 40]) == kendall
        np.testing.assert_array_equal(make("spearman").gradient_hessian(s, other, [20, 40]), expected)


def test_queries_may_have_different_labels_and_numbers_of_them(rng):
    sizes = [3, 30, 9]
    lists = [(rng.normal(size=n), rng.permutation(n) % (2 + n // 9) + 10 * n) for n in sizes]
    s, y = (np.concatenate(part) for part in zip(*lists, strict=True))
    np.testing.assert_allclose(
        Kendall().per_query(s, y, sizes), [stats.kendalltau(*pair).statistic for pair in lists], rtol=0, atol=1e-13
    )


def test_impossible_values_are_refused():
    with pytest.raises(LTRError, match="up to 32 different labels in a query, but one has 33; take spearman"):
        Kendall().layers(Queries(np.arange(33), [33]))
    with pytest.raises(LTRError, match="ties='best' with normalizer='untied'"):
        Spearman(ties="best", normalizer="untied")
    with pytest.raises(LTRError, match="normalizer='some'"):
        Kendall(normalizer="some")

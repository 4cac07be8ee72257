"""``compare_scores``: difference, interval and p are those that SciPy and the formula give."""

import numpy as np
import pytest
from generated import ranking
from scipy import stats

from ltr_objectives import LTRError, compare_scores, evaluate

RNG = np.random.default_rng(3)
X, Y, QID = ranking(0)
A, B = X[:, 0] + RNG.normal(size=len(Y)), RNG.normal(size=len(Y))


def by_query(scores, metric, **options):
    return evaluate(metric, scores, Y, qid=QID, per_query=True, **options)


@pytest.mark.parametrize("metric", ["ndcg@5", "map(threshold=1)"])  # the second has no value in some queries
def test_scipy_gives_the_same(metric):
    options = {"convention": "trec_eval"} if metric == "ndcg@5" else {}
    a, b = (by_query(scores, metric, **options) for scores in (A, B))
    for level in (0.95, 0.5):
        found = compare_scores(metric, A, B, Y, qid=QID, level=level, **options)
        expected = stats.ttest_rel(a, b, nan_policy="omit")
        low, high = expected.confidence_interval(level)
        assert found[:2] == pytest.approx((np.nanmean(a), np.nanmean(b)), abs=1e-12)
        assert found.difference == pytest.approx(np.nanmean(a - b), abs=1e-12)
        assert (found.low, found.high, found.p) == pytest.approx((low, high, expected.pvalue), rel=1e-9)
        assert found.queries == expected.df + 1
    other = compare_scores(metric, B, A, Y, qid=QID, level=0.5, **options)
    assert (other.a, other.difference, other.low) == pytest.approx((found.b, -found.difference, -found.high))


def test_weights_count_in_mean_and_error():
    sizes = np.bincount(QID)
    weight = RNG.integers(0, 4, len(sizes)).astype(float)
    found = compare_scores("mrr", A, B, Y, sizes, weight)
    d, w = (by_query(A, "mrr") - by_query(B, "mrr"))[weight > 0], weight[weight > 0]
    center, n = (w * d).sum() / w.sum(), len(d)
    error = np.sqrt(n / (n - 1) * (w**2 * (d - center) ** 2).sum()) / w.sum()
    assert found.difference == pytest.approx(center, abs=1e-12)
    assert found.high - center == pytest.approx(error * stats.t.ppf(0.975, n - 1), rel=1e-9)
    assert (found.p, found.queries) == (pytest.approx(2 * stats.t.sf(abs(center) / error, n - 1), rel=1e-9), n)


def test_a_single_query_has_no_interval_and_what_is_wrong_is_named():
    found = compare_scores("map", [1, 0], [0, 1], [1, 0], [2])
    assert (found.difference, found.p, found.queries) == (0.5, 1.0, 1)
    assert np.isnan([found.low, found.high]).all()
    with pytest.raises(LTRError, match="level=95 must be a number between 0 and 1"):
        compare_scores("map", [1, 0], [0, 1], [1, 0], [2], level=95)
    with pytest.raises(LTRError, match="scores has 3 entries, but labels has 2"):
        compare_scores("map", [1, 0], [0, 1, 2], [1, 0], [2])

"""``compare_scores``: difference, interval and p are those that SciPy and the formula give."""

import numpy as np
import pytest
from catalog import ONE_OF_EACH
from generated import ranking
from scipy import stats

from ltr_objectives import LTRError, LTRWarning, compare_scores, evaluate

RNG = np.random.default_rng(3)
X, Y, QID = ranking(0)
A, B = X[:, 0] + RNG.normal(size=len(Y)), RNG.normal(size=len(Y))


def hc2(d, w):
    """Mean, standard error and degrees of freedom."""
    center = (w * d).sum() / w.sum()
    parts = [(each * (x - center)) ** 2 / (1 - each / w.sum()) for x, each in zip(d, w, strict=True)]
    return center, np.sqrt(sum(parts)) / w.sum(), w.sum() ** 2 / (w**2).sum() - 1


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
    center, error, freedom = hc2(d, w)
    assert found.difference == pytest.approx(center, abs=1e-12)
    assert found.high - center == pytest.approx(error * stats.t.ppf(0.975, freedom), rel=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(center) / error, freedom), rel=1e-9)
    assert found.queries == len(d)


@pytest.mark.parametrize("buckets", [None, 5])
@pytest.mark.parametrize("metric", ["ndcg@5", "map(empty=skip)"])
def test_users_are_clusters_of_queries(metric, buckets):
    """The test over the means of the clusters, with the sums of the weights of their queries."""
    sizes = np.bincount(QID)
    user, weight = RNG.choice(list("abcdefghijk"), len(sizes)), RNG.integers(0, 4, len(sizes)).astype(float)
    found = compare_scores(metric, A, B, Y, sizes, weight, user=user, buckets=buckets, seed=3)
    cluster = user
    if buckets:
        names = sorted(set(user))
        cluster = np.array([np.random.default_rng(3).permutation(len(names))[names.index(u)] % buckets for u in user])
        assert np.ptp([len(set(user[cluster == c])) for c in range(buckets)]) <= 1
    d = by_query(A, metric) - by_query(B, metric)
    kept = ~np.isnan(d) & (weight > 0)
    d, w, cluster = d[kept], weight[kept], cluster[kept]
    sums = [w[cluster == c].sum() for c in np.unique(cluster)]
    means = [np.average(d[cluster == c], weights=w[cluster == c]) for c in np.unique(cluster)]
    center, error, freedom = hc2(np.array(means), np.array(sums))
    assert (found.difference, found.queries) == (pytest.approx(center, abs=1e-12), len(d))
    assert found.high - center == pytest.approx(error * stats.t.ppf(0.975, freedom), rel=1e-9)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(center) / error, freedom), rel=1e-9)


def test_one_query_a_user_is_the_test_over_queries_and_equal_buckets_that_of_their_means():
    sizes = np.bincount(QID)
    plain = compare_scores("map", A, B, Y, sizes)
    assert compare_scores("map", A, B, Y, sizes, user=np.arange(len(sizes))) == pytest.approx(plain)
    user = np.arange(len(sizes)) // 3
    means = [by_query(scores, "map").reshape(-1, 3).mean(axis=1) for scores in (A, B)]
    assert compare_scores("map", A, B, Y, sizes, user=user).p == pytest.approx(stats.ttest_rel(*means).pvalue)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"buckets": 3}, "buckets=3 divides users; pass user=, one id per query"),
        ({"user": [1]}, "user has 1 entries, but there are 2 queries"),
        ({"user": [1, None]}, "user has no id in row 1"),
        ({"user": [1, 2], "buckets": 1}, "buckets=1 must be a whole number of at least 2"),
        ({"user": [1, 2], "buckets": 3}, "buckets=3 is more than the 2 users"),
        ({"user": [1, 2], "buckets": 2, "seed": -1}, "seed=-1 must be a whole number of at least 0"),
    ],
)
def test_wrong_users_are_refused(given, told):
    with pytest.raises(LTRError, match=told):
        compare_scores("map", [1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0], [2, 2], **given)


def test_a_single_query_has_no_interval_and_what_is_wrong_is_named():
    found = compare_scores("map", [1, 0], [0, 1], [1, 0], [2])
    assert (found.difference, found.p, found.queries) == (0.5, 1.0, 1)
    assert np.isnan([found.low, found.high]).all()
    with pytest.raises(LTRError, match="level=95 must be a number between 0 and 1"):
        compare_scores("map", [1, 0], [0, 1], [1, 0], [2], level=95)
    with pytest.raises(LTRError, match="scores has 3 entries; pass one per row"):
        compare_scores("map", [1, 0], [0, 1, 2], [1, 0], [2])


@pytest.mark.parametrize("metric", ONE_OF_EACH, ids=str)
def test_labels_for_which_every_order_is_as_good_are_named(metric):
    graded = np.minimum(Y, metric.label_limit or np.inf)
    useless = [np.ones(len(Y))]  # stars 1 to 3 are all relevant
    useless += [Y + metric.threshold + 1] if hasattr(metric, "threshold") else []
    for labels in useless if hasattr(metric, "kind") else ():
        with pytest.warns(LTRWarning, match="every order of the documents has the same"):
            found = compare_scores(metric, A, B, labels, qid=QID)
        assert (found.difference, found.p) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    compare_scores(metric, A, B, graded, qid=QID)  # warnings are errors

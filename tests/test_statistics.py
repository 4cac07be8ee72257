"""Paired tests over queries and users, with weights too, are those of SciPy and of the robust error's matrices."""

from dataclasses import replace

import numpy as np
import pytest
from catalog import ONE_OF_EACH
from generated import ranking
from scipy import stats

from ltr_objectives import LTRWarning, compare_scores, evaluate, statistics
from ltr_objectives.statistics import contest_table, paired_p, standard_error

RNG = np.random.default_rng(0)
A, B, WEIGHT = RNG.random(40), RNG.random(40), RNG.uniform(0.1, 4, 40)
X, Y, QID = ranking(0)
SIZES = np.bincount(QID)
ONE, OTHER = X[:, 0] + RNG.normal(size=len(Y)), RNG.normal(size=len(Y))


def by_query(scores, metric, **options):
    return evaluate(metric, scores, Y, qid=QID, per_query=True, **options)


def robust(d, w):
    """Return mean, error (HC2) and p of a weighted regression on a constant, with residuals and leverages."""
    root = np.sqrt(w)
    one = root[:, None]
    bread = np.linalg.inv(one.T @ one)
    fit, leverage = (bread @ one.T @ (root * d))[0], np.diag(one @ bread @ one.T)
    error = np.sqrt((bread @ one.T @ np.diag((root * (d - fit)) ** 2 / (1 - leverage)) @ one @ bread)[0, 0])
    freedom = w.sum() ** 2 / (w**2).sum() - 1
    return fit, error, 2 * stats.t.sf(abs(fit) / error, freedom), error * stats.t.ppf(0.975, freedom)


def test_weights_give_the_robust_error_of_a_regression_on_a_constant():
    found = contest_table({"a": A, "b": B}, WEIGHT, "b")[0]
    assert (found.difference, found.difference_se, found.p) == pytest.approx(robust(A - B, WEIGHT)[:3])
    some = WEIGHT * (np.arange(40) % 3 > 0)
    kept = some > 0
    assert standard_error(A, some) == pytest.approx(standard_error(A[kept], some[kept]))
    assert paired_p(A, B, some) == pytest.approx(paired_p(A[kept], B[kept], some[kept]))


@pytest.mark.parametrize("n", [10, 200])
@pytest.mark.parametrize("power", [0.5, 0.0, -0.5])
def test_differences_by_chance_are_rejected_at_the_level(n, power):
    """At 0.05, 0.09 in 1,000 simulations is 6 standard errors above; weights are numbers of queries of users."""
    rng, rejected = np.random.default_rng(n), 0
    for _ in range(1000):
        weight = np.floor(rng.pareto(1.0, n) + 1)
        differences = rng.normal(size=n) * weight**power
        rejected += paired_p(differences, np.zeros(n), weight) < 0.05
    assert rejected / 1000 < 0.09


def test_degenerate_differences():
    a = np.array([0.5, np.nan, 0.25, 1.0])
    assert paired_p(a, a) == 1.0
    assert paired_p(a + 0.25, a) == 0.0
    assert paired_p(a[:1] + 1, a[:1]) == paired_p(a, np.array([0.5, 1.0, np.nan, 1.0])) == 1.0
    assert np.isnan(standard_error(A[:1]))
    assert np.isnan(standard_error(A, (np.arange(40) == 3).astype(float)))
    found = compare_scores("map", [1, 0], [0, 1], [1, 0], [2])
    assert (found.difference, found.p, found.queries) == (0.5, 1.0, 1)
    assert np.isnan([found.low, found.high]).all()


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_the_others_are_tested_against_the_reference_or_the_best_native_objective():
    rng = np.random.default_rng(0)
    base = rng.random(100)
    values = {"rank_xendcg": base - 0.2 * rng.random(100), "lambdarank": base,
              "ours": base + 0.05 + 0.1 * rng.standard_normal(100),
              "same": base + 1e-4 * rng.standard_normal(100)}  # fmt: skip
    rows = {row.objective: row for row in contest_table(values, natives=["rank_xendcg", "lambdarank"])}
    d = values["ours"] - base
    assert rows["ours"].reference == "lambdarank"
    assert (rows["ours"].difference, rows["ours"].difference_se) == pytest.approx((d.mean(), stats.sem(d)))
    others = [name for name in values if name != "lambdarank"]
    p = statistics.holm([stats.ttest_rel(values[name], base).pvalue for name in others])
    assert [rows[name].p for name in others] == pytest.approx(p)
    assert [name for name, row in rows.items() if row.native] == ["rank_xendcg", "lambdarank"]
    assert rows["lambdarank"].reference is None
    marks = {name: statistics.mark(row.difference, row.p, 0.05) for name, row in rows.items()}
    assert [marks[name] for name in values] == [statistics.WORSE, "", statistics.BETTER, statistics.SAME]
    assert {row.reference for row in contest_table(values, reference="ours", natives=["lambdarank"])} == {"ours", None}
    assert {row.reference for row in contest_table(values, reference="none of them")} == {None}


@pytest.mark.parametrize("metric", ["ndcg@5", "map(threshold=1)"])  # the second has no value in some queries
def test_two_models_are_compared_as_scipy_does(metric):
    options = {"convention": "trec_eval"} if metric == "ndcg@5" else {}
    a, b = (by_query(scores, metric, **options) for scores in (ONE, OTHER))
    expected = stats.ttest_rel(a, b, nan_policy="omit")
    for level in (0.95, 0.5):
        found = compare_scores(metric, ONE, OTHER, Y, qid=QID, level=level, **options)
        assert found[:3] == pytest.approx((np.nanmean(a), np.nanmean(b), np.nanmean(a - b)), abs=1e-12)
        interval = *expected.confidence_interval(level), expected.pvalue
        assert (found.low, found.high, found.p) == pytest.approx(interval, rel=1e-9)
        assert found.queries == expected.df + 1


@pytest.mark.parametrize("buckets", [None, 5])
@pytest.mark.parametrize("metric", ["ndcg@5", "map(empty=skip)"])
def test_users_are_clusters_of_queries_and_weights_count(metric, buckets):
    """The test over the means of the clusters, with the sums of the weights of their queries."""
    user, weight = RNG.choice(list("abcdefghijk"), len(SIZES)), RNG.integers(0, 4, len(SIZES)).astype(float)
    found = compare_scores(metric, ONE, OTHER, Y, SIZES, weight, user=user, buckets=buckets, seed=3)
    cluster = user
    if buckets:
        names = sorted(set(user))
        cluster = np.array([np.random.default_rng(3).permutation(len(names))[names.index(u)] % buckets for u in user])
        assert np.ptp([len(set(user[cluster == c])) for c in range(buckets)]) <= 1
    d = by_query(ONE, metric) - by_query(OTHER, metric)
    kept = ~np.isnan(d) & (weight > 0)
    d, w, cluster = d[kept], weight[kept], cluster[kept]
    for of, result in ((cluster, found), (np.arange(len(d)), compare_scores(metric, ONE, OTHER, Y, SIZES, weight))):
        sums = np.array([w[of == c].sum() for c in np.unique(of)])
        means = np.array([np.average(d[of == c], weights=w[of == c]) for c in np.unique(of)])
        center, _, p, reach = robust(means, sums)
        assert (result.difference, result.queries) == (pytest.approx(center, abs=1e-12), len(d))
        assert (result.high - center, result.p) == pytest.approx((reach, p), rel=1e-9)


@pytest.mark.parametrize("metric", ONE_OF_EACH, ids=str)
def test_labels_for_which_every_order_is_as_good_are_named(metric):
    metric = replace(metric, empty=0.0)  # or every query is left out
    graded = np.minimum(Y, metric.label_limit or np.inf)
    useless = [np.ones(len(Y))]  # stars 1 to 3 are all relevant
    useless += [Y + metric.threshold + 1] if hasattr(metric, "threshold") else []
    for labels in useless if hasattr(metric, "kind") else ():
        with pytest.warns(LTRWarning, match="every order"):
            found = compare_scores(metric, ONE, OTHER, labels, qid=QID)
        assert (found.difference, found.p) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    compare_scores(metric, ONE, OTHER, graded, qid=QID)  # warnings are errors


@pytest.mark.parametrize("metric", ONE_OF_EACH, ids=str)
def test_a_sum_is_compared_in_queries_in_which_all_parts_have_a_value(metric):
    if not hasattr(metric, "kind"):
        return
    labels = {"first": Y, "goal": np.where(QID % 3 > 0, np.minimum(Y, metric.label_limit or np.inf), 0.0)}
    total = f"ndcg(empty=skip) + 0.3*{replace(metric, goal='goal')}"
    values = evaluate(total, ONE, labels, SIZES, per_query=True)
    found = compare_scores(total, ONE, OTHER, labels, SIZES)
    assert found.a == pytest.approx(np.nanmean(values))
    assert found.queries == np.count_nonzero(~np.isnan(values))

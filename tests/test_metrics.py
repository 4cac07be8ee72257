"""Every metric: its methods agree with its definition."""

import dataclasses
import math

import catalog
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from ltr_objectives import (
    NDCG,
    LambdaMART,
    LTRWarning,
    Metric,
    Queries,
    StochasticRank,
    check_metric,
    evaluate,
    get_metric,
    get_objective,
)
from ltr_objectives.testing import random_labels


@pytest.mark.parametrize("name", catalog.METRICS)
def test_value_ties_swaps_and_moves_are_those_of_the_definition(name):
    for options in ({}, *catalog.MORE.get(name, ())):
        check_metric(dataclasses.replace(catalog.METRICS[name][0], **options))  # with all cutoffs and ties


def test_shares_of_documents_are_divided_once():
    """As NumPy divides: 3 of 5 are 0.6, and not 3 times 0.2, which is 0.6000000000000001."""
    for n in (*range(1, 60), 98, 103):
        for found in range(1, n + 1):
            assert evaluate(f"precision@{n}", -np.arange(n), np.arange(n) < found, [n]) == found / n
            assert evaluate(f"recall@{found}", -np.arange(n), np.ones(n), [n]) == found / n


def test_neither_threads_nor_the_order_of_rows_change_values(any_metric, rng):
    group = rng.integers(1, 40, 200)
    labels = random_labels(any_metric.label_limit, rng, group.sum())
    scores = np.round(rng.normal(size=group.sum()), 1)
    one = any_metric.per_query(scores, labels, group, n_threads=1)
    for threads in (2, 4):
        assert np.array_equal(one, any_metric.per_query(scores, labels, group, n_threads=threads), equal_nan=True)
    if any_metric.ties != "input":
        rows = np.concatenate([a + rng.permutation(n) for a, n in zip(np.cumsum(group) - group, group, strict=True)])
        other = any_metric.per_query(scores[rows], labels[rows], group)
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12)


def test_empty_queries_have_the_value_asked_for(any_metric):
    for empty in (0.0, 1.0, 0.25):
        metric = dataclasses.replace(any_metric, empty=empty)
        assert metric.per_query([1.0, 2.0], [0, 0], [2])[0] == empty
    skipping = dataclasses.replace(any_metric, empty="skip")
    best = min(any_metric.label_limit or 4, 31)
    scores, labels = [3.0, 2.0, 1.0, 0.0, 1.0], [0, 0, 0, best, 0]
    kept = skipping.per_query(scores, labels, [3, 2])
    assert math.isnan(kept[0])
    assert evaluate(skipping, scores, labels, [3, 2]) == kept[1]
    assert skipping.reference([0.0, 0.0]) == 0  # objectives compare references of all orders


def test_the_example_of_jarvelin_and_kekalainen():
    """Section 2 of "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with logarithms of base 2."""
    labels = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0, 1, 1, 1]  # the ideal vector has three documents of label 1 more
    dcg = [3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
    ndcg = [1, 0.83, 0.87, 0.78, 0.71, 0.69, 0.73, 0.77, 0.83, 0.81]
    for name, expected in (("dcg", dcg), ("ndcg", ndcg)):
        texts = [f"{name}(gain_type=linear,discount_type=log2-rank)@{k}" for k in range(1, 11)]
        found = evaluate(texts, -np.arange(13.0), labels, [13])
        assert [round(value, 2) for value in found.values()] == expected


def test_the_ideal_order_is_that_of_the_gains_even_if_they_fall():
    falling = type("Falling", (NDCG,), {"gain": lambda self, labels: 3.0 - labels})
    assert falling().per_query([2.0, 1.0, 0.0], [0, 1, 3], [3]) == [1.0]


@pytest.mark.parametrize("reads", [NDCG(), get_metric("dcg@2"), *map(get_objective, ("yetiloss", "plrank", "xendcg"))])
def test_exponential_gains_of_amounts_are_warned_of_once(reads):
    def read(queries):
        (reads.values if isinstance(reads, Metric) else reads.compute)(queries, [0.0, 1.0])

    money = Queries([400.0, 12.5], [2])
    with pytest.warns(LTRWarning, match=r"labels .*400, .*gain_type"):
        read(money)
    read(money)
    read(Queries([31.0, 0.0], [2]))
    evaluate(type("Own", (NDCG,), {"gain": lambda self, labels: np.log1p(labels)})(), [0.0, 1.0], [400.0, 12.5], [2])
    evaluate("ndcg(gain_type=linear)", [0.0, 1.0], [400.0, 12.5], [2])


@pytest.mark.parametrize("weighted", [False, True])
def test_gauc_is_the_mean_of_auc_over_impressions_of_users_with_both_classes(weighted, rng):
    group = rng.integers(1, 15, 60)
    scores = np.round(rng.normal(size=group.sum()), 1)
    labels = (rng.random(len(scores)) < 0.2).astype(float)
    weight = rng.uniform(0.2, 3, len(labels)) if weighted else np.ones(len(labels))
    user = np.repeat(np.arange(len(group)), group)
    rows = [user == u for u in range(len(group)) if len(set(labels[user == u])) == 2]
    values = [roc_auc_score(labels[of], scores[of]) for of in rows]
    expected = np.average(values, weights=[weight[of].sum() for of in rows])
    assert evaluate("gauc", scores, labels, group, weight if weighted else None) == pytest.approx(expected)


# rank correlations


@pytest.mark.parametrize("make", [LambdaMART, StochasticRank])
def test_only_the_order_of_the_labels_counts_in_a_rank_correlation(make, rng):
    y, s, sizes = rng.integers(0, 5, 64), rng.normal(size=64), [8] * 8
    value, expected = evaluate("spearman", s, y, sizes), make("spearman").gradient_hessian(s, y, sizes)
    assert expected[0].any()
    of_each_query = y + 10 * np.repeat(range(8), 8)  # only the labels of a query are compared
    for other in (y - 2, np.exp(y), 0.1 * y - 1e6, of_each_query):
        assert evaluate("spearman", s, other, sizes) == value
        np.testing.assert_array_equal(make("spearman").gradient_hessian(s, other, sizes), expected)


def test_spearman_of_untied_scores_is_that_of_scipy(rng):
    for n in (2, 5, 40):
        s, y = rng.permutation(n), np.append(rng.integers(0, 5, n - 1), 5)
        assert evaluate("spearman", s, y, [n]) == pytest.approx(stats.spearmanr(s, y).statistic, abs=1e-12)

"""Every metric: its methods agree with its textbook definition, weights, ugly lists, errors."""

import dataclasses
import math
import pickle

import catalog
import numpy as np
import pytest

from ltr_objectives import NDCG, LTRError, LTRWarning, Queries, check_metric, evaluate, get_metric
from ltr_objectives.testing import random_labels


@pytest.mark.parametrize("name", catalog.LEARNED)
def test_value_ties_swaps_and_moves_are_those_of_the_definition(name):
    for options in ({}, *catalog.MORE.get(name, ())):
        check_metric(dataclasses.replace(catalog.METRICS[name][0], **options))  # with all cutoffs and ties


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_shares_of_documents_are_divided_once(name):
    """As NumPy divides: 3 of 5 are 0.6, and not 3 times 0.2, which is 0.6000000000000001."""
    for n in (*range(1, 60), 98, 103):
        for found in range(n + 1):
            labels = np.arange(n) < found
            if found and name == "precision":
                assert evaluate(f"precision@{n}", -np.arange(n), labels, [n]) == found / n
            elif found:
                assert evaluate(f"recall@{found}", -np.arange(n), np.ones(n), [n]) == found / n


def test_a_move_to_the_next_rank_is_a_swap(learned_metric, rng):
    labels = random_labels(learned_metric.label_limit, rng, 40)
    moves, swaps = learned_metric.move_changes(labels), learned_metric.swap_changes(labels)
    for d in range(39):
        np.testing.assert_allclose([moves[d, d + 1], moves[d + 1, d]], swaps[d, d + 1], rtol=1e-9, atol=1e-12)


def test_values_do_not_depend_on_row_order_threads_or_layout(any_metric, rng):
    group = rng.integers(1, 40, 200)
    labels = random_labels(any_metric.label_limit, rng, group.sum())
    scores = np.round(rng.normal(size=group.sum()), 1)
    one = any_metric.per_query(scores, labels, group, n_threads=1)
    for threads in (2, 4):
        assert np.array_equal(one, any_metric.per_query(scores, labels, group, n_threads=threads))
    wide = np.repeat(scores, 2)[::2]
    wide.flags.writeable = False
    assert np.array_equal(
        one, any_metric.per_query(wide, labels.astype(np.float64)[::1], qid=np.repeat(np.arange(200), group))
    )
    if any_metric.ties != "input":
        shuffle = np.concatenate([a + rng.permutation(n) for a, n in zip(np.cumsum(group) - group, group, strict=True)])
        np.testing.assert_allclose(
            any_metric.per_query(scores[shuffle], labels[shuffle], group), one, rtol=1e-11, atol=1e-12
        )


def test_ugly_scores_and_long_lists_give_finite_values(any_metric, rng):
    for scores in ([1e30, -1e30, 1e30, 0.0], [0.0] * 4, [1e308, -1e308, 5e-324, -0.0]):
        for labels in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]):
            assert np.isfinite(any_metric.per_query(scores, labels, [4])).all(), (scores, labels)
    labels = random_labels(any_metric.label_limit, rng, 20_000)
    for scores in (rng.normal(size=20_000), np.zeros(20_000)):
        value = any_metric.per_query(scores, labels, [20_000])[0]
        assert np.isfinite(value)
        if any_metric.maximum:
            assert catalog.LEAST.get(any_metric.name, 0.0) - 1e-9 <= value <= any_metric.maximum + 1e-9


def test_empty_queries_have_the_value_asked_for(any_metric):
    for empty in (0.0, 1.0, 0.25):
        metric = dataclasses.replace(any_metric, empty=empty)
        assert metric.per_query([1.0, 2.0], [0, 0], [2])[0] == empty
    skipping = dataclasses.replace(any_metric, empty="skip")
    scores, labels = [3.0, 2.0, 1.0, 0.0, 1.0], [0, 0, 0, any_metric.label_limit or 4, 0]
    if any_metric.label_limit:
        labels[3] = min(labels[3], 1000)
    kept = skipping.per_query(scores, labels, [3, 2])
    assert math.isnan(kept[0])
    assert evaluate(skipping, scores, labels, [3, 2]) == kept[1]
    with pytest.raises(LTRError, match="every query is skipped"):
        evaluate(skipping, [1.0, 2.0], [0, 0], [2])


def test_means_are_weighted_by_query():
    scores, labels, group = [2.0, 1.0, 2.0, 1.0], [1, 0, 0, 1], [2, 2]
    assert evaluate("mrr", scores, labels, group) == 0.75
    assert evaluate("mrr", scores, labels, group, weight=[3.0, 1.0]) == pytest.approx(0.875)
    assert evaluate("mrr", scores, labels, group, weight=[2.0, 4.0, 1.0, 1.0]) == pytest.approx(0.875)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: get_metric("ndcg@"), "not of the form name, name@k or name"),
        (lambda: get_metric("ndcg@0"), "k=0 must be a whole number of at least 1"),
        (lambda: get_metric(max), "or an ltr_objectives.Metric, got builtin_function_or_method"),
        (lambda: get_metric(NDCG), r"got the class NDCG; pass an object, such as NDCG\(\)$"),
        (lambda: get_metric(3), "must be a string such as"),
        (lambda: NDCG(empty="skipp"), "empty='skipp' must be a number or 'skip'"),
        (lambda: get_metric("auc@3"), "auc has no cutoff"),
        (
            lambda: evaluate("pfound", [1.0], [2], [1]),
            "pfound takes labels up to 1, got 2; set grades='exp' and max_label",
        ),
    ],
)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(LTRError, match=message):
        call()


def test_gain_tables_are_checked():
    from ltr_objectives import DCG

    table = NDCG(gain_type=[0, 1, 3])
    assert hash(table) == hash(NDCG(gain_type=(0.0, 1.0, 3.0)))
    with pytest.raises(LTRError, match="takes labels up to 2, got 3"):
        table.per_query([1.0], [3], [1])
    with pytest.raises(LTRError, match="whole-numbered labels"):
        table.per_query([1.0], [0.5], [1])
    with pytest.raises(LTRError, match="not decrease with the label"):
        NDCG(gain_type=[1, 0])
    with pytest.raises(LTRError, match="not increase with the rank"):
        DCG(discount_type=[1, 2])
    with pytest.raises(LTRError, match="'exp', 'linear'"):
        NDCG(gain_type="expo")


def test_the_example_of_jarvelin_and_kekalainen():
    """Section 2 of "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with logarithms of base 2."""
    labels = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0, 1, 1, 1]  # the ideal vector has three documents of label 1 more
    dcg = [3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61]
    ndcg = [1, 0.83, 0.87, 0.78, 0.71, 0.69, 0.73, 0.77, 0.83, 0.81]
    for name, expected in (("dcg", dcg), ("ndcg", ndcg)):
        texts = [f"{name}(gain_type=linear,discount_type=log2-rank)@{k}" for k in range(1, 11)]
        found = evaluate(texts, -np.arange(13.0), labels, [13])
        assert [round(value, 2) for value in found.values()] == expected
        check_metric(get_metric(texts[-1]))


def test_terms_are_computed_once_per_data_set():
    queries = Queries([1, 0], [2])
    metric = get_metric("ndcg@3")
    assert metric.terms(queries) is get_metric("ndcg@3").terms(queries)


def test_results_of_thousands_of_metrics_are_not_all_kept(rng):
    queries, scores = Queries(rng.integers(0, 2, 5000), [50] * 100), rng.normal(size=5000)
    kept = []
    for i in range(600):
        NDCG(k=1 + i % 20).layers(queries)  # used often, so kept
        get_metric(f"precision(threshold={i / 1000})@3").layers(queries)
        if i in (200, 599):
            kept.append(len(pickle.dumps(list(vars(queries).values()))))
    assert kept[1] < 1.01 * kept[0]
    terms = NDCG(k=7).terms(queries)
    assert NDCG(k=7).terms(queries) is terms
    assert NDCG(k=7).mean(queries, scores) == evaluate("ndcg@7", scores, queries.labels, [50] * 100)


def test_labels_of_which_every_one_is_relevant_are_warned_of():
    for name in ("map", "precision@1", "mrr[stars]"):
        with pytest.warns(LTRWarning, match="these labels: every order .* labels are from 1 to 3, .*threshold=2.5"):
            evaluate(
                name,
                np.arange(6.0),
                {None: [0, 1, 0, 1, 0, 1] if "[" in name else [1, 2, 3, 3, 2, 1], "stars": [1, 2, 3, 3, 2, 1]},
                [3, 3],
            )
        evaluate("map(threshold=2.5)", np.arange(6.0), [1, 2, 3, 3, 2, 1], [3, 3])

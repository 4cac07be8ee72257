"""A warning names the price of a gradient over long lists, or with many draws, before the gradient is computed."""

import numpy as np
import pytest
from catalog import SOME
from conftest import OBJECTIVES

from ltr_objectives import LTRWarning, Mixture, Queries, Subsample, UnitHessian, diagnostics, get_metric, get_objective
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.objectives.base import Objective


def one_list(n, labels=2):
    return Queries(np.arange(n) % labels, [n])


def price(objective, queries, threads=1):
    return diagnostics._price(get_objective(objective), queries, threads)


def test_pairs_grow_with_the_square_of_the_list_at_most():
    lists = [one_list(n) for n in (1000, 2000)]
    for objective in (o for some in SOME.values() for o in some if not o._inside):
        small, large = (price(objective, queries).pairs for queries in lists)
        assert (small == 0) == (large == 0) == (not objective.facts.fewer_pairs), objective
        assert small == 0 or 0.9 <= large / small <= 4.1, objective


def test_cutoffs_and_neighbors_bound_the_pairs():
    queries = one_list(10**5)
    for few in ("lambdamart:truncation=30", "lambdamart:ndcg@30", "yetiloss:ndcg;neighbors=30;permutations=1"):
        assert price(few, queries).pairs == 30 * 10**5
    for few in ("lambdamart:mrr", "lambdamart:err(max_label=1)", "lambdamart:rbp(patience=.5)"):
        assert price(few, queries).pairs < 3000 * 10**5, few
    whole = get_objective("lambdamart:ndcg")
    for around in (whole, Mixture([whole, "listnet"]), UnitHessian(Subsample(whole))):
        assert price(around, queries).pairs == 10**10
    for name in ("softrank", "neuralndcg"):
        assert price(f"{name}:max_documents=500", queries).pairs == 500**2
    assert price("plrank:k=3;samples=7", queries).pairs == 21


def test_the_price_adds_up_parts_and_queries():
    a, b = get_objective("lambdamart:ndcg"), get_objective("hinge:ndcg")
    queries = one_list(10**5)
    both = price(Mixture([a, b]), queries)
    assert both.seconds == pytest.approx(price(a, queries).seconds + price(b, queries).seconds)
    assert both.objective == b
    ten = Queries(np.arange(10**5) % 2, np.full(10, 10**4))
    assert price(a, ten).seconds == pytest.approx(10 * price(a, one_list(10**4)).seconds)
    assert price(a, ten, threads=4).seconds == pytest.approx(price(a, ten).seconds / 4)
    assert price(a, queries, threads=4).seconds == price(a, queries).seconds


def test_the_price_is_named_before_the_first_gradient(monkeypatch):
    queries, scores = one_list(300), np.zeros(300)
    monkeypatch.setattr(diagnostics, "WORTH_SAYING", (1e-300, 0.0))
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    slow = [o for o in OBJECTIVES if price(o, queries).pairs]
    assert len(slow) > 20
    said = {"match": r"which takes about 0 seconds and 0\.\d GB for each gradient; choose"}
    for objective in slow:
        with pytest.warns(LTRWarning, **said), pytest.raises(pytest.fail.Exception):
            objective.gradient_hessian(scores, queries.labels, [300])
        with pytest.warns(LTRWarning, **said), pytest.raises(pytest.fail.Exception):
            lightgbm_objective(objective)(queries.labels, scores, None, np.array([300]))


def test_a_high_price_is_named_and_an_ordinary_one_is_not(recwarn):
    diagnostics.warn_if_long(get_objective("lambdamart"), one_list(10**6), 2)
    assert "visits 1.0e+12 pairs of documents" in str(recwarn.pop(LTRWarning).message)
    diagnostics.warn_if_long(get_objective("plrank:samples=1000000"), Queries(np.arange(4000) % 2, [2] * 2000), 2)
    assert "random rankings" in str(recwarn.pop(LTRWarning).message)
    queries = Queries(np.arange(20_000) % 2, np.full(20, 1000))
    for objective in OBJECTIVES:
        diagnostics.warn_if_long(objective, queries)
    assert not recwarn


@pytest.mark.parametrize("relevant", [1, 3, 500, 200_000])
def test_long_ties_take_no_square_of_time(relevant):
    """With the square, these would take minutes."""
    n = 200_000
    scores, labels = np.zeros(n), (np.arange(n) >= n - relevant).astype(float)
    left = np.arange(n, 0, -1.0)  # chances that the first j documents of a random order are all irrelevant
    none = np.append(1.0, np.cumprod(np.maximum(left - relevant, 0.0) / left))
    expected = 1.0 / np.arange(1, n + 1) @ -np.diff(none)
    for metric in ("mrr", "err(max_label=1,grades=linear)"):
        assert get_metric(metric).per_query(scores, labels, [n])[0] == pytest.approx(expected, rel=1e-9)
    first = 1.0 - none[10]
    assert get_metric("hit@10").per_query(scores, labels, [n])[0] == pytest.approx(first, rel=1e-9)
    grad, _ = get_objective("approxmrr").gradient_hessian(scores, labels, [n])
    assert np.unique(grad[labels == 1]).size == 1
    assert grad.sum() == pytest.approx(0, abs=1e-12)


def test_documents_that_share_the_largest_score_share_the_gradient_of_the_first():
    objective, rng = get_objective("approxmrr"), np.random.default_rng(0)
    for _ in range(20):
        scores, labels = rng.integers(0, 3, 12).astype(float), rng.integers(0, 2, 12)
        for ours, expected in zip(
            objective.gradient_hessian(scores, labels, [12]), objective.reference(scores, labels), strict=True
        ):
            np.testing.assert_allclose(ours, expected, atol=1e-14)

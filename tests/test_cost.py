"""Gradients of long lists: a warning before they are computed, and no square where none is needed."""

import numpy as np
import pytest
from oracles.references import reference

from ltr_objectives import (
    LTRWarning,
    Mixture,
    Queries,
    Subsample,
    UnitHessian,
    diagnostics,
    get_metric,
    get_objective,
    registry,
)
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.objectives.base import Objective


def one_list(n, labels=2):
    return Queries(np.arange(n) % labels, [n])


def test_long_lists_are_named_before_the_first_gradient(monkeypatch, recwarn):
    slow = [objective for objective in map(get_objective, registry.objectives()) if objective.facts.quadratic]
    for objective in slow:
        diagnostics.warn_if_long(objective, Queries(np.arange(20_000) % 2, np.full(20, 1000)))
    assert not recwarn
    for objective in slow:
        diagnostics.warn_if_long(objective, one_list(10**6))
    assert 5 <= len(recwarn) <= len(slow)
    monkeypatch.setattr(diagnostics, "MOST_PAIRS", 1)
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    labels, given = np.arange(300) % 2, {"match": "split the queries"}
    for objective in slow:
        for around in (objective, Mixture([objective, "listnet"], normalize=False), UnitHessian(Subsample(objective))):
            with pytest.warns(LTRWarning, **given), pytest.raises(pytest.fail.Exception):
                around.gradient_hessian(np.zeros(300), labels, [300])
            with pytest.warns(LTRWarning, **given), pytest.raises(pytest.fail.Exception):
                lightgbm_objective(around)(labels, np.zeros(300), None, np.array([300]))


def test_cutoffs_bound_the_pairs(recwarn):
    for few in ("lambdamart:truncation=30", "lambdamart:ndcg@30", "yetiloss:ndcg;neighbors=30", "ranknet:partners=9"):
        diagnostics.warn_if_long(get_objective(few), one_list(10**6))
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
            objective.gradient_hessian(scores, labels, [12]), reference(objective, scores, labels), strict=True
        ):
            np.testing.assert_allclose(ours, expected, atol=1e-14)

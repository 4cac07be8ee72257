"""Gradients and Hessians in units of documents."""

import numpy as np
import pytest
from catalog import OBJECTIVES
from oracles.references import reference
from trainings import fit

from ltr_objectives import (
    Langevin,
    Mixture,
    Queries,
    QueryRMSE,
    UnitHessian,
    YetiLoss,
    get_objective,
)
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.objectives.typical import typical

everywhere = pytest.mark.parametrize("name", OBJECTIVES)


@pytest.fixture
def data(rng):
    sizes = [1, 2, 9, 30, 100]
    return rng.integers(0, 3, sum(sizes)).astype(float), sizes, rng.normal(size=sum(sizes))


@everywhere
def test_the_mean_hessian_is_the_mean_weight(name, data, rng):
    labels, sizes, _ = data
    for weight in (None, rng.uniform(0.5, 200.0, len(sizes))):
        queries = Queries(labels, sizes, weight=weight)
        unit = typical(UnitHessian(OBJECTIVES[name]), queries).hessian
        assert unit == pytest.approx(1.0, rel=1e-12)
        assert unit == pytest.approx(typical(QueryRMSE(), queries).hessian, rel=1e-12)


@everywhere
def test_only_a_constant_is_between_the_two(name, data, rng):
    labels, sizes, scores = data
    queries = Queries(labels, sizes, weight=rng.uniform(0.5, 2.0, len(sizes)))
    plain, unit = OBJECTIVES[name], UnitHessian(OBJECTIVES[name])
    before, after = (np.array(o.compute(queries, scores, iteration=5)) for o in (plain, unit))
    factor = after[1].sum() / before[1].sum()
    assert factor > 0
    assert np.abs(after - factor * before).max() <= 1e-13 * np.abs(after).max()
    at_zero = [np.array(o.compute(queries, np.zeros(queries.rows))) for o in (plain, unit)]
    assert np.abs(at_zero[1] - factor * at_zero[0]).max() <= 1e-13 * np.abs(at_zero[1]).max()  # whatever the scores


@everywhere
def test_it_equals_the_reference(name, rng):
    unit = UnitHessian(OBJECTIVES[name]).without_noise() or pytest.skip("nothing but noise")
    scores, labels = rng.normal(size=9), rng.integers(0, 3, 9).astype(float)
    for ours, theirs in zip(unit.gradient_hessian(scores, labels, [9]), reference(unit, scores, labels), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_negative_hessians_count_by_their_size(data):
    labels, sizes, _ = data
    queries = Queries(labels, sizes)
    negative = Mixture(["plrank:hessian=exact"], normalize=False)
    signed = [typical(get_objective(o), queries).hessian for o in ("plrank:hessian=exact", "plrank:hessian=absolute")]
    assert signed[0] == signed[1] == typical(negative, queries).hessian


def test_the_scale_of_an_objective_disappears(data):
    labels, sizes, scores = data
    small = UnitHessian(Mixture(["yetiloss:dcg"], [1e-9], normalize=False))
    expected = UnitHessian("yetiloss:dcg").gradient_hessian(scores, labels, sizes)
    assert np.allclose(expected, small.gradient_hessian(scores, labels, sizes), rtol=1e-12)


def test_noise_of_langevin_is_kept_inside_and_outside(data):
    labels, sizes, scores = data
    inside, outside = UnitHessian(Langevin("yetiloss", 1.0)), Langevin(UnitHessian("yetiloss"), 1.0)
    for objective in (inside, outside):
        first, same, other = (objective.gradient_hessian(scores, labels, sizes, iteration=i)[0] for i in (1, 1, 2))
        assert np.array_equal(first, same)
        assert (first != other).all()
        assert objective.inner == YetiLoss()
        assert objective.facts.random
        assert not objective.without_noise().facts.random


@pytest.mark.parametrize("wrap", [UnitHessian, Langevin])
def test_facts_of_the_wrapped_objective_are_forwarded(wrap, data):
    labels, sizes, _ = data
    queries, plain, wrapped = Queries(labels, sizes), YetiLoss("map"), wrap("yetiloss:map")
    assert wrapped.metric == plain.metric
    assert wrap("listnet").metric is None
    assert np.array_equal(wrapped._worth(queries)[0], plain._worth(queries))


def test_nothing_to_learn_is_zero():
    grad, hess = UnitHessian("lambdamart").gradient_hessian([1.0, 2.0], [1, 1], [2])
    assert not grad.any()
    assert not hess.any()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_regularisation_counts_documents(library):
    """With the number of rows as l2, a leaf divides its gradients by its Hessians plus that number."""
    pytest.importorskip(library)
    train = make_ranking_fold((30, 1, 1), mean_length=20, features=10).train
    rows, start = len(train.y), np.zeros(len(train.y))
    params = {
        "xgboost": {"max_depth": 1, "reg_lambda": rows, "min_child_weight": 0, "base_score": 0, "eta": 1.0},
        "lightgbm": {"num_leaves": 2, "lambda_l2": rows, "min_sum_hessian_in_leaf": 0, "learning_rate": 1.0},
        "catboost": {"depth": 1, "l2_leaf_reg": rows, "leaf_estimation_method": "Newton", "bootstrap_type": "No",
                     "random_strength": 0, "learning_rate": 1.0},
    }[library]  # fmt: skip
    queries = Queries(train.y, train.group)
    for inner in (YetiLoss("ndcg@10", noise=None), QueryRMSE(), YetiLoss("map", noise=None)):
        grad, hess = UnitHessian(inner).compute(queries, start)
        moved = fit(library, UnitHessian(inner), train.X, train.y, train.group, 1, params=params)(train.X)
        leaves = np.unique(moved)
        assert len(leaves) == 2
        for value in leaves:
            leaf = moved == value
            assert value == pytest.approx(-grad[leaf].sum() / (hess[leaf].sum() + rows), rel=1e-4)

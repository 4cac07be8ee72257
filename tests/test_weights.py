"""One meaning of weights: a query of weight w counts as w queries, a row's multiplies its gradient and Hessian."""

import numpy as np
import pytest
from conftest import METRICS

from ltr_objectives import Objective, Queries, registry
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.testing import random_labels


def repeated(weight, group, *columns):
    """Repeat each query by its weight; return it, and the first row of each copy."""
    ends = np.cumsum(group)
    rows = [np.arange(e - n, e) for e, n, w in zip(ends, group, weight, strict=True) for _ in range(w)]
    return [c[np.concatenate(rows)] for c in columns], np.repeat(group, weight)


def lists(limit, rng):
    group = rng.integers(1, 9, 15)
    rows = int(group.sum())
    return rng.normal(size=rows), random_labels(limit, rng, rows), group, rng.integers(1, 4, 15)


def test_a_weight_of_w_is_w_copies_in_the_gradient(quiet_objective, rng):
    """Without noise, which differs between copies."""
    objective = quiet_objective
    scores, labels, group, weight = lists(objective.label_limit, rng)
    queries = Queries(labels, group, weight=weight)
    ours = objective.compute(queries, scores)
    # a preset may divide the weights of all queries by one number, as its library does
    scale = objective.row_weight(queries) / queries.weight_by_row
    np.testing.assert_allclose(scale, scale[0])
    (s, y, row), copies = repeated(weight, group, scores, labels, np.arange(len(labels)))
    for a, b in zip(ours, objective.gradient_hessian(s, y, copies), strict=True):
        np.testing.assert_allclose(a, scale[0] * np.bincount(row, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", registry.objective_names())
def test_sizes_are_nearly_those_of_the_copies(name, rng):
    """UnitHessian and Mixture divide by means at random scores, which are others for the rows of copies."""
    objective = Objective.named[name]()
    group, weight = rng.integers(5, 15, 300), np.tile([1, 3], 150)
    labels = (rng.random(group.sum()) < np.repeat(weight > 1, group) / 2).astype(float)  # all 0 where the weight is 1
    (y,), copies = repeated(weight, group, labels)
    weighted, copied = (
        typical_size(objective, Queries(labels, group, weight=weight)),
        typical_size(objective, Queries(y, copies)),
    )
    assert tuple(weighted) == pytest.approx(tuple(copied), rel=0.1)


def test_a_weight_of_w_is_w_copies_in_the_metric(rng):
    for metric in (m for m in METRICS if m.query_weights == "mean"):
        scores, labels, group, weight = lists(metric.label_limit, rng)
        (s, y), copies = repeated(weight, group, scores, labels)
        plain = metric.mean(Queries(y, copies), s)
        assert metric.mean(Queries(labels, group, weight=weight), scores) == pytest.approx(plain), metric


def test_rows_weigh_gradient_and_hessian_and_their_mean_weighs_the_query(any_objective, rng):
    scores, labels, group, _ = lists(any_objective.label_limit, rng)
    weight, query = rng.uniform(0.1, 2, len(labels)), np.repeat(np.arange(len(group)), group)
    queries, plain = Queries(labels, group, weight=weight), any_objective.gradient_hessian(scores, labels, group)
    ours = any_objective.compute(queries, scores)
    factor = any_objective.row_weight(queries)
    np.testing.assert_allclose(queries.weight_by_query, np.bincount(query, weight) / group)
    np.testing.assert_allclose(ours[1], factor * plain[1], rtol=1e-9, atol=1e-12)
    # a loss with a free constant for each query fits it to the weights, so its gradients add up to zero
    constant = ours[0] / factor - plain[0]
    np.testing.assert_allclose(constant, constant[queries.ptr[:-1]][query], rtol=1e-7, atol=1e-10)
    moved = np.abs(constant[queries.ptr[:-1]]) > 1e-9
    np.testing.assert_allclose(np.bincount(query, ours[0])[moved], 0.0, atol=1e-9)

"""Gradients are derivatives of the reference losses, and Hessians what their objective declares them to be."""

import numpy as np
import pytest
from catalog import hessian_limit, longest_step

from ltr_objectives.testing import random_labels

STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))  # central differences of order 6


def losses(objective, rng):
    """Lists whose scores are too far apart for a step to swap two documents, at gaps from 1e-3 to 1e4."""
    objective = objective.without_noise()
    if objective is None or objective.reference_loss(np.array([0.0, 1.0]), np.array([1.0, 0.0])) is None:
        pytest.skip("has no loss")
    for gap in (1e-3, 0.3, 1e4):
        for n in (2, 5):
            labels = random_labels(objective.label_limit, rng, n)
            yield objective, gap * (rng.permutation(n) + rng.uniform(-0.2, 0.2, n)), labels, min(gap / 10, 2e-3)


def difference(function, scores, i, step):
    out = 0.0
    for places, weight in STENCIL:
        up, down = scores.copy(), scores.copy()
        up[i] += places * step
        down[i] -= places * step
        out += weight * (function(up) - function(down))
    return out / step


def test_the_gradient_is_the_derivative_of_the_reference_loss(any_objective, rng):
    for objective, scores, labels, longest in losses(any_objective, rng):
        grad, _ = objective.gradient_hessian(scores, labels, [len(scores)])

        def loss(s, objective=objective, labels=labels):
            return float(np.real(objective.reference_loss(s, labels)))

        size = max(1.0, abs(loss(scores)), np.abs(scores).max())
        for i in range(len(scores)):
            # steep losses need short steps, where rounding costs more digits
            errors = [
                abs(grad[i] - difference(loss, scores, i, step)) - 1e-14 * size / step
                for step in (longest, longest / 10, longest / 100)
            ]
            assert min(errors) <= 1e-6 * np.abs(grad).max()


def test_the_hessian_is_what_it_is_declared_to_be(any_objective, rng):
    assert any_objective.facts.hessian_kind in ("exact", "bound", "estimate")
    if any_objective.facts.hessian_kind == "estimate":
        pytest.skip("promises nothing")
    for objective, scores, labels, step in losses(any_objective, rng):
        group = [len(scores)]
        _, hess = objective.gradient_hessian(scores, labels, group)
        step /= max(1.0, getattr(objective, "alpha", 1.0))
        for i in range(len(scores)):

            def slope(s, objective=objective, labels=labels, group=group, i=i):
                return objective.gradient_hessian(s, labels, group)[0][i]

            expected = difference(slope, scores, i, step)
            allowed = 1e-6 * np.abs(hess).max() + 1e-15 * max(1.0, abs(slope(scores))) / step
            assert hess[i] >= expected - allowed
            assert objective.facts.hessian_kind == "bound" or hess[i] <= expected + allowed


def test_steps_and_sums_of_hessians_stay_below_their_limits(any_objective, rng):
    n, lists = 30, 40
    if longest_step(any_objective) is None and hessian_limit(any_objective, n) is None:
        pytest.skip("promises nothing")
    some = random_labels(any_objective.label_limit, rng, n * lists)
    first = np.tile(np.arange(n) == 0, lists) * some.max()  # relevant documents are first
    for labels in (some, first):
        for spread in (0.0, 0.01, 1.0, 30.0):
            scores = spread * rng.normal(size=n * lists)
            grad, hess = any_objective.gradient_hessian(scores, labels, [n] * lists)
            if longest_step(any_objective) is not None:
                assert (np.abs(grad) <= longest_step(any_objective) * hess * (1 + 1e-9) + 1e-15).all()
            if hessian_limit(any_objective, n) is not None:
                assert hess.reshape(lists, n).sum(axis=1).max() <= hessian_limit(any_objective, n) * (1 + 1e-9)

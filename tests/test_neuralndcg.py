"""NeuralNDCG: the paper's table, scaling and its transpose, long lists, noise."""

import dataclasses

import numpy as np
import pytest
from catalog import EVERY_LEARNED

from ltr_objectives import LTRError, NeuralNDCG, NeuralSort
from ltr_objectives.kernels.rng import NOISES, add_noise, stream
from ltr_objectives.testing import random_labels

LABELS = np.array([4.0, 2.0, 1.0, 0.0, 4.0, 3.0])
SCORES = np.array([0.5, 0.2, 0.1, 0.01, 0.65, 0.3])
TABLE_1 = {
    1e-9: [4, 4, 3, 2, 1, 0],
    0.01: [4, 4, 3, 2, 0.99992, 0.00012339],
    0.1: [3.9995, 3.8909, 2.8239, 1.9730, 0.9989, 0.3136],
    1.0: [3.3893, 2.9820, 2.4965, 2.0191, 1.6097, 1.2815],
}


def sorted_labels(**settings):
    """The quasi-sorted labels, from differences of the losses with cutoffs k and k - 1."""
    ideal, values, before = np.cumsum(np.sort(LABELS)[::-1] / np.log2(np.arange(2, 8))), [], 0.0
    for k in range(1, 7):
        dcg = -NeuralNDCG(k, gain="linear", **settings).reference_loss(SCORES, LABELS) * ideal[k - 1]
        values.append((dcg - before) * np.log2(k + 1))
        before = dcg
    return np.array(values)


@pytest.mark.parametrize("temperature", TABLE_1)
def test_quasi_sorted_labels_are_those_of_the_paper(temperature):
    printed = TABLE_1[temperature]
    np.testing.assert_allclose(sorted_labels(temperature=temperature, rounds=0), printed, rtol=1e-4, atol=6e-5)


def test_scaling_keeps_the_sum_of_the_labels():
    assert abs(sorted_labels(temperature=1.0, rounds=0).sum() - 14) > 0.1
    assert sorted_labels(temperature=1.0, rounds=200).sum() == pytest.approx(14, abs=1e-5)
    assert sorted_labels(temperature=1.0, rounds=1, transposed=True).sum() == pytest.approx(14, abs=1e-12)


def test_rows_or_columns_are_exact_after_any_round(rng):
    scores = rng.normal(size=9)
    rows, columns = (NeuralNDCG(temperature=1.0, rounds=1, transposed=t).reference_sort(scores) for t in (False, True))
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(columns.sum(axis=0), 1, rtol=1e-12)
    assert abs(rows.sum(axis=0) - 1).max() > 1e-3
    assert abs(columns.sum(axis=1) - 1).max() > 1e-3


def test_both_variants_agree_where_scaling_has_converged(rng):
    scores, labels = 0.1 * rng.normal(size=12), rng.integers(0, 5, 12).astype(float)
    for k in (None, 4):
        a, b = (
            NeuralNDCG(k, temperature=1.0, rounds=500, tolerance=1e-12, transposed=t).gradient_hessian(
                scores, labels, [12]
            )[0]
            for t in (False, True)
        )
        assert np.abs(a).max() > 1e-3
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


@pytest.mark.parametrize("spread", [1e-4, 0.1, 1.0])
def test_long_lists_with_many_rounds_equal_the_reference(spread, rng):
    # the spreads give bands of all widths; 8 documents are enough, since the reference is slow
    n = 150
    scores, labels = spread * np.round(rng.normal(size=n), 1), rng.integers(0, 5, n).astype(float)
    objective = NeuralNDCG(10, temperature=1.0, transposed=spread == 0.1)
    grad, _ = objective.gradient_hessian(scores, labels, [n])
    for i in rng.choice(n, 8, replace=False):
        z = scores.astype(complex)
        z[i] += 1e-100j
        expected = np.imag(objective.reference_loss(z, labels)) / 1e-100
        assert grad[i] == pytest.approx(expected, rel=1e-9, abs=1e-12 * np.abs(grad).max())


@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise])
def test_noise_gives_the_mean_over_draws_of_noisy_scores(noise, rng):
    n, samples, scale = 9, 4, 0.7
    objective = NeuralNDCG(5, 2.0, max_documents=7, noise=noise, samples=samples, noise_scale=scale, seed=3)
    scores, labels = rng.normal(size=n), rng.integers(0, 5, n).astype(float)
    grad, hess = objective.gradient_hessian(scores, labels, [n], iteration=6)
    key = np.uint64(stream(np.uint64(3), np.uint64(6), np.uint64(0)))
    draws = np.empty((samples, n))
    for k in range(samples):
        add_noise(np.zeros(n), NOISES[noise], scale, key, np.uint64(2 * n * k), draws[k])
    quiet = dataclasses.replace(objective, noise=None)

    def loss(s):
        return np.mean([quiet.reference_loss(s + draw, labels) for draw in draws])

    step = 1e-5 * np.eye(n)
    expected = [(loss(scores + h) - loss(scores - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(hess, np.abs(grad))
    assert not np.allclose(grad, quiet.gradient_hessian(scores, labels, [n])[0])


@pytest.mark.parametrize("metric", [m for m in EVERY_LEARNED if m.name != "gap"], ids=str)
def test_the_scale_of_a_metric_multiplies_the_gradient_once(metric, rng):
    """Vanishing noise, draws, and a scale of the user's change the gradient by no other factor."""
    of = type(metric)
    tripled = type("Tripled", (of,), {"scale": lambda self, *given: 3.0 * of.scale(self, *given)})(**metric.settings())
    for n in (2, 3, 7, 20):
        scores, labels = rng.permutation(n) / 4, random_labels(metric.label_limit, rng, n)
        for objective in (NeuralSort(metric), NeuralSort(metric, 0.5, rounds=0), NeuralSort(metric, 1.0, rounds=3)):
            grad, _ = objective.gradient_hessian(scores, labels, [n])
            noisy = dataclasses.replace(objective, noise="gumbel", noise_scale=1e-9, samples=3)
            for factor, other in ((1, noisy), (3, dataclasses.replace(objective, metric=tripled))):
                found, _ = other.gradient_hessian(scores, labels, [n])
                np.testing.assert_allclose(found, factor * grad, rtol=1e-6, atol=1e-7 * np.abs(grad).max() + 1e-15)

            def loss(s, objective=objective, labels=labels):
                return objective.reference_loss(s, labels)

            expected = [(loss(scores + h) - loss(scores - h)) / 2e-5 for h in 1e-5 * np.eye(n)]
            np.testing.assert_allclose(grad, expected, rtol=1e-5, atol=1e-6 * np.abs(grad).max() + 1e-10)


def test_documents_beyond_the_head_get_no_gradient(rng):
    scores, labels = rng.permutation(50) / 50.0, np.zeros(50)
    last = np.argsort(scores)[:2]
    labels[last] = 1.0
    grad, _ = NeuralNDCG(max_documents=8, temperature=10.0).gradient_hessian(scores, labels, [50])
    seen = set(np.flatnonzero(grad))
    assert seen == set(np.argsort(-scores)[:6]) | set(last)  # four by score, two relevant, two more of label 0 by score
    assert (grad[last] < 0).all()


def test_more_rounds_than_can_be_kept_are_refused():
    assert NeuralNDCG(rounds=1000).rounds == 1000
    with pytest.raises(LTRError, match="rounds=1001 must be a whole number of at least 0 and at most 1,000"):
        NeuralNDCG(rounds=1001)


@pytest.mark.parametrize("n", [5, 40, 200])
def test_gradients_at_tied_scores_grow_with_the_length(n, rng):
    labels = rng.permutation(np.arange(n) % 5).astype(float)
    for temperature in (1.0, 10.0):
        grad, _ = NeuralNDCG(temperature=temperature).gradient_hessian(np.zeros(n), labels, [n])
        assert 0.1 < np.abs(grad).sum() * temperature * np.log(n) / n < 1.0

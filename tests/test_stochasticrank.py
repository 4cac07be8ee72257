"""StochasticRank beside quadrature and CatBoost."""

import itertools

import catalog
import numpy as np
import pytest
from catboost_fits import leaf_values
from generated import graded
from oracles.stochasticrank import conditional_estimates, exact_curvature, exact_gradient
from scipy.stats import norm

from ltr_objectives import Metric, Queries, StochasticRank
from ltr_objectives.kernels.stochasticrank import add_conditional, scratch_for
from ltr_objectives.testing import random_labels

SIGMAS = (0.2, 0.5, 1.0, 2.0)
SETTINGS = [(0.2, 0.0), (0.5, 0.5), (1.0, 0.0), (2.0, 0.5)]
# two settings of each metric; lists have two to four documents, in which larger cutoffs hardly differ from none
METRICS = [
    metric
    for name in catalog.LEARNED
    for metric in [m for m in catalog.LEARNED[name] if m.ties == "average" and m.k in (None, 1, 2)][:2]
]


def estimates(metric, z, labels, sigma, noise):
    """Return the kernel's estimates for each row of ``noise``: first and second derivative, and the bounding sum."""
    n = len(z)
    layers = metric.layers(Queries(labels, [n]))
    out = np.zeros((3, len(noise), n))
    for r, eps in enumerate(noise):
        scratch = scratch_for(n, None)._replace(slope=out[0, r], bend=out[1, r], size=out[2, r])
        for terms in layers:
            add_conditional(terms.gain, terms.scale[0], terms, sigma, z, eps, np.zeros(1, np.bool_), scratch)
    return out


def integrated_estimates(metric, z, labels, sigma):
    """Return the kernel's estimates for three documents, averaged over all noise by quadrature.

    Those of document i depend only on the difference of the other two's noise, with a kink where the other two tie.
    """
    x, w = np.polynomial.legendre.leggauss(50)
    slope, bend = np.zeros(3), np.zeros(3)
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        kink = np.clip((z[k] - z[j]) / sigma, -11.9, 11.9)
        for a, b in ((-12.0, kink), (kink, 12.0)):
            difference = (a + b) / 2 + (b - a) / 2 * x
            noise = np.zeros((len(x), 3))
            noise[:, j], noise[:, k] = difference / 2, -difference / 2
            weight = w * (b - a) / 2 * norm.pdf(difference, scale=np.sqrt(2))
            first, second, _ = estimates(metric, z, labels, sigma, noise)
            slope[i] += weight @ first[:, i]
            bend[i] += weight @ second[:, i]
    return slope, bend


def test_estimates_equal_the_definition_slot_by_slot(any_learned_metric, rng):
    for n in (2, 3, 5, 12):
        for sigma in SIGMAS:
            labels = random_labels(any_learned_metric.label_limit, rng, n)
            z, eps = np.round(rng.normal(size=n), 1), rng.normal(size=n)
            ours = estimates(any_learned_metric, z, labels, sigma, eps[None])[:, 0]
            expected = conditional_estimates(any_learned_metric, z, labels, sigma, eps)
            np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10)


def test_two_documents_have_the_exact_gradient_whatever_the_noise(any_learned_metric):
    labels = graded(any_learned_metric, [1, 4])
    some = np.array([0.3, -0.2]), np.array([-0.4, 0.7]), np.zeros(2)
    for (sigma, mu), scores in itertools.product(SETTINGS, some):
        z = scores - mu * sigma * labels
        objective = StochasticRank(any_learned_metric, sigma=sigma, mu=mu, sfa=0.0, hessian="exact", seed=5)
        grad, hess = objective.gradient_hessian(scores, labels, [2])
        np.testing.assert_allclose(grad, -exact_gradient(any_learned_metric, z, labels, sigma), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(hess, -exact_curvature(any_learned_metric, z, labels, sigma), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("metric", METRICS, ids=str)
def test_three_documents_have_the_exact_gradient_and_curvature_in_expectation(metric):
    learnt = 0.0
    some = [0, 4, 2], [3, 1, 0], [4, 4, 1], [0, 3, 0]
    for grades, (sigma, mu) in zip(some, SETTINGS, strict=True):
        labels = graded(metric, grades)
        z = np.array([0.3, -0.2, 0.1]) - mu * sigma * labels
        slope, bend = integrated_estimates(metric, z, labels, sigma)
        size = max(1.0, np.abs(slope).max())
        np.testing.assert_allclose(slope, exact_gradient(metric, z, labels, sigma), rtol=0, atol=1e-10 * size)
        np.testing.assert_allclose(
            bend, exact_curvature(metric, z, labels, sigma), rtol=0, atol=1e-8 * size * max(1, sigma**-2)
        )
        learnt += np.abs(slope).max()
    assert learnt > 0


def test_the_scale_free_step(rng):
    scores, labels = rng.normal(size=40) * 3, rng.integers(0, 5, 40)
    plain, whole, half = (
        StochasticRank("map", sfa=sfa, nu=1e-12).gradient_hessian(scores, labels, [40])[0] for sfa in (0.0, 1.0, 0.5)
    )
    c = scores - scores.mean()
    assert abs(plain @ c) > 1e-3
    assert abs(whole @ c) < 1e-10
    assert abs(whole.sum()) < 1e-12
    np.testing.assert_allclose(half, (plain - plain.mean() + whole) / 2, rtol=1e-9, atol=1e-12)
    # scores near zero do not have a scale yet
    early = StochasticRank("map", sfa=1.0, nu=1e3).gradient_hessian(scores, labels, [40])[0]
    np.testing.assert_allclose(early, plain - plain.mean(), rtol=0.1, atol=1e-4)


def test_more_samples_average_more_noise(rng):
    scores, labels = rng.normal(size=30), rng.integers(0, 5, 30)
    one, many = (
        np.var([
            StochasticRank("ndcg@5", sfa=0.0, samples=samples, seed=seed).gradient_hessian(scores, labels, [30])[0]
            for seed in range(200)
        ], axis=0).sum()
        for samples in (1, 16)
    )  # fmt: skip
    assert 13 < one / many < 19.5


# CatBoost's


NATIVE = [
    ("DCG", Metric.named["dcg"](gain_type="linear")),
    ("NDCG", Metric.named["ndcg"](gain_type="linear")),
    ("NDCG;top=3", Metric.named["ndcg"](k=3, gain_type="linear")),
    ("DCG;type=Exp;top=2", Metric.named["dcg"](k=2)),
    ("MRR", Metric.named["mrr"]()),
    ("PFound", Metric.named["pfound"]()),
    ("ERR", Metric.named["err"](grades="identity")),
]


@pytest.mark.parametrize(("native", "metric"), NATIVE, ids=[n for n, _ in NATIVE])
def test_catboost_has_the_same_gradient_at_sigma_1(native, metric):
    """By leaf values of a tree with a leaf for each row.

    For ERR only with labels 0 and 1: with grades, and with other sigma, CatBoost's expectation differs.
    """
    rng, group = np.random.default_rng(2), np.array([5, 8, 6, 4, 7, 3, 2, 6, 5, 4, 4, 10])
    binary = metric.name in ("mrr", "err")
    labels = rng.integers(0, 2, 64).astype(float) if binary else graded(metric, rng.integers(0, 5, 64))
    scores = np.float32(rng.normal(size=64)).astype(float)
    loss = f"StochasticRank:metric={native};sigma=1;lambda=0;num_estimations=5000"
    params = {"loss_function": loss, "l2_leaf_reg": 0, "leaf_estimation_iterations": 1}
    theirs = leaf_values(params, labels, group, scores)
    objective, queries = StochasticRank(metric, sfa=0.0, samples=500), Queries(labels, group)
    runs = np.array([-objective.compute(queries, scores, iteration=i)[0] for i in range(40)])
    for a, b in zip(queries.ptr[:-1], queries.ptr[1:], strict=True):
        runs[:, a:b] -= runs[:, a:b].mean(axis=1, keepdims=True)  # CatBoost centres
    error = runs.std(axis=0, ddof=1) * np.sqrt(1 / 10 + 1 / 40)
    deviation = (theirs - runs.mean(axis=0)) / (error + 1e-9)
    assert np.abs(deviation).max() < 4.5
    assert np.sqrt(np.mean(deviation**2)) < 1.4
    assert np.abs(runs.mean(axis=0)).max() > 10 * error.max()

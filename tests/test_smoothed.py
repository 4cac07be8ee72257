"""Smoothed and listwise losses: SoftRank, NeuralNDCG, ListMLE, LambdaLoss and XE-NDCG beside their definitions."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from catalog import SOME_LEARNED
from oracles.pairs import DISTRIBUTIONS
from oracles.rankings import exact_rankings
from oracles.references import reference

from ltr_objectives import XENDCG, LambdaLoss, LambdaMART, ListMLE, NeuralNDCG, NeuralSort, SoftRank, YetiLoss
from ltr_objectives.kernels.rng import NOISES, add_noise, stream
from ltr_objectives.objectives.softrank import discount_exponentials
from ltr_objectives.testing import random_labels

# SoftRank


@pytest.mark.parametrize("ranks", [2, 50, 20_000])
def test_the_discount_is_a_sum_of_exponentials(ranks):
    factors, z = discount_exponentials(ranks)
    d = np.arange(1, ranks + 1)
    np.testing.assert_allclose(np.power.outer(z, d - 1).T @ factors, 1 / np.log2(1 + d), rtol=0, atol=1e-12)
    assert np.abs(factors).max() < 1e3  # nothing cancels


def test_softrank_is_the_expected_value_over_all_outcomes():
    scores, labels, sigma = np.array([0.3, -0.2, 1.0, 0.9]), np.array([2.0, 0.0, 1.0, 0.0]), 0.8
    expected = 0.0
    for i, gain in ((0, 3.0), (2, 1.0)):
        others = [j for j in range(4) if j != i]
        beats = [0.5 * (1 + math.erf((scores[j] - scores[i]) / (2 * sigma))) for j in others]
        for outcome in itertools.product((0, 1), repeat=3):
            chance = math.prod(p if x else 1 - p for p, x in zip(beats, outcome, strict=True))
            expected += chance * gain / math.log2(2 + sum(outcome))
    ideal = 3 + 1 / math.log2(3)
    assert SoftRank(sigma).reference_loss(scores, labels) == pytest.approx(-expected / ideal, rel=1e-12)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_softrank_of_long_lists_has_the_slope_of_the_loss(spread, rng):
    n = 250
    labels = np.where(np.arange(n) % 5 == 0, rng.integers(0, 5, n), 0).astype(float)
    objective, scores, way = SoftRank(), spread * rng.normal(size=n), rng.normal(size=n)
    up, down = (objective.reference_loss(scores + step * way, labels) for step in (1e-4, -1e-4))
    grad, _ = objective.gradient_hessian(scores, labels, [n])
    assert grad @ way == pytest.approx((up - down) / 2e-4, rel=1e-6, abs=1e-10)


# NeuralNDCG


def test_the_loss_of_many_large_gains_is_finite_and_silent():
    """A product of their differences from 1 would overflow."""
    labels = np.full(100, 30.0)
    labels[::2] = 0.0
    assert np.isfinite(NeuralNDCG().reference_loss(np.zeros(100), labels))


PRINTED_LABELS = np.array([4.0, 2.0, 1.0, 0.0, 4.0, 3.0])
PRINTED_SCORES = np.array([0.5, 0.2, 0.1, 0.01, 0.65, 0.3])
TABLE_1 = {
    1e-9: [4, 4, 3, 2, 1, 0],
    0.01: [4, 4, 3, 2, 0.99992, 0.00012339],
    0.1: [3.9995, 3.8909, 2.8239, 1.9730, 0.9989, 0.3136],
    1.0: [3.3893, 2.9820, 2.4965, 2.0191, 1.6097, 1.2815],
}


def sorted_labels(**settings):
    """Return the quasi-sorted labels, from differences of the losses with cutoffs k and k - 1."""
    ideal, values, before = np.cumsum(np.sort(PRINTED_LABELS)[::-1] / np.log2(np.arange(2, 8))), [], 0.0
    for k in range(1, 7):
        dcg = -NeuralNDCG(k, gain="linear", **settings).reference_loss(PRINTED_SCORES, PRINTED_LABELS) * ideal[k - 1]
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


def test_both_variants_agree_where_scaling_has_converged(rng):
    scores, labels = 0.1 * rng.normal(size=12), rng.integers(0, 5, 12).astype(float)
    for k in (None, 4):
        rows = NeuralNDCG(k, temperature=1.0, rounds=500, tolerance=1e-12)
        columns = dataclasses.replace(rows, transposed=True)
        a, b = (each.gradient_hessian(scores, labels, [12])[0] for each in (rows, columns))
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


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
def test_noise_gives_the_mean_over_draws_of_noisy_scores(noise, rng):
    n, samples, scale = 9, 4, 0.7
    objective = NeuralNDCG(5, 2.0, max_documents=7, noise=noise, samples=samples, noise_scale=scale, seed=3)
    scores, labels = rng.normal(size=n), rng.integers(0, 5, n).astype(float)
    grad, hess = objective.gradient_hessian(scores, labels, [n], iteration=6)
    key = np.uint64(stream(np.uint64(3), np.uint64(6), np.uint64(0)))
    draws = np.empty((samples, n))
    for k in range(samples):
        add_noise(np.zeros(n), NOISES[noise], scale, key, np.uint64(n * k), draws[k])
    quiet = dataclasses.replace(objective, noise=None)

    def loss(s):
        return np.mean([quiet.reference_loss(s + draw, labels) for draw in draws])

    step = 1e-5 * np.eye(n)
    expected = [(loss(scores + h) - loss(scores - h)) / 2e-5 for h in step]
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(hess, np.abs(grad))
    assert not np.allclose(grad, quiet.gradient_hessian(scores, labels, [n])[0])


@pytest.mark.parametrize("metric", [m for m in SOME_LEARNED if m.name != "gap"], ids=str)
def test_a_scale_of_the_user_multiplies_the_gradient_once(metric, rng):
    of = type(metric)
    tripled = type("Tripled", (of,), {"scale": lambda self, *given: 3.0 * of.scale(self, *given)})(**metric.settings())
    scores, labels = rng.permutation(7) / 4, random_labels(metric.label_limit, rng, 7)
    grad, found = (NeuralSort(m, rounds=3).gradient_hessian(scores, labels, [7])[0] for m in (metric, tripled))
    np.testing.assert_allclose(found, 3.0 * grad, rtol=1e-6, atol=1e-15)


def test_documents_beyond_the_head_get_no_gradient(rng):
    scores, labels = rng.permutation(50) / 50.0, np.zeros(50)
    last = np.argsort(scores)[:2]
    labels[last] = 1.0
    grad, _ = NeuralNDCG(max_documents=8, temperature=10.0).gradient_hessian(scores, labels, [50])
    seen = set(np.flatnonzero(grad))
    assert seen == set(np.argsort(-scores)[:6]) | set(last)  # four by score, two relevant, two more of label 0 by score
    assert (grad[last] < 0).all()


# ListMLE, LambdaLoss, XE-NDCG


def test_without_ties_listmle_is_the_likelihood_of_one_ranking(rng):
    scores, labels = rng.normal(size=5), rng.permutation(5).astype(float)
    rankings, probabilities = exact_rankings(scores, 5)
    [chance] = probabilities[(rankings == np.argsort(-labels)).all(axis=1)]
    assert ListMLE().reference_loss(scores, labels) == pytest.approx(-np.log(chance))


def test_lambdaloss_with_lambdarank_s_weights_alone_is_lambdamart(rng):
    scores, labels = rng.normal(size=30), rng.integers(0, 5, 30).astype(float)
    ours = LambdaLoss(mu=0.0, sigma=1.3).gradient_hessian(scores, labels, [30])
    theirs = LambdaMART("ndcg", sigma=1.3).gradient_hessian(scores, labels, [30])
    np.testing.assert_allclose(np.log(2) * np.array(ours), theirs, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
def test_with_lambdarank_s_weights_alone_and_noise_it_is_yetiloss_with_noise_in_the_difference(noise, rng):
    scores, labels, group = rng.normal(size=30), rng.integers(0, 5, 30).astype(float), [12, 18]
    how = {"noise": noise, "noise_scale": 0.7, "seed": 4}
    ours = LambdaLoss(mu=0.0, samples=6, **how).gradient_hessian(scores, labels, group, iteration=3)
    objective = YetiLoss("ndcg", 6, difference="noisy", lambda_norm=False, **how)
    theirs = objective.gradient_hessian(scores, labels, group, iteration=3)
    np.testing.assert_allclose(np.log(2) * np.array(ours), theirs, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("weights", ["ndcg2", "ndcg2++"])
def test_noise_in_lambdaloss_gives_the_expected_loss(weights, rng):
    scores, labels, rounds = rng.normal(size=6), rng.integers(0, 4, 6).astype(float), 4000
    objective = LambdaLoss(4, weights, noise="gumbel", noise_scale=0.5, samples=100_000)
    found = objective.gradient_hessian(scores, labels, [6])
    draws = scores + 0.5 * DISTRIBUTIONS["gumbel"].rvs(size=(rounds, 6), random_state=7)
    quiet = objective.without_noise()
    expected = np.array([reference(quiet, draw, labels) for draw in draws])
    # one of 36 bounds of 5 standard errors fails by chance once in 50,000 seeds
    bound = 5 * expected.std(axis=0) / np.sqrt(rounds) * np.sqrt(1 + rounds / 100_000)
    assert (np.abs(found - expected.mean(axis=0)) < bound).all()


def lightgbm_uniform(seed, count):
    """Return LightGBM's random numbers: a linear congruential generator of 15 bits."""
    x, out = seed, []
    for _ in range(count):
        x = (214013 * x + 2531011) % 2**32
        out.append(((x >> 16) & 0x7FFF) / 32768.0)
    return out


def test_xendcg_is_lightgbm_s_with_its_random_numbers(rng):
    lgb = pytest.importorskip("lightgbm")
    group = np.array([4, 7, 2, 12, 5])
    n = int(group.sum())
    labels = rng.integers(0, 5, n).astype(float)
    ends = np.cumsum(group)
    labels[ends - 1], labels[ends - 2] = 0, 3  # not all equal: else ours is zero, and LightGBM fits its random numbers
    start = np.float32(3 * rng.normal(size=n)).astype(float)
    w = rng.uniform(0.5, 2, n).astype(np.float32).astype(float)
    X = rng.permutation(n)[:, None].astype(float)
    data = lgb.Dataset(X, labels, group=group, init_score=start, weight=w)
    params = {"objective": "rank_xendcg", "objective_seed": 5, "num_leaves": n, "min_data_in_leaf": 1, "max_bin": 255,
              "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0, "learning_rate": 1.0, "verbose": -1,
              "num_threads": 1}  # fmt: skip
    booster = lgb.train(params, data, 1)
    leaves, native = booster.predict(X, pred_leaf=True).ravel(), booster.predict(X)
    given = np.concatenate([lightgbm_uniform(5 + q, k) for q, k in enumerate(group)])

    class WithNumbers(XENDCG):
        def _power(self, queries):  # so that the mean of the noise, 1/2, is replaced by these numbers
            power, largest = super()._power(queries)
            return power + (0.5 - given) / np.repeat(largest, group), largest

    grad, hess = WithNumbers(hessian="exact", noise=None).gradient_hessian(start, labels, group)
    assert len(np.unique(leaves)) > 10
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        expected = -(grad * w)[rows].sum() / (hess * w)[rows].sum()
        np.testing.assert_allclose(native[rows], expected, rtol=1e-4)

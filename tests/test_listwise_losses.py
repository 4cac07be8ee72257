"""ListMLE against enumerated rankings, XE-NDCG against LightGBM, LambdaLoss against LambdaMART."""

import numpy as np
import pytest
from oracles.pairs import DISTRIBUTIONS
from oracles.rankings import exact_rankings
from oracles.references import reference

from ltr_objectives import XENDCG, LambdaLoss, LambdaMART, ListMLE, YetiLoss


def test_without_ties_listmle_is_the_likelihood_of_one_ranking(rng):
    scores, labels = rng.normal(size=5), rng.permutation(5).astype(float)
    rankings, probabilities = exact_rankings(scores, 5)
    [chance] = probabilities[(rankings == np.argsort(-labels)).all(axis=1)]
    assert ListMLE().reference_loss(scores, labels) == pytest.approx(-np.log(chance))


def test_lambdaloss_with_lambdarank_s_weights_alone_is_lambdamart(rng):
    scores, labels = rng.normal(size=30), rng.integers(0, 5, 30).astype(float)
    ours = LambdaLoss(mu=0.0, sigma=1.3).gradient_hessian(scores, labels, [30])
    theirs = LambdaMART("ndcg", sigma=1.3).gradient_hessian(scores, labels, [30])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a * np.log(2), b, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
def test_with_lambdarank_s_weights_alone_and_noise_it_is_yetiloss_with_noise_in_the_difference(noise, rng):
    scores, labels, group = rng.normal(size=30), rng.integers(0, 5, 30).astype(float), [12, 18]
    how = {"noise": noise, "noise_scale": 0.7, "seed": 4}
    ours = LambdaLoss(mu=0.0, samples=6, **how).gradient_hessian(scores, labels, group, iteration=3)
    theirs = YetiLoss("ndcg", 6, difference="noisy", **how).gradient_hessian(scores, labels, group, iteration=3)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a * np.log(2), b, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("weights", ["ndcg2", "ndcg2++"])
def test_noise_in_lambdaloss_gives_the_expected_loss(weights, rng):
    scores, labels, rounds = rng.normal(size=6), rng.integers(0, 4, 6).astype(float), 4000
    objective = LambdaLoss(4, weights, noise="gumbel", noise_scale=0.5, samples=100_000)
    found = objective.gradient_hessian(scores, labels, [6])
    draws = scores + 0.5 * DISTRIBUTIONS["gumbel"].rvs(size=(rounds, 6), random_state=7)
    expected = np.array([reference(objective, draw, labels) for draw in draws])
    # one of 36 bounds of 5 standard errors fails by chance once in 50,000 seeds
    bound = 5 * expected.std(axis=0) / np.sqrt(rounds) * np.sqrt(1 + rounds / 100_000)
    assert (np.abs(found - expected.mean(axis=0)) < bound).all()


def lightgbm_uniform(seed, count):
    """LightGBM's random numbers: a linear congruential generator of 15 bits."""
    x, out = seed, []
    for _ in range(count):
        x = (214013 * x + 2531011) % 2**32
        out.append(((x >> 16) & 0x7FFF) / 32768.0)
    return out


@pytest.mark.parametrize("weighted", [False, True])
def test_xendcg_is_lightgbm_s_with_its_random_numbers(weighted, rng):
    lgb = pytest.importorskip("lightgbm")
    group = np.array([4, 7, 2, 12, 5])
    n = int(group.sum())
    labels = rng.integers(0, 5, n).astype(float)
    ends = np.cumsum(group)
    labels[ends - 1], labels[ends - 2] = 0, 3  # not all equal: else ours is zero, and LightGBM fits its random numbers
    start = np.float32(3 * rng.normal(size=n)).astype(float)
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else None
    X = rng.permutation(n)[:, None].astype(float)
    data = lgb.Dataset(X, labels, group=group, init_score=start, weight=weight)
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
    w = np.ones(n) if weight is None else weight.astype(float)
    assert len(np.unique(leaves)) > 10
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        expected = -(grad * w)[rows].sum() / (hess * w)[rows].sum()
        np.testing.assert_allclose(native[rows], expected, rtol=1e-4)


@pytest.mark.parametrize("weights", ["ndcg2", "ndcg2++"])
def test_steps_of_lambdaloss_at_tied_scores(weights, rng):
    for sigma in (0.5, 3.0):
        objective = LambdaLoss(weights=weights, sigma=sigma)
        grad, hess = objective.gradient_hessian(np.zeros(40), rng.integers(0, 4, 40), [20, 20])
        assert (np.abs(grad) <= 2.0 / sigma * hess * (1 + 1e-12)).all()
        assert np.abs(grad / hess).max() > 1.0 / sigma

"""Plackett-Luce rankings have their probabilities; PL-Rank beside enumeration, quadrature and differences."""

import itertools
import math

import numpy as np
import pytest
from oracles.rankings import enumerated, exact_rankings, shares_of
from oracles.references import reference
from scipy import stats

from ltr_objectives import FairExposure, PLRank, Queries
from ltr_objectives.kernels.plackett_luce import (
    Strata,
    find,
    lattice,
    place_narrow,
    place_wide,
    placed_space,
    table_of,
    uniforms_by_rank,
)
from ltr_objectives.kernels.rng import stream
from ltr_objectives.objectives.call import Call


def placed_by(sampler, scores, ranks, count, given=None, seed=5):
    """Yield rankings of documents, numbered by descending score, as ``Placed`` records; ``given`` or drawn."""
    s = -np.sort(-np.array(scores))
    table, placed = table_of(s), placed_space(ranks, len(s))
    key = np.uint64(stream(np.uint64(seed), np.uint64(0), np.uint64(0)))
    rng, wide = np.random.default_rng(seed), sampler == "wide"
    placed.shrink[:] = 1.0
    for j in range(count):
        placed.u[:] = rng.uniform(size=ranks) if given is None else shares_of(given[j], s, wide)
        if wide:
            place_wide(s, placed)
        else:
            place_narrow(table, key, j, placed)
        assert placed.open_.all()
        yield placed


@pytest.mark.parametrize("sampler", ["narrow", "wide"])
@pytest.mark.parametrize(
    "scores",
    [[0.0, 0.0, 0.0, 0.0], [1.0, 0.5, -0.5, 0.0, 0.3], [30.0, 0.0, 0.5, -0.5, 1.0], [50.0, 0.0, 0.4, -50.0, -50.3]],
    ids=["ties", "close", "one dominates", "gaps of 50"],
)
def test_rankings_have_their_probabilities(scores, sampler):
    scores = -np.sort(-np.array(scores))
    count = 20_000
    for ranks in (2, 4):
        rankings, probability = exact_rankings(scores, ranks)
        seen = {tuple(y): 0 for y in rankings}
        for placed in placed_by(sampler, scores, ranks, count):
            seen[tuple(placed.y.tolist())] += 1
        expected, observed = probability * count, np.array(list(seen.values()))
        common = expected >= 5
        rare = expected[~common].sum()
        assert observed[~common].sum() <= stats.poisson.ppf(1 - 1e-6, rare)
        expected, observed = np.append(expected[common], rare), np.append(observed[common], observed[~common].sum())
        cells = expected > 0
        statistic = np.sum((observed - expected)[cells] ** 2 / np.maximum(expected[cells], 1.0))
        # a fixed seed; a true sampler fails with probability 1e-4
        assert stats.chi2.sf(statistic, max(1, common.sum() - 1)) > 1e-4


@pytest.mark.parametrize("spread", [0.0, 1.0, 20.0, 290.0])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 200])
def test_the_open_mass_keeps_its_digits_in_every_order(n, spread, rng):
    s = -np.sort(-np.append(rng.uniform(-spread, 0.0, n - 1), 0.0))
    mass = table_of(s).mass
    rising = np.arange(n)[::-1]
    orders = np.array([rising, rising[::-1], np.roll(rising, 1), *(rng.permutation(n) for _ in range(20))])
    for order, placed in zip(orders, placed_by("narrow", s, n, len(orders), orders), strict=True):
        assert np.array_equal(placed.y, order)
        assert np.array_equal(placed.e, mass[order])
        exact = [math.fsum(mass[order[k:]]) for k in range(n)]
        np.testing.assert_allclose(placed.m, exact, rtol=1e-12 * n, atol=0)
        assert all(placed.m[k] >= mass[order[k:]].max() for k in range(n))
    for placed in placed_by("narrow", s, n, 50):
        assert len(set(placed.y.tolist())) == n
        exact = [math.fsum(mass[placed.y[k:]]) for k in range(n)]
        np.testing.assert_allclose(placed.m, exact, rtol=1e-12 * n, atol=0)


@pytest.mark.parametrize("spread", [0.0, 1.0, 20.0, 290.0])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 200])
def test_the_guide_finds_what_a_search_finds(n, spread, rng):
    table = table_of(-np.sort(-rng.uniform(-spread, 0.0, n)))
    for top in sorted({0, n // 2, n - 1}):
        for u in (1e-300, 1e-12, *rng.uniform(size=100), 1 - 2.0**-53):
            x = u * table.tail[top]
            found = int(find(x, np.uint64(top), table))
            after = np.append(table.tail[1:], 0.0)
            close = 1e-15 * table.tail[0]  # the guide rounds where a bucket begins
            assert found >= top
            assert after[found] <= x + close
            assert table.tail[found] > x - close


@pytest.mark.parametrize("rankings", [1, 2, 7, 200])
def test_a_lattice_meets_each_stratum_once_and_stays_inside_0_and_1(rankings):
    strata = Strata(np.zeros(5, np.int64), np.zeros(5, np.int64))
    for query in range(30):
        key = np.uint64(stream(np.uint64(1), np.uint64(2), np.uint64(query)))
        lattice(key, rankings, 5, strata)
        u = np.empty((rankings, 5))
        for j in range(rankings):
            uniforms_by_rank(key, j, rankings, strata, u[j])
        assert ((u > 0) & (u < 1)).all()
        assert (np.sort((u * rankings).astype(int), axis=0) == np.arange(rankings)[:, None]).all()


# PL-Rank


@pytest.mark.parametrize("hessian", ["gradient", "absolute", "exact", "clipped", "ones"])
@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"gain": "linear", "discount": (1.0, 0.0, 3.0, 2.0)}])
def test_with_all_rankings_it_equals_enumeration(hessian, options, rng):
    spreads = (0.0, 0.0), (1.0, 0.0), (50.0, 0.0), (290.0, 0.0), (15.0, 400.0), (1e4, 0.0), (1e30, 0.0)
    for n, (spread, far) in itertools.product((2, 3, 5), spreads):
        for k in range(1, n + 1):
            objective = PLRank(k, hessian=hessian, **options)
            scores, labels = np.round(rng.uniform(-1, 1, n), 1) * spread, rng.integers(0, 5, n).astype(float)
            scores[0] += far
            found = enumerated(objective).gradient_hessian(scores, labels, [n])
            np.testing.assert_allclose(found, reference(objective, scores, labels), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("samples", [1, 2])
def test_the_gradient_of_a_reward_linear_in_the_exposure_is_unbiased(samples):
    # 13 numbers in each case: one of all is beyond 5 standard errors once in 30,000 runs
    count = 20_000
    for k, scores in ((1, [0.5, 0.0]), (2, [0.5, 0.0]), (2, [1.0, 0.0, 0.3]), (3, [1.0, 0.0, 0.3]), (None, [1, 0, 2])):
        objective = FairExposure(k, samples=samples)
        s, y, n = np.array(scores, float), np.arange(len(scores))[::-1].astype(float), len(scores)
        grad, _ = objective.compute(Queries(np.tile(y, count), np.full(count, n)), np.tile(s, count))
        grad = grad.reshape(count, n)
        error = grad.std(axis=0) / np.sqrt(count)
        assert (np.abs(grad.mean(axis=0) - reference(objective, s, y)[0]) < 5 * error + 1e-12).all(), k


@pytest.mark.parametrize("objective", [PLRank(3, hessian="exact"), PLRank(2, hessian="exact", normalize=False)])
def test_the_reference_is_the_derivative_of_the_expected_reward(objective):
    labels, theta = np.array([0.0, 3.0, 1.0, 2.0, 0.0]), objective.theta(5)
    gain = 2.0**labels - 1
    scale = np.sort(gain)[::-1][: len(theta)] @ theta if objective.normalize else 1.0

    def loss(s):
        return -sum(p * (theta @ gain[list(y)]) for y, p in zip(*exact_rankings(s, len(theta)), strict=True)) / scale

    scores = np.array([0.5, -0.3, 1.2, 0.0, 2.0])
    steps = 1e-3 * np.eye(5)
    up, down = (np.array([loss(scores + sign * step) for step in steps]) for sign in (1, -1))
    grad, hess = reference(objective, scores, labels)
    np.testing.assert_allclose(grad, (up - down) / 2e-3, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(hess, (up - 2 * loss(scores) + down) / 1e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("span", [0.0, 400.0])
def test_long_lists_converge_to_the_reference(rng, span):
    n, count = 14, 300
    scores, labels = rng.normal(size=n), rng.choice(4, n, p=[0.5, 0.3, 0.1, 0.1]).astype(float)
    scores[0] += span
    objective = PLRank(3, samples=200, hessian="exact")
    ours = objective.compute(Queries(np.tile(labels, count), np.full(count, n)), np.tile(scores, count))
    for x, exact in zip(ours, reference(objective, scores, labels), strict=True):
        x = x.reshape(count, n)
        error = x.std(axis=0) / np.sqrt(count)
        assert (np.abs(x.mean(axis=0) - exact) < 4 * error + 1e-6).all()
        assert np.abs(exact).max() > 20 * error.max()


def test_fair_exposure_is_a_reward():
    scores, labels = np.array([0.5, -0.3, 1.2, 0.0]), np.array([0.0, 3.0, 1.0, 2.0])
    objective = FairExposure(2)

    def exposure(s):
        out = np.zeros(4)
        for y, p in zip(*exact_rankings(s, 2), strict=True):
            out[y] += p * objective.theta(4)
        return out

    def loss(s):
        merit = labels + 0.5
        return 0.5 * np.sum((exposure(s) - merit / merit.sum() * exposure(s).sum()) ** 2)

    exact, queries = enumerated(objective), Queries(labels, [4])
    np.testing.assert_allclose(exact.exposure(Call.at(queries, scores)), exposure(scores), rtol=1e-12)
    grad, hess = exact.compute(queries, scores)
    np.testing.assert_allclose([grad, hess], reference(objective, scores, labels), rtol=1e-9, atol=1e-12)
    for d, step in enumerate(np.eye(4) * 1e-5):
        assert grad[d] == pytest.approx((loss(scores + step) - loss(scores - step)) / 2e-5, rel=1e-6)
    assert objective.exposure(Call.at(Queries([1.0], [1]), np.zeros(1))) == [1.0]


def test_no_rank_weight_in_reach_gives_a_zero_gradient():
    objective = PLRank(3, discount=(0.0, 0.0, 0.0, 1.0))
    assert not np.any(objective.gradient_hessian([0.0, 1.0, 2.0, 3.0], [0, 1, 2, 3], [4]))

"""The samplers of Plackett-Luce rankings against exact probabilities."""

import math

import numpy as np
import pytest
from oracles.rankings import exact_rankings
from scipy import stats

from ltr_objectives.kernels.plackett_luce import (
    Strata,
    find,
    lattice,
    place_narrow,
    place_wide,
    placed_space,
    shares,
    table_of,
)
from ltr_objectives.kernels.rng import stream


def placed_by(sampler, scores, ranks, count, given=None, seed=5):
    """Yield rankings of documents, numbered by descending score, as ``Placed`` records; ``given`` or drawn."""
    s = -np.sort(-np.array(scores))
    table, placed = table_of(s), placed_space(ranks, len(s))
    key = np.uint64(stream(np.uint64(seed), np.uint64(0), np.uint64(0)))
    nothing, rng = np.full(ranks, -1), np.random.default_rng(seed)
    placed.shrink[:] = 1.0
    for j in range(count):
        placed.u[:] = rng.uniform(size=ranks)
        if sampler == "wide":
            place_wide(s, nothing if given is None else given[j], placed)
        else:
            place_narrow(table, key, j, nothing if given is None else given[j], placed)
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
            shares(key, j, rankings, strata, u[j])
        assert ((u > 0) & (u < 1)).all()
        assert (np.sort((u * rankings).astype(int), axis=0) == np.arange(rankings)[:, None]).all()

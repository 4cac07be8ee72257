"""The samplers of Plackett-Luce rankings against exact probabilities."""

import numpy as np
import pytest
from generated import exact_rankings
from scipy import stats

from ltr_objectives.kernels.plackett_luce import (
    INDEPENDENT,
    VARIATES,
    Strata,
    build,
    change,
    find,
    guide_sums,
    lattice,
    leaves,
    place_guided,
    place_narrow,
    place_wide,
    placed_space,
    shares,
)
from ltr_objectives.kernels.rng import stream


def drawn(scores, ranks, count, sampler, seed=5):
    """Sampled rankings of documents, numbered by descending score, and how many of them the guided sampler drew."""
    n = len(scores)
    s = -np.sort(-scores)
    mass, size = np.exp(s - s[0]), leaves(n)
    tree, sums, guide = np.empty(2 * size), np.empty(n + 1), np.empty(size, np.int64)
    build(tree, size, mass, n)
    guide_sums(mass, n, size, sums, guide)
    key = np.uint64(stream(np.uint64(seed), np.uint64(0), np.uint64(0)))
    unused, nothing = Strata(np.zeros(ranks, np.int64), np.zeros(ranks, np.int64)), np.full(ranks, -1)
    placed = placed_space(ranks)
    y, e, m = placed.y, placed.e, placed.m
    out, own = np.empty((count, ranks), np.int64), 0
    for j in range(count):
        shares(key, j, count, INDEPENDENT, unused, placed.u)
        if sampler == "wide":
            place_wide(s, np.ones(n, bool), nothing, placed)
        elif sampler == "narrow" or not place_guided(sums, guide, mass, placed):
            place_narrow(tree, mass, nothing, placed)
        else:
            own += 1
            assert np.array_equal(e, mass[y])
            np.testing.assert_allclose(m, [mass[[d for d in range(n) if d not in y[:k]]].sum() for k in range(ranks)])
        out[j] = y
    return out, own


@pytest.mark.parametrize("sampler", ["narrow", "wide", "guided"])
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
        for y in drawn(scores, ranks, count, sampler)[0]:
            seen[tuple(y)] += 1
        expected, observed = probability * count, np.array(list(seen.values()))
        common = expected >= 5
        rare = expected[~common].sum()
        assert observed[~common].sum() <= stats.poisson.ppf(1 - 1e-6, rare)
        expected, observed = np.append(expected[common], rare), np.append(observed[common], observed[~common].sum())
        cells = expected > 0
        statistic = np.sum((observed - expected)[cells] ** 2 / np.maximum(expected[cells], 1.0))
        # a fixed seed; a true sampler fails with probability 1e-4
        assert stats.chi2.sf(statistic, max(1, common.sum() - 1)) > 1e-4


@pytest.mark.parametrize("n", [1, 2, 3, 8, 100])
def test_the_tree_finds_every_document_and_only_open_ones(n, rng):
    mass, size = rng.uniform(1e-280, 1, n) * 10.0 ** -rng.integers(0, 130, n), leaves(n)
    tree = np.empty(2 * size)
    build(tree, size, mass, n)
    before = tree.copy()
    ends = np.cumsum(mass) / mass.sum()
    for u in (1e-300, *rng.uniform(size=50), 1 - 1e-16):
        i = find(tree, size, u)
        assert (0 if i == 0 else ends[i - 1]) - 1e-12 <= u <= ends[i] + 1e-12
    order = rng.permutation(n)
    for t, i in enumerate(order):
        assert tree[1] == pytest.approx(mass[order[t:]].sum(), rel=1e-13, abs=0)
        for u in (1e-300, 0.5, 1 - 1e-16):
            assert find(tree, size, u) in order[t:]
        change(tree, size, i, 0.0)
    assert tree[1] == 0.0
    for i in order:
        change(tree, size, i, mass[i])
    assert np.array_equal(tree, before)


@pytest.mark.parametrize("rankings", [1, 2, 7, 200])
def test_a_lattice_meets_each_stratum_once_and_stays_inside_0_and_1(rankings):
    strata = Strata(np.zeros(5, np.int64), np.zeros(5, np.int64))
    for query in range(30):
        key = np.uint64(stream(np.uint64(1), np.uint64(2), np.uint64(query)))
        lattice(key, rankings, 5, strata)
        u = np.empty((rankings, 5))
        for j in range(rankings):
            shares(key, j, rankings, VARIATES["lattice"], strata, u[j])
        assert ((u > 0) & (u < 1)).all()
        assert (np.sort((u * rankings).astype(int), axis=0) == np.arange(rankings)[:, None]).all()


@pytest.mark.parametrize("n", [2, 3, 10, 200])
def test_the_guide_finds_what_the_tree_finds(n, rng):
    for spread in (0.0, 1.0, 3.0, 20.0):
        scores, ranks = spread * rng.normal(size=n), min(n, 10)
        guided, own = drawn(scores, ranks, 300, "guided")
        assert np.array_equal(guided, drawn(scores, ranks, 300, "narrow")[0])
        assert own > 250 or spread > 2.0 or n < 10  # elsewhere nearly all mass may be gone before the last rank

"""Pairwise objectives: noise, sums over draws, equalities that the mathematics states, random partners."""

import contextlib
import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from catalog import LEARNED, some_metrics
from generated import graded
from oracles.pairs import DISTRIBUTIONS, by_definition, monte_carlo, over_all_rankings, uniforms
from scipy import stats

from ltr_objectives import (
    NDCG,
    LambdaLoss,
    LambdaMART,
    LTRError,
    Metric,
    Objective,
    Queries,
    RankNet,
    YetiLoss,
    YetiRank,
    registry,
)
from ltr_objectives.kernels.partners import runs
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import NOISES, add_noise, quantile, stream, uniform
from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.kernels.strata import first_strata, next_uniforms, strata_for


def draws(noise: str, n: int, query: int = 0, seed: int = 1) -> np.ndarray:
    out = np.empty(n)
    key = np.uint64(stream(np.uint64(seed), np.uint64(0), np.uint64(query)))  # Python would pass a signed integer
    add_noise(np.zeros(n), NOISES[noise], 1.0, key, np.uint64(0), out)
    return out


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
def test_noise_has_its_distribution(noise):
    # fixed seeds; a true sampler fails each assertion with probability 1e-4
    x = draws(noise, 200_000)
    assert stats.kstest(x, DISTRIBUTIONS[noise].cdf).pvalue > 1e-4
    starts = np.array([draws(noise, 1, query=q)[0] for q in range(20_000)])
    assert stats.kstest(starts, DISTRIBUTIONS[noise].cdf).pvalue > 1e-4
    assert abs(stats.spearmanr(x[1:], x[:-1]).statistic) < 4 / np.sqrt(len(x))
    one, other = (draws(noise, 50_000, query=q) for q in (1, 2))
    assert abs(stats.spearmanr(one, other).statistic) < 4 / np.sqrt(50_000)


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
def test_a_quantile_is_that_of_the_distribution(noise):
    u = np.concatenate([np.geomspace(1e-16, 0.5, 500), 1 - np.geomspace(2e-16, 0.5, 500)])
    found = [quantile(NOISES[noise], x) for x in u]
    np.testing.assert_allclose(found, DISTRIBUTIONS[noise].ppf(u), rtol=1e-6, atol=1e-7)


def stratified(key: int, n: int, draws: int) -> np.ndarray:
    """Return the kernel's uniform numbers, by draw and document."""
    out, scratch = np.empty((draws, n)), strata_for(n, draws)
    first_strata(np.uint64(key), n, draws, scratch)
    for row in out:
        next_uniforms(draws, scratch, row)
    return out / draws


@pytest.mark.parametrize("draws", [1, 2, 3, 4, 5, 6, 10, 17, 1000])
def test_each_document_has_one_number_in_each_stratum(draws):
    found = stratified(7, 12, draws)
    np.testing.assert_array_equal(np.sort((found * draws).astype(int), axis=0).T, [range(draws)] * 12)
    np.testing.assert_allclose(found, uniforms(np.uint64(7), 12, draws), rtol=1e-15)
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.parametrize("draws", [1, 2, 5, 6])
def test_the_numbers_of_a_draw_are_independent_and_uniform(draws):
    # fixed keys; a true sampler fails once in 1,000 times
    found = np.array([stratified(key, 3, draws) for key in range(4000)])
    for draw in np.moveaxis(found, 1, 0):
        assert stats.kstest(draw.ravel(), "uniform").pvalue > 1e-5
        for i, j in itertools.combinations(range(3), 2):
            counts = np.histogram2d(draw[:, i], draw[:, j], bins=6, range=[[0, 1], [0, 1]])[0]
            assert stats.chisquare(counts.ravel()).pvalue > 1e-5


def test_uniform_numbers_stay_inside_0_and_1():
    x = np.array([uniform(np.uint64(key), np.uint64(c)) for key in (0, 2**64 - 1) for c in (0, 1, 2**63, 2**64 - 1)])
    assert ((x > 0) & (x < 1)).all()


def test_scores_select_the_stream_but_for_their_last_digits(rng):
    scores = rng.normal(size=1000)
    changed = scores + 1e-4 * np.abs(scores).max() * np.eye(1000)
    assert len({content_stream(s) for s in (scores, scores.copy(), *changed)}) == 1001
    different = 0
    for _ in range(200):
        scores = rng.normal(size=1000) * 10.0 ** rng.integers(-6, 7)
        different += content_stream(scores) != content_stream(scores * (1 + 1e-15 * rng.normal(size=1000)))
    assert different <= 1  # a score exactly on the edge of a step is expected once in 10,000 times
    for extreme in (0.0, 5e-324, 1.7e308, -1.7e308):
        assert 0 <= content_stream(np.full(3, extreme)) < 2**64
    assert content_stream(np.array([1e300, 2e299])) != content_stream(np.array([2e299, 1e300]))


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
@pytest.mark.parametrize("make", [YetiRank, lambda **o: YetiLoss("map", neighbors=2, lambda_norm=False, **o)])
def test_expected_gradient_equals_monte_carlo(make, noise):
    # 40,000 rounds on either side; with 5 documents and 6 cases the bound of 5 errors fails by chance once in 60,000
    scores, labels = np.array([0.5, 0.0, -0.3, 1.0, 0.9]), np.array([2.0, 0.0, 1.0, 0.0, 3.0])
    objective = make(noise=noise, noise_scale=0.8, permutations=40_000, seed=3)
    ours, _ = objective.gradient_hessian(scores, labels, [5])
    theirs, error = monte_carlo(objective, scores, labels, noise, 40_000)
    assert (np.abs(ours - theirs) < 5 * np.sqrt(2) * error + 1e-12).all()
    assert error.max() < 0.02


COPIES = 2000
SETTINGS = ({}, {"metric": "ndcg@3"}, {"metric": "map"}, {"metric": "err", "neighbors": 2}, {"difference": "noisy"})
PLAIN = {"lambda_norm": False}  # a norm depends on all draws
DRAWN = [YetiRank(), *(YetiLoss(**{"metric": "ndcg", **PLAIN, **settings}) for settings in SETTINGS)]


def of_copies(objective, scores, labels):
    """Return the gradients of many copies of a list, each with random numbers of its own."""
    queries = Queries(np.tile(labels, COPIES), [len(labels)] * COPIES)
    return objective.compute(queries, np.tile(scores, COPIES))[0].reshape(COPIES, -1)


@pytest.mark.parametrize("draws", [1, 2, 5, 6])
@pytest.mark.parametrize("objective", [each for each in DRAWN if each.pair_settings().difference == "exact"], ids=str)
def test_the_expected_gradient_is_that_over_all_rankings(objective, draws):
    scores, labels = np.array([0.5, 0.0, -0.3, 1.0, 0.9]), np.array([2.0, 0.0, 1.0, 0.0, 3.0])
    gumbel = dataclasses.replace(objective, noise="gumbel", noise_scale=0.8, permutations=draws)
    found = of_copies(gumbel, scores, labels)
    error = found.std(axis=0) / np.sqrt(COPIES)
    # with 5 documents and 24 cases the bound of 5 errors fails by chance once in 10,000 times
    assert (np.abs(found.mean(axis=0) - over_all_rankings(gumbel, scores, labels)) < 5 * error + 1e-12).all()


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
@pytest.mark.parametrize("objective", DRAWN, ids=str)
def test_five_draws_have_less_variance_than_six_independent_ones(objective, noise, rng):
    """Of which the variance is that of one draw over their number."""
    for n in (4, 10, 30):
        scores, labels = 1.5 * rng.normal(size=n), rng.permutation(np.resize([0.0, 3.0, 0.0, 1.0, 2.0], n))
        drawn = [dataclasses.replace(objective, noise=noise, permutations=draws) for draws in (1, 5)]
        one, five = (of_copies(each, scores, labels).var(axis=0).sum() for each in drawn)
        assert five < one / 6


def assert_by_definition(objective, scores, labels):
    found = objective.gradient_hessian(scores, labels, [len(labels)])
    np.testing.assert_allclose(found, by_definition(objective, scores, labels), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric_name", LEARNED)
def test_sums_over_draws_equal_the_definition(rng, metric_name):
    class Truncated(YetiLoss):
        truncation = 3

    def paper(*settings, **options):
        return YetiLoss(*settings, lambda_norm=False, **options)

    for metric, (cls, most) in itertools.product(
        some_metrics(metric_name), ((YetiLoss, 17), (Truncated, 16), (paper, 5))
    ):
        for permutations, scale in ((1, 1.0), (2, 1.0), (most, 1.0), (7, 2e3)):
            labels, scores = graded(metric, rng.permutation(12) % 5), rng.normal(size=12) * scale
            assert_by_definition(cls(metric, permutations, "gaussian", scale, seed=5), scores, labels)


@pytest.mark.parametrize("metric_name", [m for m in LEARNED if Metric.named[m].cutoff != "none"])
def test_sums_over_the_first_ranks_of_draws_equal_the_definition(rng, metric_name):
    """For lists of at least four times as many documents; 256 draws are added up at a time."""
    for k, permutations, scale in ((1, 2, 1.0), (1, 7, 2e3), (3, 258, 1.0)):
        metric = dataclasses.replace(LEARNED[metric_name][0], k=k)
        labels, scores = graded(metric, rng.choice(4, 13)), rng.normal(size=13) * scale
        assert_by_definition(YetiLoss(metric, permutations, "gaussian", scale, seed=5), scores, labels)


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
@pytest.mark.parametrize("metric_name", LEARNED)
def test_noise_in_the_difference_of_scores_equals_the_definition(rng, metric_name, noise):
    metric = LEARNED[metric_name][-1]
    for neighbors, permutations, scale in (("all", 1, 1.0), ("all", 7, 0.5), (2, 5, 2.0), (1, 3, 2e3)):
        labels, scores = graded(metric, rng.choice(4, 13)), rng.normal(size=13) * scale
        objective = YetiLoss(metric, permutations, noise, scale, neighbors, difference="noisy", seed=5)
        assert_by_definition(objective, scores, labels)


@pytest.mark.parametrize("metric", ["precision@3", "recall@4"])
def test_a_document_whose_swaps_change_nothing_in_any_draw_has_zeros(metric):
    """Discounts are flat, and no noise bridges the gaps between scores. Rounded sums would be leaf values."""
    objective = YetiLoss(metric, noise="gaussian", noise_scale=1e-3, permutations=7, seed=5)
    found = np.array(objective.gradient_hessian(np.linspace(6.0, 0.0, 13), [1] + 12 * [0], [13]))
    assert found[0, 0] < 0 < found[1, 0]
    assert not found[:, 1 : objective.metric.k].any()


def test_yetiloss_without_noise_over_all_neighbors_is_lambdamart(rng):
    scores, choice, group = rng.normal(size=60), rng.choice(5, 60), [1, 2, 7, 11, 39]
    for metric in itertools.chain(*LEARNED.values()):
        yetiloss = YetiLoss(metric, noise=None, neighbors="all")
        lambdamart = LambdaMART(metric, lambda_norm=metric.maximum is not None)
        found, expected = (o.gradient_hessian(scores, graded(metric, choice), group) for o in (yetiloss, lambdamart))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sigma", [1.0, 2.5])
def test_pairs_of_equal_labels_have_the_target_probability_one_half(sigma, rng):
    """The cross-entropy of all pairs; the target is that of the sign of the difference of two labels."""
    scores, labels = rng.normal(size=9), rng.integers(0, 3, 9).astype(float)
    i, j = np.triu_indices(9, 1)
    target = (1 - np.sign(labels[i] - labels[j])) / 2
    gap = sigma * (scores[i] - scores[j])
    expected = np.sum(target * gap + np.log1p(np.exp(-gap)))
    assert RankNet("all", sigma=sigma).reference_loss(scores, labels) == pytest.approx(expected)
    assert not np.any(RankNet("all").gradient_hessian(scores, np.ones(9), [9]))


def test_presets_follow_their_other_parameters():
    lightgbm = LambdaMART(preset="lightgbm")
    assert dataclasses.replace(lightgbm, truncation=5) == LambdaMART(preset="lightgbm", truncation=5)
    assert YetiLoss("ndcg", preset="catboost").metric == NDCG(gain_type="linear")
    for written in (NDCG(), "ndcg(gain_type=exp)"):
        assert YetiLoss(written, preset="catboost").metric.gain_type == "exp"


def test_yetirank_has_the_direction_of_the_change_of_expdcg(rng):
    scores, labels = rng.normal(size=20), rng.integers(0, 5, 20).astype(float)
    a = YetiRank(decay=0.7, noise=None).gradient_hessian(scores, labels, [20])
    expdcg = Metric.named["expdcg"](decay=0.7)
    b = YetiLoss(expdcg, neighbors=1, noise=None, lambda_norm=False).gradient_hessian(scores, labels, [20])
    np.testing.assert_allclose((1 - 0.7) * np.array(a), b, rtol=1e-12, atol=1e-15)


def test_an_objective_that_fails_half_way_leaves_nothing_behind(rng):
    @dataclasses.dataclass(frozen=True)
    class Fails(LambdaMART):
        def fill(self, call):
            super().fill(call)
            raise RuntimeError

    queries, scores = Queries(rng.integers(0, 4, 30), [10, 20]), rng.normal(size=30)
    first = LambdaMART().compute(queries, scores)
    with pytest.raises(RuntimeError):
        Fails().compute(queries, scores)
    np.testing.assert_array_equal(LambdaMART().compute(queries, scores), first)


def test_weights_are_one_by_row():
    class PerQuery(LambdaMART):
        def row_weight(self, queries):
            return np.ones(len(queries))

    with pytest.raises(LTRError, match="2 weights for 3 rows"):
        PerQuery().gradient_hessian(np.zeros(3), [0, 1, 2], [1, 2])


# random partners instead of all pairs

CLASSES = [cls for name in registry.objective_names() if "partners" in (cls := Objective.named[name]).parameters()]
WHOLE = (
    {}, {"sigma": 300.0}, {"metric": "mrr"}, {"metric": "err"}, {"metric": "map"}, {"score_norm": True},
    {"weights": "ndcg2"}, {"weights": "difference"}, {"difference": "noisy"},
)  # fmt: skip
CUT = {"metric": "ndcg@4"}, {"truncation": 4}, {"k": 4}
QUIET = {"noise": None, "permutations": 1, "lambda_norm": False}


def drawn(n, top, partners, close):
    """Return an iteration for each choice of runs, its probability, and how often each was drawn."""
    found, count = {}, Counter()
    for iteration in range(2000):
        given = runs(n, top, partners, close, Rng(np.uint64(0), np.uint64(iteration)), 0, 0)
        found.setdefault(given[0].tobytes(), (iteration, *given))
        count[given[0].tobytes()] += 1
    iterations, ranks, weights = zip(*found.values(), strict=True)
    # all choices are equally likely, but for a distance k drawn by its logarithm
    chance = np.array([np.log1p(1 / r[1, 1]) if close else 1.0 for r in ranks])
    return iterations, chance / chance.sum(), ranks, weights, np.array([count[key] for key in found])


SHAPES = [(5, 5, 2, False, 4), (5, 5, 2, True, 16), (6, 4, 1, False, 12), (6, 4, 2, True, 36)]


@pytest.mark.parametrize(("n", "top", "partners", "close", "choices"), SHAPES)
def test_each_pair_has_an_expected_weight_of_one(n, top, partners, close, choices):
    _, chance, ranks, weights, count = drawn(n, top, partners, close)
    assert len(chance) == choices
    assert stats.chisquare(count, 2000 * chance).pvalue > 1e-3
    total = np.zeros((n, n))
    for p, of_runs, weight in zip(chance, ranks, weights, strict=True):
        for a, b, length, w in zip(*of_runs, weight, strict=True):
            total[np.arange(a, a + length), np.arange(b, b + length)] += p * w
    d, e = np.indices((n, n))
    np.testing.assert_allclose(total, (d < e) & (d < top), rtol=1e-12)


def sampled():
    """Yield objectives of all pairs, whether only the first 4 ranks count, and without noise."""
    for cls, settings in itertools.product(CLASSES, (*WHOLE, *CUT)):
        quiet = {name: value for name, value in QUIET.items() if name in cls.parameters()}
        if settings.keys() <= set(cls.parameters()):
            with contextlib.suppress(LTRError):  # a choice of another class
                yield cls(**settings, **quiet), settings in CUT


@pytest.mark.parametrize(("full", "cut"), list(sampled()), ids=str)
def test_the_expected_gradient_is_that_of_all_pairs(full, cut, rng):
    close = isinstance(full, LambdaLoss)
    n, top, partners = (6, 4, 2 if close else 1) if cut else (5, 5, 2)
    scores, labels = 2 * rng.normal(size=n), np.array([0.0, 1.0, 0.0, 2.0, 0.0, 1.0])[:n]
    queries, some = Queries(labels, [n]), dataclasses.replace(full, partners=partners)
    iterations, chance, *_ = drawn(n, top, partners, close)
    found = [np.array(some.compute(queries, scores, iteration=i)) for i in iterations]
    assert len({each.tobytes() for each in found}) > 1 or "mrr" in str(full)  # whose pairs all are of one rank
    np.testing.assert_allclose(np.tensordot(chance, found, 1), full.compute(queries, scores), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("full", [YetiLoss("map"), YetiLoss(difference="noisy"), LambdaLoss(noise="gumbel")], ids=str)
def test_with_noise_too(full, rng):
    count, scores, labels = 4000, rng.normal(size=8), rng.choice([0.0, 1.0, 2.0], 8, p=[0.6, 0.3, 0.1])
    queries = Queries(np.tile(labels, count), [8] * count)
    found, whole = (
        np.array(o.compute(queries, np.tile(scores, count))).reshape(2, count, 8)
        for o in (dataclasses.replace(full, partners=3), full)
    )
    error = np.sqrt((found.var(axis=1) + whole.var(axis=1)) / count)
    assert (np.abs(found.mean(axis=1) - whole.mean(axis=1)) < 4 * error + 1e-12).all()


def test_with_lambda_norm_the_expected_gradient_is_smaller(rng):
    scores, labels, group = 2 * rng.normal(size=10_400), rng.choice(3, 10_400, p=[0.6, 0.3, 0.1]), [26] * 400
    full = LambdaMART(lambda_norm=True)
    whole, _ = full.gradient_hessian(scores, labels, group)
    for partners, least in ((1, 0.75), (3, 0.9), (10, 0.98)):
        some = [dataclasses.replace(full, partners=partners, seed=i) for i in range(20)]
        found = np.mean([each.gradient_hessian(scores, labels, group)[0] for each in some], axis=0)
        assert least < found @ whole / (whole @ whole) < 1.002


@pytest.mark.parametrize("cls", CLASSES)
def test_a_list_with_no_more_partners_has_all_pairs(cls, rng):
    scores, labels, group = rng.normal(size=13), rng.integers(0, 4, 13), [1, 2, 5, 5]
    found, expected = (each.gradient_hessian(scores, labels, group) for each in (cls(partners=4), cls()))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

"""Pairwise objectives with noise against Monte Carlo, and against each other where mathematics says they are equal."""

import dataclasses

import numpy as np
import pytest
from catalog import LEARNED, some_metrics
from generated import graded
from oracles.pairs import DISTRIBUTIONS, by_definition, monte_carlo
from scipy import stats

from ltr_objectives import LambdaMART, LTRError, Metric, Queries, RankNet, StochasticRank, YetiLoss, YetiRank
from ltr_objectives.kernels.rng import NOISES, add_noise, stream, uniform
from ltr_objectives.kernels.scores import content_stream


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
    assert abs(stats.spearmanr(draws(noise, 50_000, query=1), draws(noise, 50_000, query=2)).statistic) < 4 / np.sqrt(
        50_000
    )


def test_uniform_numbers_stay_inside_0_and_1():
    bits = np.uint64(2**64 - 1) >> np.uint64(12)
    assert (float(bits) + 0.5) * 2.220446049250313e-16 < 1
    x = np.array([uniform(np.uint64(key), np.uint64(c)) for key in (0, 2**64 - 1) for c in (0, 1, 2**63, 2**64 - 1)])
    assert ((x > 0) & (x < 1)).all()


def test_equal_scores_select_equal_streams_and_others_do_not():
    scores = np.random.default_rng(0).normal(size=1000)
    assert content_stream(scores) == content_stream(scores.copy()[::1])
    seen = {content_stream(scores)}
    for i in range(1000):
        other = scores.copy()
        other[i] += 1e-4 * np.abs(scores).max()
        seen.add(content_stream(other))
    assert len(seen) == 1001


def test_last_digits_do_not_select_another_stream(rng):
    different = 0
    for _ in range(200):
        scores = rng.normal(size=1000) * 10.0 ** rng.integers(-6, 7)
        different += content_stream(scores) != content_stream(scores * (1 + 1e-15 * rng.normal(size=1000)))
    assert different <= 1  # a score exactly on the edge of a step is expected once in 10,000 times
    for extreme in (0.0, 5e-324, 1.7e308, -1.7e308):
        assert 0 <= content_stream(np.full(3, extreme)) < 2**64
    assert content_stream(np.array([1e300, 2e299])) != content_stream(np.array([2e299, 1e300]))


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
@pytest.mark.parametrize(
    "make",
    [
        YetiRank,
        lambda **o: YetiLoss("ndcg@3", **o),
        lambda **o: YetiLoss("map", neighbors=2, **o),
        lambda **o: YetiLoss("err", neighbors="all", **o),
    ],
)
def test_expected_gradient_equals_monte_carlo(make, noise):
    # 40,000 rounds on either side; with 5 documents and 12 cases the bound of 5 errors fails by chance once in 30,000
    scores, labels = np.array([0.5, 0.0, -0.3, 1.0, 0.9]), np.array([2.0, 0.0, 1.0, 0.0, 3.0])
    objective = make(noise=noise, noise_scale=0.8, permutations=40_000, seed=3)
    ours, _ = objective.gradient_hessian(scores, labels, [5])
    theirs, error = monte_carlo(objective, scores, labels, noise, 40_000)
    assert (np.abs(ours - theirs) < 5 * np.sqrt(2) * error + 1e-12).all()
    assert error.max() < 0.02


@pytest.mark.parametrize("truncation", [None, 3])
@pytest.mark.parametrize("metric_name", LEARNED)
def test_sums_over_draws_equal_the_definition(rng, metric_name, truncation):
    class Truncated(YetiLoss):
        pass

    Truncated.truncation = truncation
    for metric in some_metrics(metric_name):
        for permutations, scale in ((1, 1.0), (2, 1.0), (16 if truncation else 17, 1.0), (7, 2e3)):
            limit = metric.label_limit
            labels = rng.permutation(12) % 5 * (limit / 4 if limit is not None and limit < 4 else 1.0)
            scores = rng.normal(size=12) * scale
            objective = Truncated(metric, noise="gaussian", noise_scale=scale, permutations=permutations, seed=5)
            found = objective.gradient_hessian(scores, labels, [12])
            for ours, theirs in zip(found, by_definition(objective, scores, labels), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("metric_name", [m for m in LEARNED if Metric.named[m].cutoff != "none"])
def test_sums_over_the_first_ranks_of_draws_equal_the_definition(rng, metric_name):
    """For lists of at least four times as many documents; 256 draws are added up at a time."""
    for k, permutations, scale in ((1, 2, 1.0), (1, 7, 2e3), (3, 258, 1.0)):
        metric = dataclasses.replace(LEARNED[metric_name][0], k=k)
        labels, scores = graded(metric, rng.choice(4, 13)), rng.normal(size=13) * scale
        objective = YetiLoss(metric, noise="gaussian", noise_scale=scale, permutations=permutations, seed=5)
        found = objective.gradient_hessian(scores, labels, [13])
        for ours, theirs in zip(found, by_definition(objective, scores, labels), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("noise", DISTRIBUTIONS)
@pytest.mark.parametrize("metric_name", LEARNED)
def test_noise_in_the_difference_of_scores_equals_the_definition(rng, metric_name, noise):
    for neighbors, permutations, scale in (("all", 1, 1.0), ("all", 7, 0.5), (2, 5, 2.0), (1, 3, 2e3)):
        metric = LEARNED[metric_name][-1]
        labels, scores = graded(metric, rng.choice(4, 13)), rng.normal(size=13) * scale
        objective = YetiLoss(metric, permutations, noise, scale, neighbors, difference="noisy", seed=5)
        found = objective.gradient_hessian(scores, labels, [13])
        for ours, theirs in zip(found, by_definition(objective, scores, labels), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_yetiloss_without_noise_over_all_neighbors_is_lambdamart(rng):
    for metric_name in LEARNED:
        for metric in LEARNED[metric_name]:
            limit = metric.label_limit
            group = rng.integers(1, 12, 10)
            labels = rng.choice(5, group.sum()) * (limit / 4 if limit is not None and limit < 4 else 1.0)
            scores = rng.normal(size=group.sum())
            a = YetiLoss(metric, noise=None, neighbors="all").gradient_hessian(scores, labels, group)
            b = LambdaMART(metric).gradient_hessian(scores, labels, group)
            ends = np.cumsum(group)
            lists = [
                LambdaMART(metric).reference(scores[e - n : e], labels[e - n : e])
                for e, n in zip(ends, group, strict=True)
            ]
            for x, y, z in zip(a, b, map(np.concatenate, zip(*lists, strict=True)), strict=True):
                np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
                np.testing.assert_allclose(x, z, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sigma", [1.0, 2.5])
def test_pairs_of_equal_labels_have_the_target_probability_one_half(sigma, rng):
    """The cross-entropy of all pairs, as the lecture writes it; S is the sign of the difference of two labels."""
    scores, labels = rng.normal(size=9), rng.integers(0, 3, 9).astype(float)
    i, j = np.triu_indices(9, 1)
    target = (1 - np.sign(labels[i] - labels[j])) / 2

    def loss(s):
        gap = sigma * (s[..., i] - s[..., j])
        return np.sum(target * gap + np.log1p(np.exp(-gap)), axis=-1)

    step = 1e-3 * np.eye(9)
    grad, hess = RankNet("all", sigma=sigma).gradient_hessian(scores, labels, [9])
    np.testing.assert_allclose(grad, (loss(scores + step) - loss(scores - step)) / 2e-3, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(hess, (loss(scores + step) - 2 * loss(scores) + loss(scores - step)) / 1e-6, rtol=1e-4)
    assert RankNet("all", sigma=sigma).reference_loss(scores, labels) == pytest.approx(loss(scores))
    assert not np.any(RankNet("all").gradient_hessian(scores, np.ones(9), [9]))


def test_presets_follow_their_other_parameters():
    assert dataclasses.replace(LambdaMART(preset="lightgbm"), truncation=5) == LambdaMART(
        preset="lightgbm", truncation=5
    )
    native = YetiLoss("ndcg", preset="catboost")
    assert native.metric == Metric.named["ndcg"](gain_type="linear")
    assert YetiLoss(Metric.named["ndcg"](), preset="catboost").metric.gain_type == "exp"
    for make in (lambda: LambdaMART("map", preset="lightgbm"), lambda: YetiLoss("precision@5", preset="catboost")):
        with pytest.raises(LTRError, match="metric \\(with preset"):
            make()


def test_yetirank_has_the_direction_of_the_change_of_expdcg(rng):
    scores, labels = rng.normal(size=20), rng.integers(0, 5, 20).astype(float)
    a = YetiRank(decay=0.7, noise=None).gradient_hessian(scores, labels, [20])
    expdcg = Metric.named["expdcg"](decay=0.7)
    b = YetiLoss(expdcg, neighbors=1, noise=None).gradient_hessian(scores, labels, [20])
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x * (1 - 0.7), y, rtol=1e-12, atol=1e-15)


def test_truncation_by_rank_and_cutoff_by_metric_agree(rng):
    scores, labels = rng.normal(size=50), rng.integers(0, 5, 50)
    a, b = (LambdaMART("ndcg@10", truncation=t).gradient_hessian(scores, labels, [50]) for t in (10, None))
    assert np.array_equal(a, b)


def test_gradient_is_a_derivative_where_the_ranking_stays(rng):
    """With the weights of the current ranking held fixed, grad and hess are derivatives of the logistic loss."""
    labels, scores = np.array([0.0, 3.0, 1.0, 2.0]), np.array([2.0, 1.0, 0.0, -1.0])
    objective = LambdaMART("ndcg", sigma=1.7)
    weights = objective.pair_weights(labels)

    def loss(s):
        pairs = [(i, j) for i in range(4) for j in range(4) if labels[i] > labels[j]]
        return sum(weights[min(i, j), max(i, j)] * np.log1p(np.exp(-1.7 * (s[i] - s[j]))) for i, j in pairs)

    grad, hess = objective.gradient_hessian(scores, labels, [4])
    step = 1e-4
    for i in range(4):
        up, down = scores.copy(), scores.copy()
        up[i] += step
        down[i] -= step
        assert grad[i] == pytest.approx((loss(up) - loss(down)) / (2 * step), rel=1e-6)
        assert hess[i] == pytest.approx((loss(up) - 2 * loss(scores) + loss(down)) / step**2, rel=1e-5)


@pytest.mark.parametrize("truncation", [None, 4])
def test_gains_may_fall_where_labels_rise(rng, truncation):
    class Upside(LambdaMART):
        def layers(self, queries):
            return super().layers(Queries(3 - queries.labels, np.diff(queries.ptr)))

    labels, scores = rng.integers(0, 4, 30), rng.normal(size=30)
    found = Upside("dcg", truncation=truncation).gradient_hessian(scores, labels, [30])
    expected = LambdaMART("dcg", truncation=truncation).reference(scores, 3 - labels)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-14)


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


@pytest.mark.filterwarnings("ignore:with position, labels are clicks")  # labels too large for an estimate are tried
def test_impossible_values_are_refused():
    class PerQuery(LambdaMART):
        def row_weight(self, queries):
            return np.ones(len(queries))

    queries = Queries([0, 1, 2], [1, 2])
    with pytest.raises(LTRError, match="2 weights for 3 rows"):
        PerQuery().compute(queries, np.zeros(3))
    with pytest.raises(LTRError, match="dtype"):
        LambdaMART().compute(queries, np.zeros(3), dtype=np.float16)
    with pytest.raises(LTRError, match="times sigma"):
        StochasticRank(sigma=1e308, mu=10)
    with pytest.raises(LTRError, match="neighbors"):
        YetiLoss(neighbors=np.float64(2.0**63))
    assert np.isfinite(YetiLoss(neighbors=2**63 - 1).compute(queries, np.zeros(3))).all()


def test_a_document_whose_swaps_change_nothing_in_any_draw_has_zeros():
    """Discounts are flat, and no noise bridges the gaps between scores: all swaps of the first ranks change nothing."""
    scores, labels, tried = np.linspace(6.0, 0.0, 13), [1] + 12 * [0], 0
    for metric_name in LEARNED:
        for metric in LEARNED[metric_name]:
            if getattr(metric, "k", None) is None or np.ptp(metric.discount(np.arange(1, metric.k + 1))) > 0:
                continue
            objective = YetiLoss(metric, noise="gaussian", noise_scale=1e-3, permutations=7, seed=5)
            grad, hess = objective.gradient_hessian(scores, labels, [13])
            first = slice(1, metric.k)
            assert not grad[first].any(), metric
            assert not hess[first].any(), metric
            tried += grad[0] < 0 < hess[0]
    assert tried >= 2

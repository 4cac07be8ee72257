"""Mixture, Subsample, Langevin and UnitHessian around other objectives."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from catalog import KINDS, OBJECTIVES
from oracles.references import reference
from rankers import ranker
from scipy import stats
from sklearn.metrics import roc_auc_score
from trainings import release

from ltr_objectives import (
    Langevin,
    Mixture,
    Objective,
    Ordinal,
    Queries,
    QueryRMSE,
    Subsample,
    UnitHessian,
    YetiLoss,
    evaluate,
    get_objective,
)
from ltr_objectives.kernels.rankings import Kept, kept_rankings
from ltr_objectives.objectives import mixture
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.typical import typical_size

everywhere = pytest.mark.parametrize("objective", KINDS.values(), ids=KINDS)


@pytest.fixture
def data(rng):
    """Return queries of 1 to 100 documents with weights, and scores."""
    sizes = [*rng.integers(1, 9, 40), 30, 100]
    labels, weight = rng.integers(0, 4, sum(sizes)).astype(float), rng.uniform(0.5, 2.0, len(sizes))
    return Queries(labels, sizes, weight=weight), rng.normal(size=sum(sizes))


# Mixture


def test_a_weight_means_the_same_whatever_the_size_of_the_gradient(data):
    queries, scores = data
    small = Mixture(["lambdamart:dcg"], [1e-9], normalize=False)
    found, expected = (Mixture(["yetiloss:map", o], [1, 2]).compute(queries, scores) for o in (small, "lambdamart:dcg"))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for part in KINDS.values():
        grad, _ = Mixture([part]).compute(queries, scores)
        assert 0.5 < np.abs(grad).mean() < 2


@dataclass(frozen=True)
class Elsewhere(Objective):
    """YetiLoss at other scores than those of the sum, or for other queries of the same documents."""

    shift: float = 0.0
    cut: bool = False

    name = "elsewhere"

    def fill(self, call):
        if self.shift:
            call = call._replace(scores=call.scores + self.shift * np.arange(call.queries.rows))
        if self.cut:
            queries = Queries(call.queries.labels, [1] * 30 + [call.queries.rows - 30])
            call = call._replace(queries=queries, skip=np.zeros(31, np.bool_))
        YetiLoss("map").fill(call)


@pytest.mark.parametrize(
    ("parts", "rooms"),
    [
        (["yetiloss:ndcg", "yetiloss:map"], 1),
        (["yetiloss:err", "yetiloss:map", "yetirank", "yetirank:seed=1", "yetirank", "rmse"], 2),
        (["yetiloss:ndcg", "yetiloss:map;seed=1", "yetiloss:err;permutations=4", "yetiloss:ndcg@1"], 0),
        (["yetiloss:ndcg;permutations=21", "yetiloss:map;permutations=21"], 0),
    ],
)
def test_equal_rankings_of_parts_are_drawn_once_and_change_nothing(parts, rooms, data, monkeypatch):
    queries, scores = data
    made = []
    monkeypatch.setattr(mixture, "kept_rankings", lambda *sizes: made.append(kept_rankings(*sizes)) or made[-1])
    found = Mixture(parts, normalize=False).compute(queries, scores)
    assert len(made) == rooms
    np.testing.assert_allclose(
        found, sum(np.array(get_objective(o).compute(queries, scores)) for o in parts), rtol=1e-9
    )

    def as_given(draws, count, rows):
        known = Kept(np.empty((draws, rows), np.int32), np.ones(count, np.bool_))
        known.order[:] = np.arange(rows) - np.repeat(queries.ptr[:-1], np.diff(queries.ptr))
        return known

    monkeypatch.setattr(mixture, "kept_rankings", as_given)
    read = Mixture(parts, normalize=False).compute(queries, scores)
    assert np.allclose(read, found, rtol=1e-9) == (rooms == 0)


def test_parts_at_other_scores_or_queries_draw_for_themselves(data):
    queries, scores = data
    for part in (Elsewhere(shift=0.01), Elsewhere(cut=True)):
        parts = ["yetiloss:ndcg", "yetiloss:map", part]
        found = Mixture(parts, normalize=False).compute(queries, scores)
        alone = sum(np.array(get_objective(o).compute(queries, scores)) for o in parts)
        np.testing.assert_allclose(found, alone, rtol=1e-9, atol=1e-12)


def test_large_labels_of_a_part_keep_their_size_under_small_weights():
    labels = np.array([2.0, 0.0, 1.0, 0.0])
    large, usual = (Queries(size * labels, [4], weight=[weight]) for size, weight in ((1e200, 1e-130), (1.0, 1.0)))
    (grad, _), (expected, _) = (Mixture(["yetiloss:dcg(gain_type=linear)", "yetiloss:mrr"]).compute(q, np.zeros(4))
                                for q in (large, usual))  # fmt: skip
    np.testing.assert_allclose(grad * 1e130, expected, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-3, 1e6])
def test_weights_of_rows_multiply_the_mixture(factor, data):
    queries, scores = data
    mixture = Mixture(["yetiloss:map", "listnet"], [1, 2])
    heavy = Queries(queries.labels, np.diff(queries.ptr), weight=factor * queries.weight_by_row)
    found, expected = (np.array(mixture.compute(q, scores)) for q in (heavy, queries))
    assert np.allclose(found, factor * expected, rtol=1e-12)


def test_the_metric_of_a_mixture_is_that_of_its_first_part():
    assert str(Mixture(["yetiloss:map", "listnet"], [1, 2]).metric) == "map"
    assert Mixture(["listnet", "yetiloss:map"]).metric is None


def test_a_pointwise_part_or_shrinkage_fixes_the_constant():
    for name in OBJECTIVES:
        free = get_objective(name).facts.shift_invariant
        assert Mixture([name, "ranknet"]).facts.shift_invariant == free
        assert Mixture([name, "rmse"], [1, 0]).facts.shift_invariant == free
        assert not Mixture([name, "rmse"]).facts.shift_invariant
        assert not Langevin(name, shrink=0.1).facts.shift_invariant


@pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])
def test_a_pointwise_part_separates_queries_and_keeps_the_ranking(library, rng):
    """Documents are relevant by a feature of their own and, more often, by one of their query."""
    X = np.column_stack([rng.normal(size=3600), np.repeat(rng.normal(size=300), 12)])
    y = (rng.random(3600) < 1 / (1 + np.exp(-1.5 * X[:, 0] - 2.5 * X[:, 1]))).astype(float)
    found = []
    for objective in ("yetiloss", Mixture(["yetiloss", Ordinal((0.0,))])):
        model = ranker(library, objective, n_estimators=30).fit(X[:1800], y[:1800], group=[12] * 150)
        scores = model.predict(X[1800:])
        found.append((roc_auc_score(y[1800:], scores), evaluate("auc", scores, y[1800:], [12] * 150)))
    assert found[1][0] > found[0][0] + 0.05
    assert found[1][1] > found[0][1] - 0.02


# Subsample


@everywhere
def test_drawn_queries_have_their_gradient_over_the_share_and_others_none(objective, data):
    queries, scores = data
    around = objective, UnitHessian(objective), Mixture([objective, "ranknet"]), Langevin(objective, 0.0)
    for plain, iteration in itertools.product(around, range(2)):
        half = Subsample(plain, queries=0.5, seed=3)
        chosen = ~half.before(Call.at(queries, scores, iteration)).skip
        rows = np.repeat(chosen, np.diff(queries.ptr))
        whole = np.array(plain.compute(queries, scores, iteration=iteration))
        found = half.compute(queries, scores, iteration=iteration)
        assert np.array_equal(found, np.where(rows, whole / 0.5, 0.0))
        assert 5 < chosen.sum() < 37


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_skipped_queries_are_not_computed(objective, data):
    """Scores of queries that are not drawn may be anything that would change the others if it were read."""
    queries, scores = data
    queries = queries.with_labels(
        np.minimum(queries.labels, 3 if objective.label_limit is None else objective.label_limit)
    )
    skip = np.arange(len(queries)) % 3 == 0
    rows = np.repeat(skip, np.diff(queries.ptr))
    found = np.array(objective.compute(queries, scores, skip=skip))
    assert np.array_equal(objective.compute(queries, np.where(rows, 1e30, scores), skip=skip), found)
    assert not found[:, rows].any()


@pytest.mark.parametrize("around", [lambda o: o, lambda o: Langevin(o, 0.0), lambda o: Mixture([o, "ranknet"])])
def test_sizes_are_those_of_all_queries_whatever_was_drawn(around, data):
    queries, scores = data
    whole = around(get_objective("lambdamart"))
    for seed in range(3):
        few = around(Subsample("lambdamart", queries=0.05, seed=seed))
        assert typical_size(few, queries) == typical_size(whole, queries)
    skip = np.arange(len(queries)) > 0
    drawn, plain = (UnitHessian(o).compute(queries, scores, skip=skip) for o in (Subsample(whole, 1.0), whole))
    assert all(map(np.array_equal, drawn, plain))


def test_each_query_is_drawn_with_the_share_as_probability():
    queries = Queries(np.tile([0.0, 1.0], 50), np.full(50, 2))
    objective = Subsample("ranknet", queries=0.3)
    counts = np.zeros(50)
    for iteration in range(400):
        grad, hess = objective.compute(queries, np.zeros(100), iteration=iteration, n_threads=1 + iteration % 2)
        assert np.array_equal(grad, objective.compute(queries, np.zeros(100), iteration=iteration)[0])
        counts += hess[::2] > 0
    assert np.abs(counts / 400 - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 400)  # of 50 binomial numbers, chance of 1 in 300
    assert objective.facts.random
    assert not Subsample("ranknet", queries=1.0).facts.random


def test_at_least_one_query_is_drawn():
    queries = Queries([0.0, 1.0, 1.0, 0.0], [2, 2])
    for iteration in range(20):
        grad, _ = Subsample("ranknet", queries=0.001).compute(queries, np.zeros(4), iteration=iteration)
        assert np.count_nonzero(grad) == 2


# Langevin


def many(rng, queries=2000):
    group = rng.integers(1, 60, queries)
    n = int(group.sum())
    return rng.normal(size=n), rng.integers(0, 5, n), group


@pytest.mark.parametrize("inner", [QueryRMSE(), YetiLoss("map")])
def test_noise_has_the_stated_deviation_and_touches_nothing_else(inner, rng):
    scores, labels, group = many(rng)
    weight = rng.uniform(0.5, 2, len(group))
    grad, hess = inner.gradient_hessian(scores, labels, group, weight, iteration=3)
    ours, same = Langevin(inner, 0.02, 0.3, shrink=0.1).gradient_hessian(scores, labels, group, weight, iteration=3)
    assert np.array_equal(hess, same)
    noise = (ours - grad - 0.1 * hess * scores) / np.sqrt(2 * 0.02 / 0.3)
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(stats.spearmanr(noise, grad).statistic) < 4 / np.sqrt(len(noise))
    assert abs(stats.spearmanr(noise[1:], noise[:-1]).statistic) < 4 / np.sqrt(len(noise))


def test_seed_and_iteration_select_the_noise_of_langevin(rng):
    data, objective = many(rng, 50), Langevin("yetiloss:map")
    first, *same = (objective.gradient_hessian(*data, n_threads=threads)[0] for threads in (1, 2, 4))
    assert all(np.array_equal(first, other) for other in same)
    assert (objective.gradient_hessian(*data, iteration=1)[0] != first).all()
    assert (Langevin("yetiloss:map", seed=1).gradient_hessian(*data)[0] != first).all()
    assert objective.facts.random


def test_langevin_without_noise_is_the_reference(rng):
    scores, labels = rng.normal(size=20), rng.integers(0, 5, 20).astype(float)
    objective = Langevin(YetiLoss("err"), shrink=0.3).without_noise()
    assert not objective.facts.random
    kinds = [Langevin(QueryRMSE(), shrink=shrink).facts.hessian_kind for shrink in (0.0, 0.3)]
    assert kinds == [QueryRMSE.facts.hessian_kind, "estimate"]
    ours = objective.gradient_hessian(scores, labels, [20])
    np.testing.assert_allclose(ours, reference(objective, scores, labels), rtol=1e-9, atol=1e-12)


# UnitHessian


@pytest.mark.parametrize(
    "objective", [*KINDS.values(), Langevin("yetiloss", 1.0)], ids=lambda objective: objective.name
)
def test_the_mean_hessian_is_the_mean_weight_by_one_constant(objective, data):
    queries, scores = data
    unit = UnitHessian(objective)
    for weighted in (queries, Queries(queries.labels, np.diff(queries.ptr))):
        assert typical_size(unit, weighted).hessian == pytest.approx(1.0, rel=1e-12)
        assert typical_size(QueryRMSE(), weighted).hessian == pytest.approx(1.0, rel=1e-12)
    before, after = (np.array(o.compute(queries, scores, iteration=5)) for o in (objective, unit))
    factor = after[1].sum() / before[1].sum()
    assert factor > 0
    assert np.abs(after - factor * before).max() <= 1e-13 * np.abs(after).max()
    before, after = (np.array(o.compute(queries, np.zeros(queries.rows))) for o in (objective, unit))
    assert np.abs(after - factor * before).max() <= 1e-13 * np.abs(after).max()  # whatever the scores


@pytest.mark.parametrize("objective", [each for each in KINDS.values() if each.facts.label_scale], ids=str)
def test_a_constant_in_the_labels_changes_no_size_of_those_that_start_at_the_mean(objective, data):
    queries = data[0]
    shifted = Queries(queries.labels + 3.0, np.diff(queries.ptr), weight=queries.weight_by_query)
    assert typical_size(objective, shifted) == pytest.approx(typical_size(objective, queries), rel=1e-9)


def test_negative_hessians_count_by_their_size(data):
    negative = Mixture(["plrank:hessian=exact"], normalize=False)
    signed = [typical_size(get_objective(f"plrank:hessian={h}"), data[0]).hessian for h in ("exact", "absolute")]
    assert signed[0] == signed[1] == typical_size(negative, data[0]).hessian

"""Pairs as data: the loss of RankNet and of CatBoost's PairLogit, in the three libraries and the estimators."""

import copy
import pickle

import numpy as np
import pytest
from catboost_fits import leaf_values
from rankers import LIBRARIES, fold, ranker
from trainings import through_the_callable

from ltr_objectives import LTRWarning, Mixture, Preferences, Subsample
from ltr_objectives import report as report_of
from ltr_objectives.adapters import catboost_objective


def pairs_of_labels(y, group):
    """Return every pair of different labels in a query."""
    of = np.repeat(np.arange(len(group)), group)
    return np.argwhere((of[:, None] == of) & (np.asarray(y)[:, None] > y))


def some_pairs(rng, count=30, share=0.5):
    """Draw scores, labels, sizes and a random share of pairs, some twice and some in both directions."""
    group = rng.integers(1, 12, count)
    y = rng.integers(0, 4, group.sum()).astype(float)
    pairs = pairs_of_labels(y, group)
    pairs = pairs[rng.random(len(pairs)) < share]
    pairs = np.concatenate([pairs, pairs[:20], pairs[10:40, ::-1]])
    return rng.normal(size=len(y)), y, group, rng.permutation(pairs)


def by_definition(scores, pairs, weight, sigma):
    """Return loss, gradient and Hessian, one pair after the other."""
    loss, grad, hess = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
    for (hi, lo), w in zip(pairs, weight, strict=True):
        margin = sigma * (scores[hi] - scores[lo])
        loss += w * np.logaddexp(0.0, -margin)
        p = np.exp(-np.logaddexp(0.0, margin))
        grad[[hi, lo]] += sigma * w * p * np.array([-1.0, 1.0])
        hess[[hi, lo]] += sigma**2 * w * p * np.exp(-np.logaddexp(0.0, -margin))
    return loss, grad, hess


def test_gradient_and_hessian_are_those_of_the_definition(rng):
    for scale in (1e-3, 1.0, 50.0, 1e4):
        scores, y, group, pairs = some_pairs(rng)
        weight, sigma, scores = rng.uniform(0.0, 3.0, len(pairs)), 1.7, scale * scores
        objective = Preferences(pairs, len(y), weight, sigma)
        loss, *expected = by_definition(scores, pairs, weight, sigma)
        found = objective.gradient_hessian(scores, y, group)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)
        assert objective.reference_loss(scores, y) == pytest.approx(loss)
        heavy = rng.uniform(0.5, 2.0, len(group))
        found = objective.gradient_hessian(scores, y, group, weight=heavy)
        np.testing.assert_allclose(found, np.repeat(heavy, group) * expected, rtol=1e-9, atol=1e-11)


def test_same_bytes_for_any_threads_and_after_copies(rng):
    scores, y, group, pairs = some_pairs(rng, count=300)
    objective = Preferences(pairs, len(y), rng.uniform(size=len(pairs)))
    for name, value in {"pairs": pairs[:, ::-1], "pairs_weight": None, "sigma": 2.0, "rows": len(y) + 1}.items():
        assert Preferences(**objective.settings() | {name: value}) != objective
    expected = [x.tobytes() for x in objective.gradient_hessian(scores, y, group, n_threads=1)]
    pairs[:] = 0  # the caller's array
    for other in (objective, pickle.loads(pickle.dumps(objective)), copy.deepcopy(objective)):
        assert other == objective
        assert hash(other) == hash(objective)
        for threads in (2, 4):
            found = other.gradient_hessian(scores, y, group, n_threads=threads)
            assert [x.tobytes() for x in found] == expected


def test_scores_at_the_limits_give_finite_gradients():
    objective = Preferences([[0, 1], [1, 0], [1, 2], [3, 2]], 4, [1.0, 1e-300, 1e300, 5.0])
    for scores in ([1.7e308, -1.7e308, 0.0, 1.0], [1e30, -1e30, 1e30, -1e30], [5e-324, -0.0, 0.0, 1e4]):
        grad, hess = objective.gradient_hessian(scores, [0.0] * 4, [4])
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
        assert (hess >= 0).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_equal_those_of_pairlogit(weighted):
    """In a tree in which each document has its own leaf. PairLogit centres the leaves, and reads no query weights."""
    group, compared = np.array([5, 1, 8, 6, 4, 7, 3, 2, 6, 5, 4, 3, 5, 5]), 0
    params = {"loss_function": "PairLogit", "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        start = np.float32(rng.normal(size=64)).astype(float)
        pairs = pairs_of_labels(rng.integers(0, 5, 64), group)
        pairs = pairs[rng.random(len(pairs)) < 0.8]
        weight = np.float32(rng.uniform(0.2, 3.0, len(pairs))).tolist() if weighted else None
        native = leaf_values(params, np.zeros(64), group, start, pairs=pairs, pairs_weight=weight)
        if native is not None:
            compared += 1
            grad, hess = Preferences(pairs, 64, weight).gradient_hessian(start, np.zeros(64), group)
            ours = -grad / (hess + 1.0)
            np.testing.assert_allclose(ours - ours.mean(), native - native.mean(), rtol=0, atol=1e-9)
    assert compared > 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_estimators_train_what_the_callables_train(library):
    pytest.importorskip(library)
    data = fold().train
    pairs = pairs_of_labels(data.y, data.group)[::3]
    objective = Preferences(pairs, len(data.y), np.random.default_rng(1).uniform(0.2, 3.0, len(pairs)))
    wins = np.isin(np.arange(len(data.y)), pairs[:, 0]).astype(float)  # CatBoost refuses labels that are all equal
    scores = through_the_callable(library, objective, data, wins)
    found = ranker(library, objective).fit(data.X, wins, qid=data.qid)
    np.testing.assert_allclose(found.predict(data.X), scores, rtol=1e-5, atol=1e-6)
    assert (scores[pairs[:, 0]] > scores[pairs[:, 1]]).mean() > 0.7


def test_a_subsample_has_the_pairs_of_the_drawn_queries(rng):
    scores, y, group, pairs = some_pairs(rng)
    objective = Preferences(pairs, len(y))
    whole = objective.gradient_hessian(scores, y, group)[0] / 0.3
    for seed in range(5):
        some = Subsample(objective, queries=0.3, seed=seed).gradient_hessian(scores, y, group)[0]
        drawn = some != 0
        assert 0.05 < drawn.sum() / (whole != 0).sum() < 0.7
        np.testing.assert_allclose(some[drawn], whole[drawn])


def test_a_report_counts_queries_without_pairs():
    objective = Preferences([[1, 0], [2, 1], [7, 8]], 9)
    report = report_of(objective, [0.0] * 7 + [50.0, 0.0], [0, 1, 2, 0, 1, 0, 0, 1, 1], [3, 2, 1, 1, 2])
    assert (report.useful, report.useless) == (1, {"one document": 2, "no pairs": 1, "scores settled": 1})


def test_pairs_of_a_pool_that_the_objective_does_not_read_are_warned_of():
    catboost = pytest.importorskip("catboost")
    data = fold().train
    pool = catboost.Pool(data.X, data.y, group_id=data.qid, pairs=[[1, 0]])
    with pytest.warns(LTRWarning, match="the 1 pairs"):
        catboost_objective("lambdamart", pool)
    catboost_objective(Mixture([Preferences([[1, 0]], len(data.y)), "lambdamart"]), pool)

"""Langevin noise and shrinkage around other objectives."""

import itertools
import pickle

import numpy as np
import pytest
from oracles.references import reference
from scipy import stats

from ltr_objectives import LTRError, QueryRMSE, StochasticRank, YetiLoss, evaluate
from ltr_objectives.adapters import catboost_metric, catboost_objective, lightgbm_objective
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.objectives.around import Langevin


def data(rng, queries=2000):
    group = rng.integers(1, 60, queries)
    n = int(group.sum())
    return rng.normal(size=n), rng.integers(0, 5, n), group


@pytest.mark.parametrize("inner", [QueryRMSE(), YetiLoss("map"), StochasticRank("mrr")])
def test_noise_has_the_stated_deviation_and_touches_nothing_else(inner, rng):
    scores, labels, group = data(rng)
    weight = rng.uniform(0.5, 2, len(group))
    grad, hess = inner.gradient_hessian(scores, labels, group, weight, iteration=3)
    ours, same = Langevin(inner, 0.02, 0.3, shrink=0.1).gradient_hessian(scores, labels, group, weight, iteration=3)
    assert np.array_equal(hess, same)
    noise = (ours - grad - 0.1 * hess * scores) / np.sqrt(2 * 0.02 / 0.3)
    assert stats.kstest(noise, "norm").pvalue > 1e-4
    assert abs(stats.spearmanr(noise, grad).statistic) < 4 / np.sqrt(len(noise))
    assert abs(stats.spearmanr(noise[1:], noise[:-1]).statistic) < 4 / np.sqrt(len(noise))


def test_seed_iteration_and_threads(rng):
    scores, labels, group = data(rng, 50)
    objective = Langevin("yetiloss:map")
    first = objective.gradient_hessian(scores, labels, group)[0]
    assert objective.facts.random
    assert pickle.loads(pickle.dumps(objective)) == objective
    for threads in (1, 2, 4):
        assert np.array_equal(objective.gradient_hessian(scores, labels, group, n_threads=threads)[0], first)
    assert (objective.gradient_hessian(scores, labels, group, iteration=1)[0] != first).all()
    assert (Langevin("yetiloss:map", seed=1).gradient_hessian(scores, labels, group)[0] != first).all()


def test_without_noise_it_is_the_reference(rng):
    scores, labels = rng.normal(size=20), rng.integers(0, 5, 20).astype(float)
    objective = Langevin(StochasticRank("err", hessian="absolute"), shrink=0.3).without_noise()
    assert not objective.facts.random
    assert [Langevin(QueryRMSE(), shrink=x).facts.hessian_kind for x in (0.0, 0.3)] == [
        QueryRMSE.facts.hessian_kind,
        "estimate",
    ]
    ours = objective.gradient_hessian(scores, labels, [20])
    for a, b in zip(ours, reference(objective, scores, labels), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_boosting_with_full_trees_is_the_langevin_step(rng):
    lgb = pytest.importorskip("lightgbm")
    n, rate, gamma, temperature = 40, 0.2, 0.5, 0.01
    X, labels = np.arange(n, dtype=float)[:, None], rng.integers(0, 5, n)
    params = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "num_leaves": n, "min_data_in_bin": 1,
              "learning_rate": rate, "verbose": -1, "objective": lightgbm_objective(
                  Langevin(QueryRMSE(), temperature, rate, gamma, seed=4))}  # fmt: skip
    model = lgb.train(params, lgb.Dataset(X, labels, group=[n]), 30)
    s = [model.predict(X, num_iteration=i) if i else np.zeros(n) for i in range(31)]
    noise = np.array([
        b - (1 - rate * gamma) * a + rate * QueryRMSE().gradient_hessian(a, labels, [n])[0]
        for a, b in itertools.pairwise(s)
    ])  # fmt: skip
    assert noise.std() == pytest.approx(np.sqrt(2 * temperature * rate), rel=0.1)


def test_wrong_values_are_refused():
    for wrong in ({"temperature": -1}, {"learning_rate": 0}, {"shrink": -1}, {"seed": -1}):
        with pytest.raises(LTRError, match=next(iter(wrong))):
            Langevin("lambdamart", **wrong)
    with pytest.raises(LTRError, match="unknown objective"):
        Langevin("lambdamrt")


def test_catboosts_own_langevin_boosting_works_with_a_stochastic_objective():
    """SGLB in CatBoost: noise by temperature and shrinkage of the model, with a smoothed metric."""
    catboost = pytest.importorskip("catboost")
    train, _, test = make_ranking_fold((60, 1, 40), seed=1, features=30, mean_length=30)
    pool = catboost.Pool(train.X, train.y, group_id=train.qid)
    loss = catboost_objective(StochasticRank("ndcg@5"), pool)
    common = {"iterations": 40, "depth": 4, "learning_rate": 0.2, "loss_function": loss, "verbose": 0,
              "eval_metric": catboost_metric("ndcg@5", pool), "allow_writing_files": False, "thread_count": 1,
              "leaf_estimation_method": "Newton", "bootstrap_type": "No"}  # fmt: skip
    sglb = {"langevin": True, "diffusion_temperature": 1e4, "model_shrink_rate": 0.01}
    plain, noisy, again = (catboost.CatBoost({**common, **more}).fit(pool).predict(test.X) for more in ({}, sglb, sglb))
    assert np.array_equal(noisy, again)
    assert not np.allclose(plain, noisy)
    constant = evaluate("ndcg@5", np.zeros(len(test.y)), test.y, test.group)
    assert evaluate("ndcg@5", noisy, test.y, test.group) > constant + 0.05


def test_catboosts_noise_reaches_the_leaves_where_they_are_of_the_gradient():
    """With only one possible split, trees differ in their leaf values only."""
    catboost = pytest.importorskip("catboost")
    pool = catboost.Pool(np.arange(200.0)[:, None] % 2, np.arange(200) % 2, group_id=np.repeat([0, 1], 100))
    common = {"iterations": 3, "depth": 1, "loss_function": catboost_objective(QueryRMSE(), pool), "verbose": 0,
              "eval_metric": catboost_metric("ndcg", pool), "allow_writing_files": False, "thread_count": 1,
              "learning_rate": 0.1, "bootstrap_type": "No", "random_strength": 0, "model_shrink_rate": 0.0,
              "leaf_estimation_method": "Gradient"}  # fmt: skip
    leaves = [
        catboost.CatBoost({**common, **more}).fit(pool).get_leaf_values()
        for more in ({}, *({"langevin": True, "diffusion_temperature": t} for t in (1e12, 1.0)))
    ]
    size = np.abs(leaves[0]).max()
    np.testing.assert_allclose(leaves[1], leaves[0], atol=1e-3 * size)
    assert np.abs(leaves[2] - leaves[0]).max() > 0.1 * size

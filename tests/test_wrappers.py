"""Mixture, Subsample, Langevin and UnitHessian around other objectives."""

import itertools
import pickle

import numpy as np
import pytest
from catalog import KINDS, MIXTURES, OBJECTIVES
from oracles.references import reference
from scipy import stats
from trainings import trained

from ltr_objectives import (
    LambdaMART,
    Langevin,
    LTRError,
    Mixture,
    Queries,
    QueryRMSE,
    StochasticRank,
    Subsample,
    UnitHessian,
    YetiLoss,
    get_objective,
)
from ltr_objectives.adapters import catboost_metric, catboost_objective, lightgbm_objective
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.objectives import around
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.typical import typical

everywhere = pytest.mark.parametrize("objective", KINDS.values(), ids=KINDS)


@pytest.fixture
def data(rng):
    """Queries of 1 to 100 documents with weights, and scores."""
    sizes = [*rng.integers(1, 9, 40), 30, 100]
    labels, weight = rng.integers(0, 4, sum(sizes)).astype(float), rng.uniform(0.5, 2.0, len(sizes))
    return Queries(labels, sizes, weight=weight), rng.normal(size=sum(sizes))


def drawn(grad, hess, queries):
    """Which queries have a gradient or a Hessian."""
    return np.add.reduceat(np.abs(grad) + np.abs(hess), queries.ptr[:-1]) > 0


# Mixture


@pytest.mark.parametrize("mixture", MIXTURES, ids=str)
def test_a_mixture_is_the_sum_of_its_parts(mixture, data):
    queries, scores = data
    for normalize in (True, False):
        mixture = Mixture(mixture.parts, mixture.weights, normalize)
        expected = np.zeros((2, queries.rows))
        for part, weight, *_ in mixture.members:
            size = typical(part, queries).gradient if normalize else 1.0  # for weights of mean 1
            expected += weight / size * np.array(part.compute(queries, scores, iteration=3))
        found = np.array(mixture.compute(queries, scores, iteration=3))
        assert np.abs(found - expected).max() < 1e-13 * np.abs(expected).max()


def test_a_weight_means_the_same_whatever_the_size_of_the_gradient(data):
    queries, scores = data
    mixture, larger = (Mixture(["yetiloss:map", LambdaMART("dcg", sigma=sigma)], [1, 2]) for sigma in (1.0, 1e-9))
    for objective in (mixture, larger):
        small, large = (typical(part, queries).gradient for part, *_ in objective.members)
        apart = Mixture(objective.parts[:1], [1 / small], False), Mixture(objective.parts[1:], [2 / large], False)
        size = [np.abs(m.compute(queries, scores)[0]).mean() for m in apart]
        assert 1.0 < size[1] / size[0] < 4.0


def test_clicks_are_corrected_in_every_part(data, rng):
    queries, scores = data
    mixture = MIXTURES[0]
    for clicks in ({"propensity": rng.uniform(0.1, 1.0, queries.rows)}, {"position": rng.integers(0, 9, queries.rows)}):
        seen = Queries((queries.labels > 0).astype(float), np.diff(queries.ptr), **clicks)
        parts = [weight * np.array(part.compute(seen, scores)) for part, weight, *_ in mixture.members]
        assert np.allclose(mixture.compute(seen, scores), np.sum(parts, axis=0), rtol=1e-12, atol=1e-15)
    with pytest.raises(LTRError, match="does not take propensity"):
        Mixture(["yetiloss", "listnet"]).compute(seen, scores)


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
        assert typical(few, queries) == typical(whole, queries)
    skip = np.arange(len(queries)) > 0
    drawn, plain = (UnitHessian(o).compute(queries, scores, skip=skip) for o in (Subsample(whole, 1.0), whole))
    assert all(map(np.array_equal, drawn, plain))


def test_the_same_iteration_draws_the_same_whatever_the_threads(data):
    queries, scores = data
    half = Subsample("yetiloss", seed=1)
    first = half.compute(queries, scores, iteration=9, n_threads=1)
    for threads in (1, 2, 3):
        assert all(map(np.array_equal, first, half.compute(queries, scores, iteration=9, n_threads=threads)))
    other = drawn(*half.compute(queries, scores, iteration=10), queries)
    assert not np.array_equal(drawn(*first, queries), other)


def test_each_query_is_drawn_with_the_share_as_probability():
    queries = Queries(np.tile([0.0, 1.0], 50), np.full(50, 2))
    objective = Subsample("ranknet", queries=0.3)
    counts = sum(drawn(*objective.compute(queries, np.zeros(100), iteration=i), queries) for i in range(400))
    assert np.abs(counts / 400 - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 400)  # of 50 binomial numbers, chance of 1 in 300
    assert objective.facts.random
    assert not Subsample("ranknet", queries=1.0).facts.random


def test_at_least_one_query_is_drawn():
    queries = Queries([0.0, 1.0, 1.0, 0.0], [2, 2])
    for iteration in range(20):
        grad, _ = Subsample("ranknet", queries=0.001).compute(queries, np.zeros(4), iteration=iteration)
        assert np.count_nonzero(grad) == 2


@everywhere
def test_queries_are_drawn_once_an_iteration(objective, data, monkeypatch):
    keys, draw = [], around.uniforms
    monkeypatch.setattr(around, "uniforms", lambda key, out: keys.append(int(key)) or draw(key, out))
    UnitHessian(Subsample(Subsample(objective, seed=1), seed=2)).compute(*data, iteration=7)
    assert len(keys) == len(set(keys)) == 2


# Langevin


def many(rng, queries=2000):
    group = rng.integers(1, 60, queries)
    n = int(group.sum())
    return rng.normal(size=n), rng.integers(0, 5, n), group


@pytest.mark.parametrize("inner", [QueryRMSE(), YetiLoss("map"), StochasticRank("mrr")])
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
    scores, labels, group = many(rng, 50)
    objective = Langevin("yetiloss:map")
    first = objective.gradient_hessian(scores, labels, group)[0]
    assert objective.facts.random
    assert pickle.loads(pickle.dumps(objective)) == objective
    for threads in (1, 2, 4):
        assert np.array_equal(objective.gradient_hessian(scores, labels, group, n_threads=threads)[0], first)
    assert (objective.gradient_hessian(scores, labels, group, iteration=1)[0] != first).all()
    assert (Langevin("yetiloss:map", seed=1).gradient_hessian(scores, labels, group)[0] != first).all()


def test_langevin_without_noise_is_the_reference(rng):
    scores, labels = rng.normal(size=20), rng.integers(0, 5, 20).astype(float)
    objective = Langevin(StochasticRank("err", hessian="absolute"), shrink=0.3).without_noise()
    assert not objective.facts.random
    assert [Langevin(QueryRMSE(), shrink=x).facts.hessian_kind for x in (0.0, 0.3)] == [
        QueryRMSE.facts.hessian_kind,
        "estimate",
    ]
    ours = objective.gradient_hessian(scores, labels, [20])
    np.testing.assert_allclose(ours, reference(objective, scores, labels), rtol=1e-9, atol=1e-12)


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


# UnitHessian


@everywhere
def test_the_mean_hessian_is_the_mean_weight(objective, data):
    for queries in (data[0], Queries(data[0].labels, np.diff(data[0].ptr))):
        unit = typical(UnitHessian(objective), queries).hessian
        assert unit == pytest.approx(1.0, rel=1e-12)
        assert unit == pytest.approx(typical(QueryRMSE(), queries).hessian, rel=1e-12)


@everywhere
def test_only_a_constant_is_between_the_two(objective, data):
    queries, scores = data
    unit = UnitHessian(objective)
    before, after = (np.array(o.compute(queries, scores, iteration=5)) for o in (objective, unit))
    factor = after[1].sum() / before[1].sum()
    assert factor > 0
    assert np.abs(after - factor * before).max() <= 1e-13 * np.abs(after).max()
    before, after = (np.array(o.compute(queries, np.zeros(queries.rows))) for o in (objective, unit))
    assert np.abs(after - factor * before).max() <= 1e-13 * np.abs(after).max()  # whatever the scores


def test_negative_hessians_count_by_their_size(data):
    negative = Mixture(["plrank:hessian=exact"], normalize=False)
    signed = [typical(get_objective(f"plrank:hessian={h}"), data[0]).hessian for h in ("exact", "absolute")]
    assert signed[0] == signed[1] == typical(negative, data[0]).hessian


def test_the_scale_of_an_objective_disappears(data):
    small = UnitHessian(Mixture(["yetiloss:dcg"], [1e-9], normalize=False))
    np.testing.assert_allclose(small.compute(*data), UnitHessian("yetiloss:dcg").compute(*data), rtol=1e-12)


def test_noise_of_langevin_is_kept_inside_and_outside(data):
    for objective in (UnitHessian(Langevin("yetiloss", 1.0)), Langevin(UnitHessian("yetiloss"), 1.0)):
        first, same, other = (objective.compute(*data, iteration=i)[0] for i in (1, 1, 2))
        assert np.array_equal(first, same)
        assert (first != other).all()
        assert objective.inner == YetiLoss()
        assert objective.facts.random
        assert not objective.without_noise().facts.random


def test_nothing_to_learn_is_zero():
    grad, hess = UnitHessian("lambdamart").gradient_hessian([1.0, 2.0], [1, 1], [2])
    assert not grad.any()
    assert not hess.any()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_regularisation_counts_documents(library):
    """With the number of rows as l2, a leaf divides its gradients by its Hessians plus that number."""
    pytest.importorskip(library)
    train = make_ranking_fold((30, 1, 1), mean_length=20, features=10).train
    rows, start = len(train.y), np.zeros(len(train.y))
    params = {
        "xgboost": {"max_depth": 1, "reg_lambda": rows, "min_child_weight": 0, "base_score": 0, "eta": 1.0},
        "lightgbm": {"num_leaves": 2, "lambda_l2": rows, "min_sum_hessian_in_leaf": 0, "learning_rate": 1.0},
        "catboost": {"depth": 1, "l2_leaf_reg": rows, "leaf_estimation_method": "Newton", "bootstrap_type": "No",
                     "random_strength": 0, "learning_rate": 1.0},
    }[library]  # fmt: skip
    queries = Queries(train.y, train.group)
    for inner in (YetiLoss("ndcg@10", noise=None), QueryRMSE(), YetiLoss("map", noise=None)):
        grad, hess = UnitHessian(inner).compute(queries, start)
        moved = trained(library, "callable", UnitHessian(inner), train.X, train.y, train.group, 1, params=params)
        moved = moved.predict(train.X)
        leaves = np.unique(moved)
        assert len(leaves) == 2
        for value in leaves:
            leaf = moved == value
            assert value == pytest.approx(-grad[leaf].sum() / (hess[leaf].sum() + rows), rel=1e-4)

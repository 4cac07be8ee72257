"""A random share of the queries in each iteration."""

import itertools

import numpy as np
import pytest
from catalog import OBJECTIVES
from rankers import LIBRARIES, ranker

from ltr_objectives import (
    Langevin,
    LTRError,
    Mixture,
    Queries,
    Subsample,
    UnitHessian,
    evaluate,
    get_objective,
)
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.objectives import around as module
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.typical import typical

everywhere = pytest.mark.parametrize("name", OBJECTIVES)


@pytest.fixture
def data(rng):
    sizes = rng.integers(1, 9, 40)
    labels, scores = rng.integers(0, 3, sizes.sum()).astype(float), rng.normal(size=sizes.sum())
    return Queries(labels, sizes, weight=rng.uniform(0.5, 2.0, 40)), scores


def drawn(grad, hess, queries):
    """Which queries have a gradient or a Hessian."""
    return np.add.reduceat(np.abs(grad) + np.abs(hess), queries.ptr[:-1]) > 0


@everywhere
def test_drawn_queries_have_their_gradient_over_the_share_and_others_none(name, data):
    queries, scores = data
    objective = OBJECTIVES[name]
    around = objective, UnitHessian(objective), Mixture([objective, "ranknet"]), Langevin(objective, 0.0)
    for plain, iteration in itertools.product(around, range(3)):
        half = Subsample(plain, queries=0.5, seed=3)
        whole = plain.compute(queries, scores, iteration=iteration)
        part = half.compute(queries, scores, iteration=iteration)
        chosen = ~half.before(Call.at(queries, scores, iteration)).skip
        rows = np.repeat(chosen, np.diff(queries.ptr))
        for found, expected in zip(part, whole, strict=True):
            assert np.array_equal(found, np.where(rows, expected / 0.5, 0.0))
        assert 5 < chosen.sum() < 35


@everywhere
def test_skipped_queries_are_not_computed(name, data):
    """Scores of queries that are not drawn may be anything that would change the others if it were read."""
    queries, scores = data
    objective = OBJECTIVES[name]
    skip = np.arange(len(queries)) % 3 == 0
    rows = np.repeat(skip, np.diff(queries.ptr))
    expected = objective.compute(queries, scores, skip=skip)
    changed = np.where(rows, 1e30, scores)
    for found, same in zip(objective.compute(queries, changed, skip=skip), expected, strict=True):
        assert np.array_equal(found, same)
        assert not found[rows].any()


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


def test_shares_that_cannot_be_are_refused():
    for share in (0, -0.5, 1.5, float("nan"), "half", None):
        with pytest.raises(LTRError, match=r"queries=.* must be above 0 and at most 1"):
            Subsample("yetiloss", queries=share)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_libraries_learn_from_it(library):
    pytest.importorskip(library)
    train, test, _ = make_ranking_fold((60, 60, 1), seed=0, features=10, mean_length=15)
    made = ranker(library, UnitHessian(Subsample("lambdamart", queries=0.5)), n_estimators=20)
    scores = made.fit(train.X, train.y, qid=train.qid).predict(test.X)
    nothing = evaluate("ndcg", np.zeros(len(test.y)), test.y, test.group)
    assert evaluate("ndcg", scores, test.y, test.group) > nothing + 0.05


@everywhere
def test_queries_are_drawn_once_an_iteration(name, data, monkeypatch):
    queries, scores = data
    drawn, draw = [], module.uniforms
    monkeypatch.setattr(module, "uniforms", lambda key, out: drawn.append(int(key)) or draw(key, out))
    UnitHessian(Subsample(Subsample(OBJECTIVES[name], seed=1), seed=2)).compute(queries, scores, iteration=7)
    assert len(drawn) == len(set(drawn)) == 2

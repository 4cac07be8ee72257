"""What a gradient over all pairs of a long list costs is said before the first one."""

import numpy as np
import pytest
from conftest import OBJECTIVES

from ltr_objectives import LambdaMART, Langevin, LTRWarning, Queries, RankNet, YetiLoss, cost, objectives
from ltr_objectives.registry import get_objective

QUADRATIC = [o.inner for o in OBJECTIVES if o.inner.pairs_visited(Queries([1, 0], [2])) is not None]
LINEAR = {"listnet", "listmle", "xendcg", "ordinal", "queryrmse", "rmse", "plrank", "neuralndcg"}  # or bounded


@pytest.fixture
def slow(monkeypatch):
    """Every pair takes a second, and every list is long."""
    monkeypatch.setattr(cost, "LONG", 5)
    monkeypatch.setattr(cost, "MANY_PAIRS", 10)
    monkeypatch.setattr(cost, "_seconds_per_pair", lambda *_: 1.0)


def test_every_objective_says_whether_it_is_quadratic():
    assert {o.name for o in QUADRATIC} == set(objectives()) - LINEAR


@pytest.mark.parametrize("objective", QUADRATIC, ids=lambda o: o.name)
def test_a_part_has_few_of_the_pairs(objective, rng):
    labels = np.append(rng.integers(0, 2, 39), 1)
    queries, scores = Queries(labels, [40]), rng.normal(size=40)
    [pairs] = objective.pairs_visited(queries)
    part, of = objective.part_of_pairs(queries, 2)
    grad, _ = part.compute(of, scores)
    [few] = part.pairs_visited(of)
    assert np.isfinite(grad).all()
    assert 0 < few <= max(pairs, 3 * 40)
    counted = objective.pair_counts(queries, scores)
    passes = objective.permutations if counted is not None and objective.noise else 1
    assert counted is None or counted[0] <= pairs / passes


def test_pairs_by_definition():
    queries = Queries(np.arange(8), [1, 2, 5])
    for truncation in (None, 1, 3):
        for neighbors in ("all", 1, 2, 4):
            made = YetiLoss("ndcg", noise=None, neighbors=neighbors)
            object.__setattr__(made, "truncation", truncation)
            expected = [
                sum(e - d <= (n if neighbors == "all" else neighbors)
                    for d in range(min(n, truncation or n)) for e in range(d + 1, n))
                for n in (1, 2, 5)
            ]  # fmt: skip
            assert made.pairs_visited(queries).tolist() == expected, (truncation, neighbors)


def test_a_cascade_reaches_few_ranks(rng):
    queries = Queries(rng.integers(0, 2, 100_000), [100_000])
    assert LambdaMART("mrr").pairs_visited(queries) < 1e-3 * LambdaMART("ndcg").pairs_visited(queries)


def test_it_is_said_once_for_a_data_set(slow):
    queries, scores = Queries(np.arange(12), [12]), np.zeros(12)
    with pytest.warns(LTRWarning) as said:
        LambdaMART().compute(queries, scores)
    assert [str(warning.message) for warning in said] == [
        "lambdamart looks at 6.6e+01 pairs of documents in a query of 12 documents, so that each gradient takes about "
        "1.1 minutes here: choose fewer, such as truncation=30, or cut or split the query"
    ]
    LambdaMART().compute(queries, scores)
    with pytest.warns(LTRWarning, match="such as neighbors=1, or"):
        YetiLoss().compute(queries, scores)


def test_threads_share_the_queries_and_not_one_of_them(slow):
    for sizes, n_threads, words in (([12], 4, "1.1 minutes"), ([12] * 10, 1, "11 minutes"), ([12] * 10, 2, "5.5 min")):
        rows = sum(sizes)
        with pytest.warns(LTRWarning, match=f"about {words}"):
            LambdaMART().compute(Queries(np.arange(rows), sizes), np.zeros(rows), n_threads=n_threads)


def test_wrapped_objectives_say_it_too(slow):
    with pytest.warns(LTRWarning, match="lambdamart looks at"):
        Langevin(LambdaMART()).gradient_hessian(np.zeros(12), np.arange(12), [12])


def test_nothing_is_said_of_what_is_quick(monkeypatch, rng):
    queries, scores = Queries(rng.integers(0, 3, 20), [20]), rng.normal(size=20)
    LambdaMART().compute(queries, scores)  # short
    monkeypatch.setattr(cost, "LONG", 5)
    LambdaMART().compute(queries, scores)  # few pairs
    monkeypatch.setattr(cost, "MANY_PAIRS", 10)
    LambdaMART().compute(queries, scores)  # few seconds
    monkeypatch.setattr(cost, "_seconds_per_pair", lambda *_: 1.0)
    for name in LINEAR:
        get_objective(name).compute(queries, scores)


def test_the_time_is_that_of_this_machine(monkeypatch, rng):
    monkeypatch.setattr(cost, "WORTH_SAYING", 0.0)
    queries = Queries(rng.integers(0, 5, 70_000), [70_000])
    with pytest.raises(LTRWarning, match=r"2.4e\+09 pairs .* takes about \d+(\.\d)? (seconds|minutes) here"):
        RankNet().compute(queries, rng.normal(size=70_000))  # the tests turn warnings into errors

"""Reports of zero gradients against counts by hand, the warnings of a training, and the cost of long lists."""

import json
import warnings

import numpy as np
import pytest
import xgboost as xgb
from clicks import click_log

from ltr_objectives import (
    MRR,
    LambdaMART,
    Langevin,
    LTRWarning,
    Mixture,
    Objective,
    PLRank,
    Queries,
    StochasticRank,
    Subsample,
    UnitHessian,
    diagnostics,
    get_metric,
    get_objective,
)
from ltr_objectives import report as report_of
from ltr_objectives.adapters import lightgbm_objective, xgboost_objective
from ltr_objectives.datasets import make_ranking
from ltr_objectives.diagnostics import warn_if_useless
from ltr_objectives.objectives.around import innermost
from ltr_objectives.testing import random_labels


def test_norms_of_huge_gradients_are_finite():
    """Their squares are not. Langevin adds a share of the scores."""
    objective, data = Langevin("listnet", shrink=1.0), ([3e200, 4e200, 0.0, 0.0], [1, 0, 1, 0], [2, 2])
    report, grad = report_of(objective, *data), objective.gradient_hessian(*data)[0]
    assert report.gradient_norm == pytest.approx(np.linalg.norm(grad / 1e200) * 1e200)
    assert np.isfinite(report.query_norms).all()


def test_each_reason_is_told():
    lists = {  # scores, labels, weight
        "one document": ([0.0], [1], 1.0),
        "weight zero": ([0.0, 1.0], [0, 1], 0.0),
        "all labels equal": ([0.0, 1.0, 2.0], [2, 2, 2], 1.0),
        "nothing relevant": ([0.0, 1.0], [0, 1], 1.0),
        "all equally relevant": ([0.0, 1.0], [2, 3], 1.0),
        "scores settled": ([40.0, 0.0], [2, 0], 1.0),
        "useful": ([0.0, 0.0], [0, 2], 1.0),
    }
    scores, labels, weight = zip(*lists.values(), strict=True)
    data = np.concatenate(scores), np.concatenate(labels), [len(each) for each in labels], weight
    report = report_of(LambdaMART(MRR(threshold=1.0)), *data)
    assert report.useless == {reason: 1 for reason in lists if reason != "useful"}
    assert (report.queries, report.useful, report.rows) == (7, 1, 14)
    assert all(reason in str(report) for reason in lists)
    gap = report_of(LambdaMART("ndcg@1"), [0.0, 0.0, 0.0], [2, 2, 0], [3])
    assert gap.useless == {}
    beyond = report_of(LambdaMART("ndcg@1", truncation=1), [3.0, 2.0, 1.0, 0.0], [1, 1, 1, 0], [4])
    assert beyond.useful == 1


def test_a_report_is_plain_numbers(each_objective, rng):
    group = rng.integers(1, 9, 30)
    labels = random_labels(each_objective.label_limit, rng, int(group.sum()))
    scores = rng.normal(size=len(labels))
    report = report_of(each_objective, scores, labels, group)
    again = report_of(each_objective, scores, labels, qid=np.repeat(np.arange(30), group), n_threads=1)
    assert report == again
    assert json.loads(json.dumps(report.as_dict()))["useful"] == report.useful
    assert report.useful + sum(report.useless.values()) == report.queries == 30
    if each_objective.facts.shift_invariant:  # others learn from single documents
        assert report.useless["one document"] == (group == 1).sum()
    assert str(report).startswith(type(each_objective).__name__)


@pytest.mark.parametrize(
    ("objective", "how"),
    [
        (LambdaMART(), "propensity"),
        (UnitHessian("listnet"), None),
        (Subsample("listnet"), None),
        (Langevin("listnet", 0.0, shrink=0.5), None),
    ],
)
def test_numbers_are_those_that_a_library_gets(objective, how):
    log = click_log(make_ranking(20, 1, features=20, mean_length=10), 1)
    given = {how: getattr(log, how)} if how else {}
    data = log.data.X[:, 0], log.clicks, log.data.group
    grad, hess = objective.gradient_hessian(*data, **given)
    report, plain = report_of(objective, *data, **given), report_of(innermost(objective), *data)
    assert report.gradient_norm == pytest.approx(np.linalg.norm(grad), rel=1e-12)
    assert report.gradient_norm != pytest.approx(plain.gradient_norm, rel=1e-3)
    assert report.hessian_sum == pytest.approx(hess.sum(), rel=1e-12)
    assert given or (report.useful, report.useless) == (plain.useful, plain.useless)


def test_negative_hessians_are_counted(rng):
    group = rng.integers(1, 20, 30)
    data = rng.normal(size=group.sum()), rng.integers(0, 3, group.sum()), group
    negative = (StochasticRank(hessian="exact").gradient_hessian(*data)[1] < 0).sum()
    assert negative > 0
    assert report_of(StochasticRank(hessian="exact"), *data).hessian_negative == negative
    assert report_of(StochasticRank(hessian="clipped"), *data).hessian_zero >= negative - (group == 1).sum()


def test_noise_of_a_wrapper_does_not_hide_useless_queries():
    report = report_of(Langevin("lambdamart", temperature=1.0), [0.0, 0.0], [1, 1], [2])
    assert report.useless == {"all labels equal": 1}


def test_the_report_knows_rewards_of_the_users_own():
    mine = type("Mine", (PLRank,), {"rewards": lambda self, call: (np.ones(5), np.ones(2))})
    assert report_of(mine(), [0.0] * 5, [0, 1, 0, 2, 1], [3, 2]).useless == {"all equally relevant": 2}


# warnings of useless queries


def mostly_useless(useless):
    """Return ten queries of six, of which some have equal labels."""
    y = np.tile([0.0, 0.0, 1.0, 0.0, 2.0, 1.0], 10)
    y[: 6 * useless] = 1.0
    return Queries(y, [6] * 10)


def warned(objective, queries):
    """Return True if a training would warn of useless queries, at scores of 0."""
    grad, _ = objective.compute(queries, np.zeros(60))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_if_useless(objective, queries, np.zeros(60), grad)
    return any("of 10 queries have zero gradient" in str(each.message) for each in caught)


@pytest.mark.parametrize("objective", [LambdaMART(), Langevin("lambdamart", temperature=1.0)])
def test_more_than_half_of_the_queries_are_warned_of(objective):
    assert [warned(objective, mostly_useless(useless)) for useless in (5, 6)] == [False, True]


def test_queries_from_which_an_objective_learns_are_not_useless(each_objective):
    """As squared error does from equal labels: their gradient is zero at tied scores, but not at others."""
    y = np.minimum(mostly_useless(0).labels, 1.0) * (np.arange(60) >= 54)  # nine have label 0 alone
    queries, rng = Queries(y, [6] * 10), np.random.default_rng(1)
    zeros = [(each_objective.compute(queries, s)[0].reshape(10, 6) == 0).all(1) for s in
             (np.zeros(60), rng.normal(size=60))]  # fmt: skip
    assert warned(each_objective, queries) == (np.all(zeros, axis=0).sum() > 5)


def test_an_object_warns_once_in_each_training():
    queries, X = mostly_useless(9), np.random.default_rng(0).normal(size=(60, 2))
    obj, data = xgboost_objective("lambdamart"), xgb.DMatrix(X, queries.labels, group=[6] * 10)
    for _ in range(2):
        with pytest.warns(LTRWarning, match="9 of 10"):
            xgb.train({"max_depth": 2, "min_child_weight": 0, "nthread": 1}, data, 3, obj=obj)


def test_a_limit_above_half_of_the_hessians_forbids_every_split():
    queries, X = mostly_useless(0), np.random.default_rng(0).normal(size=(60, 2))
    data = xgb.DMatrix(X, queries.labels, group=[6] * 10)
    total = float(LambdaMART("mrr").compute(queries, np.zeros(60))[1].sum())
    params = {"booster": "dart", "nthread": 1, "min_child_weight": total / 1.99}
    with pytest.warns(LTRWarning, match="forbids every split"):
        booster = xgb.train(params, data, 2, obj=xgboost_objective("lambdamart:mrr"))
    assert np.ptp(booster.predict(data)) == 0
    xgb.train(params | {"min_child_weight": total / 2.01}, data, 2, obj=xgboost_objective("lambdamart:mrr"))


# long lists


def test_long_lists_are_named_before_the_first_gradient(monkeypatch):
    monkeypatch.setattr(diagnostics, "MOST_PAIRS", 1)
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    objective = LambdaMART()
    for around in (objective, Mixture([objective, "listnet"], normalize=False), UnitHessian(Subsample(objective))):
        with pytest.warns(LTRWarning, match="split the queries"), pytest.raises(pytest.fail.Exception):
            lightgbm_objective(around)(np.arange(300) % 2, np.zeros(300), None, [300])


FEW, MANY = np.arange(200_000) < 10, np.arange(200_000) % 2  # labels
LONG = {
    "lambdamart": [(FEW, False), (MANY, True)],
    "lambdamart:map": [(FEW, False), (MANY, True)],
    "lambdamart:mrr": [(MANY, False)],
    "lambdamart:map;score_norm=true": [(FEW, True)],
    "yetiloss:ndcg": [(FEW, False), (MANY, True)],
    "yetiloss:mrr": [(MANY, False)],
    "stochasticrank:mrr": [(MANY, False)],
    "approxndcg": [(FEW, False), (MANY, True)],
    "ranknet": [(FEW, True), (MANY, True)],
    "plrank:k=none": [(FEW, False), (MANY, False)],
    "neuralndcg:k=10;max_documents=50000": [(FEW, True), (MANY, True)],
    "neuralndcg": [(MANY, False)],
}


@pytest.mark.parametrize(("text", "labels", "slow"), [(text, *case) for text, cases in LONG.items() for case in cases])
def test_long_lists_are_named_only_if_their_gradients_are_slow(text, labels, slow, recwarn):
    queries = Queries({None: labels, "bought": labels[::-1]}, [len(labels)])
    diagnostics.warn_if_long(get_objective(text), queries)
    diagnostics.warn_if_long(get_objective(f"{text}[bought]"), queries)
    assert len(recwarn) == 2 * slow


@pytest.mark.parametrize("relevant", [1, 500, 200_000])
def test_long_ties_take_no_square_of_time(relevant):
    """With the square, these would take minutes."""
    n = 200_000
    scores, labels = np.zeros(n), (np.arange(n) >= n - relevant).astype(float)
    left = np.arange(n, 0, -1.0)  # chances that the first j documents of a random order are all irrelevant
    none = np.append(1.0, np.cumprod(np.maximum(left - relevant, 0.0) / left))
    expected = 1.0 / np.arange(1, n + 1) @ -np.diff(none)
    for metric in ("mrr", "err(max_label=1,grades=linear)"):
        assert get_metric(metric).per_query(scores, labels, [n])[0] == pytest.approx(expected, rel=1e-9)
    first = 1.0 - none[10]
    assert get_metric("hit@10").per_query(scores, labels, [n])[0] == pytest.approx(first, rel=1e-9)
    grad, _ = get_objective("approxmrr").gradient_hessian(scores, labels, [n])
    assert np.unique(grad[labels == 1]).size == 1
    assert grad.sum() == pytest.approx(0, abs=1e-12)

"""Reports of zero gradients against counts by hand, the warnings of a training, and the cost of long lists."""

import json
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoost, Pool
from clicks import click_log, some_queries
from trainings import LIBRARIES, train

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
    adapters,
    diagnostics,
    get_metric,
    get_objective,
    registry,
)
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.diagnostics import warn_if_useless
from ltr_objectives.testing import random_labels

EVERY_REASON = {
    "one document": ([0.0], [1], 1.0),
    "weight zero": ([0.0, 1.0], [0, 1], 0.0),
    "all labels equal": ([0.0, 1.0, 2.0], [2, 2, 2], 1.0),
    "nothing relevant": ([0.0, 1.0], [0, 1], 1.0),
    "all equally relevant": ([0.0, 1.0], [2, 3], 1.0),
    "scores settled": ([40.0, 0.0], [2, 0], 1.0),
    "useful": ([0.0, 0.0], [0, 2], 1.0),
}


def lists(names):
    chosen = [EVERY_REASON[name] for name in names]
    scores, labels = (np.concatenate([c[i] for c in chosen]) for i in (0, 1))
    return scores, labels, [len(c[1]) for c in chosen], [c[2] for c in chosen]


def test_each_reason_is_told():
    report = LambdaMART(MRR(threshold=1.0)).report(*lists(EVERY_REASON))
    assert report.useless == {reason: 1 for reason in EVERY_REASON if reason != "useful"}
    assert (report.queries, report.useful, report.rows) == (7, 1, 14)
    for reason in EVERY_REASON:
        assert reason in str(report)
    gap = LambdaMART("ndcg@1").report([0.0, 0.0, 0.0], [2, 2, 0], [3])
    assert gap.useless == {}
    beyond = LambdaMART("ndcg@1", truncation=1).report([3.0, 2.0, 1.0, 0.0], [1, 1, 1, 0], [4])
    assert beyond.useful == 1


@pytest.mark.parametrize("how", ["propensity", "position"])
def test_a_report_of_clicks_is_of_the_corrected_gradient(how):
    log = click_log(some_queries(20, 1), 1.0, 1)
    given = {how: getattr(log, how)}
    arguments = log.data.X[:, 0], log.clicks, log.data.group
    grad, hess = LambdaMART().gradient_hessian(*arguments, **given)
    report, plain = LambdaMART().report(*arguments, **given), LambdaMART().report(*arguments)
    assert report.gradient_norm == pytest.approx(np.linalg.norm(grad), rel=1e-12)
    assert report.hessian_sum == pytest.approx(hess.sum(), rel=1e-12)
    assert report.gradient_norm != pytest.approx(plain.gradient_norm, rel=1e-3)


def test_a_report_is_plain_numbers(each_objective, rng):
    group = rng.integers(1, 9, 30)
    labels = random_labels(each_objective.label_limit, rng, int(group.sum()))
    scores = rng.normal(size=len(labels))
    report = each_objective.report(scores, labels, group)
    again = each_objective.report(scores, labels, qid=np.repeat(np.arange(30), group), n_threads=1)
    assert report == again
    assert json.loads(json.dumps(report.as_dict()))["useful"] == report.useful
    assert report.useful + sum(report.useless.values()) == report.queries == 30
    if each_objective.facts.shift_invariant:  # others learn from single documents
        assert report.useless["one document"] == (group == 1).sum()
    assert str(report).startswith(type(each_objective).__name__)
    grad, hess = each_objective.gradient_hessian(scores, labels, group)
    assert report.gradient_norm == pytest.approx(np.linalg.norm(grad))
    assert report.hessian_sum == pytest.approx(hess.sum())
    assert report.hessian_negative == (hess < 0).sum()


@pytest.mark.parametrize("make", [PLRank, StochasticRank])
def test_negative_hessians_are_counted(make, rng):
    group = rng.integers(1, 20, 30)
    data = rng.normal(size=group.sum()), rng.integers(0, 3, group.sum()), group
    exact = make(hessian="exact").gradient_hessian(*data)[1]
    assert (exact < 0).any()
    assert make(hessian="exact").report(*data).hessian_negative == (exact < 0).sum()
    for policy in ("absolute", "clipped"):
        assert make(hessian=policy).report(*data).hessian_negative == 0
    assert make(hessian="clipped").report(*data).hessian_zero >= (exact < 0).sum() - (group == 1).sum()


@pytest.mark.parametrize("wrap", [UnitHessian, Subsample, lambda o: Langevin(o, 0.0, shrink=0.5)])
@pytest.mark.parametrize("name", ["lambdamart", "yetiloss:map", "listnet"])
def test_numbers_of_a_wrapper_are_those_that_a_library_gets(wrap, name, rng):
    group = rng.integers(1, 9, 30)
    data = rng.normal(size=group.sum()), rng.integers(0, 3, group.sum()), group
    wrapped, plain = wrap(get_objective(name)), get_objective(name).report(*data)
    grad, hess = wrapped.gradient_hessian(*data)
    report = wrapped.report(*data)
    assert report.hessian_sum == pytest.approx(hess.sum(), rel=1e-12)
    assert report.gradient_norm == pytest.approx(np.linalg.norm(grad), rel=1e-12)
    assert report.gradient_norm != pytest.approx(plain.gradient_norm, rel=1e-3)
    assert (report.useful, report.useless) == (plain.useful, plain.useless)


def test_noise_of_a_wrapper_does_not_hide_useless_queries():
    report = Langevin("lambdamart", temperature=1.0).report([0.0, 0.0], [1, 1], [2])
    assert report.useless == {"all labels equal": 1}
    data = xgb.DMatrix(np.ones((4, 1)), [1, 1, 1, 1], qid=[0, 0, 1, 1])
    with pytest.warns(LTRWarning, match="2 of 2 queries have zero gradient"):
        adapters.xgboost_objective(Langevin("lambdamart", temperature=1.0))(np.zeros(4), data)


def test_the_report_knows_rewards_of_the_users_own():
    mine = type("Mine", (PLRank,), {"rewards": lambda self, call: (np.ones(5), np.ones(2))})
    assert mine().report([0.0] * 5, [0, 1, 0, 2, 1], [3, 2]).useless == {"all equally relevant": 2}


# warnings of a training


def mostly_useless(useless):
    """Ten queries of six, of which some have equal labels."""
    rng = np.random.default_rng(0)
    y = np.tile([0.0, 0.0, 1.0, 0.0, 2.0, 1.0], 10)
    y[: 6 * useless] = 1.0
    return rng.normal(size=(60, 2)), y, np.repeat(np.arange(10), 6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_training_warns_once_where_most_queries_are_useless(library):
    with pytest.warns(LTRWarning, match="6 of 10 queries have zero gradient") as caught:
        train(library, "lambdamart", data=mostly_useless(6))
    assert len(caught) == 1
    train(library, "lambdamart", data=mostly_useless(5))  # warnings are errors here


def test_queries_from_which_an_objective_learns_are_not_useless(each_objective):
    """As squared error does from equal labels: their gradient is zero at tied scores, but not at others."""
    _, y, qid = mostly_useless(9)
    y = np.minimum(y - (y == 1) * (qid < 9), 1.0)  # the nine have label 0 alone
    group, rng = np.full(10, 6), np.random.default_rng(1)
    zeros = [(each_objective.gradient_hessian(s, y, group)[0].reshape(10, 6) == 0).all(1) for s in
             (np.zeros(60), rng.normal(size=60))]  # fmt: skip
    expected = np.all(zeros, axis=0).sum() > 5
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grad, _ = each_objective.gradient_hessian(np.zeros(60), y, group)
        warn_if_useless(each_objective, Queries(y, group), np.zeros(60), grad)
    assert expected == any("zero gradient" in str(each.message) for each in caught)


def test_an_object_warns_once_in_a_training():
    X, y, qid = mostly_useless(9)
    obj, data = adapters.xgboost_objective("lambdamart"), xgb.DMatrix(X, y, qid=qid)
    for _ in range(2):
        with pytest.warns(LTRWarning, match="9 of 10"):
            xgb.train({"max_depth": 2, "min_child_weight": 0, "nthread": 1}, data, 3, obj=obj)
    pool = Pool(X, y, group_id=qid)
    params = {"loss_function": adapters.catboost_objective("lambdamart", pool), "eval_metric": "NDCG", "iterations": 2,
              "verbose": 0, "thread_count": 1, "allow_writing_files": False}  # fmt: skip
    for _ in range(2):
        with pytest.warns(LTRWarning, match="9 of 10"):
            CatBoost(params).fit(pool)


def test_limits_that_forbid_every_split_are_told():
    X, y, qid = mostly_useless(0)
    data = xgb.DMatrix(X, y, qid=qid)
    total = float(LambdaMART("mrr").gradient_hessian(np.full(60, 0.5), y, qid=qid)[1].sum())
    assert total < 14
    for params in ({}, {"booster": "dart"}):
        with pytest.warns(LTRWarning, match="min_child_weight=7 forbids every split"):
            booster = xgb.train({"min_child_weight": 7, "nthread": 1, **params}, data, 2,
                                obj=adapters.xgboost_objective("lambdamart:mrr"))  # fmt: skip
        assert np.ptp(booster.predict(data)) == 0
    least = total / 2.01
    xgb.train({"min_child_weight": least, "nthread": 1}, data, 2, obj=adapters.xgboost_objective("lambdamart:mrr"))
    base = {"verbose": -1, "num_threads": 1, "metric": "None"}
    for name in lgb.basic._ConfigAliases.get("min_sum_hessian_in_leaf"):
        params = {**base, "objective": adapters.lightgbm_objective("lambdamart:mrr"), name: 7}
        with pytest.warns(LTRWarning, match=f"{name}=7 forbids every split"):
            model = lgb.train(params, lgb.Dataset(X, y, group=[6] * 10), 2)
        assert np.ptp(model.predict(X)) == 0


# long lists


def one_list(n, labels=2):
    return Queries(np.arange(n) % labels, [n])


def test_long_lists_are_named_before_the_first_gradient(monkeypatch, recwarn):
    slow = [objective for objective in map(get_objective, registry.objectives()) if objective.facts.quadratic]
    for objective in slow:
        diagnostics.warn_if_long(objective, Queries(np.arange(20_000) % 2, np.full(20, 1000)))
    assert not recwarn
    for objective in slow:
        diagnostics.warn_if_long(objective, one_list(10**6))
    assert 5 <= len(recwarn) <= len(slow)
    monkeypatch.setattr(diagnostics, "MOST_PAIRS", 1)
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    labels, given = np.arange(300) % 2, {"match": "split the queries"}
    for objective in slow:
        for around in (objective, Mixture([objective, "listnet"], normalize=False), UnitHessian(Subsample(objective))):
            with pytest.warns(LTRWarning, **given), pytest.raises(pytest.fail.Exception):
                around.gradient_hessian(np.zeros(300), labels, [300])
            with pytest.warns(LTRWarning, **given), pytest.raises(pytest.fail.Exception):
                lightgbm_objective(around)(labels, np.zeros(300), None, np.array([300]))


def test_cutoffs_bound_the_pairs(recwarn):
    for few in ("lambdamart:truncation=30", "lambdamart:ndcg@30", "yetiloss:ndcg;neighbors=30", "ranknet:partners=9"):
        diagnostics.warn_if_long(get_objective(few), one_list(10**6))
    assert not recwarn


@pytest.mark.parametrize("relevant", [1, 3, 500, 200_000])
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

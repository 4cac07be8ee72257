"""Several goals: parts of mixtures, metrics and drawn labels read the labels that are named."""

from dataclasses import replace

import numpy as np
import pytest
from catalog import KINDS, OBJECTIVES, ONE_OF_EACH

from ltr_objectives import (
    Langevin,
    LTRError,
    LTRWarning,
    Mixture,
    Queries,
    Subsample,
    UnitHessian,
    evaluate,
    get_objective,
)
from ltr_objectives import report as report_of
from ltr_objectives.diagnostics import warn_if_goals_agree
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.testing import random_labels

everywhere = pytest.mark.parametrize("objective", KINDS.values(), ids=KINDS)


SIZES = [1, 2, 9, 30, 20]
ROWS = sum(SIZES)


@pytest.fixture
def scores(rng):
    return rng.normal(size=ROWS)


def two_goals(objective, rng, sizes=SIZES):
    """Return labels of two goals that the objective accepts, and weights by row."""
    relevance, revenue = (random_labels(objective.label_limit, rng, sum(sizes)) for _ in range(2))
    return {"relevance": relevance, "revenue": revenue}, rng.random(sum(sizes)) + 0.1


def close(found, expected):
    return all(np.abs(f - e).max() <= 1e-13 * np.abs(e).max() for f, e in zip(found, expected, strict=True))


@everywhere
@pytest.mark.parametrize("normalize", [True, False])
def test_a_mixture_is_the_sum_of_its_parts_on_their_labels(objective, normalize, scores, rng):
    labels, weight = two_goals(objective, rng)
    labels["relevance"][SIZES[0] + SIZES[1] :][: SIZES[2]] = 0.0  # the first part may not rank this query
    mixture = Mixture([objective, objective], [0.5, 2], normalize, labels=[None, "revenue"])
    expected = np.zeros((2, ROWS))
    for y, factor in zip(labels.values(), (0.5, 2), strict=True):
        queries = Queries(y, SIZES, weight=weight)
        size = typical_size(objective, queries).gradient if normalize else 1.0
        expected += factor / size * np.array(objective.compute(queries, scores, iteration=3))
    assert close(mixture.gradient_hessian(scores, labels, SIZES, weight, iteration=3), expected)


@everywhere
def test_an_objective_on_a_goal_is_the_objective_on_these_labels(objective, scores, rng):
    labels, weight = two_goals(objective, rng)
    relevance, revenue = labels.values()
    for goal, y, given in (
        ("revenue", revenue, labels),
        ("revenue", revenue, {None: relevance, "revenue": revenue}),
        ("relevance", relevance, {"relevance": relevance}),
    ):
        on_goal = Mixture([objective], labels=[goal], normalize=False)
        found = on_goal.gradient_hessian(scores, given, SIZES, weight)
        assert all(map(np.array_equal, found, objective.gradient_hessian(scores, y, SIZES, weight)))


@pytest.mark.parametrize(
    "around", [lambda o: o, UnitHessian, Subsample, lambda o: Langevin(o, 1e-9), lambda o: Mixture([o])]
)
def test_wrappers_and_mixtures_of_mixtures_pass_goals_on(around, scores, rng):
    labels, weight = two_goals(OBJECTIVES["yetiloss"], rng)
    goals = Mixture(["ranknet", "yetiloss:map"], [1, 2], labels=[None, "revenue"])
    outer = around(goals)
    assert outer.facts.goals == goals.facts.goals == ("revenue",)
    queries = Queries(labels, SIZES, weight=weight)
    names = Mixture(["ranknet", "yetiloss:map"], [1, 2], labels=["relevance", "revenue"])
    same = around(names)
    assert same.facts.goals == ("relevance", "revenue")
    assert all(map(np.array_equal, outer.compute(queries, scores), same.compute(queries, scores)))
    inside = Mixture([names], labels=["revenue"], normalize=False)  # a part names its own goals
    assert all(map(np.array_equal, inside.compute(queries, scores), names.compute(queries, scores)))


def test_the_loss_of_a_mixture_reads_the_goals(rng):
    labels = {"relevance": np.array([0.0, 2, 1, 3]), "revenue": np.array([1.0, 0, 0, 2])}
    scores, parts = rng.normal(size=4), ["listnet", "queryrmse"]
    nested = Mixture([Mixture(parts, None, False, labels=[None, "revenue"])], normalize=False)
    expected = sum(get_objective(o).reference_loss(scores, y) for o, y in zip(parts, labels.values(), strict=True))
    assert nested.reference_loss(scores, labels) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("metric", ONE_OF_EACH, ids=str)
def test_a_metric_of_a_goal_is_the_metric_of_these_labels(metric, scores, rng):
    y, other = (random_labels(metric.label_limit, rng, ROWS) for _ in range(2))
    metrics = [replace(metric, goal=g) for g in (None, "revenue", "relevance")]
    for how in ({}, {"per_query": True}, {"weight": rng.random(ROWS)}):
        found = evaluate(metrics, scores, {"relevance": y, "revenue": other}, SIZES, **how)
        for value, own in zip(found.values(), (y, other, y), strict=True):
            assert np.array_equal(value, evaluate(metric, scores, own, SIZES, **how), equal_nan=True)
    assert list(found) == [str(metric), f"{metric}[revenue]", f"{metric}[relevance]"]


def test_clicks_are_those_of_the_first_labels(scores, rng):
    clicks, revenue = (rng.random(ROWS) < 0.3).astype(float), rng.integers(0, 4, ROWS).astype(float)
    labels = {"clicks": clicks, "revenue": revenue}
    mixture = Mixture(["lambdamart", "listnet"], normalize=False, labels=[None, "revenue"])
    how = {"propensity": rng.uniform(0.1, 1, ROWS)}
    corrected, second = (
        get_objective(o).gradient_hessian(scores, clicks, SIZES, **how) for o in ("lambdamart", "ranknet")
    )
    plain = get_objective("listnet").gradient_hessian(scores, revenue, SIZES)
    assert close(mixture.gradient_hessian(scores, labels, SIZES, **how), np.add(corrected, plain))
    both = Mixture(["lambdamart", "ranknet"], normalize=False)
    assert close(both.gradient_hessian(scores, clicks, SIZES, **how), np.add(corrected, second))
    with pytest.raises(LTRError, match="propensity"):
        get_objective("lambdamart[revenue]").gradient_hessian(scores, labels, SIZES, **how)


@everywhere
def test_goals_agree_if_their_labels_are_equal(objective, rng):
    """In wrappers and sums of sums too."""
    labels, _ = two_goals(objective, rng)
    both = Mixture([objective, objective], [0.5, 2], labels=[None, "revenue"])
    for outer in (both, UnitHessian(both), Mixture(["ranknet", both])):
        warn_if_goals_agree(outer, Queries(labels, SIZES))
        with pytest.warns(LTRWarning, match=r"labels\['revenue'\]"):
            warn_if_goals_agree(outer, Queries({**labels, "revenue": labels["relevance"].copy()}, SIZES))
    warn_if_goals_agree(Mixture([objective, objective]), Queries(labels, SIZES))  # of one goal


def test_goals_that_disagree_do_not_cancel():
    labels = {"relevance": np.tile([0.0, 1.0], ROWS // 2), "revenue": np.tile([1.0, 0.0], ROWS // 2)}
    sizes, same = [2] * (ROWS // 2), np.zeros(ROWS)
    mixture = Mixture(["ranknet", "ranknet[revenue]"], [1, 3], normalize=False)
    report = report_of(mixture, same, labels, sizes)
    assert (report.useful, report.useless) == (ROWS // 2, {})
    equal = {"relevance": np.ones(ROWS), "revenue": np.ones(ROWS)}
    assert report_of(mixture, same, equal, sizes).useless == {"all labels equal": ROWS // 2}

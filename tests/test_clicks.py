"""Propensities: exact expectations over clicks."""

import itertools

import numpy as np
import pytest
from clicks import click_log
from conftest import OBJECTIVES

from ltr_objectives import (
    LambdaLoss,
    LambdaMART,
    LTRError,
    LTRWarning,
    Queries,
    RankNet,
    get_objective,
    objective_names,
)
from ltr_objectives.datasets import make_ranking
from ltr_objectives.objectives.pairwise import PairwiseObjective
from ltr_objectives.testing import random_labels

CORRECTING = [o for o in OBJECTIVES if isinstance(o, PairwiseObjective) and o.facts.takes_clicks]
LINEAR = [
    o for o in CORRECTING if not (p := o.pair_settings()).lambda_norm and p.hessian != "ones"
]  # in the weights of the pairs
IDS = [f"{i}-{o.name}" for i, o in enumerate(CORRECTING)]


@pytest.fixture
def log():
    return click_log(make_ranking(25, 3, features=20, mean_length=6), 3)


@pytest.mark.filterwarnings("ignore:with propensity, labels are clicks")  # graded labels test the kernels better
@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_gradient_and_hessian_equal_the_reference(objective, rng):
    objective = objective.without_noise()
    for scale in (0.0, 1.0, 50.0, 1e4):
        for n in (1, 2, 3, 7, 30):
            labels, propensity = random_labels(objective.label_limit, rng, n + 2), rng.uniform(0.01, 1, n + 2)
            scores = np.round(rng.normal(size=n + 2), 1) * scale
            found = np.array(objective.gradient_hessian(scores, labels, [2, n], propensity=propensity))
            expected = objective.reference(scores[2:], labels[2:], propensity[2:])
            np.testing.assert_allclose(found[:, 2:], expected, rtol=1e-9, atol=1e-12)


def test_propensities_above_1_are_warned_of_once():
    """They may be inverse weights."""
    queries = Queries([1, 0], [2], propensity=[1.0, 4.0])
    with pytest.warns(LTRWarning, match="propensity is up to 4, .* inverse"):
        RankNet().compute(queries, [0.0, 0.0])
    for same in (queries, Queries([1, 0], [2], propensity=[0.25, 1.0])):
        RankNet().compute(same, [0.0, 0.0])


def expectation(objective, scores, relevance, propensity):
    """Return the mean gradient over all clicks, document i clicked with probability propensity * relevance."""
    n, total = len(scores), np.zeros((2, len(scores)))
    for clicks in itertools.product((0.0, 1.0), repeat=n):
        chance = np.prod(np.where(clicks, propensity * relevance, 1 - propensity * relevance))
        if chance > 0:
            total += chance * np.array(objective.gradient_hessian(scores, clicks, [n], propensity=propensity))
    return total


@pytest.mark.parametrize("objective", LINEAR, ids=[o.name for o in LINEAR])
def test_with_one_relevant_document_the_expectation_is_the_gradient_without_bias(objective, rng):
    for n in (2, 3, 4):
        scores, propensity = rng.normal(size=n), rng.uniform(0.05, 1, n)
        relevance, chance = np.zeros(n), rng.uniform(0.1, 1)
        relevance[rng.integers(n)] = chance
        seen = objective.gradient_hessian(scores, np.sign(relevance), [n], propensity=np.ones(n))
        np.testing.assert_allclose(
            expectation(objective, scores, relevance, propensity), chance * np.array(seen), rtol=1e-9, atol=1e-15
        )


def test_with_several_the_expectation_is_what_the_documentation_says(rng):
    """Pairs of i over j weigh relevance_i (1 - propensity_j relevance_j)."""
    scores, propensity, relevance = rng.normal(size=4), rng.uniform(0.05, 1, 4), rng.uniform(0, 1, 4)
    expected = np.zeros((2, 4))
    for i, j in itertools.permutations(range(4), 2):
        pair = np.array(RankNet().gradient_hessian(scores[[i, j]], [1, 0], [2]))
        expected[:, [i, j]] += relevance[i] * (1 - propensity[j] * relevance[j]) * pair
    np.testing.assert_allclose(expectation(RankNet(), scores, relevance, propensity), expected, rtol=1e-9)


def test_labels_that_are_not_clicks_are_warned_of_once_for_a_data_set(log):
    scores, given = log.data.X[:, 0], {"propensity": log.propensity}
    for labels in (log.data.y, log.clicks + 1, log.clicks / 2):
        queries = Queries(labels, log.data.group, **given)
        with pytest.warns(LTRWarning, match="with propensity, labels are clicks"):
            LambdaMART().compute(queries, scores)
        RankNet().compute(queries, scores)  # silent: warnings are errors
    for right in (log.clicks, log.clicks > 0, log.data.y > 0):
        LambdaMART().gradient_hessian(scores, right, log.data.group, **given)


def test_objectives_that_correct_nothing_say_so():
    for objective in [*map(get_objective, objective_names()), RankNet("all")]:
        corrects = isinstance(objective, PairwiseObjective) and objective not in (RankNet("all"), LambdaLoss())
        assert objective.facts.takes_clicks == corrects
        if not corrects:
            with pytest.raises(LTRError, match="propensity"):
                objective.gradient_hessian([0.0, 1.0], [0, 1], [2], propensity=[1.0, 0.5])

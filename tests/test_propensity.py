"""Position bias: exact expectations over clicks, the likelihood's own optimum, refusals, same bytes."""

import itertools
import pickle

import numpy as np
import pytest
from clicks import click_log, some_queries
from conftest import OBJECTIVES
from generated import labels_for
from scipy import optimize

from ltr_objectives import LambdaMART, LTRError, LTRWarning, Queries, RankNet, get_objective, registry
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.pairwise import PairwiseObjective
from ltr_objectives.propensity import position_propensity

CORRECTING = [o for o in OBJECTIVES if isinstance(o, PairwiseObjective) and o.facts.takes_clicks]
IDS = [f"{i}-{o.name}" for i, o in enumerate(CORRECTING)]


@pytest.fixture
def log():
    return click_log(some_queries(30, 3), 1.0, 3)


@pytest.mark.filterwarnings("ignore:with propensity, labels are clicks")  # graded labels test the kernels better
@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_gradient_and_hessian_equal_the_reference(objective, rng):
    objective = objective.without_noise()
    for scale in (0.0, 1.0, 50.0, 1e4):
        for n in (1, 2, 3, 7, 30):
            labels, propensity = labels_for(objective.label_limit, rng, n), rng.uniform(0.01, 1, n)
            scores = np.round(rng.normal(size=n), 1) * scale
            ours = objective.gradient_hessian(scores, labels, [n], propensity=propensity)
            for a, b in zip(ours, objective.reference(scores, labels, propensity), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def expectation(objective, scores, relevance, propensity):
    """Mean gradient over all clicks, document i clicked with probability propensity * relevance, independently."""
    n, total = len(scores), np.zeros((2, len(scores)))
    for clicks in itertools.product((0.0, 1.0), repeat=n):
        chance = np.prod(np.where(clicks, propensity * relevance, 1 - propensity * relevance))
        if chance > 0:
            total += chance * np.array(objective.gradient_hessian(scores, clicks, [n], propensity=propensity))
    return total


@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_with_one_relevant_document_the_expectation_is_the_gradient_without_bias(objective, rng):
    if objective.lambda_norm or objective.hessian == "ones":
        pytest.skip("not linear in the weights of the pairs")
    for n in (2, 3, 4):
        scores, propensity = rng.normal(size=n), rng.uniform(0.05, 1, n)
        relevance, chance = np.zeros(n), rng.uniform(0.1, 1)
        relevance[rng.integers(n)] = chance
        truth = chance * np.array(objective.gradient_hessian(scores, np.sign(relevance), [n]))
        np.testing.assert_allclose(expectation(objective, scores, relevance, propensity), truth, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("objective", [RankNet(), LambdaMART(DCG())], ids=str)
def test_with_several_the_expectation_is_what_the_documentation_says(objective, rng):
    """If a pair's weight does not depend on other clicks: relevance_i (1 - propensity_j relevance_j) for i over j."""
    for n in (2, 3, 4):
        scores, propensity, relevance = rng.normal(size=n), rng.uniform(0.05, 1, n), rng.uniform(0, 1, n)
        expected = np.zeros((2, n))
        for i in range(n):
            for j in set(range(n)) - {i}:
                others = np.zeros(n)
                others[i] = 1
                order = np.argsort(-scores, kind="stable")
                weight = objective.pair_weights(others[order])
                d, e = sorted((list(order).index(i), list(order).index(j)))
                rho = 1 / (1 + np.exp(scores[i] - scores[j]))
                w = relevance[i] * (1 - propensity[j] * relevance[j]) * weight[d, e]
                expected[0, [i, j]] += np.array([-w, w]) * rho
                expected[1, [i, j]] += w * rho * (1 - rho)
        np.testing.assert_allclose(expectation(objective, scores, relevance, propensity), expected, rtol=1e-9)


@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_equal_propensities_and_positions_change_nothing_but_the_size(objective, log):
    scores, labels = log.data.X[:, 0], log.clicks
    grad, hess = objective.gradient_hessian(scores, labels, log.data.group)
    alike = objective.gradient_hessian(scores, labels, log.data.group, position=np.full(len(labels), 7))
    assert [x.tobytes() for x in alike] == [grad.tobytes(), hess.tobytes()]
    if not objective.lambda_norm:
        halved = objective.gradient_hessian(scores, labels, log.data.group, propensity=np.full(len(labels), 0.5))
        np.testing.assert_allclose(halved[0], 2 * grad, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_positions_add_the_logarithm_of_the_estimate_to_the_scores(objective, log):
    scores, group = log.data.X[:, 0].astype(float), log.data.group
    theta = position_propensity(scores, log.clicks, log.position, group, sigma=objective.sigma)
    shifted = scores + np.log(theta)[log.position] / objective.sigma
    expected = objective.without_noise().gradient_hessian(shifted, log.clicks, group)
    ours = objective.without_noise().gradient_hessian(scores, log.clicks, group, position=log.position)
    for a, b in zip(ours, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("objective", CORRECTING, ids=IDS)
def test_same_bytes_for_any_threads_and_copies(objective, log):
    copy = pickle.loads(pickle.dumps(objective))
    for how in ("propensity", "position"):
        queries = Queries(log.clicks, log.data.group, **{how: getattr(log, how)})
        first = [x.tobytes() for x in objective.compute(queries, log.data.X[:, 0], n_threads=1)]
        objective.compute(queries, log.data.X[:, 1])
        assert [x.tobytes() for x in copy.compute(queries, log.data.X[:, 0], n_threads=4)] == first


def likelihood(theta, scores, clicks, position, group, weight):
    """The penalised log likelihood, written out."""
    total, start = 0.5 * np.sum(np.log(theta) - theta), 0
    for n, w in zip(group, weight, strict=True):
        rows = slice(start, start + n)
        worth = scores[rows] + np.log(theta)[position[rows]]
        total += w * np.sum(clicks[rows] * (worth - np.logaddexp.reduce(worth)))
        start += n
    return total


def test_the_estimate_is_the_maximum_of_the_likelihood(rng):
    group = rng.integers(1, 7, 80)
    rows = int(group.sum())
    scores, clicks = rng.normal(size=rows), rng.integers(0, 3, rows).astype(float)
    position, weight = rng.integers(0, 6, rows), rng.uniform(0.5, 2, len(group))
    theta = position_propensity(2 * scores, clicks, position, group, weight=weight, sigma=0.5)
    best = optimize.minimize(
        lambda x: -likelihood(np.exp(x), scores, clicks, position, group, weight), np.zeros(6), tol=1e-10
    )
    np.testing.assert_allclose(theta, np.exp(best.x - best.x.max()), rtol=1e-4)
    assert np.mean(np.exp(best.x)) == pytest.approx(1, abs=1e-3)


def test_a_weight_of_a_query_is_so_many_queries(rng, log):
    weight = rng.integers(1, 4, len(log.data.group))
    query = np.repeat(np.arange(len(weight)), log.data.group)
    rows = np.concatenate([np.tile(np.flatnonzero(query == q), w) for q, w in enumerate(weight)])
    repeated = [x[rows] for x in (log.data.X[:, 0], log.clicks, log.position)]
    once = position_propensity(log.data.X[:, 0], log.clicks, log.position, log.data.group, weight=weight)
    again = position_propensity(*repeated, np.repeat(log.data.group, weight))
    np.testing.assert_allclose(once, again, rtol=1e-5)


@pytest.mark.parametrize("scores", [[0.0, 0.0], [1.7e308, -1.7e308], [1e-320, 0.0]])
def test_strange_lists_give_finite_propensities(scores):
    for clicks in ([0, 0], [1, 0], [0, 1], [1e6, 1e6]):
        for position in ([0, 0], [5, 99_999]):
            theta = position_propensity(scores, clicks, position, [2])
            assert np.isfinite(theta).all()
            assert (theta > 0).all()
            assert theta[position].max() == 1
            for objective in (LambdaMART("dcg"), RankNet()):
                assert np.isfinite(
                    objective.gradient_hessian(scores, np.minimum(clicks, 1), [2], position=position)
                ).all()


MISTAKES = {
    "propensity has 1 entries; pass one per row": {"propensity": [1.0]},
    "propensity must be above 0": {"propensity": [1.0, 0.0]},
    "propensity must be finite, but row 1 is nan": {"propensity": [1.0, np.nan]},
    "position has 1 entries; pass one per row": {"position": [0]},
    "position must hold whole numbers from 0": {"position": [0, -1]},
    "position must hold whole numbers": {"position": [0, 0.5]},
    "position must hold whole numbers from 0 to": {"position": [0, 10**9]},
    "position must be numbers": {"position": ["top", "bottom"]},
    "not both": {"position": [0, 1], "propensity": [1.0, 0.5]},
}


def test_impossible_clicks_are_refused():
    for message, given in MISTAKES.items():
        with pytest.raises(LTRError, match=message):
            LambdaMART().gradient_hessian([0.0, 1.0], [0, 1], [2], **given)


@pytest.mark.parametrize("how", ["propensity", "position"])
def test_labels_that_are_not_clicks_are_warned_of_once_for_a_data_set(how, log):
    scores, given = log.data.X[:, 0], {how: getattr(log, how)}
    told = rf"with {how}, labels are clicks, 0 or 1, but some are \d.* so leave {how} out; .* pass labels > 0$"
    for labels in (log.data.y, log.clicks + 1, log.clicks / 2):
        queries = Queries(labels, log.data.group, **given)
        with pytest.warns(LTRWarning, match=told):
            LambdaMART().compute(queries, scores)
        for objective in CORRECTING:
            if objective.label_limit is None:
                objective.compute(queries, scores)  # silent: warnings are errors
    for right in (log.clicks, log.clicks > 0, log.data.y > 0):
        LambdaMART().gradient_hessian(scores, right, log.data.group, **given)
    assert position_propensity(scores, 3 * log.clicks, log.position, log.data.group).max() == 1  # counts of clicks


def test_gradients_beyond_float64_are_refused():
    with pytest.raises(LTRError, match="beyond the range"):
        RankNet().gradient_hessian([0.0, 1.0], [0, 1], [2], propensity=[1.0, 5e-324])
    with pytest.raises(LTRError, match="clicks and must not be negative"):
        RankNet().gradient_hessian([0.0, 1.0], [-1, 1], [2], position=[0, 1])
    with pytest.raises(LTRError, match="ranknet does not take propensity"):
        RankNet("all").gradient_hessian([0.0, 1.0], [0, 1], [2], propensity=[1, 1])


def test_objectives_that_correct_nothing_say_so():
    for name in registry.objectives():
        objective = get_objective(name)
        assert objective.facts.takes_clicks == isinstance(objective, PairwiseObjective)
        for data in ({"propensity": [1.0, 0.5]}, {"position": [0, 1]}):
            if not objective.facts.takes_clicks:
                with pytest.raises(LTRError, match="does not take propensity or position; leave them out"):
                    objective.gradient_hessian([0.0, 1.0], [0, 1], [2], **data)

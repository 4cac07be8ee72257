"""Our losses against those that rax and allRank publish, with their definitions written out."""

from itertools import permutations
from math import exp, log, log2

import numpy as np
import pytest
from scipy.special import softmax

from ltr_objectives import (
    ApproxMAP,
    ApproxMRR,
    ApproxNDCG,
    LambdaLoss,
    ListNet,
    NeuralNDCG,
    NeuralSort,
    Ordinal,
    RankNet,
    SoftRank,
    evaluate,
)


def loss(objective, scores, labels):
    return float(np.real(objective.reference_loss(np.array(scores, float), np.array(labels, float))))


def sg(x):
    return 1 / (1 + exp(-x))


def test_softmax_loss_of_rax():
    rax = ListNet("unnormalized")
    assert loss(rax, [2, 1, 3], [1, 0, 0]) == pytest.approx(1.4076059, abs=2e-7)  # in its documentation
    graded = 4 * log(exp(2) + exp(1) + exp(3)) - (1 * 2 + 3 * 1 + 0 * 3)
    assert loss(rax, [2, 1, 3], [1, 3, 0]) == pytest.approx(graded)
    assert loss(rax, [2, 1, 3], [0, 0, 0]) == 0
    assert loss(ListNet("labels"), [2, 1, 3], [1, 3, 0]) == pytest.approx(graded / 4)  # of probabilities


def test_listnet_of_allrank():
    rho = softmax([0.5, -1, 0])
    assert loss(ListNet(), [0.5, -1, 0], [2, 0, 1]) == pytest.approx(-softmax([2, 0, 1]) @ np.log(rho))
    # of the slides, with labels as probabilities
    assert loss(ListNet("unnormalized"), [0.5, -1, 0], [2, 0, 1]) == pytest.approx(-np.array([2, 0, 1]) @ np.log(rho))


def test_pairwise_logistic_loss_of_rax():
    expected = log(1 + exp(-(2 - 1))) + log(1 + exp(-(2 - 3)))
    assert loss(RankNet(), [2, 1, 3], [1, 0, 0]) == pytest.approx(expected)
    assert expected == pytest.approx(1.6265235, abs=2e-7)  # in its documentation


def test_approximate_metrics_of_rax():
    scores, labels = [0, 1, 3, 2], [0, 0, 1, 2]
    first = 1 + sg(0 - 3) + sg(1 - 3) + sg(2 - 3)
    second = 1 + sg(0 - 2) + sg(1 - 2) + sg(3 - 2)
    ndcg = (1 / log2(1 + first) + 3 / log2(1 + second)) / (3 / log2(2) + 1 / log2(3))
    assert loss(ApproxNDCG(), scores, labels) == pytest.approx(-ndcg)
    assert -ndcg == pytest.approx(-0.71789175, abs=2e-7)  # in its documentation


def test_approximate_mrr_of_rax_for_one_relevant_document():
    for alpha in (1.0, 5.0):
        rank = 1 + sg(alpha * (0 - 2)) + sg(alpha * (1 - 2)) + sg(alpha * (3 - 2))
        assert loss(ApproxMRR(alpha), [0, 1, 3, 2], [0, 0, 0, 2]) == pytest.approx(-1 / rank)


def test_approximate_mrr_counts_no_relevant_document_as_a_rival_and_shares_ties():
    scores, labels = [0, 1, 3, 2], [0, 0, 1, 2]
    assert loss(ApproxMRR(), scores, labels) == pytest.approx(-1 / (1 + sg(0 - 3) + sg(1 - 3)))
    of_rax = -1 / (1 + sg(0 - 3) + sg(1 - 3) + sg(2 - 3))
    assert of_rax == pytest.approx(-0.6965873, abs=2e-7)  # in its documentation
    assert loss(ApproxMRR(), scores, labels) < of_rax
    grad, hess = ApproxMRR(step=1).gradient_hessian([0, 0, 0, -1], [0, 1, 1, 2], [4])
    rank = 1 + sg(0)
    pair = sg(0) ** 2 / rank**2
    assert grad == pytest.approx([pair, -pair / 2, -pair / 2, 0])
    assert hess == pytest.approx([pair, pair / 2, pair / 2, 0])


def pairs(weight):
    """Return allRank's sum for labels 1, 0, 2 in rank order, with scores 1, 0.5, -0.2."""
    scores, gains = (1.0, 0.5, -0.2), (1.0, 0.0, 3.0)
    ideal = 3 / log2(2) + 1 / log2(3)
    total = 0.0
    for d, e in permutations(range(1, 4), 2):
        w = weight(d, e, gains[d - 1] / ideal, gains[e - 1] / ideal)
        total += w * log2(1 + exp(-(scores[d - 1] - scores[e - 1])))
    return total


def second(d, e, g, h):
    gap = abs(d - e)
    return max(g - h, 0) * (1 / log2(1 + gap) - 1 / log2(2 + gap))


def rank(d, e, g, h):
    return max(g - h, 0) * abs(1 / log2(1 + d) - 1 / log2(1 + e))


def test_lambdaloss_of_allrank():
    scores, labels = [-0.2, 1.0, 0.5], [2, 1, 0]
    assert loss(LambdaLoss(weights="ndcg2"), scores, labels) == pytest.approx(pairs(second))
    both = pairs(lambda *x: 10 * second(*x) + rank(*x))
    assert loss(LambdaLoss(weights="ndcg2++", mu=10), scores, labels) == pytest.approx(both)


def test_ordinal_loss_of_allrank_with_one_score():
    first = log(sg(0.3 + 1)) + log(1 - sg(0.3 - 2))  # of label 1
    second = log(sg(-0.7 + 1)) + log(sg(-0.7 - 2))  # of label 2
    assert loss(Ordinal((-1.0, 2.0)), [0.3, -0.7], [1, 2]) == pytest.approx(-first - second)


def test_neuralndcg_of_allrank_with_one_round_of_scaling():
    s, tau = [0.5, -0.1, 0.2], 0.9
    matrix = np.zeros((3, 3))
    for i in range(3):
        logits = [((3 + 1 - 2 * (i + 1)) * x - sum(abs(x - z) for z in s)) / tau for x in s]
        matrix[i] = [exp(c) / sum(map(exp, logits)) for c in logits]
    matrix /= matrix.sum(axis=0)
    matrix /= matrix.sum(axis=1)[:, None]
    gains = matrix @ [1, 0, 3]
    expected = (gains[0] + gains[1] / log2(3)) / (3 + 1 / log2(3))
    assert loss(NeuralNDCG(2, temperature=tau, rounds=1), s, [1, 0, 2]) == pytest.approx(-expected)


def neural(sharp, k=None):
    return [NeuralNDCG(k, temperature=1 / sharp, transposed=t) for t in (False, True)]


SOFT = {
    "ndcg": lambda sharp: [ApproxNDCG(sharp), SoftRank(1 / sharp), *neural(sharp)],
    "ndcg@3": lambda sharp: neural(sharp, 3),
    "mrr": lambda sharp: [ApproxMRR(sharp), NeuralSort("mrr", 1 / sharp)],
    "map": lambda sharp: [ApproxMAP(sharp), NeuralSort("map", 1 / sharp)],
    "err@4": lambda sharp: [NeuralSort("err@4", 1 / sharp), NeuralSort("err@4", 1 / sharp, transposed=True)],
    "precision@3": lambda sharp: [NeuralSort("precision@3", 1 / sharp)],
}


@pytest.mark.parametrize("metric", SOFT)
def test_soft_metrics_tend_to_the_metric(metric, rng):
    for _ in range(5):
        scores, labels = rng.permutation(8) / 4.0, rng.permutation([0, 0, 0, 1, 1, 2, 3, 4]).astype(float)
        value = evaluate(metric, scores, labels, [8])
        for soft, sharp in zip(SOFT[metric](3.0), SOFT[metric](1e3), strict=True):
            assert loss(sharp, scores, labels) == pytest.approx(-value, abs=1e-9)
            assert abs(loss(soft, scores, labels) + value) > 1e-6

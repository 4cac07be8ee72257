"""The losses of allRank, derived anew for one list in PyTorch; autograd gives their gradients, kernels ours.

Their conventions differ from ours in what a batch is divided by (`by`), in the base of logarithms, in constants, and in
lists whose labels are all equal. They replace probabilities below EPS, so that very wrong scores get no gradient.
"""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ltr_objectives import (  # noqa: E402 - skipped without torch
    ApproxNDCG,
    LambdaLoss,
    LambdaMART,
    ListMLE,
    ListNet,
    NeuralNDCG,
    Ordinal,
    RankNet,
)
from ltr_objectives.adapters import torch_loss  # noqa: E402 - likewise

EPS = 1e-10
LN2 = math.log(2.0)
THETA = (-1.0, -0.2, 0.4, 1.3)
LABELS = [[2, 0, 1, 1, 4], [1, 0], [0, 3, 3, 0, 1, 2, 0], [0]]
DISTINCT = [[3, 0, 1, 2, 4], [1, 0], [0, 3, 6, 5, 1, 2, 4], [0]]
EQUAL = [[2, 2, 2], [0, 0]]
SCORES = torch.tensor(np.random.default_rng(3).normal(size=(4, 7)))


def listnet(s, y):
    return -(y.softmax(0) * torch.log(s.softmax(0) + EPS)).sum()


def listmle(s, y):
    """Labels have no ties, whose order is random in allRank."""
    s = s[y.argsort(descending=True)]
    return (s.flip(0).logcumsumexp(0).flip(0) - s).sum()


def gains(y, k=None):
    """Gain of each document over the ideal DCG, and 1 / D of each rank."""
    discount = 1 / torch.log2(torch.arange(2, len(y) + 2, dtype=y.dtype))
    gain = 2**y - 1
    return gain / (gain.sort(descending=True)[0] * discount)[:k].sum().clamp(min=EPS), discount


def approxndcg(s, y):
    rank = 0.5 + torch.sigmoid(s - s[:, None]).sum(1)  # a document beats itself with probability 0.5
    return -(gains(y)[0] / torch.log2(1 + rank)).sum()


def neuralndcg(k, tau, transposed=False):
    def loss(s, y):
        n = len(s)
        ranks = torch.arange(1, n + 1)
        P = ((n + 1 - 2 * ranks)[:, None] * s - (s[:, None] - s).abs().sum(0)).div(tau).softmax(1)
        for _ in range(50):
            P = P / P.sum(0)
            P = P / P.sum(1, keepdim=True)
        gain, discount = gains(y, k)
        kept = discount * (ranks <= (k or n))
        return -(gain * (P.T @ kept)).sum() if transposed else -(P @ gain * kept).sum()

    return loss


def pairwise(weight, k=None, log=LN2):
    """allRank's sum over pairs of ranks d, e within k: the logarithm of a chance to the power of a weight."""

    def loss(s, y):
        s, order = s.sort(descending=True)
        y, total = y[order], 0.0 * s.sum()
        gain, discount = gains(y, k)
        for d, e in itertools.product(range(min(len(s), k or len(s))), repeat=2):
            if y[d] > y[e]:
                chance = torch.sigmoid(s[d] - s[e]).clamp(min=EPS)
                total = total - (chance ** weight(d, e, gain, discount, y)).clamp(min=EPS).log() / log
        return total

    return loss


def two(d, e, gain, discount, y):
    gap = abs(d - e)
    return (gain[d] - gain[e]).abs() * (1 / math.log2(1 + gap) - 1 / math.log2(2 + gap))


def lambdarank(d, e, gain, discount, y):
    return (gain[d] - gain[e]).abs() * (discount[d] - discount[e]).abs()


def both(d, e, *rest):
    return 10 * two(d, e, *rest) + lambdarank(d, e, *rest)


def ranknet(*_):
    return 1.0


def difference(d, e, gain, discount, y):
    return y[d] - y[e]


def ordinal(s, y):
    answer = (y[:, None] >= torch.arange(1, len(THETA) + 1)).to(s.dtype)
    chance = torch.sigmoid(s[:, None] - torch.tensor(THETA))  # in allRank an output of the network for each step
    return torch.nn.functional.binary_cross_entropy(chance, answer, reduction="sum")


def sharp(k):
    return NeuralNDCG(k, temperature=0.7, rounds=50, tolerance=0.0)  # allRank stops when the whole batch has converged


CASES = {  # our objective, theirs, our gradient over theirs
    "listnet": (ListNet(), listnet, 1.0),
    "approxndcg": (ApproxNDCG(), approxndcg, 1.0),
    "neuralndcg": (sharp(None), neuralndcg(None, 0.7), 1.0),
    "neuralndcg@3": (sharp(3), neuralndcg(3, 0.7), 1.0),
    "transposed@3": (sharp(3), neuralndcg(3, 0.7, True), 1.0),  # it too scales P, not its transpose
    "ndcg2": (LambdaLoss(weights="ndcg2"), pairwise(two), 1.0),
    "ndcg2++": (LambdaLoss(), pairwise(both), 1.0),
    "lambdarank, loss": (LambdaLoss(mu=0.0), pairwise(lambdarank), 1.0),
    "lambdarank": (LambdaMART("ndcg"), pairwise(lambdarank), LN2),
    "ranknet, binary": (RankNet(), pairwise(ranknet), LN2),
    "ranknet": (RankNet(), pairwise(ranknet, log=1.0), 1.0),
    "ranknet, difference": (RankNet("difference"), pairwise(difference, log=1.0), 1.0),
    "ordinal": (Ordinal(THETA), ordinal, 1.0),
}


def batch(labels):
    """Padded scores and labels."""
    y = torch.full((len(labels), 7), -1.0, dtype=torch.float64)
    for row, each in zip(y, labels, strict=True):
        row[: len(each)] = torch.tensor(each)
    return SCORES[: len(labels)].clone().requires_grad_(), y


def values_and_grad(loss, s, y):
    values = loss(s, y)
    return values.detach(), torch.autograd.grad(values.sum(), s)[0]


def ours(objective):
    return theirs(lambda s, y: torch_loss(objective)(s, y, [len(s)]))


def theirs(formula):
    return lambda s, y: torch.stack([formula(a[b >= 0], b[b >= 0]) for a, b in zip(s, y, strict=True)])


def assert_close(one, two):
    torch.testing.assert_close(one, two, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("case", [*CASES, "listmle"])
def test_values_and_gradients(case):
    objective, formula, factor = CASES.get(case, (ListMLE(), listmle, 1.0))
    s, y = batch(DISTINCT if case == "listmle" else LABELS)
    values, grad = values_and_grad(ours(objective), s, y)
    expected, expected_grad = values_and_grad(theirs(formula), s, y)
    assert_close(grad, factor * expected_grad)
    if case != "lambdarank":  # our value is minus NDCG
        assert_close(values, (factor * expected).double())


def test_lists_of_equal_labels_have_a_gradient_in_some_losses_of_allrank_only():
    """ListNet and Ordinal have one in both."""
    s, y = batch(EQUAL)
    for case, (objective, formula, *_) in CASES.items():
        _, grad = values_and_grad(ours(objective), s, y)
        _, expected = values_and_grad(theirs(formula), s, y)
        if case == "approxndcg":
            assert (grad == 0).all()
        else:
            assert_close(grad, expected)
        assert (expected[0, :3].abs() > 1e-3).any() == (case in ("approxndcg", "listnet", "ordinal"))


def test_allrank_has_no_gradient_for_very_wrong_scores():
    s, y = torch.tensor([[-50.0, 0.0]], dtype=torch.float64, requires_grad=True), torch.tensor([[1.0, 0.0]])
    for case in ("listnet", "ndcg2++", "ranknet, binary"):
        _, grad = values_and_grad(ours(CASES[case][0]), s, y)
        _, expected = values_and_grad(theirs(CASES[case][1]), s, y)
        assert expected.abs().max() < 1e-9
        assert grad[0, 0] < -0.1


def pairs_of(y):
    return [(i, j) for i, j in itertools.permutations(range(len(y)), 2) if y[i] > y[j] >= 0]


def test_what_a_batch_is_divided_by():
    """Our "mean" is over all lists; `reduction="sum"` or `weight=` give the others."""
    s, y = batch([*LABELS[:2], *EQUAL])
    has = (y > 0).any(1)
    relevant = torch_loss(sharp(None))(s, y, mask=y >= 0, weight=has.double())  # lists with a relevant document
    assert_close(relevant, ours(sharp(None))(s, y)[has].mean())
    documents = (y >= 0).sum()
    by_document = torch_loss(Ordinal(THETA), "sum")(s, y, mask=y >= 0) / documents
    each = torch.cat([ordinal(s[i, j : j + 1], y[i, j : j + 1])[None] for i, j in (y >= 0).nonzero().tolist()])
    assert_close(by_document, each.mean())
    pairs = sum(map(len, map(pairs_of, y)))
    logistic = torch_loss(RankNet(), "sum")(s, y, mask=y >= 0) / pairs
    gaps = [a[i] - a[j] for a, b in zip(s, y, strict=True) for i, j in pairs_of(b)]
    assert_close(logistic, torch.nn.functional.softplus(-torch.stack(gaps)).mean())

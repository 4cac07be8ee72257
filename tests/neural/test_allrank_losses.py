"""Losses of allRank, derived anew for one list in PyTorch; autograd gives their gradients, kernels ours.

Conventions differ from ours in what a batch is divided by, in the base of logarithms, in constants, in lists whose
labels are all equal, and in very wrong scores, which get no gradient because of EPS.
"""

import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import ltr_objectives as ltr  # noqa: E402 - skipped without torch
from ltr_objectives.adapters import torch_loss  # noqa: E402 - likewise

EPS = 1e-10
LN2 = math.log(2.0)
LABELS = [[2, 0, 1, 1, 4], [1, 0], [0, 3, 3, 0, 1, 2, 0], [0]]
DISTINCT = [[3, 0, 1, 2, 4], [1, 0], [0, 3, 6, 5, 1, 2, 4], [0]]
EQUAL = [[2, 2, 2], [0, 0]]
THETA = (-1.0, -0.2, 0.4, 1.3)
SCORES = torch.tensor(np.random.default_rng(3).normal(size=(4, 7)))


def listnet(s, y):
    return -(y.softmax(0) * torch.log(s.softmax(0) + EPS)).sum()


def listmle(s, y):
    """Compute ListMLE for labels without ties, whose order is random in allRank."""
    s = s[y.argsort(descending=True)]
    return (s.flip(0).logcumsumexp(0).flip(0) - s).sum()


def gains(y, k=None):
    """Return gain of each document over the ideal DCG, and 1 / D of each rank."""
    discount = 1 / torch.log2(torch.arange(2, len(y) + 2, dtype=y.dtype))
    gain = 2**y - 1
    return gain / (gain.sort(descending=True)[0] * discount)[:k].sum().clamp(min=EPS), discount


def approxndcg(s, y):
    rank = 0.5 + torch.sigmoid(s - s[:, None]).sum(1)  # a document beats itself with probability 0.5
    return -(gains(y)[0] / torch.log2(1 + rank)).sum()


def neuralndcg(s, y):
    """Compute NeuralNDCG at 3 with temperature 0.7. The transposed form, which scales P too, has this value."""
    n = len(s)
    ranks = torch.arange(1, n + 1)
    P = ((n + 1 - 2 * ranks)[:, None] * s - (s[:, None] - s).abs().sum(0)).div(0.7).softmax(1)
    for _ in range(50):
        P = P / P.sum(0)
        P = P / P.sum(1, keepdim=True)
    gain, discount = gains(y, 3)
    return -(P @ gain * discount * (ranks <= 3)).sum()


def pairwise(weight, log=LN2):
    """Return allRank's sum over pairs of ranks d, e: the logarithm of a chance to the power of a weight."""

    def loss(s, y):
        s, order = s.sort(descending=True)
        y, total = y[order], 0.0 * s.sum()
        gain, discount = gains(y)
        for d, e in itertools.permutations(range(len(s)), 2):
            if y[d] > y[e]:
                chance = torch.sigmoid(s[d] - s[e]).clamp(min=EPS)
                total = total - (chance ** weight(d, e, gain, discount, y)).clamp(min=EPS).log() / log
        return total

    return loss


def lambdarank(d, e, gain, discount, _):
    return (gain[d] - gain[e]).abs() * (discount[d] - discount[e]).abs()


def two(d, e, gain, *_):
    gap = abs(d - e)
    return (gain[d] - gain[e]).abs() * (1 / math.log2(1 + gap) - 1 / math.log2(2 + gap))


def both(*pair):
    return 10 * two(*pair) + lambdarank(*pair)


def difference(d, e, gain, discount, y):
    return y[d] - y[e]


def ranknet(*_):
    return 1.0


def ordinal(s, y):
    answer = (y[:, None] >= torch.arange(1, len(THETA) + 1)).to(s.dtype)
    chance = torch.sigmoid(s[:, None] - torch.tensor(THETA))  # in allRank an output of the network for each step
    return torch.nn.functional.binary_cross_entropy(chance, answer, reduction="sum")


CASES = {  # our objective, theirs, our gradient over theirs
    "listnet": (ltr.ListNet(), listnet, 1.0),
    "listmle": (ltr.ListMLE(), listmle, 1.0),
    "approxndcg": (ltr.ApproxNDCG(), approxndcg, 1.0),
    "neuralndcg@3": (ltr.NeuralNDCG(3, temperature=0.7, rounds=50, tolerance=0.0), neuralndcg, 1.0),
    "ndcg2": (ltr.LambdaLoss(weights="ndcg2"), pairwise(two), 1.0),
    "lambdarank, loss": (ltr.LambdaLoss(mu=0.0), pairwise(lambdarank), 1.0),
    "ndcg2++": (ltr.LambdaLoss(), pairwise(both), 1.0),
    "lambdarank": (ltr.LambdaMART("ndcg"), pairwise(lambdarank), LN2),
    "ranknet, binary": (ltr.RankNet(), pairwise(ranknet), LN2),
    "ranknet": (ltr.RankNet(), pairwise(ranknet, log=1.0), 1.0),
    "ranknet, difference": (ltr.RankNet("difference"), pairwise(difference, log=1.0), 1.0),
    "ordinal": (ltr.Ordinal(THETA), ordinal, 1.0),
}


def batch(labels):
    """Return padded scores and labels."""
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


@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case):
    objective, formula, factor = CASES[case]
    s, y = batch(DISTINCT if case == "listmle" else LABELS)
    values, grad = values_and_grad(ours(objective), s, y)
    expected, expected_grad = values_and_grad(theirs(formula), s, y)
    assert_close(grad, factor * expected_grad)
    if case != "lambdarank":  # our value is minus NDCG
        assert_close(values, (factor * expected).double())
    s, y = batch(EQUAL)
    [_, grad], [_, expected_grad] = values_and_grad(ours(objective), s, y), values_and_grad(theirs(formula), s, y)
    if case in ("listmle", "approxndcg"):
        assert ((grad == 0).all(), (expected_grad.abs() > 1e-3).any()) == (True, True)
    else:
        assert_close(grad, factor * expected_grad)


def test_allrank_has_no_gradient_for_very_wrong_scores():
    s, y = torch.tensor([[-50.0, 0.0]], dtype=torch.float64, requires_grad=True), torch.tensor([[1.0, 0.0]])
    for case in ("listnet", "ndcg2++", "ranknet, binary"):
        _, grad = values_and_grad(ours(CASES[case][0]), s, y)
        _, expected = values_and_grad(theirs(CASES[case][1]), s, y)
        assert expected.abs().max() < 1e-9
        assert grad[0, 0] < -0.1


def test_what_a_batch_is_divided_by():
    """Our "mean" is over all lists; `reduction="sum"` or `weight=` give the others."""
    s, y = batch([*LABELS[:2], *EQUAL])
    has, objective = (y > 0).any(1), CASES["neuralndcg@3"][0]
    relevant = torch_loss(objective)(s, y, mask=y >= 0, weight=has.double())  # lists with a relevant document
    assert_close(relevant, ours(objective)(s, y)[has].mean())
    steps = ltr.Ordinal((-1.0, 0.4))
    documents = torch_loss(steps, "sum")(s, y, mask=y >= 0) / (y >= 0).sum()
    each = [torch_loss(steps)(a[None], b[None], [1]) for a, b in zip(s[y >= 0], y[y >= 0], strict=True)]
    assert_close(documents, torch.stack(each).mean())
    gaps = [
        a[i] - a[j] for a, b in zip(s, y, strict=True)
        for i, j in itertools.permutations(range(7), 2) if b[i] > b[j] >= 0
    ]  # fmt: skip
    logistic = torch_loss(ltr.RankNet(), "sum")(s, y, mask=y >= 0) / len(gaps)
    assert_close(logistic, torch.nn.functional.softplus(-torch.stack(gaps)).mean())

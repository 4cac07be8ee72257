"""Expected exposure against all rankings of short lists."""

from itertools import permutations

import numpy as np
import pytest

from ltr_objectives import LTRError, evaluate_exposure

RNG = np.random.default_rng(0)
SIZES = np.array([1, 4, 2, 5])
STARTS = np.cumsum(SIZES)[:-1]
N = int(SIZES.sum())
SCORES, LABELS, OWNER = RNG.integers(0, 3, N), RNG.integers(0, 3, N).astype(float), RNG.choice(list("ab"), N)
P = 0.7


def sorted_exposure(values):
    """The mean over all orders of equal values."""
    n = len(values)
    orders = [y for y in permutations(range(n)) if all(values[y[d]] >= values[y[d + 1]] for d in range(n - 1))]
    return np.mean([P ** np.argsort(y) for y in orders], axis=0)


def random_exposure(scores):
    """The mean over all rankings, each with its probability under Plackett and Luce."""
    total = np.zeros(len(scores))
    for y in permutations(range(len(scores))):
        chances = [np.exp(scores[d]) / np.exp(scores[list(y[i:])]).sum() for i, d in enumerate(y)]
        total += np.prod(chances) * P ** np.argsort(y)
    return total


def by_definition(exposures):
    lists = list(zip(exposures, map(sorted_exposure, np.split(LABELS, STARTS)), np.split(OWNER, STARTS), strict=True))
    found = {}
    for prefix in ("", "owner_"):
        pairs = [(e, t) for e, t, _ in lists]
        if prefix:
            pairs = [[np.array([x[of == o].sum() for o in set(of)]) for x in (e, t)] for e, t, of in lists]
        found[f"{prefix}ee_d"] = np.mean([(e**2).sum() for e, _ in pairs])
        found[f"{prefix}ee_r"] = np.mean([(e * t).sum() for e, t in pairs])
        found[f"{prefix}ee_l"] = np.mean([(e**2).sum() - 2 * (e * t).sum() + (t**2).sum() for e, t in pairs])
    for name, which in (("exposure", 0), ("target", 1)):
        whole = np.concatenate([each[which] for each in lists])
        found |= {f"{name}[{o}]": whole[o == OWNER].sum() / whole.sum() for o in "ab"}
    return found


def test_sorted_scores_and_draws_are_those_of_the_definition():
    found = evaluate_exposure(SCORES, LABELS, SIZES, patience=P, owner=OWNER)
    assert found == pytest.approx(by_definition([sorted_exposure(s) for s in np.split(SCORES, STARTS)]))
    draws = RNG.normal(size=(N, 3))
    exposures = [np.mean([sorted_exposure(s[:, j]) for j in range(3)], axis=0) for s in np.split(draws, STARTS)]
    found = evaluate_exposure(draws, LABELS, qid=np.repeat(range(4), SIZES), patience=P, owner=OWNER)
    assert found == pytest.approx(by_definition(exposures))
    ideal = evaluate_exposure(LABELS, LABELS, SIZES)
    assert list(ideal) == ["ee_d", "ee_r", "ee_l"]
    assert ideal["ee_l"] == 0
    assert ideal["ee_d"] == ideal["ee_r"]


def test_plackett_luce_converges_to_the_definition():
    found = evaluate_exposure(
        SCORES, LABELS, SIZES, patience=P, owner=OWNER, policy="plackett-luce", samples=100_000, seed=3
    )
    expected = by_definition([random_exposure(s) for s in np.split(SCORES, STARTS)])
    assert found == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"patience": 0}, "patience=0 must be above 0 and at most 1"),
        ({"policy": "random"}, "policy='random' is not known"),
        ({"owner": ["a"]}, "owner has 1 entries; pass one per row"),
        ({"scores": np.zeros((2, 2, 2))}, r"scores must have shape \(rows,\) or \(rows, draws\), got \(2, 2, 2\)"),
        ({"scores": np.zeros((3, 2))}, "scores has 3 entries; pass one per row"),
        ({"policy": "plackett-luce", "samples": 0}, "samples=0 must be a whole number"),
    ],
)
def test_wrong_input_is_refused(given, told):
    with pytest.raises(LTRError, match=told):
        evaluate_exposure(**{"scores": [1.0, 2.0], "labels": [1, 0], "group": [2], **given})

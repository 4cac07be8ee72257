"""Random partners instead of all pairs: the same expected gradient and Hessian, in time linear in the length."""

from dataclasses import replace

import numpy as np
import pytest

from ltr_objectives import LTRError, Objective, Queries, registry
from ltr_objectives.kernels.partners import runs
from ltr_objectives.kernels.records import Rng

CLASSES = [cls for name in registry.objectives() if "partners" in (cls := Objective.named[name]).parameters()]
VARIANTS = (
    {}, {"sigma": 300.0}, {"metric": "mrr"}, {"metric": "err"}, {"metric": "map"}, {"metric": "ndcg@6"},
    {"truncation": 6}, {"score_norm": True}, {"k": 6},
    {"weights": "ndcg2"}, {"weights": "difference"}, {"noise": None},
    {"noise": None, "difference": "noisy"},
)  # fmt: skip


def _made():
    for cls in CLASSES:
        for settings in VARIANTS:
            if settings.keys() <= set(cls.parameters()):
                try:
                    yield cls(partners=3, **settings)
                except LTRError:  # a choice of another class
                    continue


@pytest.mark.parametrize(("n", "top", "near"), [(23, 23, False), (23, 23, True), (23, 7, False), (24, 6, True)])
def test_each_pair_has_an_expected_weight_of_one(n, top, near):
    count, squares, times = np.zeros((n, n)), np.zeros((n, n)), 4_000
    for iteration in range(times):
        drawn = np.zeros((n, n))
        ranks, weight = runs(n, top, 4, near, Rng(np.uint64(1), np.uint64(iteration)), 0, 0)
        for a, b, length, w in zip(*ranks, weight, strict=True):
            drawn[np.arange(a, a + length), np.arange(b, b + length)] += w
        count, squares = count + drawn, squares + drawn**2
    d, e = np.indices((n, n))
    counts = (d < e) & (d < top)
    assert (count[~counts] == 0).all()
    error = np.sqrt((squares / times - (count / times) ** 2) / times)[counts]
    # 23 * 22 / 2 normal numbers are all below 5 with probability 1 - 2e-4
    assert np.abs((count[counts] / times - 1) / error).max() < 5


@pytest.mark.parametrize("objective", list(_made()), ids=str)
def test_the_expected_gradient_is_that_of_all_pairs(objective):
    rng = np.random.default_rng(5)
    scores, labels = 2 * rng.normal(size=26), rng.choice([0.0, 1.0, 2.0], 26, p=[0.6, 0.3, 0.1])
    queries, full = Queries(labels, [26]), replace(objective, partners=None)
    times = 1000
    found = np.array([objective.compute(queries, scores, iteration=i, n_threads=1) for i in range(times)])
    whole = np.array([full.compute(queries, scores, iteration=i) for i in range(times if full.facts.random else 1)])
    error = np.sqrt((found.var(axis=0) + whole.var(axis=0)) / times) + 1e-9 * np.abs(whole).max()
    assert (error > 0).any()
    # 52 numbers, each within 5 standard errors with probability 1 - 6e-7, a little less as they are not quite normal
    assert (np.abs(found.mean(axis=0) - whole.mean(axis=0)) / error).max() < 5


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if "lambda_norm" in cls.parameters()])
@pytest.mark.parametrize(("partners", "least"), [(1, 0.75), (3, 0.9), (10, 0.98)])
def test_with_lambda_norm_the_expected_gradient_is_smaller(cls, partners, least):
    rng = np.random.default_rng(5)
    group = np.full(400, 26)
    scores, labels = 2 * rng.normal(size=group.sum()), rng.choice([0.0, 1.0, 2.0], group.sum(), p=[0.6, 0.3, 0.1])
    full = cls(lambda_norm=True)
    whole, _ = full.gradient_hessian(scores, labels, group)
    found = np.mean([replace(full, partners=partners, seed=i).gradient_hessian(scores, labels, group)[0]
                     for i in range(50)], axis=0)  # fmt: skip
    assert least < found @ whole / (whole @ whole) < 1.002


@pytest.mark.parametrize("cls", CLASSES)
def test_a_list_with_no_more_partners_has_all_pairs(cls, rng):
    scores, labels, group = rng.normal(size=13), rng.integers(0, 4, 13), [1, 2, 5, 5]
    some, full = cls(partners=4), cls()
    for found, expected in zip(
        some.gradient_hessian(scores, labels, group), full.gradient_hessian(scores, labels, group), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_list_of_a_hundred_thousand_documents_has_a_gradient_everywhere(cls, rng):
    scores, labels = rng.normal(size=100_000), rng.integers(0, 3, 100_000).astype(float)
    few = {"permutations": 1} if "permutations" in cls.parameters() else {}
    grad, hess = cls(partners=10, **few).gradient_hessian(scores, labels, [100_000])
    assert np.isfinite(grad).all()
    assert (hess > 0).mean() > 0.99
    np.testing.assert_allclose(grad.sum(), 0, atol=1e-9 * np.abs(grad).sum())


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3", True])
def test_partners_must_be_a_number_of_documents(cls, wrong):
    with pytest.raises(LTRError, match="partners"):
        cls(partners=wrong)


def test_partners_and_neighbours_exclude_each_other():
    for cls in CLASSES:
        if "neighbors" in cls.parameters():
            with pytest.raises(LTRError, match="neighbors and partners both choose the pairs"):
                cls(partners=3, neighbors=2)

"""PL-Rank against exact enumeration, quadrature and finite differences."""

import dataclasses
import itertools

import numpy as np
import pytest
from oracles.rankings import exact_rankings
from oracles.references import reference

from ltr_objectives import FairExposure, LTRError, PLRank, Queries
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.plrank import HESSIANS

LABELS = np.array([0.0, 3.0, 1.0, 2.0, 0.0])


def with_all_rankings(objective, scores):
    """The objective with its sampler replaced by all rankings of one list."""

    class Enumerated(type(objective)):
        def rankings(self, ranks):
            return exact_rankings(-np.sort(-scores), ranks)

    return Enumerated(**objective.settings())


def enumerated(objective, scores, labels):
    return with_all_rankings(objective, scores).gradient_hessian(scores, labels, [len(labels)])


@pytest.mark.parametrize("hessian", HESSIANS)
@pytest.mark.parametrize("options", [{}, {"normalize": False}, {"gain": "linear", "discount": (1.0, 0.0, 3.0, 2.0)}])
def test_with_all_rankings_it_equals_enumeration(hessian, options, rng):
    for n, scale in itertools.product((2, 3, 4, 5), (0.0, 1.0, 50.0, 290.0, 1e4, 1e30)):
        for k in range(1, n + 1):
            objective = PLRank(k, hessian=hessian, **options)
            scores, labels = np.round(rng.uniform(-1, 1, n), 1) * scale, rng.integers(0, 5, n).astype(float)
            for ours, exact in zip(
                enumerated(objective, scores, labels), reference(objective, scores, labels), strict=True
            ):
                np.testing.assert_allclose(ours, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("hessian", ["exact"])
def test_sampling_converges_to_enumeration(hessian):
    # fixed seeds; each test makes 82 comparisons, of which one is beyond 4 standard errors once in 200 runs
    count = 2000
    for n in (4, 5):
        scores, labels = np.array([0.5, -0.3, 1.2, 0.0, 2.0])[:n], LABELS[:n]
        for k in range(1, n + 1):
            objective = PLRank(k, hessian=hessian, samples=100)
            queries = Queries(np.tile(labels, count), np.full(count, n))
            ours = objective.compute(queries, np.tile(scores, count))
            for x, exact in zip(ours, reference(objective, scores, labels), strict=True):
                x = x.reshape(count, n)
                error = x.std(axis=0) / np.sqrt(count)
                assert (np.abs(x.mean(axis=0) - exact) < 4 * error + 1e-12).all()
                assert error.max() < 1e-3


@pytest.mark.parametrize("samples", [1, 2])
def test_the_gradient_of_a_reward_linear_in_the_exposure_is_unbiased(samples):
    # 13 numbers in each case: one of all is beyond 5 standard errors once in 30,000 runs
    count = 20_000
    for k, scores in ((1, [0.5, 0.0]), (2, [0.5, 0.0]), (2, [1.0, 0.0, 0.3]), (3, [1.0, 0.0, 0.3]), (None, [1, 0, 2])):
        objective = FairExposure(k, samples=samples)
        s, y, n = np.array(scores, float), np.arange(len(scores))[::-1].astype(float), len(scores)
        grad, _ = objective.compute(Queries(np.tile(y, count), np.full(count, n)), np.tile(s, count))
        grad = grad.reshape(count, n)
        error = grad.std(axis=0) / np.sqrt(count)
        assert (np.abs(grad.mean(axis=0) - reference(objective, s, y)[0]) < 5 * error + 1e-12).all(), k


def expected_reward(objective, scores, labels):
    """By quadrature, for any number of documents: document d arrives at an exponential time T_d with rate e^s_d.

    Its rank is one more than the number of earlier arrivals, which are independent given T_d.
    """
    theta = objective.theta(len(scores))
    queries = Queries(labels, [len(labels)])
    gain, scale = objective.rewards(Call.at(queries, scores))
    log_t = np.arange(-scores.max() - 40, -scores.min() + 5, 0.01)
    total = 0.0
    for d in np.flatnonzero(gain):
        rate = np.exp(scores + log_t[:, None])
        density = rate[:, d] * np.exp(-rate[:, d]) * 0.01
        early = -np.expm1(-np.delete(rate, d, axis=1))
        count = np.zeros((len(log_t), len(theta)))  # chance of this many earlier arrivals
        count[:, 0] = 1.0
        for p in early.T:
            count[:, 1:] = count[:, 1:] * (1 - p)[:, None] + count[:, :-1] * p[:, None]
            count[:, 0] *= 1 - p
        total += gain[d] * float(density @ (count @ theta))
    return total * scale[0]


def differences(objective, scores, labels, step=1e-3):
    """First and second differences of the loss."""
    grad, hess = np.zeros(len(scores)), np.zeros(len(scores))
    middle = -expected_reward(objective, scores, labels)
    for d in range(len(scores)):
        moved = np.eye(len(scores))[d] * step
        up, down = (-expected_reward(objective, scores + sign * moved, labels) for sign in (1, -1))
        grad[d], hess[d] = (up - down) / (2 * step), (up - 2 * middle + down) / step**2
    return grad, hess


@pytest.mark.parametrize("objective", [PLRank(3, hessian="exact"), PLRank(2, hessian="exact", normalize=False)])
def test_the_reference_is_the_derivative_of_the_expected_reward(objective):
    scores = np.array([0.5, -0.3, 1.2, 0.0, 2.0])
    (grad, hess), (g, h) = differences(objective, scores, LABELS), reference(objective, scores, LABELS)
    np.testing.assert_allclose(g, grad, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(h, hess, rtol=1e-4, atol=1e-6)


def test_long_lists_converge_to_the_derivative_of_the_expected_reward(rng):
    n, count = 25, 300
    scores, labels = rng.normal(size=n), rng.choice(4, n, p=[0.5, 0.3, 0.1, 0.1]).astype(float)
    objective = PLRank(10, hessian="exact")
    ours = objective.compute(Queries(np.tile(labels, count), np.full(count, n)), np.tile(scores, count))
    for x, exact in zip(ours, differences(objective, scores, labels), strict=True):
        x = x.reshape(count, n)
        error = x.std(axis=0) / np.sqrt(count)
        assert (np.abs(x.mean(axis=0) - exact) < 4 * error + 1e-6).all()
        assert np.abs(exact).max() > 20 * error.max()


def test_fair_exposure_is_a_reward():
    scores, labels = np.array([0.5, -0.3, 1.2, 0.0]), np.array([0.0, 3.0, 1.0, 2.0])
    objective = FairExposure(2)
    queries = Queries(labels, [4])

    def exposure(s):
        out = np.zeros(4)
        order = np.argsort(-s)
        for y, p in zip(*exact_rankings(s[order], 2), strict=True):
            out[order[y]] += p * objective.theta(4)
        return out

    def gap(exposure):
        merit = labels + 0.5
        return exposure - merit / merit.sum() * exposure.sum()

    def loss(s):
        return 0.5 * np.sum(gap(exposure(s)) ** 2)

    exact = with_all_rankings(objective, scores)
    call = Call.at(queries, scores)
    np.testing.assert_allclose(exact.exposure(call), exposure(scores), rtol=1e-12)
    grad, hess = exact.compute(queries, scores)
    np.testing.assert_allclose([grad, hess], reference(objective, scores, labels), rtol=1e-9, atol=1e-12)
    for d, step in enumerate(np.eye(4) * 1e-5):
        assert grad[d] == pytest.approx((loss(scores + step) - loss(scores - step)) / 2e-5, rel=1e-6)
    s = np.zeros(4)
    for iteration in range(300):  # descent reaches exposure in proportion to merit
        s -= 2.0 * FairExposure(2, samples=500).compute(queries, s, iteration=iteration)[0]
    np.testing.assert_allclose(gap(exposure(s)), 0.0, atol=0.02)
    assert objective.exposure(Call.at(Queries([1.0], [1]), np.zeros(1))) == [1.0]
    for wrong, told in (
        ({"floor": 0}, "floor=0 must be a number above 0"),
        ({"gain": "log"}, "gain='log' is not known"),
    ):
        with pytest.raises(LTRError, match=told):
            FairExposure(**wrong)
    with pytest.raises(LTRError, match="needs labels of at least 0"):
        objective.gradient_hessian([0.0, 1.0], [-1, 1], [2])


def test_narrow_and_wide_lists_meet(rng):
    """A document without gain far below makes a list wide; it changes nothing else."""
    scores, labels = rng.normal(size=12), np.concatenate((rng.integers(1, 4, 11), [0.0]))
    scores[11] = -250.0
    narrow = enumerated(PLRank(3, hessian="exact"), scores, labels)
    scores[11] = -350.0
    wide = enumerated(PLRank(3, hessian="exact"), scores, labels)
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_equal_gains_give_a_zero_gradient_and_a_shift_of_scores_changes_nothing(rng):
    scores = rng.normal(size=30)
    grad, hess = PLRank().gradient_hessian(scores, np.full(30, 2.0), [30])
    assert not grad.any()
    assert not hess.any()
    labels = rng.integers(0, 3, 30)
    a, b = (PLRank().gradient_hessian(scores + shift, labels, [30])[0] for shift in (0.0, 1024.0))
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_no_rank_weight_in_reach_gives_a_zero_gradient():
    grad, hess = PLRank(3, discount=(0.0, 0.0, 0.0, 1.0)).gradient_hessian([0.0, 1.0, 2.0, 3.0], [0, 1, 2, 3], [4])
    assert not grad.any()
    assert not hess.any()


@pytest.mark.parametrize("gap", [50.0, 290.0, 700.0, 1e4])
def test_far_documents_keep_their_digits(gap):
    """Two close documents far below a third compete for rank 2 as if the third did not exist."""
    far = PLRank(2, hessian="exact", discount=(0.0, 1.0), normalize=False)
    grad, hess = enumerated(far, np.array([gap, 0.3, 0.0]), np.array([0.0, 1.0, 0.0]))
    near = reference(dataclasses.replace(far, k=1, discount=(1.0,)), np.array([0.3, 0.0]), np.array([1.0, 0.0]))
    assert grad[0] == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(grad[1:], near[0], rtol=1e-9)
    np.testing.assert_allclose(hess[1:], near[1], rtol=1e-9)


def test_tables_that_are_none_are_refused():
    for wrong in ((), (0.0, 0.0), (1.0, -1.0), (1.0, np.inf)):
        with pytest.raises(LTRError, match="discount"):
            PLRank(discount=wrong)
    with pytest.raises(LTRError, match="needs labels of at least 0"):
        PLRank().gradient_hessian([0.0, 1.0], [-1, 1], [2])

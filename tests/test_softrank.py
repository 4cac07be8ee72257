"""SoftRank: the discount as a sum of exponentials, expected values by enumeration, long lists."""

import itertools
import math

import numpy as np
import pytest

from ltr_objectives import SoftRank
from ltr_objectives.objectives.softrank import discount_exponentials


@pytest.mark.parametrize("ranks", [2, 6, 50, 1000, 20_000])
def test_the_discount_is_a_sum_of_exponentials(ranks):
    factors, z = discount_exponentials(ranks)
    d = np.arange(1, ranks + 1)
    np.testing.assert_allclose(np.power.outer(z, d - 1).T @ factors, 1 / np.log2(1 + d), rtol=0, atol=1e-12)
    assert np.abs(factors).max() < 1e3  # nothing cancels


def test_the_loss_is_the_expected_value_over_all_outcomes():
    scores, labels, sigma = np.array([0.3, -0.2, 1.0, 0.9]), np.array([2.0, 0.0, 1.0, 0.0]), 0.8
    expected = 0.0
    for i, gain in ((0, 3.0), (2, 1.0)):
        others = [j for j in range(4) if j != i]
        beats = [0.5 * (1 + math.erf((scores[j] - scores[i]) / (2 * sigma))) for j in others]
        for outcome in itertools.product((0, 1), repeat=3):
            chance = math.prod(p if x else 1 - p for p, x in zip(beats, outcome, strict=True))
            expected += chance * gain / math.log2(2 + sum(outcome))
    ideal = 3 + 1 / math.log2(3)
    assert SoftRank(sigma).reference_loss(scores, labels) == pytest.approx(-expected / ideal, rel=1e-12)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_long_lists_have_the_slope_of_the_loss(spread, rng):
    n = 250
    labels = np.where(np.arange(n) % 5 == 0, rng.integers(0, 5, n), 0).astype(float)
    objective, scores, way = SoftRank(), spread * rng.normal(size=n), rng.normal(size=n)
    up, down = (objective.reference_loss(scores + step * way, labels) for step in (1e-4, -1e-4))
    grad, _ = objective.gradient_hessian(scores, labels, [n])
    assert grad @ way == pytest.approx((up - down) / 2e-4, rel=1e-6, abs=1e-10)

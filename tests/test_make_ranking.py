"""Effects of the options of generated data on the labels."""

import numpy as np
import pytest

from ltr_objectives.datasets import make_ranking


def test_grades_agree_with_relevance_as_far_as_asked():
    whole, half, none = (make_ranking(200, 1, features=20, agreement=a, noise=0.0) for a in (1.0, 0.5, 0.0))
    relevant = whole.y > 0
    overlap = []
    for data in (whole, half, none):
        assert np.array_equal(data.X, whole.X)
        assert np.array_equal(data.y > 0, relevant)
        assert np.array_equal(np.bincount(data.y.astype(int)), np.bincount(whole.y.astype(int)))
        overlap.append(np.corrcoef(data.y[relevant], whole.y[relevant])[0, 1])
    assert overlap[0] == pytest.approx(1.0)
    assert overlap[0] > overlap[1] + 0.2 > overlap[2] + 0.3
    assert abs(overlap[2]) < 0.3  # the two functions may share features


def test_noise_hides_what_the_features_say():
    clean, *others = (make_ranking(200, 1, features=20, noise=noise).y for noise in (0.0, 1.1, 5.0))
    default, noisy = (np.corrcoef(clean, labels)[0, 1] for labels in others)
    assert default > noisy + 0.2

"""The exact change of every metric when one document moves, against brute force with the textbook value."""

import numpy as np
from generated import labels_for


def brute_force(metric, labels):
    n = len(labels)
    out = np.zeros((n, n))
    for d in range(n):
        others = np.delete(labels, d)
        for q in range(n):
            out[d, q] = metric.reference(np.insert(others, q, labels[d])) - metric.reference(labels)
    return out


def test_move_changes_equal_brute_force(any_metric, rng):
    changed = 0
    for n in (*range(1, 9), 14):
        for _ in range(12):
            labels = labels_for(any_metric.label_limit, rng, n)
            one = np.where(np.arange(n) == rng.integers(n), labels.max(), 0.0)  # where a hit can be lost
            for given in (labels, one):
                ours = any_metric.move_changes(given)
                np.testing.assert_allclose(ours, brute_force(any_metric, given), rtol=1e-12, atol=1e-12)
                changed += ours.any()
    assert changed > 5


def test_a_move_to_the_next_rank_is_a_swap(any_metric, rng):
    labels = labels_for(any_metric.label_limit, rng, 40)
    moves, swaps = any_metric.move_changes(labels), any_metric.swap_changes(labels)
    for d in range(39):
        np.testing.assert_allclose([moves[d, d + 1], moves[d + 1, d]], swaps[d, d + 1], rtol=1e-9, atol=1e-12)

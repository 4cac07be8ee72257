"""The exact change of every metric when one document moves; test_metrics.py has the one against brute force."""

import numpy as np
from generated import labels_for


def test_a_move_to_the_next_rank_is_a_swap(any_metric, rng):
    labels = labels_for(any_metric.label_limit, rng, 40)
    moves, swaps = any_metric.move_changes(labels), any_metric.swap_changes(labels)
    for d in range(39):
        np.testing.assert_allclose([moves[d, d + 1], moves[d + 1, d]], swaps[d, d + 1], rtol=1e-9, atol=1e-12)

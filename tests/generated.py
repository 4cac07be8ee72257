"""Random data sets and labels for the tests."""

import numpy as np


def graded(metric, labels):
    """Whole labels up to 4 in the form that the metric takes; as probabilities they include 1."""
    limit = metric.label_limit
    return np.array(labels, float) * (limit / 4 if limit is not None and limit < 4 else 1.0)


def ranking(seed, queries=60, levels=None):
    """Features, labels and query ids; features are whole numbers up to ``levels`` if that is given."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 25, queries)
    group[: queries // 3] = 3  # so that workers with equally many rows have different numbers of queries
    X = rng.normal(size=(group.sum(), 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)), [0.5, 1.5, 2.5]).astype(float)
    X = X if levels is None else np.round(X.clip(-1, 1) * levels)
    return X, y, np.repeat(np.arange(queries), group)

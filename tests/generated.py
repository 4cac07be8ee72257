"""Random data sets and labels for the tests."""

import numpy as np


def graded(metric, labels):
    """Return whole labels up to 4 in the form that the metric takes; as probabilities they include 1."""
    limit = metric.label_limit
    return np.array(labels, float) * (limit / 4 if limit is not None and limit < 4 else 1.0)


def ranking(seed, queries=60, levels=None):
    """Return features, labels and query ids; features are whole numbers up to ``levels`` if that is given."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 25, queries)
    group[: queries // 3] = 3  # so that workers with equally many rows have different numbers of queries
    X = rng.normal(size=(group.sum(), 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)), [0.5, 1.5, 2.5]).astype(float)
    X = X if levels is None else np.round(X.clip(-1, 1) * levels)
    return X, y, np.repeat(np.arange(queries), group)


def shop(seed=0, queries=40, length=15):
    """Return products with text and whole numbers as categories, whole numbers above 2^31, bools and missing values."""
    import pandas

    rng, n = np.random.default_rng(seed), queries * length
    brand, shelf, price = rng.choice(list("abcdefgh"), n), rng.choice([3, 5, 8, 13], n), rng.normal(size=n)
    sold, new = 2**33 + 1000 * rng.integers(0, 20, n), rng.random(n) < 0.5
    relevance = np.isin(brand, ["b", "e"]) * 2.0 + (shelf == 8) + (sold > 2**33 + 9000) + new + price
    X = pandas.DataFrame({
        "price": np.where(rng.random(n) < 0.1, np.nan, price), "sold": sold, "new": new,
        "brand": pandas.Categorical(brand), "shelf": pandas.Categorical(shelf),
    })  # fmt: skip
    y = np.clip(np.round(relevance + rng.normal(0, 0.3, n)), 0, 4).astype(int)
    return X, y, np.repeat(np.arange(queries), length)

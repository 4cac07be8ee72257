"""Random labels and queries for the tests."""

import numpy as np


def labels_for(limit: float | None, rng: np.random.Generator, n: int) -> np.ndarray:
    """Random labels that an objective or metric with that label limit accepts; certain relevance included."""
    if limit is not None and limit < 4:
        return rng.choice([0.0, 0.2, 0.5, 1 - 1e-7, 1.0], n) * limit
    return rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05]).astype(float)

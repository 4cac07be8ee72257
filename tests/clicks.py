"""Simulated clicks: a logging ranker, and users who look at rank k with probability 1 / k."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.datasets import RankingData


class Log(NamedTuple):
    """A click log and the truth behind it."""

    data: RankingData
    position: np.ndarray  # of each row, from 0
    propensity: np.ndarray  # of each row
    clicks: np.ndarray


def ranks(scores: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Rank of each row in its query, from 0."""
    query = np.repeat(np.arange(len(group)), group)
    out = np.empty(len(scores), np.int64)
    out[np.lexsort((-scores, query))] = np.arange(len(scores)) - np.repeat(np.cumsum(group) - group, group)
    return out


def click_log(data: RankingData, seed: int) -> Log:
    """Show each query once, ranked by a fit of the first five features to 300 rows plus noise of the same size."""
    rng = np.random.default_rng(seed)
    X, y = data.X[:, :5].astype(np.float64), data.y - data.y[:300].mean()
    X -= X[:300].mean(0)
    fit = (X * np.linalg.lstsq(X[:300], y[:300], rcond=None)[0]).sum(1)  # some BLAS report a false NaN in products
    position = ranks(fit / fit.std() + rng.normal(size=len(fit)), data.group)
    propensity = 1.0 / (1.0 + position)
    attraction = 0.1 + 0.9 * (2.0**data.y - 1) / 15  # probability of a click if looked at
    clicks = (rng.uniform(size=len(position)) < propensity * attraction).astype(np.float64)
    return Log(data, position, propensity, clicks)

"""Simulated clicks: generated queries, a logging ranker, and users who look at rank k with probability 1 / k^eta."""

from typing import NamedTuple

import numpy as np
from conftest import OBJECTIVES

from ltr_objectives.datasets import RankingData, make_ranking
from ltr_objectives.objectives.pairwise import PairwiseObjective

CORRECTING = [o for o in OBJECTIVES if isinstance(o, PairwiseObjective) and o.facts.takes_clicks]
SHARES = (0.45, 0.25, 0.15, 0.1, 0.05)


class Log(NamedTuple):
    """A click log and the truth behind it."""

    data: RankingData
    position: np.ndarray  # of each row, from 0
    propensity: np.ndarray  # of each row
    relevance: np.ndarray  # probability of a click if looked at
    clicks: np.ndarray


def attraction(labels: np.ndarray) -> np.ndarray:
    """Probability of a click on a document that is looked at: a tenth for the worst label, 1 for the best."""
    return 0.1 + 0.9 * (2.0**labels - 1) / 15


def ranks(scores: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Rank of each row in its query, from 0."""
    query = np.repeat(np.arange(len(group)), group)
    out = np.empty(len(scores), np.int64)
    out[np.lexsort((-scores, query))] = np.arange(len(scores)) - np.repeat(np.cumsum(group) - group, group)
    return out


def some_queries(count: int, seed: int) -> RankingData:
    return make_ranking(count, seed, features=20, mean_length=10, shares=SHARES)


def click_log(data: RankingData, eta: float, seed: int, features: int = 5) -> Log:
    """Each query shown once, ranked by a fit of the first few features to 300 rows, plus noise of the same size."""
    rng = np.random.default_rng(seed)
    X, y = data.X[:, :features].astype(np.float64), data.y - data.y[:300].mean()
    X -= X[:300].mean(0)
    fit = (X * np.linalg.lstsq(X[:300], y[:300], rcond=None)[0]).sum(1)  # some BLAS report a false NaN in products
    position = ranks(fit / fit.std() + rng.normal(size=len(fit)), data.group)
    propensity, relevance = (1.0 + position) ** -eta, attraction(data.y)
    clicks = (rng.uniform(size=len(position)) < propensity * relevance).astype(np.float64)
    return Log(data, position, propensity, relevance, clicks)

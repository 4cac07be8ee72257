"""The rankings of pairwise objectives: by score, or by score plus noise."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rng import LOGISTIC, add_noise, stream, times_logistic
from ltr_objectives.kernels.sorting import head_order, scratch


class Rankings(NamedTuple):
    """Space for the rankings of one list; ``order`` holds the current one."""

    noisy: np.ndarray
    odds: np.ndarray
    key: np.ndarray
    order: np.ndarray
    key2: np.ndarray
    order2: np.ndarray


@kernel
def rankings(n):
    """Space for lists of up to ``n`` documents."""
    key, order, key2, order2 = scratch(n)
    return Rankings(np.empty(n), np.empty(n), key, order, key2, order2)


@kernel
def odds_of(x, draw, space):
    """Write the odds that logistic noise multiplies; return False for other noise or scores too far apart."""
    if draw is None:
        return False
    return draw.noise == LOGISTIC and relative_to_top(x, 1.0 / draw.scale, space.odds)


@kernel
def number_of(draw):
    """The number of rankings."""
    if draw is None:
        return 1
    return draw.draws


@kernel
def key_of(draw, q):
    """The key of the query's random numbers."""
    if draw is None:
        return np.uint64(0)
    return stream(draw.seed, draw.iteration, np.uint64(q))


@kernel
def ranking(x, top, others, draw, key, number, logistic, space):
    """Sort at least the first ``top`` ranks of draw ``number``; ``logistic`` is what :func:`odds_of` returned.

    With ``others``, the documents of the other ranks follow in some order.
    """
    n = len(x)
    if draw is None:
        head_order(x, top, others, space.key, space.order, space.key2, space.order2)
        return
    counter = np.uint64(number) * np.uint64(2 * n)
    if logistic:
        times_logistic(space.odds[:n], key, counter, space.noisy)
    else:
        add_noise(x, draw.noise, draw.scale, key, counter, space.noisy[:n])
    head_order(space.noisy[:n], top, others, space.key, space.order, space.key2, space.order2)

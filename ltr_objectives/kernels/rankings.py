"""The rankings of pairwise objectives: by score, or by score plus noise."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rng import LOGISTIC, NO_NOISE, add_noise, stream, times_logistic
from ltr_objectives.kernels.sorting import Sorter, head_order, sorter


class Rankings(NamedTuple):
    """Space for the rankings of one list."""

    noisy: np.ndarray
    odds: np.ndarray
    sort: Sorter


@kernel
def rankings(n):
    """Space for lists of up to ``n`` documents."""
    return Rankings(np.empty(n), np.empty(n), sorter(n))


@kernel
def number_of(draw):
    """The number of rankings."""
    if draw is None:
        return 1
    return draw.draws


@kernel
def noise_of(x, added, draw, q, space):
    """Return the key of the query's random numbers, and if logistic noise multiplies ``odds``, which this writes.

    It does not if it must be ``added``, or if the scores span more than the exponential can represent.
    """
    if draw is None:
        return np.uint64(0), False
    multiplies = not added and draw.noise == LOGISTIC and relative_to_top(x, 1.0 / draw.scale, space.odds)
    return stream(draw.seed, draw.iteration, np.uint64(q)), multiplies


@kernel
def ranking(x, top, others, draw, noise, number, order, space):
    """Sort at least the first ``top`` ranks of draw ``number`` into ``order``; ``noise`` is from :func:`noise_of`.

    With ``others``, the documents of the other ranks follow in some order.
    """
    n = len(x)
    if draw is None:
        head_order(x, top, others, order, space.sort)
        return
    key, multiplies = noise
    counter = np.uint64(number) * np.uint64(2 * n)
    if draw.noise == NO_NOISE:
        for i in range(n):  # an assignment to the slice would compile numba's error text, for 1 s
            space.noisy[i] = x[i]
    elif multiplies:
        times_logistic(space.odds[:n], key, counter, space.noisy)
    else:
        add_noise(x, draw.noise, draw.scale, key, counter, space.noisy[:n])
    head_order(space.noisy[:n], top, others, order, space.sort)

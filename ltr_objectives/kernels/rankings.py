"""The rankings of pairwise objectives: by score, or by score plus noise."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import LOGISTIC_NOISE, NO_NOISE, add_noise, stream, times_logistic
from ltr_objectives.kernels.sorting import Sorter, head_order, sorter


class Scratch(NamedTuple):
    """Arrays for the draws of one list."""

    noisy: np.ndarray
    odds: np.ndarray
    sort: Sorter


class Noise(NamedTuple):
    """The noise of one list."""

    key: np.uint64  # of the query's random numbers
    multiplies: bool  # ``odds``; else it is added to the scores


@allocating
def ranking_scratch(longest):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(np.empty(longest), np.empty(longest), sorter(longest))


@kernel
def draws_of(rng: Rng | None):
    """Return the number of rankings."""
    if rng is None:
        return 1
    return rng.draws


@kernel
def noise_of(x, added, rng: Rng | None, q, scratch: Scratch):
    """Return the noise of one list.

    Logistic noise is applied as a factor of exp(x / scale), written to ``odds``, unless noisy scores are needed
    (``added``) or the exponential would overflow.
    """
    if rng is None:
        return Noise(np.uint64(0), False)
    multiplies = not added and rng.noise == LOGISTIC_NOISE and relative_to_top(x, 1.0 / rng.scale, scratch.odds)
    return Noise(stream(rng.seed, rng.iteration, np.uint64(q)), multiplies)


@inlined_kernel
def draw_ranking(x, top, others, rng: Rng | None, noise: Noise, draw, order, scratch: Scratch):
    """Sort at least the first ``top`` ranks of one draw into ``order``.

    With ``others``, the documents of the other ranks follow in some order.
    """
    n = len(x)
    if rng is None:
        head_order(x, top, others, order, scratch.sort)
        return
    counter = np.uint64(draw) * np.uint64(2 * n)
    if rng.noise == NO_NOISE:
        for i in range(n):  # an assignment to the slice would compile numba's error text, for 1 s
            scratch.noisy[i] = x[i]
    elif noise.multiplies:
        times_logistic(scratch.odds[:n], noise.key, counter, scratch.noisy)
    else:
        add_noise(x, rng.noise, rng.scale, noise.key, counter, scratch.noisy[:n])
    head_order(scratch.noisy[:n], top, others, order, scratch.sort)

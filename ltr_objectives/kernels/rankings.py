"""The rankings of pairwise objectives: by score, or by score plus noise."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import LOGISTIC_NOISE, NO_NOISE, quantile, stream
from ltr_objectives.kernels.sorting import Sorter, head_order, sorter
from ltr_objectives.kernels.strata import Strata, first_strata, next_uniforms, strata_for


class Scratch(NamedTuple):
    """Arrays for the draws of one list."""

    noisy: np.ndarray
    odds: np.ndarray
    sort: Sorter
    strata: Strata | None


class Kept(NamedTuple):
    """The rankings of all draws, which the first part of a sum writes and the others read."""

    order: np.ndarray  # int32, by draw and row: as in ``draw_ranking``; empty if rankings are not kept
    known: np.ndarray  # by query: the rankings have been written


KEEP_NONE = Kept(np.empty((0, 0), np.int32), np.zeros(0, np.bool_))


def kept_rankings(draws: int, queries: int, rows: int) -> Kept:
    """Return room for rankings."""
    return Kept(np.empty((draws, rows), np.int32), np.zeros(queries, np.bool_))


@inlined
def copy_order(source, target):
    """Copy a ranking from one kind of integers to another."""
    apart()
    for d in range(len(target)):
        target[d] = source[d]


@allocating
def _strata_of(longest, rng: Rng | None):
    if rng is None:
        return None
    return strata_for(longest, rng.draws)


@allocating
def ranking_scratch(longest, rng: Rng | None):
    """Return scratch for lists of up to ``longest`` documents."""
    strata = _strata_of(longest, rng)
    return Scratch(noisy=np.empty(longest), odds=np.empty(longest), sort=sorter(longest), strata=strata)


@kernel
def draws_of(rng: Rng | None):
    """Return the number of rankings."""
    if rng is None:
        return 1
    return rng.draws


@kernel
def begin_draws(x, added, rng: Rng | None, q, scratch: Scratch):
    """Begin the draws of one list, and return True if their noise multiplies ``odds``, else it is added.

    Logistic noise is applied as a factor of exp(x / scale), written to ``odds``, unless noisy scores are needed
    (``added``) or the exponential would overflow.
    """
    if rng is None:
        return False
    first_strata(stream(rng.seed, rng.iteration, np.uint64(q)), len(x), rng.draws, scratch.strata)
    return not added and rng.noise == LOGISTIC_NOISE and relative_to_top(x, 1.0 / rng.scale, scratch.odds)


@inlined
def _multiply(odds, draws, noisy):
    """Replace numbers x by some that sort like ``s`` plus logistic noise, for ``odds = exp(s / scale)``.

    With u = x / draws, odds u / (1 - u) sorts like its logarithm, s / scale + log(u / (1 - u)).
    """
    apart()
    for i in range(len(noisy)):
        noisy[i] = odds[i] * noisy[i] / (draws - noisy[i])


@inlined_kernel
def draw_ranking(x, top, append_rest, rng: Rng | None, multiplies, order, scratch: Scratch):
    """Sort at least the first ``top`` ranks of the next draw into ``order``.

    With ``append_rest``, the documents of the other ranks follow in some order.
    """
    if rng is None:
        head_order(x, top, append_rest, order, scratch.sort)
        return
    noisy = scratch.noisy[: len(x)]
    if rng.noise == NO_NOISE:
        for i in range(len(x)):  # an assignment to the slice would compile numba's error text, for 1 s
            noisy[i] = x[i]
    else:
        next_uniforms(rng.draws, scratch.strata, noisy)
        if multiplies:
            _multiply(scratch.odds, rng.draws, noisy)
        else:
            for i in range(len(x)):
                noisy[i] = x[i] + rng.scale * quantile(rng.noise, noisy[i] / rng.draws)
    head_order(noisy, top, append_rest, order, scratch.sort)

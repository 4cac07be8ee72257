"""Scores as kernels take them, and the random numbers that they select."""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.finish import CACHED_ROWS
from ltr_objectives.kernels.rng import GAMMA, ROUND, mix
from ltr_objectives.kernels.threads import run

MAGNITUDE = np.int64(2**63 - 1)  # the bits of a number without its sign; they grow with it, and NaN has the most
PARALLEL = 65_536  # rows; fewer are read before another thread has begun


class Scores(NamedTuple):
    """Scores of shape (rows,)."""

    values: np.ndarray  # float64, contiguous
    largest: float  # the largest absolute value; infinite or NaN if a score is


@kernel
def _read(first, last, ptr, given, values, largest):
    """Copy ``given`` into ``values``, unless that is the same array; ``largest[first]`` is the bits of the largest."""
    top = np.int64(0)
    for a in range(ptr[first], ptr[last], CACHED_ROWS):
        x = values[a : min(a + CACHED_ROWS, ptr[last])]
        if given.itemsize < 8:
            for i in range(len(x)):
                x[i] = given[a + i]
        for i in range(len(x)):
            size = np.float64(x[i]).view(np.int64) & MAGNITUDE
            top = size if size > top else top
    largest[first] = top


@kernel
def _content(first, last, ptr, scores, steps, sums):
    """Write the sum of the mixed bits. Terms are independent, so the processor overlaps them: 0.5 ns a row, not 5."""
    part = scores[ptr[first] : ptr[last]]
    x, row = np.uint64(0), np.uint64(ptr[first]) * GAMMA
    for i in range(len(part)):
        x += mix(row ^ np.uint64(np.float64(part[i] * steps + ROUND).view(np.int64)))
        row += GAMMA
    sums[first] = x


def read_scores(given: np.ndarray, ptr: np.ndarray, n_threads: int | None) -> Scores:
    """Read float64 or float32 numbers, on several threads."""
    if given.dtype == np.float32 and given.flags.carray:
        values = np.empty(len(given))
    else:
        given = values = np.require(given, np.float64, ["C", "A", "W"])
    largest = np.zeros(len(ptr) - 1, np.int64)
    run(_read, ptr, (ptr, given, values, largest), n_threads if len(given) >= PARALLEL else 1)
    return Scores(values, float(largest.view(np.float64).max()))


def content_stream(scores: np.ndarray | Scores, ptr: np.ndarray | None = None, n_threads: int | None = 1) -> int:
    """Return a 64-bit number that is equal for equal scores and otherwise as good as random.

    The adapters select the random stream of a tree by it and by the number of trees before with the same scores. So an
    objective that was used before, copied, pickled or continued from a saved model draws the same noise. Scores are
    rounded to steps of 2^-16 to 2^-15 of the largest. Without rounding, a library that adds up histograms in varying
    order would change the noise with the last digits of scores.
    """
    if ptr is None:
        ptr = np.array([0, len(scores)], np.int64)
    if not isinstance(scores, Scores):
        scores = read_scores(scores, ptr, n_threads)
    rows, largest = len(scores.values), scores.largest
    steps = math.ldexp(1.0, 16 - math.frexp(largest)[1]) if 1e-290 < largest < 1e290 else 1.0 / max(largest, 1e-290)
    sums = np.zeros(len(ptr) - 1, np.uint64)
    run(_content, ptr, (ptr, scores.values, steps, sums), n_threads if rows >= PARALLEL else 1)
    return (rows + int(sums.sum())) % 2**64  # whole numbers modulo 2^64, whose sum has no order

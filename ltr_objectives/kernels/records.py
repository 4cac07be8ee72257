"""The records that kernels take, from the objective to the innermost loop.

They need numba 0.61: earlier versions confuse the types of records whose fingerprint is longer than 40 bytes. A field
has the same type for all objectives, so that each kernel is compiled once. A kernel over queries has the signature
``kernel(first, last, ptr, s, <records>, out)``.
"""

from typing import NamedTuple

import numpy as np


class Terms(NamedTuple):
    """A metric on one data set (families: :mod:`ltr_objectives.kernels.swaps`)."""

    kind: int
    gain: np.ndarray  # by row
    discount: np.ndarray  # by rank, as long as the longest list
    scale: np.ndarray  # by query; 0 marks a query without a value of its own: its value is ``offset``
    offset: np.ndarray  # by query; added to the value
    cap: float = np.inf  # a larger gain difference counts as this

    @property
    def cutoff(self) -> int:
        """The number of ranks with a discount above zero."""
        return int(np.count_nonzero(self.discount))


class Rng(NamedTuple):
    """Random numbers of one iteration.

    Pairwise kernels take None if scores get no noise and pairs are not drawn. Numba then leaves out the code under
    ``rng is not None``, so that they compile faster.
    """

    seed: np.uint64
    iteration: np.uint64
    draws: int = 1  # rankings or noise vectors a query
    noise: int = 0  # a code of ltr_objectives.kernels.rng
    scale: float = 1.0  # of the noise


class Out(NamedTuple):
    """Output arrays, zeroed, one entry per row. Kernels leave queries with ``skip`` untouched.

    Kernels that take long read ``skip`` again as they work, and end if it has become True.
    """

    grad: np.ndarray
    hess: np.ndarray
    skip: np.ndarray  # by query
    first: int = 0  # the row of the first entry


MANY = 2**62  # no limit

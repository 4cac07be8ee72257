"""From what a kernel wrote to what a caller keeps: weighted, checked, in the type asked for."""

from typing import Any

import numpy as np

from ltr_objectives.errors import require
from ltr_objectives.kernels.finish import finish
from ltr_objectives.kernels.threads import run
from ltr_objectives.queries import Queries

BEYOND = {
    np.float64: "gradients are beyond the range of float64: scale scores, labels or gains down",
    np.float32: "gradients are beyond the range of float32: scale the labels or gains down, or normalise the metric",
}


def finished_arrays(
    queries: Queries,
    grad: np.ndarray,
    hess: np.ndarray,
    weight: np.ndarray | None,
    dtype: type[np.floating[Any]],
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """New arrays of ``dtype``: ``grad`` and ``hess`` times ``weight``; what was given holds zeros afterwards."""
    out = np.empty(queries.rows, dtype), np.empty(queries.rows, dtype)
    finite = np.ones(len(queries), np.bool_)
    weight = np.empty(0) if weight is None else weight
    run(finish, queries.ptr, (queries.ptr, grad, hess, weight, *out, finite), n_threads)
    require(finite.all(), BEYOND[dtype])
    return out

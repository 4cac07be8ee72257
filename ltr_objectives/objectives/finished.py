"""The arrays that kernels write to, and from there to what a caller keeps: weighted, checked, in the type asked for."""

from collections.abc import Callable
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
Arrays = tuple[np.ndarray, np.ndarray]


def with_zeros(queries: Queries, use: Callable[[np.ndarray, np.ndarray], Arrays]) -> Arrays:
    """``use(grad, hess)`` on zeros, which it must leave as zeros; they stay with the data set for the next time.

    To fill new memory would cost as much as half a gradient. After an error they are not used again.
    """
    kept: list[Arrays] = queries.once("zeros", list)
    try:
        zeros = kept.pop()
    except IndexError:  # the first time, or another thread has them
        zeros = np.zeros(queries.rows), np.zeros(queries.rows)
    result = use(*zeros)
    if not kept:
        kept.append(zeros)
    return result


def finished_arrays(
    queries: Queries,
    grad: np.ndarray,
    hess: np.ndarray,
    weight: np.ndarray | None,
    dtype: type[np.floating[Any]],
    n_threads: int | None,
) -> Arrays:
    """New arrays of ``dtype``: ``grad`` and ``hess`` times ``weight``; what was given holds zeros afterwards."""
    require(dtype in BEYOND, f"dtype={dtype!r} must be np.float64 or np.float32")
    out = np.empty(queries.rows, dtype), np.empty(queries.rows, dtype)  # new: the caller may keep them
    finite = np.ones(len(queries), np.bool_)
    weight = np.empty(0) if weight is None else np.require(weight, np.float64, ["C", "A", "W"])
    require(len(weight) in (0, queries.rows), f"{len(weight)} weights of rows for {queries.rows} rows")
    run(finish, queries.ptr, (queries.ptr, grad, hess, weight, *out, finite), n_threads)
    with np.errstate(over="ignore"):
        good = finite.all() and (dtype is np.float32 or all(np.isfinite(x.sum()) for x in out))
    if not good:
        nan = np.isnan(out[0]) | np.isnan(out[1])
        require(
            not nan.any(),
            f"the gradient or Hessian of row {nan.argmax()} is NaN: the objective divides 0 by 0 there, or scores, "
            "labels or gains are beyond the range of float64",
        )
    require(good, BEYOND[dtype])
    return out

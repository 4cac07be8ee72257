"""The inputs and outputs of one computation of gradient and Hessian, and its last step."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.errors import require
from ltr_objectives.kernels.finish import POLICIES, finish
from ltr_objectives.kernels.rankings import Kept
from ltr_objectives.kernels.records import Out, Rng
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.threads import LONG, run
from ltr_objectives.queries import Queries

Arrays = tuple[np.ndarray, np.ndarray]
BEYOND = {
    np.float64: "gradients are beyond the range of float64; scale scores, labels or gains down",
    np.float32: "gradients are beyond the range of float32; scale the labels or gains down, or normalise the metric",
}


class Call(NamedTuple):
    """The argument of :meth:`ltr_objectives.Objective.fill`.

    Parameters
    ----------
    queries : Queries
    scores : float64 array of shape (rows,)
        Checked: finite and contiguous.
    grad, hess : float64 arrays of shape (rows,)
        Zeros, to be written.
    skip : bool array of shape (queries,)
        Queries whose gradient and Hessian are not used; the kernels of this package leave them out.
    iteration : int
        Selects the random numbers, below 2^64.
    n_threads : int or None
    dtype : type
        Of the result, np.float64 or np.float32.
    path : tuple of int
        The numbers of the members from the outermost objective to this one. A 0 leaves the
        random stream unchanged: the first part of a sum draws the same numbers as alone.
    into : two float64 arrays of shape (rows,), optional
        Where the result is added; by default it is two new arrays, which the caller may keep.
    rankings : mapping
        Room for the rankings that several parts of a sum draw.
    """

    queries: Queries
    scores: np.ndarray
    grad: np.ndarray
    hess: np.ndarray
    skip: np.ndarray
    iteration: int = 0
    n_threads: int | None = None
    dtype: type[np.floating[Any]] = np.float64
    path: tuple[int, ...] = ()
    into: Arrays | None = None
    rankings: Mapping[tuple[Rng, int, int], Kept] = MappingProxyType({})

    def __setattr__(self, name: str, value: Any) -> None:
        # `call.grad *= 2` changes the array, and then assigns it
        require(value is getattr(self, name, None), f"call.{name} cannot be replaced; write call.{name}[:] = ...")

    @classmethod
    def at(cls, queries: Queries, scores: np.ndarray, iteration: int = 0) -> "Call":
        """Return a call at these scores, of all queries and with new arrays."""
        grad, hess = np.zeros((2, queries.rows))
        return cls(queries, scores, grad, hess, np.zeros(len(queries), np.bool_), iteration)

    def run(self, kernel: Callable[..., Any], *arguments: Any) -> None:
        """Run ``kernel(first, last, ptr, scores, *arguments, out)`` over all queries, on several threads."""
        require(
            not getattr(kernel, "targetoptions", {}).get("parallel"),
            f"{getattr(kernel, '__name__', 'the kernel')} has parallel=True, which writes nothing here: leave it out, "
            "because run gives each thread queries of its own",
        )
        ptr, stop = self.queries.ptr, self.skip.copy() if self.queries.longest >= LONG else None
        out = Out(self.grad, self.hess, self.skip if stop is None else stop)
        run(kernel, ptr, (ptr, self.scores, *arguments, out), self.n_threads, stop)

    def rng(self, seed: int, draws: int = 1, noise: int = 0, scale: float = 1.0) -> Rng:
        """Return the random numbers of this iteration."""
        return Rng(np.uint64(seed), np.uint64(self.iteration), int(draws), noise, float(scale))

    def _ranked(self, rng: Rng) -> tuple[Rng, int, int]:
        """Return what decides the rankings by these random numbers; the sum holds the arrays."""
        return rng, id(self.scores), id(self.queries.ptr)

    def key(self, seed: int, own: np.uint64) -> np.uint64:
        """Return the key of random numbers for this iteration and path; ``own`` identifies the kind of draw."""
        key = np.uint64(stream(np.uint64(seed), np.uint64(self.iteration), own))
        for level, part in enumerate(self.path, 1):
            key = np.uint64(stream(key, np.uint64(level), np.uint64(part))) if part else key
        return key

    def _finish(self, policy: str, weight: np.ndarray | None, factor: float = 1.0) -> Arrays:
        """Apply ``policy``, multiply by ``weight`` and ``factor``, and return gradient and Hessian, or add to ``into``.

        That of the queries of ``skip`` is zero. ``grad`` and ``hess`` are zeros afterwards.
        """
        dtype = self.dtype
        require(dtype in BEYOND, f"dtype={dtype!r} must be np.float64 or np.float32")
        rows, ptr = self.queries.rows, self.queries.ptr
        never = np.zeros(1, np.bool_)
        grad, hess = self.into or (np.empty(rows, dtype), np.empty(rows, dtype))
        result = Out(grad, hess, never)
        finite = np.ones(len(self.queries), np.bool_)
        if weight is None:
            weight = np.ones(1)
        else:
            require(len(weight) == rows, f"row_weight gave {len(weight)} weights for {rows} rows; return one per row")
        if self.skip.any():  # policies such as "ones" change these rows too
            weight = np.where(np.repeat(self.skip, np.diff(ptr)), 0.0, weight)
        weight = np.require(weight, np.float64, ["C", "A", "W"])
        given, adds = Out(self.grad, self.hess, never), self.into is not None
        arguments = ptr, given, POLICIES[policy], weight, float(factor), result, adds, finite
        run(finish, ptr, arguments, self.n_threads)
        with np.errstate(over="ignore"):
            good = finite.all() and (adds or dtype is np.float32 or all(np.isfinite(x.sum()) for x in result[:2]))
        if not good:
            nan = np.isnan(result.grad) | np.isnan(result.hess)
            require(
                not nan.any(),
                f"the gradient or Hessian of row {nan.argmax()} is NaN: the objective divides 0 by 0 there, or scores, "
                "labels or gains are beyond the range of float64; correct its fill, or scale them down",
            )
        require(good, BEYOND[dtype])
        return result.grad, result.hess

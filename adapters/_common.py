"""What the adapters share: plain arrays from whatever a library hands over, and one `Queries` per data set."""

import importlib
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from ltr_objectives.diagnostics import warn_if_useless
from ltr_objectives.errors import require, warn
from ltr_objectives.kernels.rng import content_stream
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, to_numpy

KEPT = 8  # data sets remembered at a time: one training set and some evaluation sets


def import_library(name: str) -> Any:
    """The library, or what to install."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(f"{name} is not installed: pip install ltr-objectives[{name}]") from None


def training(frame: FrameType | None, library: str) -> Any:
    """The Booster of ``library`` whose code is calling us, or None: no library hands it over."""
    frame = called_by(frame, library)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == library:
        caller = frame.f_locals.get("self")
        if hasattr(caller, "num_trees") or hasattr(caller, "num_boosted_rounds"):
            return caller
        frame = frame.f_back
    return None


def called_by(frame: FrameType | None, library: str) -> FrameType | None:
    """The first frame of ``library`` at or above ``frame``: users wrap our callables in functions of their own."""
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] != library:
        frame = frame.f_back
    return frame


class QueriesMemo:
    """The validated `Queries` of data sets seen lately, found again by content.

    Comparing labels, groups and weights takes far less time than preparing them anew, and cannot mistake one data set
    for another, whatever the user changes or frees between two calls. Nothing that matters is state: copies and pickles
    start empty.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[tuple[np.ndarray | None, ...], Queries], ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return QueriesMemo, ()

    def find(self, labels: Any, group: Any, weight: Any, propensity: Any = None, position: Any = None) -> Queries:
        """`Queries(labels, group, weight=weight, ...)`, or the one made of equal arrays before."""
        weight = None if weight is None else to_numpy(weight, "weight")
        key = (
            to_numpy(labels, "labels"),
            to_numpy(group, "group"),
            None if weight is None or weight.size == 0 else weight,
            None if propensity is None else to_numpy(propensity, "propensity"),
            None if position is None else to_numpy(position, "position"),
        )
        for known, queries in self._entries:
            if all(_equal(a, b) for a, b in zip(known, key, strict=True)):
                return queries
        queries = Queries(key[0], key[1], weight=key[2], propensity=key[3], position=key[4])
        copies = tuple(None if a is None else a.copy() for a in key)
        self._entries = ((copies, queries), *self._entries)[:KEPT]
        return queries


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def gradients(
    objective: Objective,
    queries: Queries,
    scores: Any,
    n_threads: int | None,
    dtype: type[np.floating[Any]] = np.float64,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian; the noise is selected by the scores themselves."""
    s, iteration = to_numpy(scores, "scores").reshape(-1), 0
    if objective.random:
        s = queries.check_scores(s)
        iteration = content_stream(s)
    grad, hess = objective.compute(queries, s, iteration=iteration, n_threads=n_threads, dtype=dtype)
    queries.once("warned", lambda: warn_if_useless(objective, queries, s, grad, n_threads))
    return grad, hess


def gradients_float32(
    objective: Objective, queries: Queries, scores: Any, n_threads: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`gradients`, in the type that XGBoost and LightGBM store."""
    grad, hess = gradients(objective, queries, scores, n_threads, np.float32)
    require(
        hess.min() >= 0,
        f"{objective.name} has negative second derivatives, from which this library learns nothing or diverges: choose "
        "another hessian=, such as 'absolute'",
    )
    return grad, hess


def warn_if_no_split(queries: Queries, hess: np.ndarray, name: str, limit: Callable[[], float]) -> None:
    """Warn, once for a data set, where the Hessian cannot fill two leaves: the library grows no tree, and says little.

    ``limit()`` is what the library demands of each leaf by its parameter ``name``.
    """

    def look() -> None:
        total, least = float(hess.sum(dtype=np.float64)), limit()
        if 0 < total < 2 * least:
            warn(
                f"{name}={least:g} forbids every split, since the Hessian of all rows together is {total:.3g}: set it "
                "to a small part of that, such as 1e-3, or 0"
            )

    queries.once("splits", look)

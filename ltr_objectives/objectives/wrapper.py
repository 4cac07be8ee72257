"""Base of the objectives that change the gradient and Hessian of another one."""

import abc
from dataclasses import replace
from typing import Any

import numpy as np

from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective


class Wrapper(Objective):
    """An objective around the one in its field ``objective``. A subclass adds that field and :meth:`change`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", self.wrapped)

    @abc.abstractmethod
    def change(self, call: Call) -> None:
        """Change ``call.grad`` and ``call.hess`` in place; they hold the results of the wrapped objective."""

    @property
    def wrapped(self) -> Objective:
        """The objective that is wrapped."""
        return get_objective(vars(self)["objective"])

    @property
    def inner(self) -> Objective:
        return self.wrapped.inner

    @property
    def takes_clicks(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.takes_clicks

    @property
    def policy(self) -> str:
        return self.wrapped.policy

    @property
    def random(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.random

    @property
    def hessian_kind(self) -> str:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.hessian_kind

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.shift_invariant

    @property
    def label_limit(self) -> float | None:
        return self.wrapped.label_limit

    def without_noise(self) -> Objective | None:
        return self._around(self.wrapped.without_noise())

    def with_exact_hessian(self) -> Objective | None:
        return self._around(self.wrapped.with_exact_hessian())

    def _around(self, wrapped: Objective | None) -> Objective | None:
        return None if wrapped is None else replace(self, objective=wrapped)  # type: ignore[call-arg]  # of subclasses

    @property
    def metric(self) -> Any:
        """The metric that the wrapped objective optimises, None where it has none."""
        return getattr(self.wrapped, "metric", None)

    def worth(self, queries: Queries) -> np.ndarray:
        return self.wrapped.worth(queries)

    def pairs_visited(self, queries: Queries) -> np.ndarray | None:
        return self.wrapped.pairs_visited(queries)

    def pair_counts(self, queries: Queries, scores: np.ndarray) -> np.ndarray | None:
        return self.wrapped.pair_counts(queries, scores)

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        return self.wrapped.row_weight(queries)

    def fill(self, call: Call) -> None:
        call.grad[:], call.hess[:] = self.wrapped.compute(
            call.queries, call.scores, iteration=call.iteration, n_threads=call.n_threads, skip=call.skip
        )
        self.change(call)

    def _finished(self, call: Call, dtype: type[np.floating[Any]]) -> tuple[np.ndarray, np.ndarray]:
        return call.finished("exact", None, dtype)  # the wrapped objective has applied policy and weights

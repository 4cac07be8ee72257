"""Base of the objectives that change the gradient and Hessian of another one."""

from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from ltr_objectives.kernels.rng import stream
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective


class Wrapper(Objective):
    """An objective around the one in its field ``objective``, which a subclass adds.

    A subclass changes what :meth:`fill` writes, or multiplies the result by :meth:`factor`.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", self.wrapped)

    def key(self, call: Call) -> np.uint64:
        """The key of this wrapper's random numbers: no query has it, nor another class, nor a wrapper inside of it."""
        own = ~np.uint64(crc32(self.name.encode()) << 8 | _depth(self))
        return np.uint64(stream(np.uint64(vars(self)["seed"]), np.uint64(call.iteration), own))

    def factor(self, call: Call) -> float:
        """What multiplies gradient and Hessian of the wrapped objective, after its policy and weights."""
        return 1.0

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

    @property
    def goals(self) -> tuple[str, ...]:
        return self.wrapped.goals

    def without_noise(self) -> Objective | None:
        return self._around(self.wrapped.without_noise())

    def whole(self) -> Objective:
        return self._around(self.wrapped.whole()) or self

    def _around(self, wrapped: Objective | None) -> Objective | None:
        return None if wrapped is None else replace(self, objective=wrapped)  # type: ignore[call-arg]  # of subclasses

    @property
    def metric(self) -> Any:
        """The metric that the wrapped objective optimises, None where it has none."""
        return getattr(self.wrapped, "metric", None)

    def worth(self, queries: Queries) -> np.ndarray:
        return self.wrapped.worth(queries)

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        return self.wrapped.row_weight(queries)

    def left_out(self, call: Call) -> np.ndarray | None:
        return self.wrapped.left_out(call)

    def fill(self, call: Call) -> None:
        self.wrapped.fill(call)

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.wrapped._finished(call, dtype, factor * self.factor(call))


def _depth(objective: Objective) -> int:
    """How many random wrappers lie inside of the objective, one in the other."""
    parts = (objective.wrapped,) if isinstance(objective, Wrapper) else getattr(objective, "parts", ())
    return max((_depth(part) + ("seed" in vars(part) and isinstance(part, Wrapper)) for part in parts), default=0)

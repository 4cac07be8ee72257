r"""Sums of objectives whose weights follow bounds on metrics.

A training maximises a metric :math:`m_1` while each of the metrics :math:`m_k` keeps its bound :math:`b_k > 0` on
validation data. With gradients and Hessians :math:`(g_p, h_p)` and their typical sizes :math:`n_p` as in
:class:`Mixture`, round :math:`t` has

.. math:: (g, h) = \frac{(g_1, h_1) / n_1 + \sum_k a_{tk}\, (g_k, h_k) / n_k}{1 + \sum_k a_{tk}}, \quad
          a_{t+1,k} = \mathrm{clip}\!\left(a_{tk}\, e^{20 (b_k - v_{tk}) / b_k},\ 0.02,\ 50\right),

where :math:`v_{tk}` is the validation value of :math:`m_k` after round :math:`t`, and :math:`a_{0k} = 0.5`: the
exponentiated gradient step of a multiplier (Kivinen and Warmuth, 1997) for the relative shortfall.

The constraint is that of Momma, Bagheri Garakani, Ma and Sun, "Multi-objective Ranking via Constrained Optimization",
WWW 2020, and of Mahapatra, Dong, Chen and Momma, "Multi-label Learning to Rank through Multi-objective Optimization",
KDD 2023. Both follow the loss on the training data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.composite import Member, on_all_queries
from ltr_objectives.objectives.mixture import Mixture

START, RATE, LEAST, MOST = 0.5, 20.0, 0.02, 50.0  # of multipliers


class Multipliers:
    """The multipliers of bounds in one training, and what its rounds reached on validation data."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = np.array(bounds, np.float64)
        self.now = np.full(len(bounds), START)
        self.begun = 0  # rounds, of trainings by the libraries' own functions
        self.used: list[np.ndarray] = []  # by each round
        self.values: list[np.ndarray] = []  # of the metrics after each round

    def follow(self, values: Sequence[float]) -> None:
        """Finish a round after which the metrics have these values.

        >>> multipliers = Multipliers([0.8])
        >>> multipliers.follow([0.78])
        >>> multipliers.now.round(3)
        array([0.824])
        """
        self.used.append(self.now)
        self.values.append(np.array(values, np.float64))
        self.now = np.clip(self.now * np.exp(RATE * np.clip(self.missing(values), -1.0, 1.0)), LEAST, MOST)

    def missing(self, values: ArrayLike) -> np.ndarray:
        """Return how much is missing to each bound, as a share of it; not above 0 if the bound is kept."""
        missing: np.ndarray = (self.bounds - np.asarray(values)) / self.bounds
        return missing


@dataclass(frozen=True)
class Bounded(Mixture):
    """The sum of one training: the first part has weight 1, and the others have the multipliers of the round."""

    multipliers: Multipliers = field(default_factory=lambda: Multipliers([]), kw_only=True, compare=False)

    name: ClassVar[str] = "bounded"

    @property
    def members(self) -> tuple[Member, ...]:
        now = np.array([1.0, *self.multipliers.now])
        return tuple(m._replace(factor=float(w)) for m, w in zip(super().members, now / now.sum(), strict=True))

    def at(self, multipliers: Iterable[float]) -> Mixture:
        """Return the sum with constant multipliers."""
        return Mixture(self.parts, [1.0, *map(float, multipliers)], labels=self.labels)

    def on_all_queries(self) -> Objective:
        """Return the sum of the first round on all queries, so that typical sizes are the same in every round."""
        start = self.at([START] * len(self.multipliers.now))
        return replace(start, parts=[on_all_queries(part) for part in start.parts])  # type: ignore[arg-type]  # are objectives


def flat(objective: Objective) -> tuple[Objective, str | None]:
    """Return the objective and the goal of a sum of one part, so that sums of sums keep texts and clicks."""
    if type(objective) is Mixture and len(objective.members) == 1:
        member = objective.members[0]
        return member.objective, member.goal
    return objective, None

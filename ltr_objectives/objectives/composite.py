"""Objectives that are made of other objectives, their members."""

import abc
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ltr_objectives.errors import LTRError
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.queries import Queries

T = TypeVar("T")


class Member(NamedTuple):
    """An objective inside another one."""

    objective: Objective
    factor: float = 1.0  # of its gradient and Hessian
    goal: str | None = None  # whose labels it reads
    number: int = 0  # among the members

    def on(self, queries: Queries, compute: Callable[[Objective, Queries], T]) -> T:
        """Return ``compute(objective, queries)`` on the labels of the goal, which errors name."""
        try:
            return compute(self.objective, queries.for_goal(self.goal))
        except LTRError as error:
            raise error if self.goal is None else LTRError(f"labels[{self.goal!r}]: {error}") from None

    def add_to(self, call: Call, total: Arrays) -> None:
        """Add gradient and Hessian, times the factor, to those of ``total``; those of the call are zeros again."""

        def add(objective: Objective, queries: Queries) -> None:
            objective._check_clicks(queries)
            of_part = call._replace(queries=queries, path=(*call.path, self.number), dtype=np.float64, into=total)
            objective._result(of_part, self.factor)

        self.on(call.queries, add)


class Composite(Objective):
    """Base of the objectives around one other, and of sums of several."""

    @property
    @abc.abstractmethod
    def members(self) -> tuple[Member, ...]:
        """The objectives inside, with their weights."""

    @abc.abstractmethod
    def with_members(self, *objectives: Objective) -> Objective:
        """Return this objective with other objectives inside."""

    def summands(self, queries: Queries, n_threads: int | None = None) -> tuple[Member, ...]:
        """Return the members with their factors in the gradient."""
        return self.members

    @property
    def metric(self) -> Any:
        """The metric of the first member on its goal, None if it has none."""
        first = self.members[0]
        metric = getattr(first.objective, "metric", None)
        return metric if metric is None or metric.goal is not None else metric._with(goal=first.goal)

    def without_noise(self) -> Objective | None:
        if not self.facts.random:
            return self
        quiet = [member.objective.without_noise() for member in self.members]
        known = [objective for objective in quiet if objective is not None]
        return self.with_members(*known) if len(known) == len(quiet) else None

    def on_all_queries(self) -> Objective:
        """Return this objective on all queries, if it takes a random share of them."""
        return self.with_members(*(on_all_queries(member.objective) for member in self.members))

    def relevance(self, queries: Queries) -> np.ndarray:
        return np.vstack(
            [member.on(queries, lambda objective, own: objective.relevance(own)) for member in self.members]
        )


def leaves(objective: Objective) -> Iterator[Objective]:
    """Yield the objectives inside that have none inside; ``objective`` itself if it has none."""
    if not isinstance(objective, Composite):
        yield objective
        return
    for member in objective.members:
        yield from leaves(member.objective)


def on_all_queries(objective: Objective) -> Objective:
    """Return the objective on all queries, also if a part of it takes a random share of them."""
    return objective.on_all_queries() if isinstance(objective, Composite) else objective


def initial_score(objective: Objective, queries: Queries) -> float:
    """Return the score at which a training starts: the mean label, if the scores are in its units."""
    if isinstance(objective, Composite):
        parts = [part for part in objective.summands(queries) if part.objective.facts.label_scale and part.factor > 0]
        starts = [part.on(queries, initial_score) for part in parts]
        return float(np.average(starts, weights=[part.factor for part in parts])) if parts else 0.0
    weight = queries.weight_by_row
    learns = objective.facts.label_scale and (weight is None or weight.any())
    return float(np.average(queries.labels, weights=weight)) if learns else 0.0


def seeded(objective: Objective, seed: int) -> Objective:
    """Return the objective with this seed in all of its parts for which no seed was written."""
    free = "seed" in objective.parameters() and "seed" not in objective._written
    if isinstance(objective, Composite):
        objective = objective.with_members(*(seeded(member.objective, seed) for member in objective.members))
    return replace(objective, seed=seed) if free else objective  # type: ignore[call-arg]  # of subclasses

r"""Stochastic label aggregation: each iteration draws whose labels are learned from."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_choice, check_list, check_seed, check_weights
from ltr_objectives.errors import require
from ltr_objectives.goals import check_goal
from ltr_objectives.kernels.rng import uniforms
from ltr_objectives.objectives.base import Objective, Summand, naming
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.wrapper import Wrapper
from ltr_objectives.queries import Labels, Queries


@dataclass(frozen=True)
class StochasticLabels(Wrapper):
    r"""An objective on labels that are drawn anew in each iteration from those of several goals.

    .. math:: \tilde y_i = y_i^{(k_i)}, \quad P(k_i = k) = w_k / \sum_l w_l

    with one draw for each document :math:`i`, as in stochastic label aggregation (Carmel, Haramaty, Lazerson and
    Lewin-Eytan, "Multi-Objective Ranking Optimization for Product Search Using Stochastic Label Aggregation", The Web
    Conference 2020), or one for each query. A gradient takes the time of one goal.

    With a draw for each query the expected gradient and Hessian are those of
    ``Mixture([objective, ...], weights / sum(weights), normalize=False, labels=labels)``, for every objective. With a
    draw for each document a pair may compare one goal's label with another's. So the goals need labels on one scale,
    and the expectation is that of the mixture only for losses that are sums over documents. Wrap it in
    :class:`ltr_objectives.UnitHessian` rather than the other way round, whose constant would be measured in each
    iteration.

    Parameters
    ----------
    objective : str or Objective
        The objective to wrap.
    labels : list of str or None
        The goals, such as ``[None, "revenue"]``. None stands for the labels that the data have anyway.
    weights : list of float, optional
        One for each goal, not negative; 1 by default.
    draw : "document" or "query"
        What gets a draw of its own.
    seed : int
        Of the draws. They are a function of the seed and the iteration, without state.

    Examples
    --------
    >>> either = StochasticLabels("ranknet", labels=[None, "revenue"], weights=[2, 1], draw="query", seed=1)
    >>> labels = {"relevance": [0, 1] * 4, "revenue": [5, 0] * 4}
    >>> either.gradient_hessian([0.0] * 8, labels, group=[2] * 4)[0]
    array([-0.5,  0.5, -0.5,  0.5,  0.5, -0.5,  0.5, -0.5])
    """

    objective: str | Objective
    labels: Sequence[str | None] = ()
    weights: Sequence[float] | None = None
    draw: str = "document"
    seed: int = 0

    name: ClassVar[str] = "stochasticlabels"
    random: ClassVar[bool] = True
    takes_clicks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        labels = tuple(check_list("labels", self.labels, "goals"))
        require(
            len(labels) > 1, f"labels={labels!r} must name two goals or more; None stands for the data's own labels"
        )
        for goal in labels:
            if goal is not None:
                check_goal(goal)
        twice = len(set(labels)) < len(labels)
        require(not twice, f"labels={labels!r} names a goal twice; give it the sum of its weights")
        weights = check_weights(self.weights, len(labels), "goals")
        check_choice("draw", self.draw, ("document", "query"))
        object.__setattr__(self, "seed", check_seed(self.seed))
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "weights", weights)
        super().__post_init__()

    @property
    def inner(self) -> Objective:
        return self

    @property
    def goals(self) -> tuple[str, ...]:
        named = (goal for goal in (*self.labels, *self.wrapped.goals) if goal is not None)
        return tuple(dict.fromkeys(named))

    @property
    def label_limit(self) -> float | None:
        return self.wrapped.label_limit if None in self.labels else None

    @property
    def probabilities(self) -> np.ndarray:
        """Of each goal."""
        weights = np.array(self.weights)
        return weights / weights.sum()

    def without_noise(self) -> Objective | None:
        return None

    def worth(self, queries: Queries) -> np.ndarray:
        worths = [self.wrapped.worth(queries.of(goal)) for goal in self.labels]
        return np.asarray(np.sqrt(1.0 + np.arange(len(worths))) @ np.array(worths))  # as in Mixture

    def fill(self, call: Call) -> None:
        how: dict[str, Any] = {"iteration": call.iteration, "n_threads": call.n_threads}
        if self.draw == "document":
            of_goals = self._of_goals(call.queries)
            drawn = of_goals[self._drawn(call, call.queries.rows), np.arange(call.queries.rows)]
            queries = call.queries.with_labels(drawn)
            call.grad[:], call.hess[:] = self.wrapped.compute(queries, call.scores, skip=call.skip, **how)
            return
        drawn = self._drawn(call, len(call.queries))
        for k, goal in enumerate(self.labels):
            skip = drawn != k if call.skip is None else (drawn != k) | call.skip
            if not skip.all():
                grad, hess = Summand(self.wrapped, 1.0, goal).compute(call.queries, call.scores, skip=skip, **how)
                call.grad[:] += grad
                call.hess[:] += hess

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return call.finished("exact", None, dtype, factor)  # the objective has applied policy and weights

    def _drawn(self, call: Call, count: int) -> np.ndarray:
        """The number of the goal that each document or query has in this iteration."""
        uniforms(self.key(call), chance := np.empty(count))
        upper = np.cumsum(self.probabilities)
        return np.searchsorted(upper / upper[-1], chance, side="right")

    def _of_goals(self, queries: Queries) -> np.ndarray:
        """The labels of each goal, shape (goals, rows); checked by the wrapped objective where it takes them."""

        def stacked() -> np.ndarray:
            for goal in self.labels:
                with naming(goal):
                    self.wrapped.worth(queries.of(goal))
            return np.array([queries.of(goal).labels for goal in self.labels])

        return queries.once(("labels", self), stacked)

    def reference(self, scores: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        """The mean over all draws, for lists of few documents."""
        queries, n = Queries(labels, [len(scores)]), len(scores)
        of_goals = np.array([queries.of(goal).labels for goal in self.labels])
        total = np.zeros((2, n))
        for drawn in itertools.product(range(len(self.labels)), repeat=n if self.draw == "document" else 1):
            chosen = np.array(drawn * (1 if self.draw == "document" else n))
            found = self.wrapped.reference(scores, of_goals[chosen, np.arange(n)])
            total += self.probabilities[list(drawn)].prod() * np.array(found)
        return total[0], total[1]

r"""Sums of objectives, and objectives or labels that are drawn from several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ltr_objectives.checks import check_choice, check_list, check_seed, check_weights
from ltr_objectives.errors import LTRError, require
from ltr_objectives.goals import check_goal, with_goal
from ltr_objectives.kernels.rng import uniforms
from ltr_objectives.objectives.around import key_of
from ltr_objectives.objectives.base import Facts, Objective, get_objective, read_part
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Labels, Queries, by_goal

T = TypeVar("T")


class Summand(NamedTuple):
    """A part of a mixture."""

    objective: Objective
    factor: float
    goal: str | None = None  # whose labels it reads
    place: int = 0  # its number among the parts

    def on(self, queries: Queries, compute: Callable[[Objective, Queries], T]) -> T:
        """``compute(objective, queries)`` on the labels of the goal, which errors name."""
        try:
            return compute(self.objective, queries.of(self.goal))
        except LTRError as error:
            raise error if self.goal is None else LTRError(f"labels[{self.goal!r}]: {error}") from None

    def result(self, call: Call) -> Arrays:
        """Gradient and Hessian without the factor."""

        def compute(objective: Objective, queries: Queries) -> Arrays:
            objective._check_clicks(queries)
            return objective._result(call._replace(queries=queries, place=(*call.place, self.place)))

        return self.on(call.queries, compute)


@dataclass(frozen=True)
class Mixture(Objective):
    r"""A weighted sum of objectives, :math:`\sum_p w_p\, (g_p, h_p) / n_p`, each on the same labels or on its own.

    :math:`n_p` is the mean absolute gradient of part :math:`p` over the rows of the data set, at independent standard
    normal scores, plus the mean label for squared error. So parts of equal weight have gradients of equal mean size
    there.

    Losses with equal seeds draw the same rankings at the same scores. Parts such as ``Langevin`` and ``Subsample`` draw
    independently.

    Parameters
    ----------
    parts : list of str or Objective
        Such as ``["yetiloss:ndcg@10", "yetiloss:mrr"]``.
    weights : list of float, optional
        One for each part, not negative; 1 by default.
    normalize : bool
        Divide by :math:`n_p`; with False :math:`n_p = 1`.
    labels : list of str or None, optional
        The goal of each part, whose labels it reads, such as ``[None, "revenue"]``. None stands for the labels that the
        data have anyway.
    draw : None or "document"
        "document" draws labels, see :class:`ltr_objectives.StochasticLabels`: all parts are the same objective.
    seed : int
        Seed of the draws; parts have seeds of their own.

    Notes
    -----
    ``get_objective`` and everything that takes an objective by name read ``"yetiloss:ndcg@10+0.3*yetiloss:mrr"``, and
    ``"yetiloss:ndcg@10+0.3*yetiloss:ndcg@10[revenue]"`` for a part on the labels of a goal.

    The labels of a goal are passed as ``labels={"revenue": array}`` to the adapters and to ``fit``. Propensities and
    positions correct the clicks of the data's own labels only.

    If a metric is not named, as for the early stopping of an estimator, it is the metric of the first part.

    Examples
    --------
    >>> from ltr_objectives import get_objective
    >>> mixture = Mixture(["yetiloss:ndcg@10", "yetiloss:mrr"], weights=[1, 0.3])
    >>> mixture == get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:mrr")
    True
    >>> grad, hess = mixture.gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> goals = Mixture(["ranknet", "ranknet"], [1, 3], labels=[None, "revenue"], normalize=False)
    >>> goals.gradient_hessian([0.0, 0.0], {"relevance": [0, 1], "revenue": [5, 0]}, group=[2])[0]
    array([-1.,  1.])
    """

    parts: Sequence[str | Objective]
    weights: Sequence[float] | None = None
    normalize: bool = True
    labels: Sequence[str | None] | None = None
    draw: str | None = None
    seed: int = 0

    name: ClassVar[str] = "mixture"
    _not_read: ClassVar[dict[str, str]] = {
        **dict.fromkeys(Facts._fields, "override facts instead"),
        "row_weight": "override that of a part instead",
    }

    def __post_init__(self) -> None:
        read = [read_part(part) for part in check_list("parts", self.parts, "objectives")]
        require(read, "parts is empty; give at least one objective, such as 'yetiloss:ndcg@10'")
        parts, goals = zip(*read, strict=True)
        if self.labels is not None:
            require(not any(goals), "a part has its goal in brackets; leave labels= out, or the brackets")
            goals = tuple(check_list("labels", self.labels, "goals"))
            require(len(goals) == len(parts), f"labels has {len(goals)} entries for {len(parts)} parts; give one each")
        for goal in goals:
            if goal is not None:
                check_goal(goal)
        weights = check_weights(self.weights, len(parts), "parts")
        check_choice("normalize", self.normalize, (True, False))
        check_choice("draw", self.draw, (None, "document"))
        require(
            self.draw != "document" or not (self.normalize or any(part != parts[0] for part in parts)),
            "draw='document' draws labels for one objective: give equal parts and normalize=False",
        )
        seed = check_seed(self.seed)
        require(seed == 0 or self.draw, f"seed={seed} is of the draws, and would change nothing without draw=")
        for name, value in {"parts": parts, "weights": weights, "labels": goals, "seed": seed}.items():
            object.__setattr__(self, name, value)

    def _text(self) -> str:
        parts = zip(self.weights or (), self._inside, self.labels or (), strict=True)
        return "+".join(f"{'' if w == 1 else f'{w}*'}{with_goal(str(part), goal)}" for w, part, goal in parts)

    @property
    def weighted(self) -> tuple[tuple[Objective, float], ...]:
        """Each part and its weight, or its probability if parts are drawn."""
        return tuple((part.objective, part.factor) for part in self._parts)

    @property
    def _parts(self) -> tuple[Summand, ...]:
        """The parts with their weights, which are probabilities if one is drawn."""
        weights = np.array(self.weights)
        shares = self.weights or () if self.draw is None else tuple(weights / weights.sum())
        parts = zip(self._inside, shares, self.labels or (), strict=True)
        return tuple(Summand(*part, place) for place, part in enumerate(parts))

    @property
    def _inside(self) -> tuple[Objective, ...]:
        parts: Any = self.parts
        return parts

    @property
    def facts(self) -> Facts:
        parts = [(part.objective.facts, part.goal, part.factor) for part in self._parts]
        own = [facts for facts, goal, _ in parts if goal is None]
        kinds = {facts.hessian_kind for facts, _, _ in parts}
        goals = [name for facts, goal, _ in parts for name in (goal, *facts.goals) if name is not None]
        return Facts(
            random=self.draw is not None or any(facts.random for facts, _, _ in parts),
            hessian_kind=next(kind for kind in ("estimate", "bound", "exact") if kind in kinds),
            shift_invariant=all(facts.shift_invariant for facts, _, weight in parts if weight > 0),
            balanced=all(facts.balanced for facts, _, weight in parts if weight > 0),
            takes_clicks=self.draw is None and bool(own) and all(facts.takes_clicks for facts in own),
            label_scale=any(facts.label_scale for facts, _, weight in parts if weight > 0),
            label_limit=min((facts.label_limit for facts in own if facts.label_limit is not None), default=None),
            goals=tuple(dict.fromkeys(goals)),
        )

    @property
    def metric(self) -> Any:
        """The metric of the first part on its goal, None if it has none."""
        first = self._parts[0]
        metric = getattr(first.objective, "metric", None)
        return metric if metric is None or metric.goal is not None else metric._with(goal=first.goal)

    def without_noise(self) -> Objective | None:
        quiet = [part.without_noise() for part in self._inside]
        known = [part for part in quiet if part is not None]
        return replace(self, parts=known) if self.draw is None and len(known) == len(quiet) else None

    def _whole(self) -> Objective:
        return replace(self, parts=[part._whole() for part in self._inside])

    def _worth(self, queries: Queries) -> np.ndarray:
        # With weights 1, sqrt(2), sqrt(3), ... two documents whose worth differs for a part differ in the sum, too.
        return np.sum([np.sqrt(1.0 + part.place) * part.on(queries, _worth_of) for part in self._parts], axis=0)

    def _start(self, queries: Queries) -> float:
        parts = [part for part in self.summands(queries) if part.objective.facts.label_scale and part.factor > 0]
        starts = [part.on(queries, _start_of) for part in parts]
        return float(np.average(starts, weights=[part.factor for part in parts])) if parts else 0.0

    def summands(self, queries: Queries, n_threads: int | None = None) -> tuple[Summand, ...]:
        """The parts with their factors in the gradient, or in the expected gradient if they are drawn."""
        return tuple(part._replace(factor=part.factor / self._size(part, queries, n_threads)) for part in self._parts)

    def _size(self, part: Summand, queries: Queries, n_threads: int | None) -> float:
        if not self.normalize:
            return 1.0
        size = part.on(queries, lambda objective, own: typical(objective, own, n_threads).gradient)
        return size if size > SMALLEST else 1.0

    def fill(self, call: Call) -> None:
        """Add up the parts that take part, each after its own policy and weights."""
        grad, hess = call.queries._borrow_zeros()
        own = call._replace(grad=grad, hess=hess)
        if self.draw == "document":
            own = own._replace(queries=self._with_drawn_labels(call))
            parts = [Summand(self._inside[0], 1.0)]
        else:
            parts = [summand for summand in self.summands(call.queries, call.n_threads) if summand.factor > 0]
        if call.skip is None or not call.skip.all():
            for summand in parts:
                g, h = summand.result(own)
                call.grad[:] += summand.factor * g
                call.hess[:] += summand.factor * h
        call.queries._give_back_zeros(grad, hess)

    def _result(self, call: Call, dtype: type[np.floating[Any]] = np.float64, factor: float = 1.0) -> Arrays:
        self.fill(call)
        return call._finished("exact", None, dtype, factor)  # each part has applied policy and weights

    def _drawn(self, call: Call) -> np.ndarray:
        """The number of the part that each document has in this iteration."""
        uniforms(key_of(self, call, "stochasticlabels", self.seed), chance := np.empty(call.queries.rows))
        upper = np.cumsum([part.factor for part in self._parts])
        return np.searchsorted(upper / upper[-1], chance, side="right")

    def _with_drawn_labels(self, call: Call) -> Queries:
        queries = call.queries
        labels = queries.once(("labels", self), lambda: self._labels_of_parts(queries))
        return queries.with_labels(labels[self._drawn(call), np.arange(queries.rows)])

    def _labels_of_parts(self, queries: Queries) -> np.ndarray:
        """The labels of each part, shape (parts, rows); raises if the part's objective does not take them."""
        for part in self._parts:
            part.on(queries, _worth_of)
        return np.array([queries.of(part.goal).labels for part in self._parts])

    def reference_loss(self, scores: np.ndarray, labels: Labels) -> Any:
        queries = Queries(labels, [len(scores)])
        parts = self.summands(queries, 1)
        losses = [part.objective.reference_loss(scores, _labels_for(part, queries)) for part in parts]
        if self.draw == "document" or any(loss is None for loss in losses):
            return None
        return sum(part.factor * loss for part, loss in zip(parts, losses, strict=True))


Objective.sum_class = Mixture


def StochasticLabels(
    objective: str | Objective,
    labels: Sequence[str | None] = (),
    weights: Sequence[float] | None = None,
    seed: int = 0,
) -> Mixture:
    r"""An objective on labels that are drawn anew in each iteration from those of several goals.

    .. math:: \tilde y_i = y_i^{(k_i)}, \quad P(k_i = k) = w_k / \sum_l w_l

    with one draw for each document :math:`i`, as in stochastic label aggregation (Carmel, Haramaty, Lazerson and
    Lewin-Eytan, "Multi-Objective Ranking Optimization for Product Search Using Stochastic Label Aggregation", The Web
    Conference 2020). A gradient takes the time of one goal. A pair may compare one goal's label with another's, so the
    goals need labels on one scale, and the expected gradient is that of
    ``Mixture([objective, ...], weights / sum(weights), normalize=False, labels=labels)`` only for losses that are sums
    over documents.

    Write ``UnitHessian(StochasticLabels(...))``. The other order recomputes the constant in every iteration.

    Parameters
    ----------
    objective : str or Objective
        The objective that learns from the labels.
    labels : list of str or None
        The goals, such as ``[None, "revenue"]``. None stands for the labels that the data have anyway.
    weights : list of float, optional
        One for each goal, not negative; 1 by default.
    seed : int
        Seed of the draws.

    Returns
    -------
    Mixture
        With the objective once for each goal, and ``draw``. This function is not a class; where ``isinstance`` is
        asked, ask for :class:`Mixture` and ``draw``, as below.

    Examples
    --------
    >>> either = StochasticLabels("rmse", labels=[None, "revenue"], weights=[2, 1], seed=1)
    >>> isinstance(either, Mixture) and either.draw
    'document'
    >>> labels = {"relevance": [0, 1] * 4, "revenue": [5, 0] * 4}
    >>> either.gradient_hessian([0.0] * 8, labels, group=[2] * 4)[0]
    array([-5.,  0.,  0., -1.,  0., -1.,  0., -1.])
    """
    goals = tuple(check_list("labels", labels, "goals"))
    require(len(goals) > 1, f"labels={goals!r} must name two goals or more; None stands for the data's own labels")
    require(len(set(goals)) == len(goals), f"labels={goals!r} names a goal twice; give it the sum of its weights")
    chances = check_weights(weights, len(goals), "goals")
    found = Mixture([get_objective(objective)] * len(goals), chances, False, goals, "document", seed)
    object.__setattr__(found, "name", "stochasticlabels")  # for messages
    return found


def _labels_for(part: Summand, queries: Queries) -> Any:
    """The labels that the reference of a part takes."""
    own = queries.of(part.goal)
    return by_goal(own.labels, own.goals) if part.objective.goals else own.labels


def _worth_of(objective: Objective, queries: Queries) -> np.ndarray:
    return objective._worth(queries)


def _start_of(objective: Objective, queries: Queries) -> float:
    return objective._start(queries)

r"""Sums of objectives, and objectives or labels that are drawn from several."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ltr_objectives.checks import check_choice, check_list, check_seed, check_weights
from ltr_objectives.errors import LTRError, require
from ltr_objectives.goals import check_goal
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.rng import uniforms
from ltr_objectives.kernels.swaps import AVERAGE, LINEAR
from ltr_objectives.objectives.around import key_of
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.pairwise import XGBOOST, PairwiseObjective
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Labels, Queries, by_goal
from ltr_objectives.registry import get_objective, read_part

T = TypeVar("T")
LINEAR_POLICIES = ("exact", "double")  # a sum of Hessians is then the Hessian of the sum
SAME_PAIRS = (
    "sigma", "truncation", "neighbors", "partners", "score_norm", "permutations", "noise", "noise_scale", "difference",
    "hessian", "seed",
)  # fmt: skip

ONCE_FOR_ALL = ("fill", "pairs", "family", "row_weight")  # methods of parts that share; one with its own does not


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

    def result(self, call: Call, skip: np.ndarray | None) -> Arrays:
        """Gradient and Hessian without the factor."""

        def compute(objective: Objective, queries: Queries) -> Arrays:
            objective._check_clicks(queries)
            return objective._result(call._replace(queries=queries, skip=skip, place=(*call.place, self.place)))

        return self.on(call.queries, compute)


@dataclass(frozen=True)
class Mixture(Objective):
    r"""A weighted sum of objectives, :math:`\sum_p w_p\, (g_p, h_p) / n_p`, each on the same labels or on its own.

    :math:`n_p` is the mean absolute gradient of part :math:`p` over the rows of the data set, at independent standard
    normal scores. So parts of equal weight have gradients of equal mean size there.

    Parts that differ only in their metric share their noisy rankings, unless they are faster alone, as those for linear
    metrics without a cutoff are. A mixture took 0.7 to 1.1 times as long as its parts one by one. Losses with equal
    seeds draw the same rankings at the same scores. Parts such as ``Langevin`` and ``Subsample`` draw independently.

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
    draw : None, "query" or "document"
        With "query" each query gets one part, drawn anew in each iteration with probability :math:`w_p / \sum_p w_p`,
        instead of the sum of all parts. So the expected gradient and Hessian are those of the sum with these weights.
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
        check_choice("draw", self.draw, (None, "query", "document"))
        require(
            self.draw != "document" or not (self.normalize or any(part != parts[0] for part in parts)),
            "draw='document' draws labels for one objective: give equal parts and normalize=False",
        )
        seed = check_seed(self.seed)
        require(seed == 0 or self.draw, f"seed={seed} is of the draws, and would change nothing without draw=")
        for name, value in {"parts": parts, "weights": weights, "labels": goals, "seed": seed}.items():
            object.__setattr__(self, name, value)

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
            takes_clicks=self.draw is None and bool(own) and all(facts.takes_clicks for facts in own),
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
            parts = [(Summand(self._inside[0], 1.0), call.skip)]
        elif self.draw == "query":
            drawn = self._drawn(call, len(call.queries))
            parts = []
            for part in self._parts:
                others = drawn != part.place if call.skip is None else (drawn != part.place) | call.skip
                factor = 1.0 / self._size(part, call.queries, call.n_threads)
                parts.append((part._replace(factor=factor, place=0), others))
        else:
            parts = [(summand, call.skip) for summand in self._terms(call.queries, call.n_threads)]
        for summand, skip in parts:
            if skip is None or not skip.all():
                g, h = summand.result(own, skip)
                call.grad[:] += summand.factor * g
                call.hess[:] += summand.factor * h
        call.queries._give_back_zeros(grad, hess)

    def _result(self, call: Call, dtype: type[np.floating[Any]] = np.float64, factor: float = 1.0) -> Arrays:
        self.fill(call)
        return call._finished("exact", None, dtype, factor)  # each part has applied policy and weights

    def _terms(self, queries: Queries, n_threads: int | None) -> list[Summand]:
        """The summands to compute; those that share their rankings are one objective."""
        alike: dict[Any, list[Summand]] = {}
        for summand in self.summands(queries, n_threads):
            if summand.factor > 0:
                rankings = summand.on(queries, _rankings)
                alike.setdefault(summand.place if rankings is None else (summand.goal, rankings), []).append(summand)
        return [
            group[0] if len(group) == 1 else Summand(_OnSameRankings.of(group), 1.0, group[0].goal)
            for group in alike.values()
        ]

    def _drawn(self, call: Call, count: int) -> np.ndarray:
        """The number of the part that each document or query has in this iteration."""
        uniforms(key_of(self, call, "stochasticlabels", self.seed), chance := np.empty(count))
        upper = np.cumsum([part.factor for part in self._parts])
        return np.searchsorted(upper / upper[-1], chance, side="right")

    def _with_drawn_labels(self, call: Call) -> Queries:
        queries = call.queries
        labels = queries.once(("labels", self), lambda: self._labels_of_parts(queries))
        return queries.with_labels(labels[self._drawn(call, queries.rows), np.arange(queries.rows)])

    def _labels_of_parts(self, queries: Queries) -> np.ndarray:
        """The labels of each part, shape (parts, rows); raises if the part's objective does not take them."""
        for part in self._parts:
            part.on(queries, _worth_of)
        return np.array([queries.of(part.goal).labels for part in self._parts])

    def reference(self, scores: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        queries, n = Queries(labels, [len(scores)]), len(scores)
        total = np.zeros((2, n))
        if self.draw == "document":
            of_parts, chances = self._labels_of_parts(queries), np.array([part.factor for part in self._parts])
            for drawn in itertools.product(range(len(chances)), repeat=n):
                found = self._inside[0].reference(scores, of_parts[list(drawn), np.arange(n)])
                total += chances[list(drawn)].prod() * np.array(found)
        else:
            for part in self.summands(queries, 1):
                total += part.factor * np.array(part.objective.reference(scores, _labels_for(part, queries)))
        return total[0], total[1]

    def reference_loss(self, scores: np.ndarray, labels: Labels) -> Any:
        queries = Queries(labels, [len(scores)])
        parts = self.summands(queries, 1)
        losses = [part.objective.reference_loss(scores, _labels_for(part, queries)) for part in parts]
        if self.draw == "document" or any(loss is None for loss in losses):
            return None
        return sum(part.factor * loss for part, loss in zip(parts, losses, strict=True))


def StochasticLabels(
    objective: str | Objective,
    labels: Sequence[str | None] = (),
    weights: Sequence[float] | None = None,
    draw: str = "document",
    seed: int = 0,
) -> Mixture:
    r"""An objective on labels that are drawn anew in each iteration from those of several goals.

    .. math:: \tilde y_i = y_i^{(k_i)}, \quad P(k_i = k) = w_k / \sum_l w_l

    with one draw for each document :math:`i`, as in stochastic label aggregation (Carmel, Haramaty, Lazerson and
    Lewin-Eytan, "Multi-Objective Ranking Optimization for Product Search Using Stochastic Label Aggregation", The Web
    Conference 2020), or one for each query. A gradient takes the time of one goal.

    With a draw for each query the expected gradient and Hessian are those of
    ``Mixture([objective, ...], weights / sum(weights), normalize=False, labels=labels)``, for every objective. With a
    draw for each document a pair may compare one goal's label with another's. So the goals need labels on one scale,
    and the expectation is that of the mixture only for losses that are sums over documents.

    Write ``UnitHessian(StochasticLabels(...))``. The other order recomputes the constant in every iteration.

    Parameters
    ----------
    objective : str or Objective
        The objective that learns from the labels.
    labels : list of str or None
        The goals, such as ``[None, "revenue"]``. None stands for the labels that the data have anyway.
    weights : list of float, optional
        One for each goal, not negative; 1 by default.
    draw : "document" or "query"
        The unit that gets a draw of its own.
    seed : int
        Seed of the draws.

    Returns
    -------
    Mixture
        With the objective once for each goal, and ``draw``. This function is not a class; where ``isinstance`` is
        asked, ask for :class:`Mixture` and ``draw``, as below.

    Examples
    --------
    >>> either = StochasticLabels("ranknet", labels=[None, "revenue"], weights=[2, 1], draw="query", seed=1)
    >>> isinstance(either, Mixture) and either.draw
    'query'
    >>> labels = {"relevance": [0, 1] * 4, "revenue": [5, 0] * 4}
    >>> either.gradient_hessian([0.0] * 8, labels, group=[2] * 4)[0]
    array([-0.5,  0.5, -0.5,  0.5,  0.5, -0.5,  0.5, -0.5])
    """
    goals = tuple(check_list("labels", labels, "goals"))
    require(len(goals) > 1, f"labels={goals!r} must name two goals or more; None stands for the data's own labels")
    require(len(set(goals)) == len(goals), f"labels={goals!r} names a goal twice; give it the sum of its weights")
    chances = check_weights(weights, len(goals), "goals")
    check_choice("draw", draw, ("document", "query"))
    found = Mixture([get_objective(objective)] * len(goals), chances, False, goals, draw, seed)
    object.__setattr__(found, "name", "stochasticlabels")  # for messages
    return found


def _labels_for(part: Summand, queries: Queries) -> Any:
    """The labels that the reference of a part takes."""
    own = queries.of(part.goal)
    return by_goal(own.labels, own.goals) if part.objective.goals else own.labels


def _worth_of(objective: Objective, queries: Queries) -> np.ndarray:
    return objective._worth(queries)


def _rankings(part: Objective, queries: Queries) -> tuple[Any, ...] | None:
    """The settings that parts on the same rankings share; None for a part that cannot share, or is faster alone."""
    if not isinstance(part, PairwiseObjective) or part.lambda_norm or part.hessian not in LINEAR_POLICIES:
        return None
    own = any(getattr(type(part), name) is not getattr(PairwiseObjective, name) for name in ONCE_FOR_ALL)
    if own or part.facts.policy != part.hessian or queries.position is not None:  # each part has its own offsets
        return None
    family = part.family(queries)
    if family == AVERAGE or (family == LINEAR and part.pairs(queries).ranks >= queries.longest):
        return None
    return part.loss.code, part.preset in XGBOOST, *(getattr(part, name) for name in SAME_PAIRS)


class _OnSameRankings(PairwiseObjective):
    """The sum of parts that differ only in the weights of their pairs.

    A pairwise kernel adds up layers of weights. So it draws and sorts once for all parts if it gets the layers of each,
    times the part's factor.
    """

    name = "mixture"

    @classmethod
    def of(cls, parts: list[Summand]) -> "_OnSameRankings":
        """The sum of such parts."""
        whole, first = object.__new__(cls), parts[0].objective
        settings = {name: getattr(first, name) for name in (*SAME_PAIRS, "preset", "loss")}
        vars(whole).update(settings, _parts=tuple((part.objective, part.factor) for part in parts))
        return whole

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        parts: tuple[tuple[PairwiseObjective, float], ...] = vars(self)["_parts"]
        return queries.once(
            ("sharing", parts),
            lambda: tuple(t._replace(scale=scale * t.scale) for part, scale in parts for t in part.layers(queries)),
        )

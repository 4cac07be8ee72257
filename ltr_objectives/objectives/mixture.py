r"""A weighted sum of objectives."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from ltr_objectives.checks import check_choice, check_list, check_weights
from ltr_objectives.errors import require
from ltr_objectives.goals import check_goal
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import AVERAGE, LINEAR
from ltr_objectives.objectives.base import Objective, Summand, naming
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.pairwise import XGBOOST, PairwiseObjective
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Labels, Queries, by_goal
from ltr_objectives.registry import read_part

T = TypeVar("T")
LINEAR_POLICIES = ("exact", "double")  # a sum of Hessians is then the Hessian of the sum
SAME_PAIRS = (
    "sigma", "truncation", "neighbors", "score_norm", "permutations", "noise", "noise_scale", "hessian", "seed"
)  # fmt: skip


@dataclass(frozen=True)
class Mixture(Objective):
    r"""A weighted sum of objectives, :math:`\sum_p w_p\, (g_p, h_p) / n_p`, each on the same labels or on its own.

    :math:`n_p` is the mean absolute gradient of part :math:`p` over the rows of the data set, at independent standard
    normal scores. So parts of equal weight have gradients of equal mean size there.

    Parts that differ only in their metric share their noisy rankings, unless they are faster alone, as those for linear
    metrics without a cutoff are. A mixture took .7 to 1.1 times as long as its parts one by one. Parts with equal seeds
    have equal random numbers: give parts with noise of their own, such as ``Langevin``, different seeds.

    Parameters
    ----------
    parts : list of str or Objective
        Such as ``["yetiloss:ndcg@10", "yetiloss:mrr"]``.
    weights : list of float, optional
        One for each part, not negative; 1 by default.
    normalize : bool
        Whether to divide by :math:`n_p`; with False :math:`n_p = 1`.
    labels : list of str or None, optional
        The goal of each part, whose labels it reads, such as ``[None, "revenue"]``. None stands for the labels that the
        data have anyway.

    Notes
    -----
    ``get_objective`` and everything that takes an objective by name read ``"yetiloss:ndcg@10+.3*yetiloss:mrr"``, and
    ``"yetiloss:ndcg@10+.3*yetiloss:ndcg@10[revenue]"`` for a part on the labels of a goal.

    The labels of a goal are passed as ``labels={"revenue": array}`` to the adapters and to ``fit``. Propensities and
    positions correct the clicks of the data's own labels only.

    Where a metric is not named, as for the early stopping of an estimator, it is the metric of the first part.

    Examples
    --------
    >>> from ltr_objectives import get_objective
    >>> mixture = Mixture(["yetiloss:ndcg@10", "yetiloss:mrr"], weights=[1, 0.3])
    >>> mixture == get_objective("yetiloss:ndcg@10 + .3*yetiloss:mrr")
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

    name: ClassVar[str] = "mixture"

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
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "labels", goals)

    @property
    def weighted(self) -> tuple[tuple[Objective, float], ...]:
        """Each part and its weight."""
        parts: Any = self.parts
        return tuple(zip(parts, self.weights or (), strict=True))

    @property
    def on_goals(self) -> tuple[tuple[Objective, str | None], ...]:
        """Each part and its goal."""
        parts: Any = self.parts
        return tuple(zip(parts, self.labels or (), strict=True))

    @property
    def goals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(g for part, goal in self.on_goals for g in (goal, *part.goals) if g is not None))

    @property
    def metric(self) -> Any:
        """The metric of the first part on its goal, None where it has none."""
        part, goal = self.on_goals[0]
        metric = getattr(part, "metric", None)
        if metric is None or goal is None or metric.goal is not None:
            return metric
        return replace(metric, goal=goal)

    @property
    def random(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return any(part.random for part, _ in self.weighted)

    @property
    def takes_clicks(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        own = [part.takes_clicks for part, goal in self.on_goals if goal is None]
        return bool(own) and all(own)

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return all(part.shift_invariant for part, weight in self.weighted if weight > 0)

    @property
    def hessian_kind(self) -> str:  # type: ignore[override]  # a class variable elsewhere
        kinds = {part.hessian_kind for part, _ in self.weighted}
        return next((kind for kind in ("estimate", "bound") if kind in kinds), "exact")

    @property
    def label_limit(self) -> float | None:
        limits = (part.label_limit for part, goal in self.on_goals if goal is None)
        return min((limit for limit in limits if limit is not None), default=None)

    def without_noise(self) -> Objective | None:
        return self._with(part.without_noise() for part, _ in self.weighted)

    def whole(self) -> Objective:
        return self._with(part.whole() for part, _ in self.weighted) or self

    def _with(self, parts: Iterable[Objective | None]) -> Objective | None:
        given = tuple(parts)
        return None if None in given else replace(self, parts=tuple(part for part in given if part is not None))

    def worth(self, queries: Queries) -> np.ndarray:
        worths = self._of_parts(queries, lambda part, own: part.worth(own))
        factors = np.sqrt(1.0 + np.arange(len(worths)))  # so that goals that disagree do not cancel
        return np.sum([factor * worth for factor, worth in zip(factors, worths, strict=True)], axis=0)

    def _of_parts(self, queries: Queries, fact: Callable[[Objective, Queries], T]) -> list[T]:
        """A fact of each part about the queries with the labels of its goal."""
        found = []
        for part, goal in self.on_goals:
            with naming(goal):
                found.append(fact(part, queries.of(goal)))
        return found

    def summands(self, queries: Queries, n_threads: int | None = None) -> tuple[Summand, ...]:
        sizes = self._of_parts(queries, lambda part, own: self._size(part, own, n_threads))
        weighted = zip(self.on_goals, self.weights or (), sizes, strict=True)
        return tuple(Summand(part, weight / size, goal) for (part, goal), weight, size in weighted)

    def fill(self, call: Call) -> None:
        """Add up the parts, each after its own policy and weights."""
        for summand in self._terms(call.queries, call.n_threads):
            grad, hess = summand.compute(
                call.queries, call.scores, iteration=call.iteration, n_threads=call.n_threads, skip=call.skip
            )
            call.grad[:] += summand.factor * grad
            call.hess[:] += summand.factor * hess

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return call.finished("exact", None, dtype, factor)  # each part has applied policy and weights

    def _terms(self, queries: Queries, n_threads: int | None) -> list[Summand]:
        """What to compute. Parts that share their rankings become one objective."""
        alike: dict[Any, list[Summand]] = {}
        for i, summand in enumerate(self.summands(queries, n_threads)):
            if summand.factor > 0:
                with naming(summand.goal):
                    rankings = _rankings(summand.objective, queries.of(summand.goal))
                alike.setdefault(i if rankings is None else (summand.goal, rankings), []).append(summand)
        return [
            group[0] if len(group) == 1 else Summand(_Sharing(group), 1.0, group[0].goal) for group in alike.values()
        ]

    def _size(self, part: Objective, queries: Queries, n_threads: int | None) -> float:
        """What the part's gradient is divided by."""
        size = typical(part, queries, n_threads).gradient if self.normalize else 1.0
        return size if size > SMALLEST else 1.0

    def reference(self, scores: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
        queries = Queries(labels, [len(scores)])
        grad, hess = np.zeros(len(scores)), np.zeros(len(scores))
        for part, factor, goal in self.summands(queries, 1):
            g, h = part.reference(scores, _for(part, queries.of(goal)))
            grad, hess = grad + factor * g, hess + factor * h
        return grad, hess

    def reference_loss(self, scores: np.ndarray, labels: Labels) -> Any:
        queries = Queries(labels, [len(scores)])
        parts = self.summands(queries, 1)
        losses = [part.reference_loss(scores, _for(part, queries.of(goal))) for part, _, goal in parts]
        if any(loss is None for loss in losses):
            return None
        return sum(part.factor * loss for part, loss in zip(parts, losses, strict=True))


def _for(part: Objective, queries: Queries) -> Any:
    """The labels that the part's reference takes."""
    return by_goal(queries.labels, queries.goals) if part.goals else queries.labels


def _rankings(part: Objective, queries: Queries) -> tuple[Any, ...] | None:
    """What two parts must have in common to share rankings; None for a part that cannot share, or is faster alone."""
    if not isinstance(part, PairwiseObjective) or part.lambda_norm or part.hessian not in LINEAR_POLICIES:
        return None
    family = part.family(queries)
    if family == AVERAGE or (family == LINEAR and part.pairs(queries).ranks >= queries.longest):
        return None
    return part.loss.code, part.preset in XGBOOST, *(getattr(part, name) for name in SAME_PAIRS)


class _Sharing(PairwiseObjective):
    """One objective for parts that differ only in the weights of their pairs: their layers, times their factors."""

    name = "mixture"

    def __init__(self, parts: list[Summand]) -> None:
        first: Any = parts[0].objective
        settings = {name: getattr(first, name) for name in (*SAME_PAIRS, "preset", "loss")}
        vars(self).update(settings, _parts=parts)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        parts: list[tuple[PairwiseObjective, float, str | None]] = vars(self)["_parts"]
        return queries.once(
            ("sharing", tuple(parts)),
            lambda: tuple(t._replace(scale=scale * t.scale) for part, scale, _ in parts for t in part.layers(queries)),
        )

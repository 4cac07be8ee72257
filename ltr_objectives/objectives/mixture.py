r"""Sums of objectives."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_list, check_weights
from ltr_objectives.errors import LTRError, described, require
from ltr_objectives.goals import check_goal, with_goal
from ltr_objectives.kernels.rankings import Kept, kept_rankings
from ltr_objectives.kernels.records import Rng
from ltr_objectives.language import weight_text
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.composite import Composite, Member
from ltr_objectives.objectives.text import read_parts
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.queries import Labels, Queries, labels_by_goal

MOST_KEPT = 20  # rankings, of 4 bytes a row each


@dataclass(frozen=True)
class Mixture(Composite):
    r"""A weighted sum of objectives, :math:`\sum_p w_p\, (g_p, h_p) / n_p`, each on the same labels or on its own.

    :math:`n_p` is the mean absolute gradient of part :math:`p` over the rows of the data set, at independent standard
    normal scores, for squared error around the mean label. So parts of equal weight have gradients of equal mean size
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

    Notes
    -----
    ``get_objective`` and everything that takes an objective by name read ``"yetiloss:ndcg@10+0.3*yetiloss:mrr"``, and
    ``"yetiloss:ndcg@10+0.3*yetiloss:dcg(gain_type=linear)[revenue]"`` for a part on the labels of a goal.

    The labels of a goal are passed as ``labels={"revenue": array}`` to the adapters and to ``fit``. Propensities
    correct the clicks of the data's own labels only.

    If a metric is not named, as for the early stopping of an estimator, it is the metric of the first part.

    Raises
    ------
    LTRError
        For no parts, weights that are negative or not one for each part, and goals that are not one for each part, or
        that stand in brackets too.

    Examples
    --------
    >>> from ltr_objectives import get_objective
    >>> mixture = Mixture(["yetiloss:ndcg@10", "yetiloss:mrr"], weights=[1, 0.3])
    >>> mixture == get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:mrr")
    True
    >>> grad, hess = mixture.gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> goals = Mixture(["ranknet", "ranknet"], [1, 3], labels=[None, "liked"], normalize=False)
    >>> goals.gradient_hessian([0.0, 0.0], {"relevance": [0, 1], "liked": [5, 0]}, group=[2])[0]
    array([-1.,  1.])
    """

    parts: Sequence[str | Objective]
    weights: Sequence[float] | None = None
    normalize: bool = True
    labels: Sequence[str | None] | None = None

    name: ClassVar[str] = "mixture"
    _not_read: ClassVar[dict[str, str]] = {"row_weight": "override that of a part instead"}

    def __post_init__(self) -> None:
        read = [_read_part(part) for part in check_list("parts", self.parts, "objectives")]
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
        super().__post_init__()
        for name, value in {"parts": parts, "weights": weights, "labels": goals}.items():
            object.__setattr__(self, name, value)

    def _text(self) -> str:
        one = len(self.parts) == 1
        other = type(self) is not Mixture or any(isinstance(part, Mixture) for part in self.parts)
        if other or self.normalize == one or (one and self.labels == (None,)):
            return ""  # the text would name another sum
        return "+".join(weight_text(part.factor) + with_goal(str(part.objective), part.goal) for part in self.members)

    @property
    def members(self) -> tuple[Member, ...]:
        parts: Any = zip(self.parts, self.weights or (), self.labels or (), strict=True)
        return tuple(Member(part, weight, goal, number) for number, (part, weight, goal) in enumerate(parts))

    @property
    def facts(self) -> Facts:
        every = [member.objective.facts for member in self.members]
        counting = [member.objective.facts for member in self.members if member.factor > 0]
        without_goal = [member.objective.facts for member in self.members if member.goal is None]
        kinds = {facts.hessian_kind for facts in counting}
        goals = [goal for member in self.members for goal in (member.goal, *member.objective.facts.goals)]
        limits = [facts.label_limit for facts in without_goal if facts.label_limit is not None]
        return Facts(
            random=any(facts.random for facts in counting),
            hessian_kind=next(kind for kind in ("estimate", "bound", "exact") if kind in kinds),
            shift_invariant=all(facts.shift_invariant for facts in counting),
            balanced=all(facts.balanced for facts in counting),
            takes_clicks=bool(without_goal) and all(facts.takes_clicks for facts in without_goal),
            label_scale=any(facts.label_scale for facts in counting),
            label_limit=min(limits, default=None),
            reads_labels=any(facts.reads_labels for facts in every),
            goals=tuple(dict.fromkeys(goal for goal in goals if goal is not None)),
        )

    def with_members(self, *objectives: Objective) -> Objective:
        return replace(self, parts=objectives)

    def summands(self, queries: Queries, n_threads: int | None = None) -> tuple[Member, ...]:
        def size(objective: Objective, own: Queries) -> float:
            return typical_size(objective, own, n_threads).gradient

        if not self.normalize:
            return self.members
        return tuple(part._replace(factor=part.factor / part.on(queries, size)) for part in self.members)

    def fill(self, call: Call) -> None:
        """Add up the parts, each after its own policy and weights."""
        grad, hess = call.queries._borrow_zeros()
        of_parts = call._replace(grad=grad, hess=hess, rankings={**call.rankings, **self._room(call)})
        for part in self.summands(call.queries, call.n_threads):
            if part.factor > 0:
                part.add_to(of_parts, (call.grad, call.hess))
        call.queries._give_back_zeros(grad, hess)

    def _room(self, call: Call) -> dict[Any, Kept]:
        """Return room for the rankings that several parts draw, unless it is large."""

        def draws(objective: Objective, queries: Queries) -> Rng | None:
            return objective._draws(call._replace(queries=queries))

        found = Counter(part.on(call.queries, draws) for part in self.members if part.factor > 0)
        shared = [rng for rng, count in found.items() if rng is not None and count > 1 and rng.draws <= MOST_KEPT]
        return {call._ranked(rng): kept_rankings(rng.draws, len(call.queries), call.queries.rows) for rng in shared}

    def _result(self, call: Call, factor: float = 1.0) -> Arrays:
        self.fill(call)
        return call._finish("exact", None, factor)  # each part has applied policy and weights

    def reference_loss(self, scores: np.ndarray, labels: Labels) -> Any:
        queries = Queries(labels, [len(scores)])
        parts = self.summands(queries, 1)
        losses = [part.objective.reference_loss(scores, _labels_for(part, queries)) for part in parts]
        if any(loss is None for loss in losses):
            return None
        return sum(part.factor * loss for part, loss in zip(parts, losses, strict=True))


def _labels_for(part: Member, queries: Queries) -> Any:
    """Return the labels that the reference of a part takes."""
    own = queries.for_goal(part.goal)
    return labels_by_goal(own.labels, own.goals) if part.objective.facts.goals else own.labels


def get_objective(objective: str | Objective) -> Objective:
    """Read an objective: ``"name"``, ``"name:metric"`` or ``"name:metric;parameter=value;..."``, or a sum of these.

    Parts of a sum may have weights, and goals at their end, whose labels they read: see
    :class:`ltr_objectives.Mixture`. See also :func:`ltr_objectives.objective_names`.

    >>> str(get_objective("yetiloss:map@5").metric)
    'map@5'
    >>> get_objective("lambdamart:sigma=2;hessian=ones").sigma
    2
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:mrr").weights
    (1.0, 0.3)
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:dcg(gain_type=linear)[revenue]").labels
    (None, 'revenue')
    """
    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str):
        of = "a string such as 'yetiloss:map' or an ltr_objectives.Objective"
        raise LTRError(f"objective must be {of}, got {described(objective)}")
    return on_goal(*_read_part(objective))


def _read_part(objective: str | Objective) -> tuple[Objective, str | None]:
    """Return an objective, and the goal at the end of its text."""
    if not isinstance(objective, str):
        return get_objective(objective), None
    weights, parts, goals = zip(*read_parts(objective), strict=True)
    return (parts[0], goals[0]) if len(parts) == 1 else (Mixture(parts, weights, labels=goals), None)


def on_goal(objective: Objective, goal: str | None) -> Objective:
    """Return the objective on the labels of a goal."""
    return objective if goal is None else Mixture([objective], labels=[goal], normalize=False)

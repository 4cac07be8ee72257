r"""A weighted sum of objectives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_choice, check_list, check_not_negative
from ltr_objectives.errors import require
from ltr_objectives.kernels.records import Terms
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.pairwise import XGBOOST, PairwiseObjective
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective

LINEAR_POLICIES = ("exact", "double")  # a sum of Hessians is then the Hessian of the sum
SAME_PAIRS = (
    "sigma", "truncation", "neighbors", "score_norm", "permutations", "noise", "noise_scale", "hessian", "seed"
)  # fmt: skip


@dataclass(frozen=True)
class Mixture(Objective):
    r"""A weighted sum of objectives, :math:`\sum_p w_p\, (g_p, h_p) / n_p`.

    :math:`n_p` is the mean absolute gradient of part :math:`p` over the rows of the data set, at independent standard
    normal scores. So parts of equal weight have gradients of equal mean size there.

    Parts that differ only in their metric share their noisy rankings, unless they are faster alone, as those for linear
    metrics without a cutoff are. A mixture took .7 to 1.1 times as long as its parts one by one.

    Parameters
    ----------
    parts : list of str or Objective
        Such as ``["yetiloss:ndcg@10", "yetiloss:mrr"]``.
    weights : list of float, optional
        One for each part, not negative; 1 by default.
    normalize : bool
        Whether to divide by :math:`n_p`; with False :math:`n_p = 1`.

    Notes
    -----
    ``get_objective`` and everything that takes an objective by name read ``"yetiloss:ndcg@10+.3*yetiloss:mrr"``.
    Where a metric is not named, as for the early stopping of an estimator, it is the metric of the first part.

    Examples
    --------
    >>> mixture = Mixture(["yetiloss:ndcg@10", "yetiloss:mrr"], weights=[1, 0.3])
    >>> mixture == get_objective("yetiloss:ndcg@10 + .3*yetiloss:mrr")
    True
    >>> grad, hess = mixture.gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    """

    parts: Sequence[str | Objective]
    weights: Sequence[float] | None = None
    normalize: bool = True

    name: ClassVar[str] = "mixture"

    def __post_init__(self) -> None:
        parts = tuple(get_objective(part) for part in check_list("parts", self.parts, "objectives"))
        require(parts, "parts is empty; give at least one objective, such as 'yetiloss:ndcg@10'")
        weights = tuple(check_list("weights", self.weights, "numbers")) or (1.0,) * len(parts)
        require(len(weights) == len(parts), f"weights has {len(weights)} entries for {len(parts)} parts; give one each")
        for weight in weights:
            check_not_negative("weights", weight)
        require(any(weights), "weights are all 0; give some part a weight above 0")
        check_choice("normalize", self.normalize, (True, False))
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    @property
    def weighted(self) -> tuple[tuple[Objective, float], ...]:
        """Each part and its weight."""
        parts: Any = self.parts
        return tuple(zip(parts, self.weights or (), strict=True))

    @property
    def metric(self) -> Any:
        """The metric of the first part, None where it has none."""
        return getattr(self.weighted[0][0], "metric", None)

    @property
    def random(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return any(part.random for part, _ in self.weighted)

    @property
    def takes_clicks(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return all(part.takes_clicks for part, _ in self.weighted)

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return all(part.shift_invariant for part, _ in self.weighted)

    @property
    def hessian_kind(self) -> str:  # type: ignore[override]  # a class variable elsewhere
        kinds = {part.hessian_kind for part, _ in self.weighted}
        return next((kind for kind in ("estimate", "bound") if kind in kinds), "exact")

    @property
    def label_limit(self) -> float | None:
        return min((limit for part, _ in self.weighted if (limit := part.label_limit) is not None), default=None)

    def without_noise(self) -> Objective | None:
        return self._with(part.without_noise() for part, _ in self.weighted)

    def with_exact_hessian(self) -> Objective | None:
        return self._with(part.with_exact_hessian() for part, _ in self.weighted)

    def whole(self) -> Objective:
        return self._with(part.whole() for part, _ in self.weighted) or self

    def _with(self, parts: Iterable[Objective | None]) -> Objective | None:
        given = tuple(parts)
        return None if None in given else replace(self, parts=tuple(part for part in given if part is not None))

    def worth(self, queries: Queries) -> np.ndarray:
        return np.sum([part.worth(queries) for part, _ in self.weighted], axis=0)

    def pairs_visited(self, queries: Queries) -> np.ndarray | None:
        return _sum(part.pairs_visited(queries) for part, _ in self.weighted)

    def pair_counts(self, queries: Queries, scores: np.ndarray) -> np.ndarray | None:
        return _sum(part.pair_counts(queries, scores) for part, _ in self.weighted)

    def fill(self, call: Call) -> None:
        """Add up the parts, each after its own policy and weights."""
        for objective, factor in self._terms(call.queries, call.n_threads):
            grad, hess = objective.compute(
                call.queries, call.scores, iteration=call.iteration, n_threads=call.n_threads, skip=call.skip
            )
            call.grad[:] += factor * grad
            call.hess[:] += factor * hess

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return call.finished("exact", None, dtype, factor)  # each part has applied policy and weights

    def _terms(self, queries: Queries, n_threads: int | None) -> list[tuple[Objective, float]]:
        """Objectives to compute, each with its factor. Parts that share their rankings become one objective."""
        alike: dict[Any, list[tuple[Objective, float]]] = {}
        for i, (part, weight) in enumerate(self.weighted):
            factor = weight / self._size(part, queries, n_threads)
            if factor > 0:
                alike.setdefault(_rankings(part, queries) or i, []).append((part, factor))
        return [group[0] if len(group) == 1 else (_Sharing(group), 1.0) for group in alike.values()]

    def _size(self, part: Objective, queries: Queries, n_threads: int | None) -> float:
        """What the part's gradient is divided by."""
        size = typical(part, queries, n_threads).gradient if self.normalize else 1.0
        return size if size > SMALLEST else 1.0

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        queries = Queries(labels, [len(labels)])
        grad, hess = np.zeros(len(labels)), np.zeros(len(labels))
        for part, weight in self.weighted:
            g, h = part.reference(scores, labels)
            factor = weight / self._size(part, queries, 1)
            grad, hess = grad + factor * g, hess + factor * h
        return grad, hess

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        losses = [part.reference_loss(scores, labels) for part, _ in self.weighted]
        if any(loss is None for loss in losses):
            return None
        queries = Queries(labels, [len(labels)])
        factors = [weight / self._size(part, queries, 1) for part, weight in self.weighted]
        return sum(factor * loss for factor, loss in zip(factors, losses, strict=True))


def _sum(counts: Iterable[np.ndarray | None]) -> np.ndarray | None:
    known = [count for count in counts if count is not None]
    return np.sum(known, axis=0) if known else None


def _rankings(part: Objective, queries: Queries) -> tuple[Any, ...] | None:
    """What two parts must have in common to share rankings; None for a part that cannot share, or is faster alone."""
    if not isinstance(part, PairwiseObjective) or part.lambda_norm or part.hessian not in LINEAR_POLICIES:
        return None
    if part.graded(queries) and part.pairs(queries).ranks >= queries.longest:
        return None
    return part.loss.code, part.preset in XGBOOST, *(getattr(part, name) for name in SAME_PAIRS)


class _Sharing(PairwiseObjective):
    """One objective for parts that differ only in the weights of their pairs: their layers, times their factors."""

    name = "mixture"

    def __init__(self, parts: list[tuple[Objective, float]]) -> None:
        first: Any = parts[0][0]
        settings = {name: getattr(first, name) for name in (*SAME_PAIRS, "preset", "loss")}
        vars(self).update(settings, _parts=parts)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        parts: list[tuple[PairwiseObjective, float]] = vars(self)["_parts"]
        return queries.once(
            ("sharing", tuple(parts)),
            lambda: tuple(t._replace(scale=factor * t.scale) for part, factor in parts for t in part.layers(queries)),
        )

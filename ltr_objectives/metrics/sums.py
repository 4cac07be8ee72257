"""Values without gains: sums of metrics with weights, and the base of what no kernel knows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.kernels.records import Terms
from ltr_objectives.language import weight_text
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class Value(Metric):
    """The base of metrics whose change no kernel knows, so that no objective trains for them."""

    kind: ClassVar[int] = -1
    maximum: ClassVar[float | None] = None
    cutoff: ClassVar[str] = "none"

    def gain(self, labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.name} has no gains")

    discount: ClassVar[Any] = gain
    reference: ClassVar[Any] = gain

    def _same_for_every_order(self, queries: Queries, n_threads: int | None = None) -> bool:
        return False  # is not known


@dataclass(frozen=True)
class WeightedSum(Value):
    """A sum of metrics with weights, each on the labels of its goal; read from text such as "ndcg@10 + 0.3*map[sold]".

    The mean is the sum of the means, each over the queries and with the weights of its metric. Values by query, which
    ``compare_scores`` averages, are NaN if a part has none. A metric without a maximum, such as DCG, counts as a share
    of its best possible mean, so that its weight does not depend on its unit.
    """

    parts: tuple[tuple[float, Metric], ...] = ()

    name: ClassVar[str] = "a sum of metrics"

    def __str__(self) -> str:
        return "+".join(f"{weight_text(weight)}{part}" for weight, part in self.parts)

    @property
    def goals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(goal for _, part in self.parts for goal in part.goals))

    def of_parts(self, value: Callable[[Metric], Any], of: Callable[[str | None], Queries] | None = None) -> Any:
        return sum(w * value(part) / part._with(goal=None).unit(of and of(part.goal)) for w, part in self.parts)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        return tuple(terms for _, part in self.parts for terms in part.layers(queries))

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> Any:
        return self.of_parts(lambda part: part.values(queries, scores, n_threads=n_threads), queries.for_goal)

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        return float(self.of_parts(lambda part: part.mean(queries, scores, n_threads=n_threads), queries.for_goal))

    def with_convention(self, library: str) -> Self:
        return replace(self, parts=tuple((weight, part.with_convention(library)) for weight, part in self.parts))

    def _same_for_every_order(self, queries: Queries, n_threads: int | None = None) -> bool:
        return all(part._same_for_every_order(queries, n_threads) for _, part in self.parts)

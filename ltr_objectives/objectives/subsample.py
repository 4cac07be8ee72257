r"""A random share of the queries in each iteration."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_fraction, check_seed
from ltr_objectives.objectives.base import Objective, without
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.wrapper import Wrapper


@dataclass(frozen=True)
class Subsample(Wrapper):
    r"""An objective on a random share of the queries, drawn anew in each iteration, as LightGBM's ``bagging_by_query``.

    .. math:: (g, h) = \frac{B_q}{p} (g, h), \quad B_q \sim \mathrm{Bernoulli}(p)

    for query :math:`q`. So gradients and Hessians keep their means, and Newton steps their size. The others are zero.
    The objective leaves out what is not drawn, so that a gradient takes the share :math:`p` of the time, and a little
    for each row; trees take the same time. At least one query is drawn.

    Parameters
    ----------
    objective : str or Objective
        The objective to wrap.
    queries : float
        The share :math:`p`, above 0 and at most 1.
    seed : int
        Of the draws. They are a function of the seed and the iteration, without state.

    Examples
    --------
    >>> half = Subsample("ranknet", queries=0.5)
    >>> half.gradient_hessian([0.0] * 6, [0, 1, 1, 0, 0, 1], group=[2, 2, 2])[0]
    array([ 0.,  0., -1.,  1.,  1., -1.])
    """

    objective: str | Objective
    queries: float = 0.5
    seed: int = 0

    name: ClassVar[str] = "subsample"

    def __post_init__(self) -> None:
        check_fraction("queries", self.queries)
        check_seed(self.seed)
        super().__post_init__()

    @property
    def random(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.queries < 1 or self.wrapped.random

    def without_noise(self) -> Objective | None:
        return self.wrapped.without_noise()

    def whole(self) -> Objective:
        return self.wrapped.whole()

    def factor(self, call: Call) -> float:
        return 1.0 / self.queries

    def fill(self, call: Call) -> None:
        super().fill(call._replace(skip=self._left_out(call)))

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return without(super()._finished(call, dtype, factor), call.queries, self._left_out(call))

    def _left_out(self, call: Call) -> np.ndarray:
        """Which queries are not drawn, and those that are left out anyway."""
        chance = np.random.default_rng([self.seed, call.iteration]).random(len(call.queries))
        left_out = chance > max(self.queries, chance.min())
        return left_out if call.skip is None else left_out | call.skip

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = self.wrapped.reference(scores, labels)
        return grad / self.queries, hess / self.queries

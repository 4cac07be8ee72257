r"""A random share of the queries in each iteration."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives.checks import check_fraction, check_seed
from ltr_objectives.kernels.rng import uniforms
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.wrapper import Wrapper


@dataclass(frozen=True)
class Subsample(Wrapper):
    r"""An objective on a random share of the queries, drawn anew in each iteration, as LightGBM's ``bagging_by_query``.

    .. math:: (g, h) = \frac{B_q}{p} (g, h), \quad B_q \sim \mathrm{Bernoulli}(p)

    for query :math:`q`. So gradients and Hessians keep their means, and Newton steps their size. The others are zero.
    At least one query is drawn: of :math:`n` queries the mean is :math:`1 + (1 - p)^n / (n p)` times as large, which
    matters only where :math:`n p` is small.

    The objective leaves out what is not drawn, so that a gradient takes the share :math:`p` of the time, and a little
    for each row; trees take the same time.

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
    array([ 1., -1.,  0.,  0.,  0.,  0.])
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
        return 1.0 / float(self.queries)

    def left_out(self, call: Call) -> np.ndarray:
        chance = np.empty(len(call.queries))
        uniforms(self.key(call), chance)
        not_drawn: np.ndarray = chance > max(self.queries, chance.min())
        skip = super().left_out(call)
        return not_drawn if skip is None else not_drawn | skip

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = self.wrapped.reference(scores, labels)
        return grad / self.queries, hess / self.queries

r"""Squared error with a free constant for each query."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import Objective, Parity
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class QueryRMSE(Objective):
    r"""Squared error after the best shift of each query's scores.

    .. math:: \tfrac12 \sum_i w_i (y_i - s_i - c)^2, \quad c = \frac{\sum_j w_j (y_j - s_j)}{\sum_j w_j}

    over the rows of a query, with row weights :math:`w`. The gradient is :math:`w_i (s_i + c - y_i)`, the Hessian
    :math:`w_i`, as in CatBoost's QueryRMSE. A baseline that many ranking losses fail to beat.

    Examples
    --------
    >>> grad, hess = QueryRMSE().gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([1., 1.]))
    """

    name: ClassVar[str] = "queryrmse"

    @classmethod
    def parities(cls) -> tuple[Parity, ...]:
        return (Parity("catboost", {"loss_function": "QueryRMSE"}, cls(), 1e-10),)

    @property
    def treats_ties_alike(self) -> bool:
        return True

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
    ) -> None:
        weight = queries.weight_by_row
        weight = queries.once("ones", lambda: np.ones(queries.rows)) if weight is None else weight
        run(_fill, queries.ptr, (queries.ptr, scores, queries.labels, weight, grad, hess), n_threads)

    @property
    def hessian_kind(self) -> str:
        return "bound"  # the free constant takes 1/n off

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        shift = np.mean(labels - scores)
        return 0.5 * np.sum((labels - scores - shift) ** 2)

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shift = np.mean(labels - scores)
        return scores + shift - labels, np.ones(len(scores))


@kernel
def _fill(first, last, ptr, s, y, w, grad, hess):
    for q in range(first, last):
        total, weights = 0.0, 0.0
        for i in range(ptr[q], ptr[q + 1]):
            total += w[i] * (y[i] - s[i])
            weights += w[i]
        shift = total / weights if weights > 0.0 else 0.0
        for i in range(ptr[q], ptr[q + 1]):
            grad[i] = s[i] + shift - y[i]
            hess[i] = 1.0

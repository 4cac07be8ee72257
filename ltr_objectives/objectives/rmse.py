r"""Squared error of each document, the pointwise baseline."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.objectives.base import Objective, Parity
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class RMSE(Objective):
    r"""Squared error, as the libraries' own regression.

    .. math:: \tfrac12 \sum_i (y_i - s_i)^2

    The gradient is :math:`s - y` and the Hessian 1, exactly. A baseline: it spends itself on what differs between
    queries, which no ranking metric sees; :class:`QueryRMSE` does not.

    Examples
    --------
    >>> grad, hess = RMSE().gradient_hessian([0.0, 0.5], [1, 0], group=[2])
    >>> grad, hess
    (array([-1. ,  0.5]), array([1., 1.]))
    """

    name: ClassVar[str] = "rmse"

    @classmethod
    def parities(cls) -> tuple[Parity, ...]:
        return (
            Parity("lightgbm", {"objective": "regression", "boost_from_average": False}, cls(), 1e-6),
            Parity("catboost", {"loss_function": "RMSE", "boost_from_average": False}, cls(), 1e-10),
        )

    @property
    def hessian_kind(self) -> str:
        return "exact"

    @property
    def shift_invariant(self) -> bool:
        return False

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
        np.subtract(scores, queries.labels, out=grad)
        hess[:] = 1.0

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return 0.5 * np.sum((labels - scores) ** 2)

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return scores - labels, np.ones(len(scores))

r"""Squared error of each document, the pointwise baseline."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call


@dataclass(frozen=True)
class RMSE(Objective, text="rmse"):
    r"""Squared error, as in the libraries' own regression.

    .. math:: \tfrac12 \sum_i (y_i - s_i)^2

    The gradient :math:`s - y` and the Hessian 1 are exact. This is a baseline: it also fits differences between
    queries, which do not change a ranking metric. :class:`QueryRMSE` does not fit them.

    The estimators start at the weighted mean of the labels, as the libraries' own regression does. In a library's own
    functions pass it as ``base_score`` to XGBoost; as ``init_score`` to LightGBM and as ``baseline`` to CatBoost, whose
    models then predict the difference from it.

    Examples
    --------
    >>> grad, hess = RMSE().gradient_hessian([0.0, 0.5], [1, 0], group=[2])
    >>> grad, hess
    (array([-1. ,  0.5]), array([1., 1.]))
    """

    hessian: ClassVar[str] = "ones"
    facts = Facts(hessian_kind="exact", shift_invariant=False, label_scale=True)

    def fill(self, call: Call) -> None:
        np.subtract(call.scores, call.queries.labels, out=call.grad)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return 0.5 * np.sum((labels - scores) ** 2)

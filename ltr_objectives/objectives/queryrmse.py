"""Squared error with a free constant for each query."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.kernels.queryrmse import Inputs, shifted_error
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call


@dataclass(frozen=True)
class QueryRMSE(Objective, text="queryrmse"):
    r"""Squared error after the best shift of each query's scores.

    .. math:: \tfrac12 \sum_i w_i (y_i - s_i - c)^2, \quad c = \frac{\sum_j w_j (y_j - s_j)}{\sum_j w_j}

    over the rows of a query, with row weights :math:`w`. The gradient is :math:`w_i (s_i + c - y_i)`, the Hessian
    :math:`w_i`, as in CatBoost's QueryRMSE. This is a baseline that many ranking losses do not beat.

    Examples
    --------
    >>> grad, hess = QueryRMSE().gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([1., 1.]))
    """

    hessian: ClassVar[str] = "ones"
    facts = Facts(hessian_kind="bound")  # the free constant lowers the second derivative by 1/n

    def fill(self, call: Call) -> None:
        queries = call.queries
        weight = queries.weight_by_row
        weight = queries.cached("ones", lambda: np.ones(queries.rows)) if weight is None else weight
        call.run(shifted_error, Inputs(queries.labels, weight))

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        shift = np.mean(labels - scores)
        return 0.5 * np.sum((labels - scores - shift) ** 2)

"""Ordinal regression: one logistic loss for each step between labels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check
from ltr_objectives.errors import require
from ltr_objectives.kernels.ordinal import Inputs, logistic_steps
from ltr_objectives.metrics.gains import numbers_of
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import softplus


def _check_thresholds(name: str, thresholds: object) -> tuple[float, ...]:
    table = numbers_of(name, thresholds)
    require(table, f"{name} must hold at least one number")
    good = np.isfinite(table).all() and (np.diff(table) >= 0).all()
    require(good, f"{name}={thresholds!r} must be finite and not decrease")
    return table


@dataclass(frozen=True)
class Ordinal(Objective, text="ordinal"):
    r"""One logistic loss for each step between labels, with one score and fixed thresholds.

    .. math:: \sum_i \sum_{c=1}^{C} \log\left(1 + e^{\mp (s_i - \theta_c)}\right),
        \quad - \text{ where } y_i \ge c, \; + \text{ elsewhere}

    These are McCullagh's proportional odds in their all-thresholds form. allRank's ordinal loss is the same sum with
    one output for each step; here one score is compared with C thresholds. Gradient and Hessian are exact. The gradient
    is between -C and C, the Hessian at most C/4. The loss is pointwise: differences between queries count too.

    Parameters
    ----------
    thresholds : non-decreasing numbers
        :math:`\theta_1, \theta_2, \ldots` in units of the score, one for each step between labels: 4 for labels 0 to 4.
        Larger labels count as C.

    Examples
    --------
    >>> grad, hess = Ordinal((0.0,)).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([0.25, 0.25]))
    """

    thresholds: tuple[float, ...] = (-1.5, -0.5, 0.5, 1.5)

    checks: ClassVar[dict[str, Check]] = {"thresholds": _check_thresholds}
    facts = Facts(hessian_kind="exact", shift_invariant=False)

    def fill(self, call: Call) -> None:
        call.run(logistic_steps, Inputs(call.queries.labels, np.array(self.thresholds)))

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        side = np.where(labels[:, None] >= np.arange(1, len(self.thresholds) + 1), 1.0, -1.0)
        return np.sum(softplus(-side * (scores[:, None] - self.thresholds)))

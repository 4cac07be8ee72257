r"""Ordinal regression: one logistic loss for each step between labels."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ltr_objectives.checks import Check
from ltr_objectives.errors import require
from ltr_objectives.kernels._jit import inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list, no_scratch
from ltr_objectives.metrics.gains import numbers_of
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import softplus


class Steps(NamedTuple):
    """Labels by row, and the thresholds between them."""

    labels: np.ndarray
    thresholds: np.ndarray


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
        call.run(_kernel, Steps(call.queries.labels, np.array(self.thresholds)))

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        side = np.where(labels[:, None] >= np.arange(1, len(self.thresholds) + 1), 1.0, -1.0)
        return np.sum(softplus(-side * (scores[:, None] - self.thresholds)))


@inlined_kernel
def _ordinal(one: OneList, data: Steps, arrays: None) -> None:
    """Write the derivatives of the logistic loss, added up over the thresholds."""
    s, y = one.s, data.labels[one.first : one.last]
    for i in range(len(s)):
        for c in range(len(data.thresholds)):
            gap = s[i] - data.thresholds[c]
            e = math.exp(-abs(gap))
            small, large = e / (1.0 + e), 1.0 / (1.0 + e)  # the probabilities of the two sides of the threshold
            if y[i] >= c + 1:
                one.grad[i] -= large if gap < 0.0 else small
            else:
                one.grad[i] += large if gap > 0.0 else small
            one.hess[i] += small * large


_kernel = each_list(no_scratch, _ordinal)

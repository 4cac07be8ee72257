"""One logistic loss for each step between labels."""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list, no_scratch


class Inputs(NamedTuple):
    """Labels by row, and the thresholds between them."""

    labels: np.ndarray
    thresholds: np.ndarray


@inlined_kernel
def _ordinal(one: OneList, inputs: Inputs, arrays: None) -> None:
    """Write the derivatives of the logistic loss, added up over the thresholds."""
    s, y = one.s, inputs.labels[one.first : one.last]
    for i in range(len(s)):
        for c in range(len(inputs.thresholds)):
            gap = s[i] - inputs.thresholds[c]
            e = math.exp(-abs(gap))
            small, large = e / (1.0 + e), 1.0 / (1.0 + e)  # the probabilities of the two sides of the threshold
            if y[i] >= c + 1:
                one.grad[i] -= large if gap < 0.0 else small
            else:
                one.grad[i] += large if gap > 0.0 else small
            one.hess[i] += small * large


logistic_steps = each_list(no_scratch, _ordinal)

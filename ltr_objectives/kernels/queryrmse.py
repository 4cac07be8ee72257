"""Squared error after the best shift of each query's scores."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list, no_scratch


class Inputs(NamedTuple):
    """Labels and weights by row."""

    labels: np.ndarray
    weight: np.ndarray


@inlined_kernel
def _queryrmse(one: OneList, inputs: Inputs, arrays: None) -> None:
    """Subtract the labels from the scores after the shift that fits them best."""
    s, y, w = one.s, inputs.labels[one.first : one.last], inputs.weight[one.first : one.last]
    total, weights = 0.0, 0.0
    for i in range(len(s)):
        total += w[i] * (y[i] - s[i])
        weights += w[i]
    shift = total / weights if weights > 0.0 else 0.0
    for i in range(len(s)):
        one.grad[i] = s[i] + shift - y[i]


shifted_error = each_list(no_scratch, _queryrmse)

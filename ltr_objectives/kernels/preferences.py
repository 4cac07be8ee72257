"""The logistic loss of pairs that are given as data."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list, no_scratch
from ltr_objectives.kernels.pairs import LOGISTIC, slope_and_curve


class Inputs(NamedTuple):
    """The pairs in the order of their queries, and the first pair of each query."""

    documents: np.ndarray  # by pair: the preferred and the other one, counted within their list
    weight: np.ndarray
    ptr: np.ndarray
    sigma: float


@inlined_kernel
def _preferences(one: OneList, inputs: Inputs, arrays: None) -> None:
    """Add the slope and curve of each given pair."""
    s, sigma = one.s, inputs.sigma
    for p in range(inputs.ptr[one.q], inputs.ptr[one.q + 1]):
        hi, lo = inputs.documents[p, 0], inputs.documents[p, 1]
        slope, curve = slope_and_curve(LOGISTIC, sigma * (s[hi] - s[lo]))
        slope, curve = sigma * inputs.weight[p] * slope, sigma * sigma * inputs.weight[p] * curve
        one.grad[hi] -= slope
        one.grad[lo] += slope
        one.hess[hi] += curve
        one.hess[lo] += curve


given_pairs = each_list(no_scratch, _preferences)

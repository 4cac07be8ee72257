"""The cross-entropy between a target and the softmax of the scores."""

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList, each_list, no_scratch
from ltr_objectives.kernels.softmax import softmax, total


@kernel
def label_softmax(first, last, ptr, labels, out):
    """Write the softmax of each query's labels."""
    for q in range(first, last):
        softmax(labels[ptr[q] : ptr[q + 1]], out[ptr[q] : ptr[q + 1]])


@inlined_kernel
def _listnet(one: OneList, target: np.ndarray, arrays: None) -> None:
    """Write the derivatives of the cross-entropy between ``target``, which is not negative, and softmax."""
    t, g = target[one.first : one.last], one.grad
    mass = total(t)
    if mass == 0.0:
        return
    softmax(one.s, g)
    for i in range(len(g)):
        one.hess[i] = mass * g[i] * (1.0 - g[i])
        g[i] = mass * g[i] - t[i]


cross_entropy = each_list(no_scratch, _listnet)

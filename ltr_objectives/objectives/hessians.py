"""Policies: changes of the Hessian that a kernel wrote, with one vocabulary for all objectives."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels import finish

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Policy(NamedTuple):
    """A code of :mod:`ltr_objectives.kernels.finish`, and its formula in NumPy."""

    code: int
    formula: Function


POLICIES = {
    "exact": Policy(finish.EXACT, lambda grad, hess: hess),
    "double": Policy(finish.DOUBLE, lambda grad, hess: 2.0 * hess),
    "ones": Policy(finish.ONES, lambda grad, hess: np.ones(len(hess))),
    "absolute": Policy(finish.ABSOLUTE, lambda grad, hess: np.abs(hess)),
    "clipped": Policy(finish.CLIPPED, lambda grad, hess: np.maximum(hess, 0.0)),
    "gradient": Policy(finish.GRADIENT, lambda grad, hess: np.abs(grad)),  # no Newton step exceeds 1
    "bounded": Policy(finish.BOUNDED, lambda grad, hess: np.maximum(hess, np.abs(grad))),  # as above
}

"""What every gradient passes through on its way out, in one pass over memory."""

import numpy as np

from ltr_objectives.kernels._jit import kernel


@kernel
def finish(first, last, ptr, grad, hess, weight, grad_out, hess_out, finite):
    """Write ``grad`` and ``hess`` times ``weight``, if there is one, in the type of the outputs, and leave zeros.

    ``finite[first]`` tells whether what was written is finite.
    """
    bad = 0
    a, b = ptr[first], ptr[last]
    for i in range(a, b):
        w = weight[i] if len(weight) > 0 else 1.0
        grad_out[i] = grad[i] * w
        hess_out[i] = hess[i] * w
        bad += not (np.isfinite(grad_out[i]) and np.isfinite(hess_out[i]))
        grad[i], hess[i] = 0.0, 0.0
    finite[first] = bad == 0


@kernel
def shorten_steps(grad, hess):
    """Raise each Hessian to the absolute gradient, so that no Newton step is longer than 1."""
    for i in range(len(grad)):
        hess[i] = max(hess[i], abs(grad[i]))

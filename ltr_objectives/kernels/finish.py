"""The last step of every gradient: Hessian policy, weights and a check for finite numbers, in one pass over memory."""

import numpy as np

from ltr_objectives.kernels._jit import kernel

EXACT, DOUBLE, ONES, ABSOLUTE, CLIPPED, GRADIENT, BOUNDED = range(7)


@kernel
def _repaired(policy, g, h):
    """The Hessian of one row; the formulas stand in :mod:`ltr_objectives.objectives.hessians`."""
    if policy == EXACT:
        return h
    if policy == DOUBLE:
        return 2.0 * h
    if policy == ONES:
        return 1.0
    if policy == ABSOLUTE:
        return abs(h)
    if policy == CLIPPED:
        return 0.0 if h < 0.0 else h + 0.0  # NaN stays, -0 does not
    if policy == GRADIENT:
        return abs(g)
    return abs(g) if h < abs(g) else h


@kernel
def finish(first, last, ptr, out, policy, weight, result, finite):
    """Write into ``result`` the gradient and the Hessian that ``policy`` makes, both times ``weight``; zero ``out``.

    An empty ``weight`` is 1. ``finite[first]`` tells whether all numbers written are finite.
    """
    if not EXACT <= policy <= BOUNDED:
        raise ValueError("unknown policy")
    bad = 0
    a, b = ptr[first], ptr[last]
    grad, hess = out.grad, out.hess
    grad_out, hess_out = result.grad, result.hess
    for i in range(a, b):
        w = weight[i] if len(weight) > 0 else 1.0
        grad_out[i] = grad[i] * w
        hess_out[i] = _repaired(policy, grad[i], hess[i]) * w
        bad += not (np.isfinite(grad_out[i]) and np.isfinite(hess_out[i]))
        grad[i], hess[i] = 0.0, 0.0
    finite[first] = bad == 0

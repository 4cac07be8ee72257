"""The last step of every gradient: Hessian policy, weights and a check for finite numbers."""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.records import Out

EXACT, DOUBLE, ONES, ABSOLUTE, CLIPPED, GRADIENT, BOUNDED = range(7)
POLICIES = {
    "exact": EXACT,
    "double": DOUBLE,
    "ones": ONES,
    "absolute": ABSOLUTE,
    "clipped": CLIPPED,
    "gradient": GRADIENT,  # no Newton step exceeds 1
    "bounded": BOUNDED,  # as above
}
CACHED_ROWS = 1024  # rows that stay in the processor's cache between two loops


@kernel
def _repair(policy, g, h):
    """Apply a policy; each has a loop of its own, which LLVM vectorises."""
    if policy == DOUBLE:
        for i in range(len(h)):
            h[i] *= 2.0
    elif policy == ONES:
        h[:] = 1.0
    elif policy == ABSOLUTE:
        for i in range(len(h)):
            h[i] = abs(h[i])
    elif policy == CLIPPED:
        for i in range(len(h)):
            h[i] = 0.0 if h[i] < 0.0 else h[i] + 0.0  # NaN stays, -0 does not
    elif policy == GRADIENT:
        for i in range(len(h)):
            h[i] = abs(g[i])
    elif policy == BOUNDED:
        for i in range(len(h)):
            h[i] = abs(g[i]) if h[i] < abs(g[i]) else h[i]


@kernel
def finish(first, last, ptr, out: Out, policy, weight, factor, result, adds, finite):
    """Apply ``policy``, multiply by ``weight`` and ``factor``, write or add that to ``result``, and zero ``out``.

    ``weight`` is by row, or one number for all. ``finite[first]`` says whether all numbers written are finite.
    """
    bad, same = 0, len(weight) == 1
    for a in range(ptr[first], ptr[last], CACHED_ROWS):
        b = min(a + CACHED_ROWS, ptr[last])
        g, h, w = out.grad[a:b], out.hess[a:b], weight[a:b]
        grad, hess = result.grad[a:b], result.hess[a:b]
        _repair(policy, g, h)
        for i in range(b - a):
            x = weight[0] if same else w[i]
            new_grad, new_hess = g[i] * x * factor, h[i] * x * factor  # x * factor could leave the range of float64
            grad[i] = grad[i] + new_grad if adds else new_grad
            hess[i] = hess[i] + new_hess if adds else new_hess
            bad += not (np.isfinite(grad[i]) and np.isfinite(hess[i]))
            g[i], h[i] = 0.0, 0.0
    finite[first] = bad == 0

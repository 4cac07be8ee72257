"""Softmax of one list."""

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.exponential import exponentials

LEAST = 1e-290  # far above subnormal numbers, which lose digits


@inlined
def total(x):
    """Return the sum of ``x``."""
    result = 0.0
    for v in x:
        result += v
    return result


@kernel
def total_without(x, best):
    """Sum all but ``x[best]``. Subtracting ``x[best]`` from the total would cancel if it is far larger."""
    kept, x[best] = x[best], 0.0
    rest = total(x)
    x[best] = kept
    return rest


@kernel
def _index_of_largest(x):
    """Return the first index of the largest number, found by four independent chains of comparisons."""
    m0, m1, m2, m3 = x[0], x[0], x[0], x[0]
    whole = len(x) // 4 * 4
    for i in range(0, whole, 4):
        m0 = x[i] if x[i] > m0 else m0
        m1 = x[i + 1] if x[i + 1] > m1 else m1
        m2 = x[i + 2] if x[i + 2] > m2 else m2
        m3 = x[i + 3] if x[i + 3] > m3 else m3
    for i in range(whole, len(x)):
        m0 = x[i] if x[i] > m0 else m0
    top = max(max(m0, m1), max(m2, m3))
    best = 0
    while x[best] != top:
        best += 1
    return best


@kernel
def softmax(s, out):
    """Write ``exp(s) / sum(exp(s))``; return the index of the largest and the sum of the rest. ``out`` may be ``s``."""
    best = _index_of_largest(s)
    top = s[best]
    for i in range(len(s)):
        out[i] = s[i] - top
    exponentials(out)
    rest = total_without(out, best)
    scale = 1.0 / (1.0 + rest)
    for i in range(len(s)):
        out[i] *= scale
    return best, rest * scale


@kernel
def softmax_without(s, rho, rest, best, out):
    """Write the softmax of all scores but the largest, and 0 there; ``rho, rest, best`` are from :func:`softmax`."""
    if rest > LEAST:
        scale = 1.0 / rest
        for i in range(len(s)):
            out[i] = rho[i] * scale
        out[best] = 0.0
    else:
        for i in range(len(s)):
            out[i] = s[i]
        out[best] = -np.inf
        softmax(out, out)

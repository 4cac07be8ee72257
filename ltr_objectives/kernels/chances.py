r"""Chances that each document j beats a document i, :math:`1 / (1 + e^{\alpha (s_i - s_j)})`.

One exponential a document serves all its pairs: with :math:`E = e^{\alpha (s - s_{max})}` the chance that j beats i is
:math:`E_j / (E_i + E_j)`. If scores span more than the exponential can hold, each pair takes its own exponential.
"""

import math

from ltr_objectives.kernels._jit import inlined, kernel


@inlined
def _narrow(E_i, E, p, rest):
    for j in range(len(E)):
        inverse = 1.0 / (E_i + E[j])
        p[j] = E[j] * inverse
        rest[j] = E_i * inverse


@kernel
def _wide(s_i, s, alpha, p, rest):
    for j in range(len(s)):
        gap = alpha * (s_i - s[j])
        e = math.exp(-abs(gap))
        small, large = e / (1.0 + e), 1.0 / (1.0 + e)
        p[j] = small if gap > 0.0 else large
        rest[j] = large if gap > 0.0 else small


@kernel
def chances(i, s, E, wide, alpha, start, p, rest):
    """Fill ``p[j]``, the chance that j beats i, and ``rest[j] = 1 - p[j]`` for all j from ``start`` on."""
    n = len(s)
    if wide:
        _wide(s[i], s[start:], alpha, p[start:n], rest[start:n])
    else:
        _narrow(E[i], E[start:n], p[start:n], rest[start:n])

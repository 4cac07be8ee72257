r"""Metrics of soft ranks ``pi_i = 1 + sum_j p_ij``, with ``p_ij`` the chance that j beats i.

Only the ranks of relevant documents count, so that a list costs two passes over (relevant x all) pairs and O(n) memory.
With c_i the derivative of the loss by ``pi_i``, each pair adds ``alpha c_i p (1 - p)`` to the gradient of j and takes
it from i; the Hessian of both is alpha times the absolute value, since ``|d^2 p / ds^2| <= alpha^2 p (1 - p)`` and
since 1/log and 1/x bend such that what is left out is negative.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.chances import chances
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.sorting import all_equal

NDCG, MRR, MAP = range(3)


@vector_kernel
def _sums(p, g):
    """All of ``p``, and ``p`` of the relevant."""
    total, relevant = 0.0, 0.0
    for j in range(len(p)):
        total += p[j]
        relevant += p[j] if g[j] > 0.0 else 0.0
    return total, relevant


@vector_kernel
def _spread(c, r, alpha, p, q, g, lam, hes):
    """Add pairs of weight ``c``, less ``r`` where j is relevant; return what i gets."""
    down, curve = 0.0, 0.0
    for j in range(len(p)):
        t = alpha * (c - (r if g[j] > 0.0 else 0.0)) * p[j] * q[j]
        h = alpha * abs(t)
        lam[j] += t
        hes[j] += h
        down += t
        curve += h
    return down, curve


@kernel
def _first(s, g):
    """The largest score of a relevant document, and how many have it."""
    top, ties = -np.inf, 0
    for i in range(len(s)):
        if g[i] > 0.0 and s[i] >= top:
            ties = ties + 1 if s[i] == top else 1
            top = s[i]
    return top, ties


@kernel
def approx(first, last, ptr, scores, gain, scale, kind, alpha, grad, hess, stop):
    """Gradient and Hessian of minus the soft metric; ``gain`` is 0/1 relevance but for NDCG."""
    longest = 0
    for query in range(first, last):
        longest = max(longest, ptr[query + 1] - ptr[query])
    E, p, q = np.empty(longest), np.empty(longest), np.empty(longest)
    for query in range(first, last):
        a, b = ptr[query], ptr[query + 1]
        s, g, lam, hes = scores[a:b], gain[a:b], grad[a:b], hess[a:b]
        n = b - a
        if scale[query] == 0.0 or all_equal(g):
            continue
        wide = not relative_to_top(s, alpha, E)
        top, ties = _first(s, g) if kind == MRR else (0.0, 1)
        for i in range(n):
            if stop[0]:
                return
            if g[i] <= 0.0 or (kind == MRR and s[i] != top):
                continue
            chances(i, s, E, wide, alpha, 0, p, q)
            p[i] = 0.0
            above, relevant = _sums(p[:n], g)
            rank = 1.0 + above - (relevant if kind == MRR else 0.0)
            c, r = scale[query] / (rank * rank), 0.0
            if kind == NDCG:
                log = math.log(1.0 + rank)
                c = scale[query] * g[i] * math.log(2.0) / ((1.0 + rank) * log * log)
            elif kind == MAP:
                c *= 1.0 + relevant
                r = scale[query] / rank
            else:
                c /= ties
                r = c
            down, curve = _spread(c, r, alpha, p[:n], q, g, lam, hes)
            lam[i] -= down
            hes[i] += curve

r"""Exact change of a metric when one document moves to any other rank and the others keep their order.

Such a move is a chain of exchanges with neighbours. Let a document of gain a pass from just below to just above one of
gain b, the two at ranks r and r + 1. In the families of :mod:`ltr_objectives.kernels.swaps` the metric gains

    (a - b) (w_r - w_{r+1}) H

with, over the documents c above both,

* linear:   H = 1
* cascade:  H = prod_c (1 - g_c)
* average:  H = a + b + sum_c g_c

Let the list be in rank order and i the document that moves. For j above i the exchange happens at ranks j and j + 1,
for j below at j - 1 and j, and i itself must not count among the documents above:

    j above i:  (g_i - g_j) (P_j + g_i Q_j)        j below i:  (g_i - g_j) R_j f_i

where one pass over the list fills the arrays: with D_j = w_j - w_{j+1}, T_j = prod_{c<j} (1 - g_c) and
N_j = sum_{c<=j} g_c,

* linear:   P_j = D_j,      Q_j = 0,    R_j = D_{j-1},      f_i = 1
* cascade:  P_j = D_j T_j,  Q_j = 0,    R_j = D_{j-1} T_j,  f_i = 1 / (1 - g_i)
* average:  P_j = D_j N_j,  Q_j = D_j,  R_j = D_{j-1} N_j,  f_i = 1

``restart`` replaces R for a document with 1 - g_i too small to divide by, in O(n). A document that certainly satisfies
hides all that follow, so there are few such documents that need it.
"""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR, NEGLIGIBLE, SMALL


@kernel
def move_terms(kind, g, w, scale, n, P, Q, R):
    """Fill ``P, Q, R`` for one list in rank order; return how many ranks matter.

    ``P`` and ``Q`` are negligible from that rank on, ``R`` behind it.
    """
    if kind not in (LINEAR, CASCADE, AVERAGE):
        raise ValueError("unknown kind")
    t, count, before = scale, 0.0, 0.0
    reach = 0
    least = NEGLIGIBLE * scale * w[0]
    for j in range(n):
        drop = w[j] - w[j + 1] if j + 1 < n else 0.0
        count += g[j]
        if kind == LINEAR:
            H, q = scale, 0.0
        elif kind == CASCADE:
            H, q = t, 0.0
            t = t * (1.0 - g[j]) if t > NEGLIGIBLE * scale else 0.0
        else:
            H, q = count * scale, scale
        P[j], Q[j], R[j] = drop * H, drop * q, before * H
        if P[j] > least or Q[j] > least:
            reach = j + 1
        elif R[j] > least:
            reach = j
        before = drop
    return reach


@kernel
def needs_restart(kind, miss):
    return kind == CASCADE and miss < SMALL


@kernel
def restart(g, w, scale, T_i, i, n, W):
    """Fill ``W[i+1:end]`` with R f_i for a document i that 1 - g_i cannot be divided for; return ``end``.

    ``T_i`` is the chance that nobody above i satisfies. The product starts anew behind i, without it.
    """
    t = T_i * scale
    for j in range(i + 1, n):
        if t <= NEGLIGIBLE * scale:
            return j
        W[j] = (w[j - 1] - w[j]) * t
        t *= 1.0 - g[j]
    return n


@kernel
def move_matrix(kind, g, w, scale, out):
    """The change when the document at rank i moves to rank q, for one list in rank order, into ``out[i, q]``."""
    n = len(g)
    P, Q, R, W = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    move_terms(kind, g, w, scale, n, P, Q, R)
    T_i = 1.0
    for i in range(n):
        miss = 1.0 - g[i]
        total = 0.0
        for q in range(i - 1, -1, -1):
            total += (g[i] - g[q]) * (P[q] + g[i] * Q[q])
            out[i, q] = total
        total = 0.0
        if needs_restart(kind, miss):
            W[:] = 0.0
            restart(g, w, scale, T_i, i, n, W)
            for q in range(i + 1, n):
                total -= (g[i] - g[q]) * W[q]
                out[i, q] = total
        else:
            factor = 1.0 / miss if kind == CASCADE else 1.0
            for q in range(i + 1, n):
                total -= (g[i] - g[q]) * R[q] * factor
                out[i, q] = total
        T_i *= miss

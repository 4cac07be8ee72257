r"""Exact change of a metric when one document moves to any other rank and the others keep their order.

A move is a chain of swaps of neighbours. Let a document of gain :math:`a` at rank :math:`r + 1` be swapped with one of
gain :math:`b` at rank :math:`r`. In the families of :mod:`ltr_objectives.kernels.swaps` the metric grows by
:math:`(a - b) (w_r - w_{r+1}) H` with, over the documents :math:`c` above both,

* linear: :math:`H = 1`
* cascade: :math:`H = \prod_c (1 - g_c)`
* average: :math:`H = a + b + \sum_c g_c`

Let the list be in rank order and :math:`i` the document that moves. It is swapped with a document :math:`j` above it at
ranks :math:`j` and :math:`j + 1`, and with a document :math:`j` below it at ranks :math:`j - 1` and :math:`j`. Sums and
products over the documents above leave :math:`i` out. The metric with :math:`i` just above :math:`j`, less the metric
with :math:`i` just below :math:`j`, is :math:`(g_i - g_j) (P_j + g_i Q_j)` for :math:`j` above :math:`i`, and
:math:`(g_i - g_j) R_j f_i` for :math:`j` below.

One pass over the list fills the arrays. With :math:`D_j = w_j - w_{j+1}`, :math:`T_j = \prod_{c<j} (1 - g_c)` and
:math:`N_j = \sum_{c \le j} g_c`,

* linear: :math:`P_j = D_j,\ Q_j = 0,\ R_j = D_{j-1},\ f_i = 1`
* cascade: :math:`P_j = D_j T_j,\ Q_j = 0,\ R_j = D_{j-1} T_j,\ f_i = 1 / (1 - g_i)`
* average: :math:`P_j = D_j N_j,\ Q_j = D_j,\ R_j = D_{j-1} N_j,\ f_i = 1`

If :math:`1 - g_i` is too small to divide by, ``restart_moves`` computes :math:`R f_i` in :math:`O(n)`. Few documents
need it, because one that certainly satisfies the user hides all that follow.
"""

import numpy as np

from ltr_objectives.kernels._jit import allocating, kernel
from ltr_objectives.kernels.swaps import CASCADE, LINEAR, NEGLIGIBLE, needs_restart


@kernel
def move_terms(kind, g, w, scale, n, P, Q, R):
    """Fill ``P, Q, R`` for one list in rank order; return how many ranks matter.

    ``P`` and ``Q`` are negligible from the returned rank on, ``R`` from the next rank on.
    """
    t, count, before = scale, 0.0, 0.0
    reach = 0
    least = NEGLIGIBLE * scale * w[0]
    for j in range(n):
        drop = w[j] - w[j + 1] if j + 1 < n else 0.0
        count += g[j]
        if kind == LINEAR:
            H, own = scale, 0.0
        elif kind == CASCADE:
            H, own = t, 0.0
            t = t * (1.0 - g[j]) if t > NEGLIGIBLE * scale else 0.0
        else:
            H, own = count * scale, scale
        P[j], Q[j], R[j] = drop * H, drop * own, before * H
        if P[j] > least or Q[j] > least:
            reach = j + 1
        elif R[j] > least:
            reach = j
        before = drop
    return reach


@kernel
def restart_moves(g, w, scale, T_i, i, n, W):
    """Fill ``W[i+1:end]`` with R f_i for a document i with 1 - g_i too small to divide by; return ``end``.

    ``T_i`` is the chance that no document above i satisfies the user. The products below i leave i out.
    """
    t = T_i * scale
    for j in range(i + 1, n):
        if t <= NEGLIGIBLE * scale:
            return j
        W[j] = (w[j - 1] - w[j]) * t
        t *= 1.0 - g[j]
    return n


@allocating
def move_matrix(kind, g, w, scale, out):
    """Write into ``out[i, e]`` the change when the document at rank i moves to rank e, for one list in rank order."""
    n = len(g)
    P, Q, R, W = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    move_terms(kind, g, w, scale, n, P, Q, R)
    T_i = 1.0
    for i in range(n):
        miss = 1.0 - g[i]
        total = 0.0
        for e in range(i - 1, -1, -1):
            total += (g[i] - g[e]) * (P[e] + g[i] * Q[e])
            out[i, e] = total
        total = 0.0
        if needs_restart(kind, miss):
            W[:] = 0.0
            restart_moves(g, w, scale, T_i, i, n, W)
            for e in range(i + 1, n):
                total -= (g[i] - g[e]) * W[e]
                out[i, e] = total
        else:
            factor = 1.0 / miss if kind == CASCADE else 1.0
            for e in range(i + 1, n):
                total -= (g[i] - g[e]) * R[e] * factor
                out[i, e] = total
        T_i *= miss

r"""Exact change of a metric when the documents at ranks d < e are swapped, in constant time a pair.

A metric that objectives learn belongs to one of three families, or is a sum of several of one family. :math:`g` is the
gain: in the cascade family the probability that a document satisfies the user, in the average family 0/1 relevance.
:math:`w` is the discount by rank, non-increasing and zero beyond a cutoff. With a scale :math:`C`,

* linear: :math:`M = C \sum_d w_d g_d`, as DCG, NDCG, precision, recall, AUC, ...;
* cascade: :math:`M = C \sum_d w_d g_d \prod_{c<d} (1 - g_c)`, as reciprocal rank, ERR, PFound;
* average: :math:`M = C \sum_d w_d g_d \sum_{c \le d} g_c`, as average precision with :math:`w_d = 1 / (d + 1)`.

In all three the signed change under the swap is :math:`(g_e - g_d) (U_d + A_d V_e)`, with arrays by rank that one pass
over the list fills. For the linear family :math:`U_d = w_d`, :math:`A_d = 1` and :math:`V_e = -w_e`. For the cascade,
with :math:`T_d = \prod_{c<d} (1 - g_c)` and :math:`F_d = \sum_{c \le d} w_c g_c T_c`,

.. math::
    U_d = T_d w_d + \frac{F_d}{1 - g_d}, \quad A_d = \frac{1}{1 - g_d}, \quad V_e = -(F_{e-1} + w_e T_e),

and for average precision, with :math:`N_d = \sum_{c \le d} g_c` and :math:`P_d = \sum_{c \le d} w_c g_c`,

.. math::
    U_d = (N_d + 1 - g_d) w_d - P_d, \quad A_d = 1, \quad V_e = P_{e-1} - N_e w_e.

If :math:`1 - g_d` is too small to divide by, :math:`U_d` is :math:`T_d w_d`, :math:`A_d` is 1, and ``restart_swaps``
fills another :math:`V` for that d, in :math:`O(n)`. Few ranks need it, because a document that certainly satisfies the
user hides all that follow.
"""

import numpy as np

from ltr_objectives.kernels._jit import allocating, kernel

LINEAR, CASCADE, AVERAGE = range(3)
UPPER = 3  # classic YetiRank: |g_d - g_e| w_d, with the discount of the upper rank alone
CATBOOST_MRR, CATBOOST_MAP = 4, 5

SMALL = 2.0**-10  # the least 1 - g to divide by
NEGLIGIBLE = 1e-30  # a smaller probability counts as 0


@kernel
def is_empty(layers, q):
    """Return True if each layer gives all rankings of query ``q`` the same value."""
    any_scale = False
    for terms in layers:
        any_scale |= terms.scale[q] != 0.0
    return not any_scale


@kernel
def discounted(discount, most):
    """Count the first ``most`` ranks with a discount above zero; discounts do not increase."""
    if most > 0 and discount[most - 1] > 0.0:
        return most
    ranks = 0
    while ranks < most and discount[ranks] > 0.0:
        ranks += 1
    return ranks


@kernel
def needs_restart(kind, miss):
    """Return True if the sums of a cascade cannot be divided by ``miss``, which is 1 - g."""
    return kind == CASCADE and miss < SMALL


@kernel
def _linear(w, scale, n, U, A, V):
    """Fill the terms of the linear family."""
    for d in range(n):
        U[d] = w[d] * scale
        A[d] = 1.0
        V[d] = -U[d]


@kernel
def _cascade(g, w, scale, n, U, A, V):
    """Fill the terms of the cascade family."""
    t, f = scale, 0.0
    for d in range(n):
        V[d] = -(f + w[d] * t)
        miss = 1.0 - g[d]
        U[d] = t * w[d]
        f += w[d] * g[d] * t
        if t <= NEGLIGIBLE * scale:
            U[d] = 0.0
            A[d] = 0.0
        elif needs_restart(CASCADE, miss):
            A[d] = 1.0
        else:
            U[d] += f / miss
            A[d] = 1.0 / miss
        t *= miss


@kernel
def _average(g, w, scale, n, U, A, V):
    """Fill the terms of the average family."""
    count, p = 0.0, 0.0
    for d in range(n):
        before = p
        count += g[d]
        p += g[d] * w[d]
        U[d] = ((count + 1.0 - g[d]) * w[d] - p) * scale
        A[d] = 1.0
        V[d] = (before - count * w[d]) * scale


@kernel
def _catboost_mrr(g, w, scale, n, U, A, V):
    """Write CatBoost's weight for its mode MRR: w_d - w_e if no rank above d is relevant, else 0."""
    open_ = 1.0
    for d in range(n):
        U[d] = open_ * w[d] * scale
        A[d] = open_
        V[d] = -w[d] * scale
        if g[d] > 0.0:
            open_ = 0.0


@kernel
def _catboost_map(g, w, scale, n, U, A, V):
    """Write CatBoost's weight for its mode MAP: 1/(d + 1) plus 1/(c + 1) of the relevant ranks c between d and e."""
    p = 0.0
    for d in range(n):
        V[d] = p * scale
        p += g[d] / (d + 1.0)
        U[d] = (1.0 / (d + 1.0) - p) * scale
        A[d] = 1.0


@kernel
def swap_terms(kind, g, w, scale, n, U, A, V):
    """Fill ``U, A, V`` for one list in rank order."""
    if kind == LINEAR:
        _linear(w, scale, n, U, A, V)
    elif kind == CASCADE:
        _cascade(g, w, scale, n, U, A, V)
    elif kind == AVERAGE:
        _average(g, w, scale, n, U, A, V)
    elif kind == UPPER:
        _linear(w, scale, n, U, A, V)
        A[:n] = 0.0
    elif kind == CATBOOST_MRR:
        _catboost_mrr(g, w, scale, n, U, A, V)
    else:
        _catboost_map(g, w, scale, n, U, A, V)


@kernel
def restart_swaps(g, w, d, n, U, V_d):
    """Fill ``V_d[d+1:n]`` with V for a rank d with 1 - g_d near zero.

    The sums start below d and leave d out, so that nothing is divided by 1 - g_d.
    """
    t = U[d] / w[d] if w[d] > 0.0 else 0.0
    f = 0.0
    for e in range(d + 1, n):
        V_d[e] = -(f + w[e] * t)
        f += w[e] * g[e] * t
        t *= 1.0 - g[e]


@allocating
def swap_matrix(kind, g, w, scale, out):
    """Write all signed changes of one list in rank order into ``out[d, e]``, d < e; the rest of ``out`` is kept."""
    n = len(g)
    U, A, V, V_d = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    swap_terms(kind, g, w, scale, n, U, A, V)
    for d in range(n):
        restarts = needs_restart(kind, 1.0 - g[d])
        if restarts:
            restart_swaps(g, w, d, n, U, V_d)
        for e in range(d + 1, n):
            out[d, e] = (g[e] - g[d]) * (U[d] + A[d] * (V_d[e] if restarts else V[e]))

r"""LambdaLoss: logistic losses over pairs, weighted in both directions by their places in the ranking.

For ranks d < e, with gains G over the ideal, discounts w and chance p that e beats d,

    loss += a log2(1 / (1 - p)) + b log2(1 / p)

where the weights a (of d above e) and b (of e above d) are ``G_d w_d`` and ``G_e w_e`` for NDCG-Loss1; for the others
the document of larger gain alone has the weight ``|G_d - G_e| (far delta_{e-d} + near (w_d - w_e))``.
"""

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.chances import chances
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.sorting import all_equal, descending_order, scratch

LOG2_E = 1.4426950408889634


@vector_kernel
def _one(d, end, g, w, p, q, lam, hes):
    a = g[d] * w[d]
    down, curve = 0.0, 0.0
    gb, wb, pb, qb = g[d + 1 : end], w[d + 1 : end], p[d + 1 : end], q[d + 1 : end]
    lamb, hesb = lam[d + 1 : end], hes[d + 1 : end]
    for e in range(len(gb)):
        b = gb[e] * wb[e]
        x = a * pb[e] - b * qb[e]
        h = (a + b) * pb[e] * qb[e]
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
    lam[d] -= down
    hes[d] += curve


@vector_kernel
def _two(d, end, near, far, delta, g, w, p, q, lam, hes):
    gd, wd = g[d], w[d]
    down, curve = 0.0, 0.0
    gb, wb, pb, qb = g[d + 1 : end], w[d + 1 : end], p[d + 1 : end], q[d + 1 : end]
    lamb, hesb = lam[d + 1 : end], hes[d + 1 : end]
    for e in range(len(gb)):
        m = (gd - gb[e]) * (far * delta[e] + near * (wd - wb[e]))
        x = m * (pb[e] if m > 0.0 else qb[e])
        h = abs(m) * pb[e] * qb[e]
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
    lam[d] -= down
    hes[d] += curve


@kernel
def lambdaloss(first, last, ptr, scores, gain, w, delta, scale, sigma, one, near, far, k, both, grad, hess, stop):
    """Gradient and Hessian; ``delta[m - 1]`` is the discount at rank m less that at m + 1."""
    longest = 0
    for query in range(first, last):
        longest = max(longest, ptr[query + 1] - ptr[query])
    s, order, key2, order2 = scratch(longest)
    E, g, p, q = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    lam, hes = np.empty(longest), np.empty(longest)
    for query in range(first, last):
        a, b = ptr[query], ptr[query + 1]
        n = b - a
        if scale[query] == 0.0 or all_equal(gain[a:b]):
            continue
        descending_order(scores[a:b], s, order, key2, order2)
        wide = not relative_to_top(s[:n], sigma, E)
        for d in range(n):
            g[d] = gain[a + order[d]] * scale[query]
            lam[d], hes[d] = 0.0, 0.0
        end = min(n, k) if both else n
        for d in range(min(n - 1, k)):
            if stop[0]:
                return
            chances(d, s[:end], E, wide, sigma, d + 1, p, q)
            if one:
                _one(d, end, g, w, p, q, lam, hes)
            else:
                _two(d, end, near, far, delta, g, w, p, q, lam, hes)
        for d in range(n):
            grad[a + order[d]] = lam[d] * sigma * LOG2_E
            hess[a + order[d]] = hes[d] * sigma * sigma * LOG2_E

r"""Gradient and Hessian of a weighted pairwise logistic loss, in rank order; linear metrics over all pairs have
:mod:`ltr_objectives.kernels.graded`.

For each query, ``permutations`` times: add noise to the scores, sort, and for each pair of ranks d < e <= d + neighbors
with d <= rows weigh the pair by ``delta = |change of the metric when d and e trade places|``. Then, at the scores
without noise, with ``hi`` the document of the larger gain,

    rho = 1 / (1 + exp(sigma (s_hi - s_lo)))
    grad_hi -= sigma delta rho;  grad_lo += sigma delta rho;  hess_both += sigma^2 delta rho (1 - rho)

averaged over the permutations. With ``score_norm`` delta is divided by 0.01 + |s_hi - s_lo|, and where there are
propensities, by that of the document hi. Memory O(n) a thread, no matrix: the gradient is linear in the weights.

The inner loops run over slices of arrays in rank order, counted from 0, so that LLVM vectorises them: 0.8 ns a pair,
against 2.4 ns when they index the whole arrays from d + 1 or clamp by min and max. One exponential
a document serves all its pairs: with E = exp(sigma (s - s_max)), the chance that e beats d is E_e / (E_d + E_e).
Lists whose scores span more than the exponential can hold take one exponential a pair.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rankings import ranking
from ltr_objectives.kernels.rng import LOGISTIC, stream
from ltr_objectives.kernels.sorting import all_equal, scratch
from ltr_objectives.kernels.swaps import restart, swap_terms

NEAR = 8  # up to so many neighbours the inner loop runs over d, else over e


@vector_kernel
def _row(d, end, cap, g, E, U_d, A_d, V, lam, hes):
    gd, Ed = g[d], E[d]
    down, curve, total = 0.0, 0.0, 0.0
    gb, Eb, Vb, lamb, hesb = g[d + 1 : end], E[d + 1 : end], V[d + 1 : end], lam[d + 1 : end], hes[d + 1 : end]
    for e in range(len(gb)):
        gap = gd - gb[e]
        gap = cap if gap > cap else gap
        gap = -cap if gap < -cap else gap
        m = gap * (U_d + A_d * Vb[e])
        inverse = 1.0 / (Ed + Eb[e])
        p, q = Eb[e] * inverse, Ed * inverse
        x = m * (p if m > 0.0 else q)
        h = abs(m) * p * q
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
        total += abs(x)
    lam[d] -= down
    hes[d] += curve
    return total


@vector_kernel
def _neighbours(apart, rows, cap, g, E, U, A, V, lam, low, hes, hes_low):
    """The pairs of ranks d < rows and d + apart; what the lower of the two gets goes to ``low`` and ``hes_low``."""
    total = 0.0
    gd, Ed, Ud, Ad, lamd, hesd = g[:rows], E[:rows], U[:rows], A[:rows], lam[:rows], hes[:rows]
    end = apart + rows
    ge, Ee, Ve, lame, hese = g[apart:end], E[apart:end], V[apart:end], low[apart:end], hes_low[apart:end]
    for d in range(len(gd)):
        gap = gd[d] - ge[d]
        gap = cap if gap > cap else gap
        gap = -cap if gap < -cap else gap
        m = gap * (Ud[d] + Ad[d] * Ve[d])
        inverse = 1.0 / (Ed[d] + Ee[d])
        p, q = Ee[d] * inverse, Ed[d] * inverse
        x = m * (p if m > 0.0 else q)
        h = abs(m) * p * q
        lamd[d] -= x
        lame[d] += x
        hesd[d] += h
        hese[d] += h
        total += abs(x)
    return total


@vector_kernel
def _row_score_norm(d, end, cap, g, E, U_d, A_d, V, s, lam, hes):
    gd, Ed, sd = g[d], E[d], s[d]
    down, curve, total = 0.0, 0.0, 0.0
    gb, Eb, Vb, lamb, hesb = g[d + 1 : end], E[d + 1 : end], V[d + 1 : end], lam[d + 1 : end], hes[d + 1 : end]
    sb = s[d + 1 : end]
    for e in range(len(gb)):
        gap = gd - gb[e]
        gap = cap if gap > cap else gap
        gap = -cap if gap < -cap else gap
        m = gap * (U_d + A_d * Vb[e]) / (0.01 + abs(sd - sb[e]))
        inverse = 1.0 / (Ed + Eb[e])
        p, q = Eb[e] * inverse, Ed * inverse
        x = m * (p if m > 0.0 else q)
        h = abs(m) * p * q
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
        total += abs(x)
    lam[d] -= down
    hes[d] += curve
    return total


@vector_kernel
def _divisors(d, end, g, s, theta, score_norm, divided, out):
    """What the pairs of rank d are divided by: the distance of the scores, the propensity of the larger gain."""
    gd, sd, theta_d = g[d], s[d], theta[d]
    gb, sb, tb, o = g[d + 1 : end], s[d + 1 : end], theta[d + 1 : end], out[d + 1 : end]
    if score_norm:
        for e in range(len(o)):
            o[e] = 0.01 + abs(sd - sb[e])
    else:
        for e in range(len(o)):
            o[e] = 1.0
    if divided:
        for e in range(len(o)):
            o[e] *= theta_d if gd > gb[e] else tb[e]


@vector_kernel
def _row_divided(d, end, cap, g, E, U_d, A_d, V, divisor, lam, hes):
    gd, Ed = g[d], E[d]
    down, curve, total = 0.0, 0.0, 0.0
    gb, Eb, Vb, lamb, hesb = g[d + 1 : end], E[d + 1 : end], V[d + 1 : end], lam[d + 1 : end], hes[d + 1 : end]
    div = divisor[d + 1 : end]
    for e in range(len(gb)):
        gap = gd - gb[e]
        gap = cap if gap > cap else gap
        gap = -cap if gap < -cap else gap
        m = gap * (U_d + A_d * Vb[e]) / div[e]
        inverse = 1.0 / (Ed + Eb[e])
        p, q = Eb[e] * inverse, Ed * inverse
        x = m * (p if m > 0.0 else q)
        h = abs(m) * p * q
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
        total += abs(x)
    lam[d] -= down
    hes[d] += curve
    return total


@kernel
def _row_wide(d, end, cap, g, sigma, U_d, A_d, V, s, divisor, lam, hes):
    total = 0.0
    for e in range(d + 1, end):
        m = min(max(g[d] - g[e], -cap), cap) * (U_d + A_d * V[e])
        if m == 0.0:
            continue
        m /= divisor[e]
        gap = s[d] - s[e]
        p = 1.0 / (1.0 + math.exp(min(sigma * gap, 700.0)))
        q = 1.0 / (1.0 + math.exp(min(-sigma * gap, 700.0)))
        x = m * (p if m > 0.0 else q)
        h = abs(m) * p * q
        lam[d] -= x
        hes[d] += h
        lam[e] += x
        hes[e] += h
        total += abs(x)
    return total


@kernel
def _list(n, rows, neighbors, cap, kind, w, scale, sigma, wide, score_norm, divided, g, s, E, theta, U, A, V, W,
          divisor, lam, low, hes, hes_low, stop):  # fmt: skip
    """Add the pairs of one list in rank order to ``lam + low`` and ``hes + hes_low``; return the sum of |lambda|."""
    swap_terms(kind, g, w, scale, n, U, A, V)
    total = 0.0
    rows = min(rows, n - 1)
    near = neighbors <= NEAR and not (wide or score_norm or divided)
    for d in range(rows):
        if stop[0]:
            return total
        if (near and not A[d] < 0.0) or (U[d] == 0.0 and A[d] == 0.0):
            continue
        end = n if neighbors >= n else min(n, d + 1 + neighbors)
        a, v = A[d], V
        if a < 0.0:
            restart(g, w, d, end, U, W)
            a, v = 1.0, W
        if wide or divided:
            _divisors(d, end, g, s, theta, score_norm, divided, divisor)
        if wide:
            total += _row_wide(d, end, cap, g, sigma, U[d], a, v, s, divisor, lam, hes)
        elif divided:
            total += _row_divided(d, end, cap, g, E, U[d], a, v, divisor, lam, hes)
        elif score_norm:
            total += _row_score_norm(d, end, cap, g, E, U[d], a, v, s, lam, hes)
        else:
            total += _row(d, end, cap, g, E, U[d], a, v, lam, hes)
        if near:
            U[d], A[d] = 0.0, 0.0
    if near:
        for apart in range(1, neighbors + 1):
            total += _neighbours(apart, max(min(rows, n - apart), 0), cap, g, E, U, A, V, lam, low, hes, hes_low)
    return total


@kernel
def pair_gradients(first, last, ptr, scores, propensity, kind, gain, w, scale, cap, sigma, rows, head, neighbors,
                   score_norm, lambda_norm, permutations, noise, noise_scale, seed, iteration, grad, hess,
                   stop):  # fmt: skip
    """Write gradient and Hessian of the queries ``first <= q < last``; only the first ``head`` ranks need an order."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    noisy, exp_, odds = np.empty(longest), np.empty(longest), np.empty(longest)
    g, s, E = np.empty(longest), np.empty(longest), np.empty(longest)
    U, A, V, W = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    lam, low, hes, hes_low = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    theta, divisor = np.empty(longest), np.empty(longest)
    divided = len(propensity) > 0
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or scale[q] == 0.0:
            continue
        x, y = scores[a:b], gain[a:b]
        narrow = relative_to_top(x, sigma, exp_)
        logistic = noise == LOGISTIC and relative_to_top(x, 1.0 / noise_scale, odds)
        distant = score_norm and not all_equal(x)
        stream_key = stream(seed, iteration, np.uint64(q))
        total = 0.0
        ordered = min(n, head)
        m = n if neighbors >= n else ordered
        for r in range(permutations):
            if stop[0]:
                return
            ranking(x, ordered, noise, noise_scale, odds, logistic, stream_key, np.uint64(r) * np.uint64(2 * n),
                    noisy, key, order, key2, order2)  # fmt: skip
            for d in range(m):
                i = order[d]
                g[d], s[d], E[d] = y[i], x[i], exp_[i]
                if divided:
                    theta[d] = propensity[a + i]
            lam[:m], low[:m], hes[:m], hes_low[:m] = 0.0, 0.0, 0.0, 0.0
            total += _list(m, rows, neighbors, cap, kind, w, scale[q], sigma, not narrow, distant,
                           divided, g, s, E, theta, U, A, V, W, divisor, lam, low, hes, hes_low, stop)  # fmt: skip
            for d in range(m):
                grad[a + order[d]] += lam[d] + low[d]
                hess[a + order[d]] += hes[d] + hes_low[d]
        factor = sigma / permutations
        if lambda_norm:
            total *= 2.0 * factor
            if total > 0.0:
                factor *= np.log2(1.0 + total) / total
        for i in range(a, b):
            grad[i] *= factor
            hess[i] *= factor * sigma

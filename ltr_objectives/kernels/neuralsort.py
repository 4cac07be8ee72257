r"""NeuralNDCG: gradients through Sinkhorn scaling and NeuralSort.

In the order of descending scores, row i (a rank) and column j (a document) of the relaxed permutation matrix have

    K_ij = softmax_j(c_ij / tau),  c_i,j+1 - c_ij = (s_j - s_j+1) (2 (i - j) - 1),

which falls off on both sides of the diagonal, quadratically in the distance where gaps are even. So K is a band: only
entries above 4e-18 times the diagonal's are kept, and the diagonal is at least 1/n, so that no sum is ever near 0.

Sinkhorn scaling multiplies rows by u and columns by v until P = u K v has sums 1. One sweep over K a round: row by row
``u_i = 1 / (K v)_i`` and, while the row is in cache, the next column sums ``K^T u``. The factors of all rounds are
kept, O(n) each, and the gradient goes back through them, exactly, by one sweep a round. The derivative of K is a sum
of outer products of vectors already at hand; with rho_i = n - 1 - 2i, only ``C1_j = sum_i rho_i dc_ij`` and
``C0_j = sum_i dc_ij`` are needed of it, since c_ij = rho_i s_j - sum_k |s_j - s_k|.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.heads import head
from ltr_objectives.kernels.sorting import all_equal, scratch

NEGLIGIBLE = -40.0  # exp(-40) = 4e-18


@vector_kernel
def _dot(x, y):
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@vector_kernel
def _add_two(row, a, b, x, y):
    for j in range(len(row)):
        x[j] += a * row[j]
        y[j] += b * row[j]


@vector_kernel
def _scale(x, factor):
    for j in range(len(x)):
        x[j] *= factor


@kernel
def _relaxed_sort(s, tau, K, lo, hi):
    """Fill row i of ``K`` between ``lo[i]`` and ``hi[i]``, from the diagonal outwards."""
    n = len(s)
    for i in range(n):
        row = K[i * n : (i + 1) * n]
        row[i] = 1.0
        total, c, j = 1.0, 0.0, i
        while j + 1 < n:
            c -= (s[j] - s[j + 1]) * (2.0 * (j - i) + 1.0) / tau
            if not c > NEGLIGIBLE:
                break
            j += 1
            row[j] = math.exp(c)
            total += row[j]
        hi[i] = j + 1
        c, j = 0.0, i
        while j > 0:
            c -= (s[j - 1] - s[j]) * (2.0 * (i - j) + 1.0) / tau
            if not c > NEGLIGIBLE:
                break
            j -= 1
            row[j] = math.exp(c)
            total += row[j]
        lo[i] = j
        _scale(row[j : hi[i]], 1.0 / total)


@kernel
def _sinkhorn(K, lo, hi, n, rounds, tolerance, transposed, U, V, X, w, stop):
    """Factors of each round in ``U``, ``V``, and in ``X[t]`` the sums of ``rho U[t] K``; returns (t of V, t of U)."""
    U[0, :n], V[0, :n] = 1.0, 1.0
    w[:n], X[0, :n] = 0.0, 0.0
    for i in range(n):
        a, b = lo[i], hi[i]
        _add_two(K[i * n + a : i * n + b], 1.0, n - 1.0 - 2.0 * i, w[a:b], X[0, a:b])
    for t in range(1, rounds + 1):
        if stop[0]:
            return 0, 0
        for j in range(n):
            V[t, j] = 1.0 / w[j]
        w[:n], X[t, :n] = 0.0, 0.0
        worst = 0.0
        for i in range(n):
            a, b = lo[i], hi[i]
            row = K[i * n + a : i * n + b]
            total = _dot(row, V[t, a:b])
            U[t, i] = 1.0 / total
            worst = max(worst, abs(U[t - 1, i] * total - 1.0)) if transposed else worst
            _add_two(row, U[t, i], U[t, i] * (n - 1.0 - 2.0 * i), w[a:b], X[t, a:b])
        if transposed:
            if worst < tolerance or t == rounds:
                return t, t - 1
            continue
        for j in range(n):
            worst = max(worst, abs(w[j] * V[t, j] - 1.0))
        if worst < tolerance:
            return t, t
    return rounds, rounds


@kernel
def _gradient(s, g, d, tau, K, lo, hi, U, V, X, tv, tu, back, vbar, x, C0, C1, out, stop):
    """Write the gradient of ``-sum_i d_i (P g)_i``."""
    n = len(s)
    for j in range(n):
        vbar[j], x[j], C1[j] = 0.0, 0.0, 0.0
        back[j] = V[tv, j] * g[j]
    for i in range(n):  # the loss itself, of U[tu] K V[tv]
        a, b = lo[i], hi[i]
        row = K[i * n + a : i * n + b]
        out[i] = -d[i] * _dot(row, back[a:b])
        direct = -d[i] * U[tu, i]
        _add_two(row, direct, direct * (n - 1.0 - 2.0 * i), vbar[a:b], x[a:b])
    for j in range(n):
        vbar[j] *= g[j]
        C1[j] += back[j] * x[j]
        C0[j] = -vbar[j] if tv == 0 else 0.0  # scaled columns do not change with their sums
        back[j] = 0.0
    for t in range(tv, 0, -1):  # back holds the derivative by the column sums of round t + 1, out that by U[tu]
        if stop[0]:
            return
        if t <= tu:
            x[:n] = 0.0
            for i in range(n):
                a, b = lo[i], hi[i]
                row = K[i * n + a : i * n + b]
                total = (out[i] if t == tu else 0.0) + (_dot(row, back[a:b]) if t < tv else 0.0)
                r = -U[t, i] * U[t, i] * total
                _add_two(row, r, r * (n - 1.0 - 2.0 * i), vbar[a:b], x[a:b])
            for j in range(n):
                C1[j] += V[t, j] * x[j]
        for j in range(n):
            back[j] = -V[t, j] * V[t, j] * vbar[j]
            C1[j] += back[j] * X[t - 1, j]
            vbar[j] = 0.0
    vbar[:n], x[:n] = 0.0, 0.0
    for i in range(n):  # through the softmax of each row
        a, b = lo[i], hi[i]
        row = K[i * n + a : i * n + b]
        m = _dot(row, back[a:b]) + (out[i] if tu == 0 else 0.0)
        _add_two(row, m, m * (n - 1.0 - 2.0 * i), C0[a:b], x[a:b])
    above, total = 0.0, 0.0
    for j in range(n):
        C0[j] /= tau  # the derivative by sum_k |s_j - s_k|
        C1[j] = (C1[j] - x[j]) / tau
        total += C0[j]
    a = 0
    while a < n:
        b, tied = a, 0.0
        while b < n and s[b] == s[a]:
            tied += C0[b]
            b += 1
        for j in range(a, b):
            out[j] = C1[j] + C0[j] * (n - b - a) + (total - above - tied) - above
        above += tied
        a = b


@kernel
def neuralndcg(first, last, ptr, scores, labels, gain, discount, scale, tau, rounds, tolerance, transposed, most, grad,
               stop):  # fmt: skip
    """Gradient of minus the relaxed NDCG."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    chosen = np.empty(longest, np.int64)
    m = min(longest, most)
    K, lo, hi = np.empty(m * m), np.empty(m, np.int64), np.empty(m, np.int64)
    U, V, X = np.empty((rounds + 1, m)), np.empty((rounds + 1, m)), np.empty((rounds + 1, m))
    s, g, back, vbar, x = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    C0, C1, out = np.empty(m), np.empty(m), np.empty(m)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if scale[q] == 0.0 or all_equal(gain[a:b]):
            continue
        if stop[0]:
            return
        n = head(scores[a:b], labels[a:b], most, key, order, key2, order2, chosen)
        for i in range(n):
            s[i], g[i] = scores[a + chosen[i]], gain[a + chosen[i]] * scale[q]
        _relaxed_sort(s[:n], tau, K, lo, hi)
        tv, tu = _sinkhorn(K, lo, hi, n, rounds, tolerance, transposed, U, V, X, back, stop)
        _gradient(s[:n], g, discount, tau, K, lo, hi, U, V, X, tv, tu, back, vbar, x, C0, C1, out, stop)
        for i in range(n):
            grad[a + chosen[i]] = out[i]

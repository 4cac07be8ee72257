r"""A differentiable sorting of documents by a relaxed permutation matrix, and the way back to the scores.

Documents are in the order of descending scores. In the relaxed permutation matrix a row i is a rank and a column j is a
document:

.. math::
    K_{ij} = \operatorname{softmax}_j(c_{ij} / \tau), \quad
    c_{i,j+1} - c_{ij} = (s_j - s_{j+1}) (2 (i - j) - 1).

:math:`c` falls off on both sides of the diagonal, quadratically in the distance if gaps are even. So :math:`K` is a
band: only entries above 4e-18 times that on the diagonal are kept. The diagonal is at least :math:`1 / n`, so that no
sum is near 0.

Sinkhorn scaling multiplies rows by :math:`u` and columns by :math:`v` until the rows and columns of :math:`P = u K v`
add up to 1. A round is one sweep over :math:`K`. For each row it takes :math:`u_i = 1 / (K v)_i` and, while the row is
in cache, adds :math:`u_i K_i` to the next column sums. The factors of all rounds are kept, :math:`O(n)` each. The exact
gradient goes back through them, one sweep a round. The softmax is the scaling of rows of round 0, by :math:`u = 1`.

The derivative of the loss by :math:`K` is a sum of outer products of known vectors. Up to a constant of each row,
:math:`c_{ij}` is :math:`\rho_i s_j - \sum_k |s_j - s_k|` with :math:`\rho_i = n - 1 - 2i`. So of :math:`d_{ij}`, the
derivative by :math:`c_{ij} / \tau`, only :math:`C^1_j = \sum_i \rho_i d_{ij}` and :math:`C^0_j = \sum_i d_{ij}` are
needed. :math:`C^0_j` is also the derivative by a factor of column j, such as :math:`v_j`.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, inlined_kernel, kernel
from ltr_objectives.kernels.chosen import choose
from ltr_objectives.kernels.exponential import exponentials
from ltr_objectives.kernels.rankings import draws_of
from ltr_objectives.kernels.records import Out, Rng, Terms
from ltr_objectives.kernels.rng import add_noise, stream
from ltr_objectives.kernels.softmax import total
from ltr_objectives.kernels.sorting import all_equal, longest_list, sorter
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR

NEGLIGIBLE = -40.0  # exp(-40) = 4e-18
ROWS = 4  # of the matrix at once: one by one they take twice as long, because sums over rows are read each time


class Scaling(NamedTuple):
    """The parameters of sorting, and the labels that choose the documents of long lists."""

    tau: float
    rounds: int
    tolerance: float
    transposed: bool
    most: int
    from_end: bool  # the discount of a list is the end of the table
    labels: np.ndarray


class Matrix(NamedTuple):
    """The relaxed permutation matrix of one list, of which kernels take ROWS rows at once.

    Row i starts at ``K[i * n]``. The rows from i on, a multiple of ROWS, are 0 except at ``lo[i] <= j < hi[i]``; rows
    of zeros follow the last.
    """

    n: int
    K: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Scratch(NamedTuple):
    """The scaling by round, derivatives of the loss by its steps, and scratch. What has an entry a row is padded."""

    U: np.ndarray  # factors of rows
    V: np.ndarray  # factors of columns
    X: np.ndarray  # sums of rho U[t] K
    by_u: np.ndarray  # derivatives by U[tu] in P
    by_column: np.ndarray  # by the column sums of U[t] K
    by_v: np.ndarray  # by V[t]; by V[0] it is C0
    C1: np.ndarray  # as far as it is known
    g: np.ndarray  # the gains of the ranks
    slope: np.ndarray  # derivatives by them
    f: np.ndarray  # scratch: factors of rows
    x: np.ndarray  # scratch: sums of rho f K


@inlined_kernel
def _rows(matrix: Matrix, i):
    """Return ROWS rows of the matrix, from row i on, where they are not 0."""
    n, K, a, b = matrix.n, matrix.K, matrix.lo[i], matrix.hi[i]
    k0, k1, k2, k3 = i * n, (i + 1) * n, (i + 2) * n, (i + 3) * n
    return K[k0 + a : k0 + b], K[k1 + a : k1 + b], K[k2 + a : k2 + b], K[k3 + a : k3 + b]


@inlined
def _dots(matrix: Matrix, i, v, out):
    """Write the products of ROWS rows, from row i on, with ``v``."""
    r0, r1, r2, r3 = _rows(matrix, i)
    v = v[matrix.lo[i] : matrix.hi[i]]
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(len(v)):
        t0 += r0[j] * v[j]
        t1 += r1[j] * v[j]
        t2 += r2[j] * v[j]
        t3 += r3[j] * v[j]
    out[i], out[i + 1], out[i + 2], out[i + 3] = t0, t1, t2, t3


@inlined
def _add_rows(matrix: Matrix, i, f, x, y):
    """Add ROWS rows, from row i on, to ``x`` with the factors ``f``, and to ``y`` with the factors ``rho f``."""
    r0, r1, r2, r3 = _rows(matrix, i)
    x, y = x[matrix.lo[i] : matrix.hi[i]], y[matrix.lo[i] : matrix.hi[i]]
    f0, f1, f2, f3 = f[i], f[i + 1], f[i + 2], f[i + 3]
    rho = matrix.n - 1.0 - 2.0 * i
    for j in range(len(x)):
        t0, t1, t2, t3 = f0 * r0[j], f1 * r1[j], f2 * r2[j], f3 * r3[j]
        total = t0 + t1 + t2 + t3
        x[j] += total
        y[j] += rho * total - (2.0 * t1 + 4.0 * t2 + 6.0 * t3)


@inlined_kernel
def _fill_row(s, i, tau, row):
    """Write row i of the matrix from the diagonal outwards; return its first entry and the one after its last."""
    a, b = i, i
    row[i] = 0.0
    for step in (-1, 1):
        j, c = i, 0.0
        while 0 <= j + step < len(s):
            c -= abs(s[j] - s[j + step]) * (2.0 * abs(j - i) + 1.0) / tau
            if not c > NEGLIGIBLE:
                break
            j += step
            row[j] = c
        a, b = min(a, j), max(b, j + 1)
    exponentials(row[a:b])
    scale = 1.0 / total(row[a:b])
    for j in range(a, b):
        row[j] *= scale
    return a, b


@kernel
def _relaxed_sort(s, tau, matrix: Matrix):
    """Fill the matrix; pad each group of ROWS rows with zeros to a common range of columns."""
    n, K, lo, hi = len(s), matrix.K, matrix.lo, matrix.hi
    for i in range(n):
        lo[i], hi[i] = _fill_row(s, i, tau, K[i * n : (i + 1) * n])
    for i in range(0, n, ROWS):
        last = min(i + ROWS, n)
        a, b = lo[i:last].min(), hi[i:last].max()
        for k in range(i, i + ROWS):
            K[k * n + a : k * n + (lo[k] if k < n else b)] = 0.0
            K[k * n + (hi[k] if k < n else b) : k * n + b] = 0.0
        lo[i], hi[i] = a, b


@kernel
def _sinkhorn(matrix: Matrix, how: Scaling, scratch: Scratch):
    """Fill the factors; return the last round of V and that of U."""
    n, U, V, X, sums = matrix.n, scratch.U, scratch.V, scratch.X, scratch.x
    U[0, :n], U[0, n : n + ROWS], V[0, :n] = 1.0, 0.0, 1.0
    sums[:n], X[0, :n] = 0.0, 0.0
    for i in range(0, n, ROWS):
        _add_rows(matrix, i, U[0], sums, X[0])
    for t in range(1, how.rounds + 1):
        for j in range(n):
            V[t, j] = 1.0 / sums[j]
        sums[:n], X[t, :n] = 0.0, 0.0
        worst = 0.0  # the largest difference of a sum from 1
        for i in range(0, n, ROWS):
            _dots(matrix, i, V[t], U[t])
            for k in range(i, min(i + ROWS, n)):
                if how.transposed:
                    worst = max(worst, abs(U[t - 1, k] * U[t, k] - 1.0))
                U[t, k] = 1.0 / U[t, k]
            _add_rows(matrix, i, U[t], sums, X[t])
        if not how.transposed:
            for j in range(n):
                worst = max(worst, abs(sums[j] * V[t, j] - 1.0))
        if worst < how.tolerance or t == how.rounds:
            return t, t - how.transposed
    return 0, 0


@kernel
def _slopes_by_gain(kind, g, w, scale, slope):
    """Write minus the derivatives of a metric by the gains ``g`` of the ranks."""
    n, below = len(g), 0.0
    if kind == LINEAR:
        for i in range(n):
            slope[i] = -w[i] * scale
    elif kind == CASCADE:
        for i in range(n - 1, -1, -1):
            slope[i] = w[i] - below
            below = w[i] * g[i] + (1.0 - g[i]) * below
        reached = -scale
        for i in range(n):
            slope[i] *= reached
            reached *= 1.0 - g[i]
    elif kind == AVERAGE:
        above = 0.0
        for i in range(n - 1, -1, -1):
            below += w[i] * g[i]
            slope[i] = -below * scale
        for i in range(n):
            above += g[i]
            slope[i] -= w[i] * above * scale
    else:
        raise ValueError("unknown kind")


@kernel
def _through_loss(kind, gain, w, scale, u, v, matrix: Matrix, scratch: Scratch):
    """Take the derivatives of minus a metric of ``P gain``, where P is ``u K v``, back to u, v and K."""
    n, by_u, by_v, f, x = len(gain), scratch.by_u, scratch.by_v, scratch.f, scratch.x
    g, slope = scratch.g, scratch.slope
    for j in range(n):
        x[j] = v[j] * gain[j]
    for i in range(0, n, ROWS):
        _dots(matrix, i, x, by_u)
    for i in range(n):
        g[i] = u[i] * by_u[i]
    _slopes_by_gain(kind, g[:n], w, scale, slope)
    for i in range(n):
        by_u[i] *= slope[i]
        f[i] = u[i] * slope[i]
    f[n : n + ROWS], by_v[:n], x[:n] = 0.0, 0.0, 0.0
    for i in range(0, n, ROWS):
        _add_rows(matrix, i, f, by_v, x)
    for j in range(n):
        by_v[j] *= gain[j]
        scratch.C1[j] = v[j] * gain[j] * x[j]
        scratch.by_column[j] = 0.0


@inlined_kernel
def _through_rows(t, matrix: Matrix, scratch: Scratch):
    """Take the derivatives by ``U[t] = 1 / (K V[t])`` back to V[t] and K."""
    U, V, by_u, f, x = scratch.U, scratch.V, scratch.by_u, scratch.f, scratch.x
    n = matrix.n
    x[:n] = 0.0
    for i in range(0, n, ROWS):
        _dots(matrix, i, scratch.by_column, f)
        for k in range(i, i + ROWS):
            f[k] = -U[t, k] * U[t, k] * (f[k] + by_u[k])
        _add_rows(matrix, i, f, scratch.by_v, x)
    for j in range(n):
        scratch.C1[j] += V[t, j] * x[j]
        by_u[j] = 0.0  # P has the last U alone


@inlined_kernel
def _through_columns(t, n, scratch: Scratch):
    """Take the derivatives by ``V[t] = 1 / (U[t - 1] K)`` back to these column sums and K."""
    V, X, by_column = scratch.V, scratch.X, scratch.by_column
    for j in range(n):
        by_column[j] = -V[t, j] * V[t, j] * scratch.by_v[j]
        scratch.C1[j] += by_column[j] * X[t - 1, j]
        scratch.by_v[j] = 0.0


@kernel
def _by_scores(s, tau, C0, C1, grad):
    """Write the derivatives by the scores."""
    n, above, everything = len(s), 0.0, 0.0
    for j in range(n):
        C0[j] /= tau
        C1[j] /= tau
        everything += C0[j]
    a = 0
    while a < n:
        b, tied = a, 0.0
        while b < n and s[b] == s[a]:
            tied += C0[b]
            b += 1
        for j in range(a, b):
            grad[j] = C1[j] - C0[j] * (n - b - a) - (everything - above - tied) + above
        above += tied
        a = b


@kernel
def neuralsort(first, last, ptr, scores, terms: Terms, how: Scaling, rng: Rng | None, out: Out):
    """Write the gradient of a metric of the relaxed sorting, the mean over the draws."""
    longest, draws = longest_list(ptr, first, last), draws_of(rng)
    sort, order, chosen = sorter(longest), np.empty(longest, np.int64), np.empty(longest, np.int64)
    m, rounds, noisy = min(longest, how.most), how.rounds + 1, np.empty(longest)
    padded = m + ROWS
    K, lo, hi = np.empty(padded * m), np.empty(m, np.int64), np.empty(m, np.int64)
    scratch = Scratch(np.empty((rounds, padded)), np.empty((rounds, m)), np.empty((rounds, m)), np.empty(padded),
                  np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(padded),
                  np.empty(m))  # fmt: skip
    s, gain, grad = np.empty(m), np.empty(m), np.empty(m)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if terms.scale[q] == 0.0 or all_equal(terms.gain[a:b]) or out.skip[q]:
            continue
        w = terms.discount[len(terms.discount) - (b - a) if how.from_end else 0 :]
        for k in range(draws):
            x = scores[a:b]
            if rng is not None:
                key, start = stream(rng.seed, rng.iteration, np.uint64(q)), np.uint64(k) * np.uint64(2 * (b - a))
                add_noise(x, rng.noise, rng.scale, key, start, noisy[: b - a])
                x = noisy[: b - a]
            # the documents that count, in rank order
            n = choose(x, how.labels[a:b], how.most, order, chosen, sort)
            for i in range(n):
                s[i], gain[i] = x[chosen[i]], terms.gain[a + chosen[i]]
            # the relaxed permutation, scaled
            matrix = Matrix(n, K, lo, hi)
            _relaxed_sort(s[:n], how.tau, matrix)
            tv, tu = _sinkhorn(matrix, how, scratch)
            u, v = scratch.U[tu], scratch.V[tv]
            # back through the loss and the rounds of scaling, then to the scores
            _through_loss(terms.kind, gain[:n], w, terms.scale[q] / draws, u, v, matrix, scratch)
            for t in range(tv, -1, -1):
                if t <= tu:
                    _through_rows(t, matrix, scratch)
                if t > 0:
                    _through_columns(t, n, scratch)
            _by_scores(s[:n], how.tau, scratch.by_v, scratch.C1, grad)
            for i in range(n):
                out.grad[a + chosen[i]] += grad[i]

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

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.chosen import choose
from ltr_objectives.kernels.exponential import exponentials
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.rankings import draws_of
from ltr_objectives.kernels.records import Rng, Terms
from ltr_objectives.kernels.rng import add_noise, stream
from ltr_objectives.kernels.softmax import total
from ltr_objectives.kernels.sorting import Sorter, all_equal, sorter
from ltr_objectives.kernels.swaps import CASCADE, LINEAR

FAINTEST = -40.0  # exp(-40) = 4e-18
ROWS = 4  # of the matrix at once: one by one they take twice as long, because sums over rows are read each time


class Inputs(NamedTuple):
    """A metric, the noise of the scores, and the parameters of sorting."""

    terms: Terms
    labels: np.ndarray  # choose the documents of long lists
    rng: Rng | None
    tau: float
    rounds: int
    tolerance: float
    transposed: bool
    most: int
    from_end: bool  # the discount of a list is the end of the table


class Matrix(NamedTuple):
    """The relaxed permutation matrix of one list of n documents, of which kernels take ROWS rows at once.

    Row i starts at ``K[i * n]``. The rows from i on, a multiple of ROWS, are 0 except at ``lo[i] <= j < hi[i]``; rows
    of zeros follow the last.
    """

    K: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Scratch(NamedTuple):
    """The documents of a list that count, the scaling of their matrix, and derivatives of the loss by its steps.

    ``padded`` arrays have an entry for each row of the matrix, and zeros for the rows that follow the last.
    """

    sort: Sorter
    order: np.ndarray
    chosen: np.ndarray
    noisy: np.ndarray
    s: np.ndarray  # of the chosen documents, as all that follows
    gain: np.ndarray
    matrix: Matrix
    U: np.ndarray  # factors of rows by round, padded
    V: np.ndarray  # factors of columns by round
    X: np.ndarray  # sums of rho U[t] K by round
    sums: np.ndarray  # of the columns of U[t] K
    weighted: np.ndarray  # v gain
    products: np.ndarray  # of K with it or with V[t], padded
    g: np.ndarray  # the gains of the ranks
    slope: np.ndarray  # derivatives by them
    factors: np.ndarray  # of the rows of K in a part of the derivative by K, padded
    rho_sums: np.ndarray  # sums of rho factors K
    by_u: np.ndarray  # derivatives by U[tu] in P, padded
    by_column: np.ndarray  # by the column sums of U[t] K
    by_v: np.ndarray  # by V[t]; by V[0] it is C0
    C1: np.ndarray  # the sum over the rounds processed so far
    grad: np.ndarray


@allocating
def _scratch(longest, inputs: Inputs):
    """Return scratch for lists of up to ``longest`` documents."""
    n, rounds = min(longest, inputs.most), inputs.rounds + 1
    rows = n + ROWS
    return Scratch(
        sort=sorter(longest), order=np.empty(longest, np.int64), chosen=np.empty(longest, np.int64),
        noisy=np.empty(longest), s=np.empty(n), gain=np.empty(n),
        matrix=Matrix(K=np.empty(rows * n), lo=np.empty(n, np.int64), hi=np.empty(n, np.int64)),
        U=np.empty((rounds, rows)), V=np.empty((rounds, n)), X=np.empty((rounds, n)), sums=np.empty(n),
        weighted=np.empty(n), products=np.empty(rows), g=np.empty(n), slope=np.empty(n), factors=np.empty(rows),
        rho_sums=np.empty(n), by_u=np.empty(rows), by_column=np.empty(n), by_v=np.empty(n), C1=np.empty(n),
        grad=np.empty(n),
    )  # fmt: skip


@inlined
def _dots(matrix: Matrix, n, i, v, out):
    """Write the products of ROWS rows, from row i on, with ``v``."""
    apart()
    a, b = matrix.lo[i], matrix.hi[i]
    r0 = matrix.K[i * n + a : i * n + b]
    r1 = matrix.K[(i + 1) * n + a : (i + 1) * n + b]
    r2 = matrix.K[(i + 2) * n + a : (i + 2) * n + b]
    r3 = matrix.K[(i + 3) * n + a : (i + 3) * n + b]
    v = v[a:b]
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for j in range(len(v)):
        t0 += r0[j] * v[j]
        t1 += r1[j] * v[j]
        t2 += r2[j] * v[j]
        t3 += r3[j] * v[j]
    out[i], out[i + 1], out[i + 2], out[i + 3] = t0, t1, t2, t3


@inlined
def _add_rows(matrix: Matrix, n, i, f, x, y):
    """Add ROWS rows, from row i on, to ``x`` with the factors ``f``, and to ``y`` with the factors ``rho f``."""
    apart()
    a, b = matrix.lo[i], matrix.hi[i]
    r0 = matrix.K[i * n + a : i * n + b]
    r1 = matrix.K[(i + 1) * n + a : (i + 1) * n + b]
    r2 = matrix.K[(i + 2) * n + a : (i + 2) * n + b]
    r3 = matrix.K[(i + 3) * n + a : (i + 3) * n + b]
    x, y = x[a:b], y[a:b]
    f0, f1, f2, f3 = f[i], f[i + 1], f[i + 2], f[i + 3]
    rho = n - 1.0 - 2.0 * i
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
            if not c > FAINTEST:
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
    n, K = len(s), matrix.K
    lo, hi = matrix.lo, matrix.hi
    for i in range(n):
        lo[i], hi[i] = _fill_row(s, i, tau, K[i * n : (i + 1) * n])
    for i in range(0, n, ROWS):
        last = min(i + ROWS, n)
        a, b = lo[i], hi[i]
        for k in range(i + 1, last):
            a, b = min(a, lo[k]), max(b, hi[k])
        for k in range(i, i + ROWS):
            K[k * n + a : k * n + (lo[k] if k < n else b)] = 0.0
            K[k * n + (hi[k] if k < n else b) : k * n + b] = 0.0
        lo[i], hi[i] = a, b


@inlined_kernel
def _sum_rows(matrix: Matrix, n, f, x, y):
    """Write the sums of all rows with the factors ``f``, and with the factors ``rho f``."""
    x[:n], y[:n] = 0.0, 0.0
    for i in range(0, n, ROWS):
        _add_rows(matrix, n, i, f, x, y)


@inlined_kernel
def _sweep(t, n, r: Scratch):
    """Write ``U[t] = 1 / (K V[t])`` and the column sums of ``U[t] K``."""
    matrix, U = r.matrix, r.U
    r.sums[:n], r.X[t, :n], U[t, n : n + ROWS] = 0.0, 0.0, 0.0
    for i in range(0, n, ROWS):
        _dots(matrix, n, i, r.V[t], r.products)
        for k in range(i, min(i + ROWS, n)):
            U[t, k] = 1.0 / r.products[k]
        _add_rows(matrix, n, i, U[t], r.sums, r.X[t])


@inlined_kernel
def _farthest(sums, factors):
    """Return how far a sum times its factor is from 1 at most."""
    worst = 0.0
    for i in range(len(sums)):
        worst = max(worst, abs(sums[i] * factors[i] - 1.0))
    return worst


@kernel
def _sinkhorn(n, inputs: Inputs, r: Scratch):
    """Fill the factors; return the last round of V and that of U."""
    U, V, sums = r.U, r.V, r.sums
    U[0, :n], U[0, n : n + ROWS], V[0, :n] = 1.0, 0.0, 1.0
    _sum_rows(r.matrix, n, U[0], sums, r.X[0])
    for t in range(1, inputs.rounds + 1):
        for j in range(n):
            V[t, j] = 1.0 / sums[j]
        _sweep(t, n, r)
        worst = _farthest(r.products[:n], U[t - 1]) if inputs.transposed else _farthest(sums[:n], V[t])
        if worst < inputs.tolerance or t == inputs.rounds:
            return t, t - inputs.transposed
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
    else:
        above = 0.0
        for i in range(n - 1, -1, -1):
            below += w[i] * g[i]
            slope[i] = -below * scale
        for i in range(n):
            above += g[i]
            slope[i] -= w[i] * above * scale


@kernel
def _through_loss(kind, gain, w, scale, u, v, r: Scratch):
    """Take the derivatives of minus a metric of ``P gain``, where P is ``u K v``, back to u, v and K."""
    n = len(gain)
    # the gains of the ranks, and the slopes of the loss by them
    for j in range(n):
        r.weighted[j] = v[j] * gain[j]
    for i in range(0, n, ROWS):
        _dots(r.matrix, n, i, r.weighted, r.products)
    for i in range(n):
        r.g[i] = u[i] * r.products[i]
    _slopes_by_gain(kind, r.g[:n], w, scale, r.slope)
    # the derivatives by u, and by K: outer products of the factors and v gain
    r.by_u[n : n + ROWS], r.factors[n : n + ROWS] = 0.0, 0.0
    for i in range(n):
        r.by_u[i] = r.products[i] * r.slope[i]
        r.factors[i] = u[i] * r.slope[i]
    _sum_rows(r.matrix, n, r.factors, r.by_v, r.rho_sums)
    for j in range(n):
        r.by_v[j] *= gain[j]
        r.C1[j] = r.weighted[j] * r.rho_sums[j]
        r.by_column[j] = 0.0


@inlined_kernel
def _through_rows(t, n, r: Scratch):
    """Take the derivatives by ``U[t] = 1 / (K V[t])`` back to V[t] and K."""
    matrix, U, factors = r.matrix, r.U, r.factors
    r.rho_sums[:n] = 0.0
    for i in range(0, n, ROWS):
        _dots(matrix, n, i, r.by_column, factors)
        for k in range(i, i + ROWS):
            factors[k] = -U[t, k] * U[t, k] * (factors[k] + r.by_u[k])
        _add_rows(matrix, n, i, factors, r.by_v, r.rho_sums)
    for j in range(n):
        r.C1[j] += r.V[t, j] * r.rho_sums[j]
        r.by_u[j] = 0.0  # P has the last U alone


@inlined_kernel
def _through_columns(t, n, r: Scratch):
    """Take the derivatives by ``V[t] = 1 / (U[t - 1] K)`` back to these column sums and K."""
    for j in range(n):
        r.by_column[j] = -r.V[t, j] * r.V[t, j] * r.by_v[j]
        r.C1[j] += r.by_column[j] * r.X[t - 1, j]
        r.by_v[j] = 0.0


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


@inlined_kernel
def _draw_scores(s, rng: Rng | None, q, draw, out):
    """Write the scores of one draw."""
    if rng is None:
        for i in range(len(s)):
            out[i] = s[i]
    else:
        key, start = stream(rng.seed, rng.iteration, np.uint64(q)), np.uint64(draw) * np.uint64(len(s))
        add_noise(s, rng.noise, rng.scale, key, start, out)


@kernel
def _add_draw(x, gain, labels, w, scale, inputs: Inputs, r: Scratch, grad):
    """Add the gradient at the scores ``x`` of one list, whose ranks have the discounts ``w``."""
    # the documents that count, in rank order
    n = choose(x, labels, inputs.most, r.order, r.chosen, r.sort)
    for i in range(n):
        r.s[i], r.gain[i] = x[r.chosen[i]], gain[r.chosen[i]]
    # the relaxed permutation, scaled
    _relaxed_sort(r.s[:n], inputs.tau, r.matrix)
    tv, tu = _sinkhorn(n, inputs, r)
    # back through the loss and the rounds of scaling, then to the scores
    _through_loss(inputs.terms.kind, r.gain[:n], w, scale, r.U[tu], r.V[tv], r)
    for t in range(tv, -1, -1):
        if t <= tu:
            _through_rows(t, n, r)
        if t > 0:
            _through_columns(t, n, r)
    _by_scores(r.s[:n], inputs.tau, r.by_v, r.C1, r.grad)
    for i in range(n):
        grad[r.chosen[i]] += r.grad[i]


@inlined_kernel
def _neuralsort(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the gradient of a metric of the relaxed sorting, the mean over the draws."""
    terms, draws = inputs.terms, draws_of(inputs.rng)
    gain, labels, scale = terms.gain[one.first : one.last], inputs.labels[one.first : one.last], terms.scale[one.q]
    if scale == 0.0 or all_equal(gain):
        return
    w, x = terms.discount[len(terms.discount) - len(gain) if inputs.from_end else 0 :], r.noisy[: len(gain)]
    for draw in range(draws):
        _draw_scores(one.s, inputs.rng, one.q, draw, x)
        _add_draw(x, gain, labels, w, scale / draws, inputs, r, one.grad)


neuralsort = each_list(_scratch, _neuralsort)

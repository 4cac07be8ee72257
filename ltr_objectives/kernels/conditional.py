r"""Derivatives of a metric's expected value under Gaussian noise, by coordinates: the kernel of StochasticRank.

Let x = z + sigma eps with independent standard normal eps, M the metric of the ranking by x, and l(z) = E M. Rankings
do not change when all scores shift, so condition for each document i on the *differences* of the other documents'
noise only. Seen from the others, their mean noise e = (sum_{j != i} eps_j) / (n - 1) is then still random, independent
of those differences and of eps_i. In the frame in which the others stand at x_j, document i is therefore normal with

    mean m_i = z_i + sigma e,  deviation tau = sigma sqrt(1 + 1 / (n - 1)) = sigma sqrt(n / (n - 1)),

and with M_q the metric when it stands in slot q between two others,

    dl/dz_i = E sum_q M_q (phi(lower edge of q) - phi(upper edge of q)),  phi the density of that normal.

Summed by edges instead of slots (each edge is another document j, above which or below which i may stand),

    dl/dz_i = E sum_j Delta_ij phi(x_j),  Delta_ij = M(i just above j) - M(i just below j),

and Delta_ij is the change of one exchange of neighbours, which :mod:`ltr_objectives.kernels.moves` has in O(1). It
vanishes for equal gains and beyond the cutoff. Where the density vanishes nothing is summed either: the others are
sorted, so two binary searches bound the sum. The second derivative is, with the same terms,

    d2l/dz_i2 = E sum_j Delta_ij phi(x_j) (x_j - m_i) / tau^2.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.moves import move_terms, needs_restart, restart
from ltr_objectives.kernels.rng import add_noise, stream
from ltr_objectives.kernels.sorting import descending_order, scratch

WIDTH = 8.0  # in deviations; the density beyond is 1e-14 of its peak
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# exp(-v) on [0, 1/4] to the last digit; squared seven times it is exp(-128 v), in operations that vectorise
C = tuple((-1.0) ** k / math.factorial(k) for k in range(12))
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = C[2:]


@vector_kernel
def _bell(u):
    """``exp(-u^2 / 2)`` for ``|u| <= WIDTH``."""
    v = u * u * (1.0 / 256.0)
    e = C8 + v * (C9 + v * (C10 + v * C11))
    e = 1.0 - v + v * v * (C2 + v * (C3 + v * (C4 + v * (C5 + v * (C6 + v * (C7 + v * e))))))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@vector_kernel
def _above(first, last, x, m, inverse, g, g_i, P, Q):
    slope, bend, size = 0.0, 0.0, 0.0
    for j in range(first, last):
        u = (x[j] - m) * inverse
        c = (g_i - g[j]) * (P[j] + g_i * Q[j]) * _bell(u)
        slope += c
        bend += c * u
        size += abs(c)
    return slope, bend, size


@vector_kernel
def _below(first, last, x, m, inverse, g, g_i, R):
    slope, bend, size = 0.0, 0.0, 0.0
    for j in range(first, last):
        u = (x[j] - m) * inverse
        c = (g_i - g[j]) * R[j] * _bell(u)
        slope += c
        bend += c * u
        size += abs(c)
    return slope, bend, size


@kernel
def _first_at_most(x, limit, first, last):
    """The first rank in ``[first, last)`` with ``x <= limit``, or ``last``; ``x`` descends."""
    while first < last:
        middle = (first + last) // 2
        if x[middle] <= limit:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def buffers(n):
    """Scratch for lists of up to ``n`` documents."""
    return scratch(n), np.empty((6, n))


@kernel
def add_conditional(kind, gain, w, scale, sigma, z, eps, work, slope, bend, size, stop):
    """Add for one query and one noise vector the estimates of ``dl/dz``, ``d2l/dz2`` and the sum of absolute terms.

    The third, ``sum_j |Delta_ij| phi(x_j) / tau``, is at least ``|dl/dz_i| / tau``.
    """
    (key, order, key2, order2), (x, g, P, Q, R, W) = work
    n = len(z)
    total = 0.0
    for i in range(n):
        total += eps[i]
        x[i] = z[i] + sigma * eps[i]
    descending_order(x[:n], key, order, key2, order2)
    for d in range(n):
        g[d] = gain[order[d]]
    reach = move_terms(kind, g, w, scale, n, P, Q, R)
    tau = sigma * math.sqrt(n / (n - 1.0))
    inverse = 1.0 / tau
    T_d = 1.0
    for d in range(n):
        if stop[0]:
            return
        i = order[d]
        g_d, miss = g[d], 1.0 - g[d]
        m = z[i] + sigma * (total - eps[i]) / (n - 1.0)
        R_d, end, factor = R, min(n, reach + 1), 1.0
        if needs_restart(kind, miss):
            end = restart(g, w, scale, T_d, d, n, W)
            R_d = W
        elif kind == 1:
            factor = 1.0 / miss
        T_d *= miss
        a = _first_at_most(key, m + WIDTH * tau, 0, end)
        b = _first_at_most(key, m - WIDTH * tau, a, end)
        s, c, h = _above(a, min(b, d, reach), key, m, inverse, g, g_d, P, Q)
        s2, c2, h2 = _below(max(a, d + 1), b, key, m, inverse, g, g_d, R_d)
        slope[i] += (s + factor * s2) * inverse * DENSITY
        bend[i] += (c + factor * c2) * inverse * inverse * DENSITY
        size[i] += (h + factor * h2) * inverse * inverse * DENSITY


@kernel
def make_scale_free(s, sfa, nu, grad):
    """Take from ``grad`` its mean and ``sfa`` times its part along the centred scores.

    With c the centred scores, ``grad -= sfa c <c, grad> / (|c| + nu)^2``, in lists of three documents or more.
    """
    n = len(s)
    mean, largest = 0.0, 0.0
    for i in range(n):
        mean += grad[i] / n
        largest = max(largest, abs(s[i]))
    for i in range(n):
        grad[i] -= mean
    if n < 3 or largest == 0.0:
        return
    centre, square, dot = 0.0, 0.0, 0.0  # of s / largest, which neither overflows nor vanishes
    for i in range(n):
        centre += s[i] / largest / n
    for i in range(n):
        c = s[i] / largest - centre
        square += c * c
        dot += c * grad[i]
    length = math.sqrt(square) + nu / largest
    for i in range(n):
        grad[i] -= sfa * (s[i] / largest - centre) / length * (dot / length)


@kernel
def conditional_gradients(first, last, ptr, scores, labels, kind, gain, w, scale, sigma, mu, samples, noise, sfa, nu,
                          bounded, seed, iteration, grad, hess, stop):  # fmt: skip
    """Write gradient and Hessian of the loss -l(z - mu sigma y) for the queries ``first <= q < last``."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    work = buffers(longest)
    slope, bend, size = np.empty(longest), np.empty(longest), np.empty(longest)
    z, eps, zero = np.empty(longest), np.zeros(longest), np.zeros(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or scale[q] == 0.0:
            continue
        for i in range(n):
            z[i] = scores[a + i] - mu * sigma * labels[a + i]
            slope[i], bend[i], size[i] = 0.0, 0.0, 0.0
        key = stream(seed, iteration, np.uint64(q))
        counter = np.uint64(0)
        for _ in range(samples):
            if stop[0]:
                return
            if noise:
                add_noise(zero[:n], noise, 1.0, key, counter, eps[:n])
                counter += np.uint64(2 * n)
            add_conditional(kind, gain[a:b], w, scale[q], sigma, z[:n], eps[:n], work, slope, bend, size, stop)
        for i in range(n):
            grad[a + i] = -slope[i] / samples
            hess[a + i] = (size[i] if bounded else -bend[i]) / samples
        if sfa > 0.0:
            make_scale_free(scores[a:b], sfa, nu, grad[a:b])

r"""StochasticRank: the gradient of a metric's expected value under Gaussian noise, for any metric.

Let :math:`x = z + \sigma \varepsilon` with independent standard normal :math:`\varepsilon`, :math:`M` the metric of the
ranking by :math:`x`, and :math:`l(z) = \mathbb{E} M`. A ranking does not change when all scores shift. So for each
document i, condition only on the *differences* of the other documents' noise. Their mean noise,
:math:`e = \sum_{j \ne i} \varepsilon_j / (n - 1)`, is independent of the differences and of :math:`\varepsilon_i`, so
it is integrated out together with :math:`\varepsilon_i`. Subtract :math:`\sigma e` from all scores. Then the scores of
the others depend on the differences only, and that of i is :math:`z_i + \sigma (\varepsilon_i - e)`. Add
:math:`\sigma e` of the drawn noise to all again: beside the drawn :math:`x_j`, the score of i is normal with

.. math::
    \text{mean } m_i = z_i + \sigma e, \quad
    \text{deviation } \tau = \sigma \sqrt{1 + \tfrac{1}{n - 1}} = \sigma \sqrt{\tfrac{n}{n - 1}}.

Let :math:`M_d` be the metric when i has rank d, between two others, and :math:`\varphi` the density of that normal.
Then

.. math::
    \frac{\partial l}{\partial z_i}
    = \mathbb{E} \sum_d M_d \, (\varphi(\text{lower edge of } d) - \varphi(\text{upper edge of } d)).

Each edge is another document j, and i is just above or just below it. Summed by edges instead of ranks,

.. math::
    \frac{\partial l}{\partial z_i} = \mathbb{E} \sum_j \Delta_{ij} \varphi(x_j), \quad
    \Delta_{ij} = M(i \text{ just above } j) - M(i \text{ just below } j).

:math:`\Delta_{ij}` is the change of one swap of neighbours, which :mod:`ltr_objectives.kernels.moves` has in
:math:`O(1)`. It is zero for equal gains and beyond the cutoff. The others are sorted, so that two binary searches find
where the density is not negligible. In the second derivative each term is multiplied by :math:`(x_j - m_i) / \tau^2`.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.moves import move_terms, restart_moves
from ltr_objectives.kernels.records import Rng, Terms
from ltr_objectives.kernels.rng import add_noise, stream
from ltr_objectives.kernels.sorting import Sorter, descending_order, sorter
from ltr_objectives.kernels.swaps import CASCADE, is_empty, needs_restart

WIDTH = 8.0  # in deviations; the density beyond is 1e-14 of its peak
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
# Taylor coefficients of exp(-v), exact to the last digit on [0, 1/4]; seven squarings give exp(-128 v) and vectorise
C = tuple((-1.0) ** k / math.factorial(k) for k in range(12))
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11 = C[2:]


class Inputs(NamedTuple):
    """The metric, its smoothing, and the scale-free step."""

    layers: tuple[Terms, ...]
    labels: np.ndarray
    rng: Rng
    sigma: float
    mu: float
    sfa: float
    nu: float
    bounded: bool


@inlined
def _bell(u):
    """Return ``exp(-u^2 / 2)`` for ``|u| <= WIDTH``."""
    v = u * u * (1.0 / 256.0)
    e = C8 + v * (C9 + v * (C10 + v * C11))
    e = 1.0 - v + v * v * (C2 + v * (C3 + v * (C4 + v * (C5 + v * (C6 + v * (C7 + v * e))))))
    for _ in range(7):
        e *= e
    return e


class Scratch(NamedTuple):
    """One noisy ranking, the terms of its moves, and the sums by document."""

    z: np.ndarray  # scores, lowered by labels
    eps: np.ndarray
    sort: Sorter
    order: np.ndarray
    noisy: np.ndarray  # scores
    g: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    W: np.ndarray
    zero: np.ndarray  # in place of Q below the document that moves, and of scores to draw noise
    slope: np.ndarray
    bend: np.ndarray
    size: np.ndarray


@inlined
def _edge_sums(x, g, P, Q, m, inverse, g_i):
    """Return the sums of ``Delta phi``, ``Delta phi u`` and ``|Delta| phi`` for ``Delta = (g_i - g) (P + g_i Q)``."""
    slope, bend, size = 0.0, 0.0, 0.0
    for j in range(len(x)):
        u = (x[j] - m) * inverse
        c = (g_i - g[j]) * (P[j] + g_i * Q[j]) * _bell(u)
        slope += c
        bend += c * u
        size += abs(c)
    return slope, bend, size


@kernel
def _first_at_most(x, limit, first, last):
    """Return the first rank in ``[first, last)`` with ``x <= limit``, or ``last``; ``x`` descends."""
    while first < last:
        middle = (first + last) // 2
        if x[middle] <= limit:
            last = middle
        else:
            first = middle + 1
    return first


@allocating
def scratch_for(n, inputs):
    """Return scratch for lists of up to ``n`` documents."""
    return Scratch(
        z=np.empty(n), eps=np.empty(n), sort=sorter(n), order=np.empty(n, np.int64), noisy=np.empty(n), g=np.empty(n),
        P=np.empty(n), Q=np.empty(n), R=np.empty(n), W=np.empty(n), zero=np.zeros(n), slope=np.empty(n),
        bend=np.empty(n), size=np.empty(n),
    )  # fmt: skip


@kernel
def add_conditional(gain, scale, terms: Terms, sigma, z, eps, skip, r: Scratch):
    """Add the estimates of one query and one noise vector to ``r.slope``, ``r.bend`` and ``r.size``.

    They are ``dl/dz``, ``d2l/dz2`` and ``sum_j |Delta_ij| phi(x_j) / tau``, which is at least ``|dl/dz_i| / tau``.
    """
    n, w, x = len(z), terms.discount, r.sort.key
    # the noisy ranking, and the terms of its moves
    total = 0.0
    for i in range(n):
        total += eps[i]
        r.noisy[i] = z[i] + sigma * eps[i]
    descending_order(r.noisy[:n], r.order, r.sort)
    for d in range(n):
        r.g[d] = gain[r.order[d]]
    reach = move_terms(terms.kind, r.g, w, scale, n, r.P, r.Q, r.R)
    tau = sigma * math.sqrt(n / (n - 1.0))
    inverse = 1.0 / tau
    T_d = 1.0
    for d in range(n):
        if skip[0]:
            return
        i = r.order[d]
        g_d, miss = r.g[d], 1.0 - r.g[d]
        # the mean of the score of i beside the others, and where i is in a cascade
        m = z[i] + sigma * (total - eps[i]) / (n - 1.0)
        R_d, end, factor = r.R, min(n, reach + 1), 1.0
        if needs_restart(terms.kind, miss):
            end = restart_moves(r.g, w, scale, T_d, d, n, r.W)
            R_d = r.W
        elif terms.kind == CASCADE:
            factor = 1.0 / miss
        T_d *= miss
        # the edges where the density is not negligible, above and below i
        a = _first_at_most(x, m + WIDTH * tau, 0, end)
        b = _first_at_most(x, m - WIDTH * tau, a, end)
        last, first = min(b, d, reach), max(a, d + 1)
        above = _edge_sums(x[a:last], r.g[a:last], r.P[a:last], r.Q[a:last], m, inverse, g_d)
        below = _edge_sums(x[first:b], r.g[first:b], R_d[first:b], r.zero[first:b], m, inverse, g_d)
        r.slope[i] += (above[0] + factor * below[0]) * inverse * DENSITY
        r.bend[i] += (above[1] + factor * below[1]) * inverse * inverse * DENSITY
        r.size[i] += (above[2] + factor * below[2]) * inverse * inverse * DENSITY


@kernel
def make_scale_free(s, sfa, nu, grad):
    """Subtract from ``grad`` its mean and ``sfa`` times its part along the centred scores.

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


@inlined_kernel
def _stochasticrank(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the gradient and Hessian of the loss -l(z - mu sigma y)."""
    n, rng, labels = len(one.s), inputs.rng, inputs.labels[one.first : one.last]
    if n < 2 or is_empty(inputs.layers, one.q):
        return
    z, eps = r.z[:n], r.eps[:n]
    for i in range(n):
        z[i] = one.s[i] - inputs.mu * inputs.sigma * labels[i]
        r.slope[i], r.bend[i], r.size[i] = 0.0, 0.0, 0.0
    # the estimates of all noise vectors
    key = stream(rng.seed, rng.iteration, np.uint64(one.q))
    for draw in range(rng.draws):
        add_noise(r.zero[:n], rng.noise, 1.0, key, np.uint64(draw) * np.uint64(n), eps)
        for terms in inputs.layers:
            if terms.scale[one.q] != 0.0:
                gain, scale = terms.gain[one.first : one.last], terms.scale[one.q]
                add_conditional(gain, scale, terms, inputs.sigma, z, eps, one.skip, r)
    # their mean, and the scale-free step
    for i in range(n):
        one.grad[i] = -r.slope[i] / rng.draws
        one.hess[i] = (r.size[i] if inputs.bounded else -r.bend[i]) / rng.draws
    if inputs.sfa > 0.0:
        make_scale_free(one.s, inputs.sfa, inputs.nu, one.grad)


conditional_gradients = each_list(scratch_for, _stochasticrank)

r"""ApproxNDCG, ApproxMRR and ApproxMAP: metrics of soft ranks, which are sums of logistic functions.

:math:`p_{ij}` is the chance that j beats i, and :math:`c_i` the derivative of the loss by the soft rank of i. Each
pair adds :math:`\alpha c_i p_{ij} (1 - p_{ij})` to the gradient of j and subtracts it from that of i. It adds
:math:`\alpha` times the absolute value of that to both Hessians, because
:math:`|d^2 p / ds^2| \le \alpha^2 p (1 - p)`. The curvature of :math:`-1 / \log` and :math:`-1 / x` is left out,
because it is negative.

Only the ranks of relevant documents count, so a list takes two passes over (relevant x all) pairs and :math:`O(n)`
memory. With :math:`E = e^{\alpha (s - s_{max})}` the chance is :math:`E_j / (E_i + E_j)`, so that one exponential a
document serves all its pairs. If scores span more than the exponential does, each pair takes its own exponential.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.sorting import all_equal
from ltr_objectives.kernels.swaps import CASCADE, LINEAR


@inlined
def _narrow_chances(E_i, E, p, rest):
    """Write the chance that each j beats i and the chance that it does not, from one exponential a document."""
    apart()
    for j in range(len(E)):
        inverse = 1.0 / (E_i + E[j])
        p[j] = E[j] * inverse
        rest[j] = E_i * inverse


@kernel
def _wide_chances(s_i, s, alpha, p, rest):
    """As ``_narrow_chances``, with an exponential for each pair."""
    for j in range(len(s)):
        gap = alpha * (s_i - s[j])
        e = math.exp(-abs(gap))
        small, large = e / (1.0 + e), 1.0 / (1.0 + e)
        p[j] = small if gap > 0.0 else large
        rest[j] = large if gap > 0.0 else small


@inlined
def _above(p, g):
    """Return the sum of ``p``, and that over the relevant documents."""
    total, relevant = 0.0, 0.0
    for j in range(len(p)):
        total += p[j]
        relevant += p[j] if g[j] > 0.0 else 0.0
    return total, relevant


@kernel
def _slope_by_chance(kind, scale, g_i, above, relevant):
    """Return the derivative of the loss by p_ij, and how much smaller it is if j is relevant."""
    if kind == CASCADE:
        slope = scale / ((1.0 + above - relevant) * (1.0 + above - relevant))
        return slope, slope
    rank = 1.0 + above
    if kind == LINEAR:
        log = math.log(1.0 + rank)
        return scale * g_i * math.log(2.0) / ((1.0 + rank) * log * log), 0.0
    return scale / (rank * rank) * (1.0 + relevant), scale / rank


@inlined
def _add_pairs(c, r, alpha, p, rest, g, lam, hes):
    """Add pairs of weight ``c``, less ``r`` if j is relevant; return the sums for document i."""
    apart()
    down, curve = 0.0, 0.0
    for j in range(len(p)):
        t = alpha * (c - (r if g[j] > 0.0 else 0.0)) * p[j] * rest[j]
        h = alpha * abs(t)
        lam[j] += t
        hes[j] += h
        down += t
        curve += h
    return down, curve


@kernel
def _first(s, g):
    """Return the largest score of a relevant document, and how many have it."""
    top, ties = -np.inf, 0
    for i in range(len(s)):
        if g[i] > 0.0 and s[i] >= top:
            ties = ties + 1 if s[i] == top else 1
            top = s[i]
    return top, ties


class Inputs(NamedTuple):
    """The metric, and the parameters of its soft ranks."""

    terms: Terms
    alpha: float
    step: float


class Scratch(NamedTuple):
    """By document: its exponential, and the chances that it beats another one or does not."""

    E: np.ndarray
    p: np.ndarray
    rest: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(E=np.empty(longest), p=np.empty(longest), rest=np.empty(longest))


@inlined_kernel
def _approx(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the derivatives of the metric of soft ranks, and their bound in place of the second ones."""
    s, g, lam, hes, kind = one.s, inputs.terms.gain[one.first : one.last], one.grad, one.hess, inputs.terms.kind
    n, scale = len(s), inputs.terms.scale[one.q]
    if scale == 0.0 or all_equal(g):
        return
    wide = not relative_to_top(s, inputs.alpha, r.E)
    p, rest = r.p[:n], r.rest[:n]
    top, ties = _first(s, g) if kind == CASCADE else (0.0, 1)
    for i in range(n):
        if one.skip[0]:
            return
        if g[i] <= 0.0 or (kind == CASCADE and s[i] != top):
            continue
        # the chance p that each other document beats i
        if wide:
            _wide_chances(s[i], s, inputs.alpha, p, rest)
        else:
            _narrow_chances(r.E[i], r.E[:n], p, rest)
        p[i] = 0.0
        # the soft rank of i, and the slope of the loss by each chance
        above, relevant = _above(p, g)
        slope, extra = _slope_by_chance(kind, scale, g[i], above, relevant)
        # the pairs of i: what the others gain, i loses
        down, curve = _add_pairs(slope, extra, inputs.alpha, p, rest, g, lam, hes)
        if kind == CASCADE:  # the first of the relevant documents with the largest score stands for all of them
            for j in range(n):
                if g[j] > 0.0 and s[j] == top:
                    lam[j] -= down / ties
                    hes[j] += curve / ties
            break
        lam[i] -= down
        hes[i] += curve
    for i in range(n):
        hes[i] /= inputs.step


soft_ranks = each_list(_scratch, _approx)

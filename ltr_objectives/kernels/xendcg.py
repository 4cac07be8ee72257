r"""XE-NDCG: cross-entropy between the softmax of the scores and randomly lowered gains.

The terms are those of :class:`ltr_objectives.XENDCG`. For :math:`b`, the document of the largest :math:`\rho`,
:math:`1 - \rho_b` may be 0. So its term is taken out of the sum over the others:
:math:`\rho_i t_b / (1 - \rho_b) = \sigma_i t_b`, with :math:`\sigma` the softmax of all documents but :math:`b`.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import stream, uniform
from ltr_objectives.kernels.softmax import softmax, softmax_without


class Inputs(NamedTuple):
    """The gains of a data set, and how they are lowered."""

    power: np.ndarray  # 2^y of each row over the largest of its query
    largest: np.ndarray  # by query; 0 if the gradient is zero
    random: bool  # else u is 1/2
    terms: int
    rng: Rng


@inlined
def _lowered(y, key, random, unit, ratio):
    """Write phi over the largest gain into ``ratio``, with u = 1/2 unless ``random``; return the sum."""
    apart()
    result = 0.0
    for i in range(len(ratio)):
        u = uniform(key, np.uint64(i)) if random else 0.5
        ratio[i] = y[i] - u * unit
        result += ratio[i]
    return result


@inlined
def _first_term(rho, scale, inverse, ratio, g, h):
    """Write the first term and the Hessian, and the term over 1 - rho into ``ratio``; return the sum of those."""
    apart()
    result = 0.0
    for i in range(len(g)):
        g[i] = rho[i] - ratio[i] * scale
        h[i] = rho[i] * (1.0 - rho[i])
        ratio[i] = g[i] * inverse[i]
        result += ratio[i]
    return result


@inlined
def _next_term(rho, sum_but_best, share, t_best, inverse, ratio, g):
    """Add the next term to ``g``; the rest is as in ``_first_term``."""
    apart()
    result = 0.0
    for i in range(len(g)):
        term = rho[i] * (sum_but_best - ratio[i]) + share[i] * t_best
        g[i] += term
        ratio[i] = term * inverse[i]
        result += ratio[i]
    return result


class Scratch(NamedTuple):
    """By document: the softmax, the term over 1 - rho, the softmax without the best, and 1 / (1 - rho)."""

    rho: np.ndarray
    ratio: np.ndarray
    share: np.ndarray
    inverse: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(
        rho=np.empty(longest), ratio=np.empty(longest), share=np.empty(longest), inverse=np.empty(longest)
    )  # fmt: skip


@inlined_kernel
def _xendcg(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the first term or all three, and the diagonal of the Hessian."""
    x, g, h, n, largest = one.s, one.grad, one.hess, len(one.s), inputs.largest[one.q]
    if largest == 0.0:
        return
    rho, ratio, share, inverse = r.rho[:n], r.ratio[:n], r.share[:n], r.inverse[:n]
    # the softmax, and the lowered gains
    best, rest = softmax(x, rho)
    key = stream(inputs.rng.seed, inputs.rng.iteration, np.uint64(one.q))
    sum_ = _lowered(inputs.power[one.first : one.last], key, inputs.random, 1.0 / largest, ratio)
    # the first term; the largest share is left out of the sums, because 1 - rho may vanish there
    for i in range(n):
        inverse[i] = 1.0 / (1.0 - rho[i])
    inverse[best] = 0.0
    sum_but_best = _first_term(rho, 1.0 / sum_, inverse, ratio, g, h)
    h[best] = rho[best] * rest
    # the other terms
    if inputs.terms > 1:
        softmax_without(x, rho, rest, best, share)
    t_best = g[best]
    for _ in range(1, inputs.terms):
        next_best = rho[best] * sum_but_best  # ratio and share are 0 there
        sum_but_best = _next_term(rho, sum_but_best, share, t_best, inverse, ratio, g)
        t_best = next_best


lowered_cross_entropy = each_list(_scratch, _xendcg)

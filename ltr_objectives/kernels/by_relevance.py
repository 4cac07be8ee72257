r"""The loop over the logistic pairs of average precision, by relevance.

Only swaps of a relevant document with one that is not relevant change average precision. Each of the :math:`R` relevant
documents is paired with the others: :math:`R (n - R)` pairs instead of :math:`n^2 / 2`. A pair is skipped if both
documents are beyond the cutoff in every draw.

The weight of a relevant :math:`i` and a :math:`j` that is not is :math:`\max(x, y)` with :math:`x = U_i + V_j` and
:math:`y = V_i + U_j`, with :math:`U` and :math:`V` of :mod:`ltr_objectives.kernels.swaps`, scale included. The swap of
a relevant document with one further down lowers average precision, so :math:`U + V` of the upper and the lower rank is
at least 0. For discounts :math:`w` that do not increase, :math:`U + V` of the lower and the upper rank is at most
:math:`N_d (w_e - w_d) \le 0`. Because :math:`\max(x, y) = (x + y + |x - y|) / 2`, a pair takes in each draw only
:math:`|D_i - D_j|` with :math:`D = (U - V) / 2`, and once :math:`S_i + S_j`, the sums of :math:`(U + V) / 2` over the
draws.
"""

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel
from ltr_objectives.kernels.batches import add_pairs, batch_space, draws_at_once, filled_up
from ltr_objectives.kernels.pairs import discounted, pair_kernel
from ltr_objectives.kernels.swaps import AVERAGE, average_terms


@inlined_kernel
def _take_by_relevance(gain, s, space):
    """Write the list by slot: relevant documents first, and first within both the ones that are not ``beyond``.

    Return where the last three of the four parts begin. ``beyond`` is by document here.
    """
    r, both, relevant, close = space.r, 0, 0, 0
    for i in range(len(gain)):
        yes, near = gain[i] > 0.0, r.beyond[i] == 0.0
        both += yes & near
        relevant += yes
        close += near
    close += relevant - both
    a, b, c, d = 0, both, relevant, close
    for i in range(len(gain)):
        yes, near = gain[i] > 0.0, r.beyond[i] == 0.0
        at = (a if near else b) if yes else (c if near else d)
        a += yes & near
        b += yes & (not near)
        c += near & (not yes)
        d += not (yes | near)
        space.slot[i], r.s[at], r.E[at] = at, s[i], space.E_by_row[i]
    return both, relevant, close


@inlined_kernel
def _first_draw(gain, ranks, terms, one, space):
    """Write U and V; -inf for U beyond ``ranks``, so that pairs of two documents there get the weight 0."""
    n, r = len(gain), space.r
    g, u, v = r.g, r.weight, r.D  # by rank
    for d in range(n):
        g[d] = gain[space.orders[d]]
    average_terms(g, terms.discount, terms.scale[one.q], n, u, v)
    for d in range(n):
        at = space.slot[space.orders[d]]
        r.U[at], r.V[at] = u[d] if d < ranks else -np.inf, v[d]


@inlined_kernel
def _another_draw(k, gain, terms, one, space):
    """Write D = (U - V) / 2 of draw k and add (U + V) / 2 to S, with U and V of average precision put in."""
    n, S, count, sum_, scale = one.n, space.r.S, 0.5, 0.0, terms.scale[one.q]
    order, D = space.orders[k * n : (k + 1) * n], space.r.D[k * n : (k + 1) * n]
    for d in range(n):
        i, w = order[d], terms.discount[d] * scale
        at, g = space.slot[i], gain[i]
        count += g
        sum_ += g * w
        D[at] = count * w - sum_
        S[at] += (0.5 - g) * w


@inlined_kernel
def by_relevance(one, s, layers, pairs, draw, space, out):
    n, a, r, total = one.n, one.first, space.r, 0.0
    grad, hess = out.grad[a : a + n], out.hess[a : a + n]
    for terms in layers:
        if terms.scale[one.q] == 0.0:
            continue
        gain, ranks = terms.gain[a : a + n], discounted(terms.discount, min(pairs.ranks, n))
        r.beyond[:n] = 0.0 if ranks == n else 1.0
        for k in range(one.draws if ranks < n else 0):
            for d in range(ranks):
                r.beyond[space.orders[k * n + d]] = 0.0
        within, relevant, close = _take_by_relevance(gain, s, space)
        _first_draw(gain, ranks, terms, one, space)
        r.lam[:n], r.hes[:n] = 0.0, 0.0
        if draw is not None:
            r.S[:n], r.D[one.draws * n : filled_up(one.draws) * n] = 0.0, 0.0
            for k in range(1, one.draws):
                _another_draw(k, gain, terms, one, space)
        for i in range(relevant):
            total += add_pairs(AVERAGE, i, relevant, n if i < within else close, True, draw, one, r)
        for i in range(n):
            grad[i] += r.lam[space.slot[i]]
            hess[i] += r.hes[space.slot[i]]
    return total


pairs_by_relevance = pair_kernel(batch_space, draws_at_once, by_relevance)

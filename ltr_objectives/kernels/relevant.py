r"""The logistic pairs of :mod:`ltr_objectives.kernels.pairs` for average precision, over all pairs.

Only swaps of a relevant document with one that is not relevant change average precision. The loop pairs each relevant
document with the others: R (n - R) pairs instead of n^2 / 2. Of pairs with both documents beyond the cutoff in all
draws it takes none.
"""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.pairs import list_factor, reach
from ltr_objectives.kernels.rankings import key_of, number_of, odds_of, ranking, rankings
from ltr_objectives.kernels.slopes import BATCH, add_pairs, batches, filled_up, part_of
from ltr_objectives.kernels.sorting import longest_list
from ltr_objectives.kernels.swaps import AVERAGE, average_terms, is_empty


@kernel
def _partition(gain, within, slot):
    """Write the slot of each document: first the relevant ones, in both parts first those ``within`` the cutoff.

    Return where the last three of the four parts begin.
    """
    both, relevant, close = 0, 0, 0
    for i in range(len(gain)):
        yes = gain[i] > 0.0
        both += yes & within[i]
        relevant += yes
        close += within[i]
    close += relevant - both
    a, b, c, d = 0, both, relevant, close
    for i in range(len(gain)):
        yes, near = gain[i] > 0.0, within[i]
        slot[i] = (a if near else b) if yes else (c if near else d)
        a += yes & near
        b += yes & (not near)
        c += near & (not yes)
        d += not (yes | near)
    return both, relevant, close


@kernel
def _first_draw(order, gain, discount, scale, ranks, slot, g, u, v, r):
    """Write U and V; -inf for U beyond ``ranks``, so that pairs of two documents there get the weight 0."""
    n = len(order)
    for d in range(n):
        g[d] = gain[order[d]]
    average_terms(g, discount, scale, n, u, v)
    for d in range(n):
        at = slot[order[d]]
        r.U[at], r.V[at] = u[d] if d < ranks else -np.inf, v[d]


@kernel
def _another_draw(order, gain, discount, scale, slot, D, S):
    """Write D = (U - V) / 2 and add (U + V) / 2 to S, with U and V of average precision put in."""
    count, sum_ = 0.5, 0.0
    for d in range(len(order)):
        i, w = order[d], discount[d] * scale
        at, g = slot[i], gain[i]
        count += g
        sum_ += g * w
        D[at] = count * w - sum_
        S[at] += (0.5 - g) * w


@kernel
def _binary_list(ends, draws, narrow, sigma, r, stop):
    """Add the pairs of one list for all draws of a batch; return the sum of |slope|."""
    total = 0.0
    within, relevant, close = ends
    for i in range(relevant):
        if stop[0]:
            return total
        end = len(r.s) if i < within else close
        total += add_pairs(AVERAGE, i, relevant, end, True, draws, narrow, sigma, r)
    return total


@kernel
def draws_add_up(layers, ranks, n):
    """Whether pairs with both documents at ``ranks`` or below have the weight 0 without being left out."""
    alike = True
    for terms in layers:
        alike &= ranks >= n or terms.discount[ranks] == 0.0
    return alike


@kernel
def relevant_gradients(first, last, ptr, s, layers, pairs, draw, out):
    """Write gradient and Hessian of the queries ``first <= q < last``, one relevant document after the other."""
    longest = longest_list(ptr, first, last)
    space, E, slot = rankings(longest), np.empty(longest), np.empty(longest, np.int64)
    whole, orders = batches(longest, number_of(draw)), np.empty(min(number_of(draw), BATCH) * longest, np.int64)
    g, u, v, within_ = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest, np.bool_)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or is_empty(layers, q) or out.skip[q]:
            continue
        x, grad, hess, r, within = s[a:b], out.grad[a:b], out.hess[a:b], part_of(whole, n), within_[:n]
        narrow = relative_to_top(x, pairs.sigma, E)
        logistic_noise = odds_of(x, draw, space)
        key = key_of(draw, q)
        total = 0.0
        batch = BATCH if draws_add_up(layers, pairs.ranks, n) else 1
        for begin in range(0, number_of(draw), batch):
            draws = min(batch, number_of(draw) - begin)
            for p in range(draws):
                if out.stop[0]:
                    return
                ranking(x, n, True, draw, key, begin + p, logistic_noise, space)
                for d in range(n):
                    orders[p * n + d] = space.order[d]
            for terms in layers:
                if terms.scale[q] == 0.0:
                    continue
                gain = terms.gain[a:b]
                ranks = reach(terms.discount, min(pairs.ranks, n))
                within[:] = ranks == n
                for p in range(draws if ranks < n else 0):
                    for d in range(ranks):
                        within[orders[p * n + d]] = True
                ends = _partition(gain, within, slot)
                for i in range(n):
                    at = slot[i]
                    r.s[at], r.E[at], r.lam[at], r.hes[at] = x[i], E[i], 0.0, 0.0
                _first_draw(orders[:n], gain, terms.discount, terms.scale[q], ranks, slot, g, u, v, r)
                if draw is None:
                    total += _binary_list(ends, None, narrow, pairs.sigma, r, out.stop)
                else:
                    r.D[draws * n : filled_up(draws) * n], r.S[:] = 0.0, 0.0
                    for p in range(1, draws):
                        order, D = orders[p * n : (p + 1) * n], r.D[p * n : (p + 1) * n]
                        _another_draw(order, gain, terms.discount, terms.scale[q], slot, D, r.S)
                    total += _binary_list(ends, filled_up(draws), narrow, pairs.sigma, r, out.stop)
                for i in range(n):
                    grad[i] += r.lam[slot[i]]
                    hess[i] += r.hes[slot[i]]
        factor = list_factor(total, pairs, draw)
        for i in range(n):
            grad[i] *= factor
            hess[i] *= factor * pairs.sigma

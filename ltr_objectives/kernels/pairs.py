r"""Gradient and Hessian of a loss over pairs of documents, each weighted by the change of a metric.

For each query, ``draw.draws`` times, add noise to the scores and sort. Each pair of ranks d < e <= d + neighbors with
d < ranks has the weight ``delta = |change of the metric when d and e are swapped|``. Let ``hi`` be the document of the
larger gain. Then, for the logistic loss at the scores without noise,

    rho = 1 / (1 + exp(sigma (s_hi - s_lo)))
    grad_hi -= sigma delta rho;  grad_lo += sigma delta rho;  hess_both += sigma^2 delta rho (1 - rho)

averaged over the draws. The weight of a pair is the sum of its weights in the ``layers``, each of one family.
With ``score_norm`` delta is divided by 0.01 + |s_hi - s_lo|. With propensities delta is divided by that of hi. The
gradient is linear in the weights, so pairs are not stored: a thread takes O(n) memory here.

:mod:`ltr_objectives.kernels.graded` does the same for linear metrics over all pairs, by gain, and
:mod:`ltr_objectives.kernels.relevant` for average precision.

The inner loops run over slices from index 0, so that LLVM vectorises them: 0.8 ns a pair. Loops that index the whole
arrays from d + 1 would take 2.4 ns, and so would ``min`` and ``max`` instead of the comparisons in ``capped``. One
exponential a document serves all its pairs: with E = exp(sigma (s - s_max)), the chance that e beats d is
E_e / (E_d + E_e). Where scores span more than the exponential can hold, and for other losses, ``slope_and_curve``
computes each pair by itself.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels._views import reinterpret
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.rankings import key_of, number_of, odds_of, ranking, rankings
from ltr_objectives.kernels.sorting import all_equal, longest_list
from ltr_objectives.kernels.swaps import CASCADE, is_empty, restart, swap_terms

LOGISTIC, HINGE = range(2)
PLAIN, BY_DISTANCE, DIVIDED = range(3)  # the weight of a pair is divided by: nothing, the score distance, ``divisor``
NEAR = 8  # with at most this many neighbours the inner loop runs over d, else over e


class Ranked(NamedTuple):
    """One list in rank order, and the terms of its swaps."""

    g: np.ndarray
    s: np.ndarray
    E: np.ndarray
    propensity: np.ndarray
    U: np.ndarray
    A: np.ndarray
    V: np.ndarray
    W: np.ndarray
    divisor: np.ndarray


class Sums(NamedTuple):
    """Gradient and Hessian of one list in rank order, ``lam + low`` and ``hes + hes_low``."""

    lam: np.ndarray
    hes: np.ndarray
    low: np.ndarray
    hes_low: np.ndarray
    stop: np.ndarray  # as in Out


@inlined
def pair(m, loses, wins):
    """Slope and curvature of a pair of weight |m|, whose first document is the better one where m > 0.

    ``loses`` and ``wins`` are the probabilities that the first document loses and wins.
    """
    return m * (loses if m > 0.0 else wins), abs(m) * loses * wins


@inlined
def capped(gap, cap):
    gap = cap if gap > cap else gap
    return -cap if gap < -cap else gap


@kernel
def slope_and_curve(loss, margin):
    """Minus the first derivative of the loss at ``margin = sigma (s_hi - s_lo)``, and the second or a bound of it."""
    if loss == LOGISTIC:
        p = 1.0 / (1.0 + math.exp(min(margin, 700.0)))
        return p, p / (1.0 + math.exp(min(-margin, 700.0)))
    if loss == HINGE:
        active = 1.0 if margin < 1.0 else 0.0
        return active, active  # a bound; the second derivative is 0
    raise ValueError("unknown loss")


@inlined
def _rank(d, end, cap, kind, a, V, r, sums):
    """The logistic pairs of rank d with the ranks d < e < ``end``; return the sum of |slope|.

    ``kind`` is a constant in each call, so that LLVM makes a separate loop for each.
    """
    gd, Ed, Ud, sd = r.g[d], r.E[d], r.U[d], r.s[d]
    down, curve, total = 0.0, 0.0, 0.0
    gb, Eb, Vb, sb, divisor = (
        r.g[d + 1 : end],
        r.E[d + 1 : end],
        V[d + 1 : end],
        r.s[d + 1 : end],
        r.divisor[d + 1 : end],
    )
    lamb, hesb = sums.lam[d + 1 : end], sums.hes[d + 1 : end]
    for e in range(len(gb)):
        m = capped(gd - gb[e], cap) * (Ud + a * Vb[e])
        if kind == BY_DISTANCE:
            m = m / (0.01 + abs(sd - sb[e]))
        elif kind == DIVIDED:
            m = m / divisor[e]
        inverse = 1.0 / (Ed + Eb[e])
        x, h = pair(m, Eb[e] * inverse, Ed * inverse)
        lamb[e] += x
        hesb[e] += h
        down += x
        curve += h
        total += abs(x)
    sums.lam[d] -= down
    sums.hes[d] += curve
    return total


@inlined
def _neighbours(apart, ranks, cap, r, sums):
    """The pairs of ranks d < ``ranks`` and d + apart; terms of the lower rank go to ``low`` and ``hes_low``."""
    total = 0.0
    gd, Ed, Ud, Ad, lamd, hesd = r.g[:ranks], r.E[:ranks], r.U[:ranks], r.A[:ranks], sums.lam[:ranks], sums.hes[:ranks]
    end = apart + ranks
    ge, Ee, Ve, lame, hese = (
        r.g[apart:end],
        r.E[apart:end],
        r.V[apart:end],
        sums.low[apart:end],
        sums.hes_low[apart:end],
    )
    for d in range(len(gd)):
        m = capped(gd[d] - ge[d], cap) * (Ud[d] + Ad[d] * Ve[d])
        inverse = 1.0 / (Ed[d] + Ee[d])
        x, h = pair(m, Ee[d] * inverse, Ed[d] * inverse)
        lamd[d] -= x
        lame[d] += x
        hesd[d] += h
        hese[d] += h
        total += abs(x)
    return total


@inlined
def _divisors(d, end, score_norm, r):
    """Write what divides the pairs of rank d: score distance, propensity of the larger gain, or their product."""
    gd, sd = r.g[d], r.s[d]
    gb, sb, out = r.g[d + 1 : end], r.s[d + 1 : end], r.divisor[d + 1 : end]
    if score_norm:
        for e in range(len(out)):
            out[e] = 0.01 + abs(sd - sb[e])
    else:
        out[:] = 1.0
    if len(r.propensity) > 0:
        at_d, at = r.propensity[d], r.propensity[d + 1 : end]
        for e in range(len(out)):
            out[e] *= at_d if gd > gb[e] else at[e]


@kernel
def _rank_any_loss(d, end, cap, a, V, pairs, r, sums):
    """As ``_rank``, for scores of any span and any loss."""
    total = 0.0
    for e in range(d + 1, end):
        m = capped(r.g[d] - r.g[e], cap) * (r.U[d] + a * V[e])
        if m == 0.0:
            continue
        m /= r.divisor[e]
        margin = pairs.sigma * (r.s[d] - r.s[e])
        slope, curve = slope_and_curve(pairs.loss, margin if m > 0.0 else -margin)
        x, h = m * slope, abs(m) * curve
        sums.lam[d] -= x
        sums.hes[d] += h
        sums.lam[e] += x
        sums.hes[e] += h
        total += abs(x)
    return total


@kernel
def reach(discount, most):
    """How many of the first ``most`` ranks have a discount above zero; discounts do not increase."""
    if most > 0 and discount[most - 1] > 0.0:
        return most
    ranks = 0
    while ranks < most and discount[ranks] > 0.0:
        ranks += 1
    return ranks


@kernel
def _list(n, scale, narrow, score_norm, terms, pairs, r, sums):
    """Add the pairs of one list in rank order to ``sums``; return the sum of |slope|."""
    swap_terms(terms.kind, r.g, terms.discount, scale, n, r.U, r.A, r.V)
    total, cap, neighbors = 0.0, terms.cap, pairs.neighbors
    ranks = reach(terms.discount, min(pairs.ranks, n - 1))
    clicks = len(r.propensity) > 0
    near = neighbors <= NEAR and narrow and not score_norm and not clicks
    # with near neighbours, this loop takes only the ranks that need ``restart``, which other kinds do not have
    for d in range(0 if near and terms.kind != CASCADE else ranks):
        if r.U[d] == 0.0 and r.A[d] == 0.0:  # and so it is further down
            break
        if near and not r.A[d] < 0.0:
            continue
        if sums.stop[0]:
            return total
        end = n if neighbors >= n else min(n, d + 1 + neighbors)
        a, V = r.A[d], r.V
        if a < 0.0:
            restart(r.g, terms.discount, d, end, r.U, r.W)
            a, V = 1.0, r.W
        if clicks or not narrow:
            _divisors(d, end, score_norm, r)
        if not narrow:
            total += _rank_any_loss(d, end, cap, a, V, pairs, r, sums)
        elif clicks:
            total += _rank(d, end, cap, DIVIDED, a, V, r, sums)
        elif score_norm:
            total += _rank(d, end, cap, BY_DISTANCE, a, V, r, sums)
        else:
            total += _rank(d, end, cap, PLAIN, a, V, r, sums)
        if near:
            r.U[d], r.A[d] = 0.0, 0.0
    if near:
        for apart in range(1, neighbors + 1):
            total += _neighbours(apart, max(min(ranks, n - apart), 0), cap, r, sums)
    return total


@kernel
def list_factor(total, pairs, draw):
    """What all slopes of one list are multiplied by; ``total`` is the sum of their absolute values."""
    factor = pairs.sigma / number_of(draw)
    if pairs.lambda_norm:
        total *= 2.0 * factor
        if total > 0.0:
            factor *= np.log2(1.0 + total) / total
    return factor


@kernel
def pair_gradients(first, last, ptr, s, layers, pairs, draw, out):
    """Write gradient and Hessian of the queries ``first <= q < last``, rank by rank."""
    longest = longest_list(ptr, first, last)
    space, E = rankings(longest), np.empty(longest)
    order = reinterpret(space.order, np.uint64)  # unsigned: numba checks whether signed indices are negative
    propensities = len(pairs.propensity) > 0
    r = Ranked(
        np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest if propensities else 0),
        np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest),
    )  # fmt: skip
    sums = Sums(np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), out.stop)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or is_empty(layers, q) or out.skip[q]:
            continue
        x, grad, hess = s[a:b], out.grad[a:b], out.hess[a:b]
        narrow = relative_to_top(x, pairs.sigma, E) and pairs.loss == LOGISTIC
        logistic_noise = odds_of(x, draw, space)
        score_norm = pairs.score_norm and not all_equal(x)
        key = key_of(draw, q)
        total = 0.0
        ordered = min(n, pairs.head)
        m = n if pairs.neighbors >= n else ordered
        for number in range(number_of(draw)):
            if out.stop[0]:
                return
            ranking(x, ordered, True, draw, key, number, logistic_noise, space)
            for d in range(m):
                r.s[d], r.E[d] = x[order[d]], E[order[d]]
                if propensities:
                    r.propensity[d] = pairs.propensity[a:b][order[d]]
            sums.lam[:m], sums.low[:m], sums.hes[:m], sums.hes_low[:m] = 0.0, 0.0, 0.0, 0.0
            for terms in layers:
                if terms.scale[q] != 0.0:
                    gain = terms.gain[a:b]
                    for d in range(m):
                        r.g[d] = gain[order[d]]
                    total += _list(m, terms.scale[q], narrow, score_norm, terms, pairs, r, sums)
            for d in range(m):
                grad[order[d]] += sums.lam[d] + sums.low[d]
                hess[order[d]] += sums.hes[d] + sums.hes_low[d]
        factor = list_factor(total, pairs, draw)
        for i in range(n):
            grad[i] *= factor
            hess[i] *= factor * pairs.sigma

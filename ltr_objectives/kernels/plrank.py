r"""PL-Rank: gradient and diagonal Hessian of an expected reward under a Plackett-Luce policy.

Kang, de Rijke and Oosterhuis, "Estimating the Hessian Matrix of Ranking Objectives for Stochastic Learning to Rank with
Gradient Boosted Trees", SIGIR 2024. For one ranking y with open masses S_k, weights theta and rewards rho (eqs. 5-8):

    PR_i = sum_{k>=i} theta_k rho_{y_k}     RI_i = sum_{k<=i} PR_k / S_k      RS_i = sum_{k<=i} PR_k / S_k^2
    DN_i = sum_{k<=i} 1 / S_k               DR_i = sum_{k<=i} theta_k / S_k   DS_i = sum_{k<=i} theta_k / S_k^2

and for a document of mass e at rank i, with a = rho DR_i - RI_i (eqs. 6, 9, 10):

    gradient = PR_{i+1} + e a
    Hessian  = PR_{i+1} + 2 e a - e DN_i PR_{i+1} + e^2 (RS_i - rho DS_i - DN_i a)

A document beyond the last rank K has PR_{i+1} = 0, the sums at K, and e a instead of 2 e a. What it adds depends on the
ranking only through RI, DR, RS, DS, DN DR and DN RI at K, so these are added up over the rankings once and given to all
documents; only the K placed ones are visited in each ranking. That makes O(N K^2 + n log n) or, where little
mass is open, O(N K log n + n log n), not O(N (n + K)).

To give such sums to a document that some of the rankings placed and take them back there would cancel badly: its mass
may be far above the mass S_K of the rankings that placed it early. But a document is open at K only if e <= S_K, in
floating point too. So rankings are sorted by S_K and each document takes the sums of those with S_K >= e only; then
each term is at most of order 1, and what is taken back is what was given.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.plackett_luce import (
    REACH,
    WIDEST,
    build,
    guide_sums,
    lattice,
    leaves,
    place_guided,
    place_narrow,
    place_wide,
    shares,
)
from ltr_objectives.kernels.rng import stream
from ltr_objectives.kernels.sorting import descending_order, scratch

FEW_RANKS = 50  # the guide's cost grows with the square of the ranks, the tree's with their number
EXACT, LIKELIHOOD, EXPOSURE = range(3)  # what is written beside the gradient


@kernel
def _open(curvature, e, rho, sums):
    """Gradient and curvature of a document beyond the last rank."""
    slope = e * (rho * sums[1] - sums[0])
    if curvature == 1:
        return slope, e * sums[0] - e * e * sums[2]
    if curvature == 2:
        return slope, e * sums[1]
    return slope, slope + e * e * (sums[2] - rho * sums[3] - rho * sums[4] + sums[5])


@kernel
def _placed(curvature, y, e, m, shrink, theta, rho, weight, later, sums, grad, hess):
    """Add the placed documents of one ranking; leave RI, DR, RS, DS, DN DR and DN RI at the last rank in ``sums``."""
    ranks = len(y)
    later[ranks] = 0.0
    for k in range(ranks - 1, -1, -1):
        later[k] = later[k + 1] + theta[k] * rho[y[k]]
    RI, DR, RS, DS, DN = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(ranks):
        f, inverse = shrink[k], 1.0 / m[k]
        g, square = f * f, inverse * inverse
        RI, DR, DN = RI * f + later[k] * inverse, DR * f + theta[k] * inverse, DN * f + inverse
        RS, DS = RS * g + later[k] * square, DS * g + theta[k] * square
        d, x, after = y[k], e[k], later[k + 1]
        a = rho[d] * DR - RI
        grad[d] += weight * (after + x * a)
        if curvature == 1:
            hess[d] += weight * (x * RI - x * x * RS)
        elif curvature == 2:
            hess[d] += weight * x * DR
        else:
            hess[d] += weight * (after + 2.0 * x * a - x * DN * after + x * x * (RS - rho[d] * DS - DN * a))
    sums[0], sums[1], sums[2], sums[3], sums[4], sums[5] = RI, DR, RS, DS, DN * DR, DN * RI


@kernel
def _narrow(s, theta, rho, curvature, given, weight, key, variates, step, start, work, grad, hess, stop):
    u, y, e, m, shrink, later, sums, order = work
    n, rankings, ranks = len(s), len(weight), len(u)
    mass = np.exp(s - s[0])
    size = leaves(n)
    tree, running, guide, places = np.empty(2 * size), np.empty(n + 1), np.empty(size, np.int64), np.empty_like(y)
    build(tree, size, mass, n)
    guide_sums(mass, n, size, running, guide)
    shrink[:] = 1.0
    for j in range(rankings):
        if stop[0]:
            return
        shares(key, j, rankings, variates, step, start, u)
        guided = given[0, 0] < 0 and ranks <= FEW_RANKS
        if not guided or not place_guided(running, guide, size, mass, n, u, places, y, e, m):
            place_narrow(tree, size, mass, given[j % len(given)], u, y, e, m, shrink)
        _placed(curvature, y, e, m, shrink, theta, rho, weight[j], later, sums[j], grad, hess)
        last = m[ranks - 1]
        for k in range(ranks):
            if e[k] <= last:
                slope, curve = _open(curvature, e[k], rho[y[k]], sums[j])
                grad[y[k]] -= weight[j] * slope
                hess[y[k]] -= weight[j] * curve
        sums[j, 6] = last
    last, by_last, spare, spare_order = order
    descending_order(sums[:, 6], last, by_last, spare, spare_order)
    total = np.zeros(6)
    taken = 0
    for d in range(n):
        while taken < rankings and mass[d] <= last[taken]:
            for c in range(6):
                total[c] += weight[by_last[taken]] * sums[by_last[taken], c]
            taken += 1
        slope, curve = _open(curvature, mass[d], rho[d], total)
        grad[d] += slope
        hess[d] += curve


@kernel
def _wide(s, theta, rho, curvature, given, weight, key, variates, step, start, work, grad, hess, stop):
    u, y, e, m, shrink, later, sums, _ = work
    n, rankings = len(s), len(weight)
    open_ = np.ones(n, np.bool_)
    for j in range(rankings):
        if stop[0]:
            return
        shares(key, j, rankings, variates, step, start, u)
        unit = place_wide(s, open_, given[j % len(given)], u, y, e, m, shrink)
        _placed(curvature, y, e, m, shrink, theta, rho, weight[j], later, sums[j], grad, hess)
        open_[y] = False
        d = 0
        while d < n and s[d] - unit > -REACH:
            if open_[d]:
                slope, curve = _open(curvature, math.exp(s[d] - unit), rho[d], sums[j])
                grad[d] += weight[j] * slope
                hess[d] += weight[j] * curve
            d += 1
        open_[y] = True


@kernel
def plrank(first, last, ptr, scores, reward, theta, scale, curvature, given, weight, variates, seed, iteration,
           grad, hess, stop):  # fmt: skip
    """Write the gradient of the loss, minus ``scale`` times the expected reward, and a curvature of it or the exposure.

    ``given`` of shape (rankings, ranks) names the documents by their place in descending order of scores, with
    probabilities ``weight``; a first entry of -1 means to draw ``len(weight)`` rankings.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    g, h, rho = np.empty(longest), np.empty(longest), np.empty(longest)
    rankings = len(weight)
    most = min(longest, len(theta))
    step, start, y = np.zeros(most, np.int64), np.zeros(most, np.int64), np.empty(most, np.int64)
    u, e, m, shrink, later = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most + 1)
    sums, by_mass = np.empty((rankings, 7)), scratch(rankings)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        low, high = reward[a], reward[a]
        for i in range(a, b):
            low, high = min(low, reward[i]), max(high, reward[i])
        if n < 2 or scale[q] == 0.0 or low == high:
            continue
        descending_order(scores[a:b], key, order, key2, order2)
        for d in range(n):
            # the least reward is the same for every ranking, so that without it only variance is lost
            rho[d] = (reward[a + order[d]] - low) / (high - low)
            g[d], h[d] = 0.0, 0.0
        ranks = min(n, len(theta))
        stream_key = stream(seed, iteration, np.uint64(q))
        if variates == 2:
            lattice(stream_key, rankings, ranks, step, start)
        work = (u[:ranks], y[:ranks], e[:ranks], m[:ranks], shrink[:ranks], later, sums, by_mass)
        if key[0] - key[n - 1] < WIDEST:
            _narrow(key[:n], theta, rho, curvature, given, weight, stream_key, variates, step, start, work, g, h, stop)
        else:
            _wide(key[:n], theta, rho, curvature, given, weight, stream_key, variates, step, start, work, g, h, stop)
        unit = scale[q] * (high - low)
        factor = -unit if curvature == 0 else unit if curvature == 1 else 1.0
        for d in range(n):
            grad[a + order[d]] = -unit * g[d]
            hess[a + order[d]] = factor * h[d]

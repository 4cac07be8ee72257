"""ListMLE: the likelihood that a Plackett-Luce model ranks by label, with ties of labels.

Place p of the ranking by label has an open mass S_p, which is kept as a number and its unit, the logarithm of the
largest open ``exp(s)``: from the last place to the first nothing is subtracted, and nothing overflows. From the first
to the last, sums over the places above are kept in the unit of the present S, so that each step multiplies them by at
most 1. O(n) a list.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.finish import shorten_steps
from ltr_objectives.kernels.rng import stream, uniform
from ltr_objectives.kernels.sorting import all_equal


@kernel
def _shuffle(order, key, start):
    """Put ``order`` into random order, with the random numbers from ``start`` on."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(key, np.uint64(start + i)) * (i + 1))
        order[i], order[j] = order[j], order[i]


@kernel
def _masses(s, end, unit, S):
    """Fill unit and open mass of each place; ``end`` is where the tie of each place ends."""
    n = len(s)
    b = n
    top, below = -np.inf, 0.0
    while b > 0:
        a = b - 1
        while a > 0 and end[a - 1] == b:
            a -= 1
        new = top
        for i in range(a, b):
            new = max(new, s[i])
        below *= math.exp(top - new)
        tied = 0.0
        for i in range(a, b):
            tied += math.exp(s[i] - new)
        for i in range(a, b):
            unit[i] = new
            S[i] = below + tied * (b - i) / (b - a)
        top, below, b = new, below + tied, a


@kernel
def _derivatives(s, end, unit, S, order, grad, hess):
    n = len(s)
    above, above2, a = 0.0, 0.0, 0
    while a < n:
        b = end[a]
        own, own2 = above, above2
        for i in range(a, b):
            if i > 0:
                shrink = math.exp(unit[i] - unit[i - 1]) * S[i] / S[i - 1]
                above, above2 = above * shrink, above2 * shrink * shrink
                own, own2 = own * shrink, own2 * shrink * shrink
            share = (b - i) / (b - a)
            above, above2 = above + 1.0, above2 + 1.0
            own, own2 = own + share, own2 + share * share
        for i in range(a, b):
            e = math.exp(s[i] - unit[b - 1]) / S[b - 1]
            grad[order[i]] = e * own - 1.0
            hess[order[i]] = max(e * own - e * e * own2, 0.0)
        a = b


@kernel
def listmle(first, last, ptr, scores, labels, orders, random, bounded, seed, iteration, grad, hess):
    """Gradient and Hessian of the negative log-likelihood of the ranking by label."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    order, end = np.empty(longest, np.int64), np.empty(longest, np.int64)
    s, unit, S = np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        y = labels[a:b]
        if all_equal(y):
            continue
        key = stream(seed, iteration, np.uint64(q))
        for i in range(n):
            order[i] = orders[a + i]
        i = 0
        while i < n:
            j = i + 1
            while j < n and y[order[j]] == y[order[i]]:
                j += 1
            if random:
                _shuffle(order[i:j], key, i)
            for place in range(i, j):
                end[place] = place + 1 if random else j
            i = j
        for i in range(n):
            s[i] = scores[a + order[i]]
        _masses(s[:n], end, unit, S)
        _derivatives(s[:n], end, unit, S, order, grad[a:b], hess[a:b])
        if bounded:
            shorten_steps(grad[a:b], hess[a:b])

"""Softmax of one list, and the objectives that compare it with a target distribution."""

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.exponential import exponentials
from ltr_objectives.kernels.finish import shorten_steps
from ltr_objectives.kernels.rng import stream, uniform

LEAST = 1e-290  # subnormal numbers, which lose digits, are far below


@vector_kernel
def _total(x):
    total = 0.0
    for v in x:
        total += v
    return total


@kernel
def _total_without(x, best):
    """The sum of all but one, which may be far larger than the rest and so is never taken off."""
    kept, x[best] = x[best], 0.0
    rest = _total(x)
    x[best] = kept
    return rest


@kernel
def _place_of_largest(x):
    """The first place of the largest; four at a time, since each comparison waits for the last of its chain."""
    m0, m1, m2, m3 = x[0], x[0], x[0], x[0]
    whole = len(x) // 4 * 4
    for i in range(0, whole, 4):
        m0 = x[i] if x[i] > m0 else m0
        m1 = x[i + 1] if x[i + 1] > m1 else m1
        m2 = x[i + 2] if x[i + 2] > m2 else m2
        m3 = x[i + 3] if x[i + 3] > m3 else m3
    for i in range(whole, len(x)):
        m0 = x[i] if x[i] > m0 else m0
    top = max(max(m0, m1), max(m2, m3))
    best = 0
    while x[best] != top:
        best += 1
    return best


@kernel
def softmax(s, out):
    """Write ``exp(s) / sum(exp(s))``, in place if wanted; return where the largest is and the sum of the others."""
    best = _place_of_largest(s)
    top = s[best]
    for i in range(len(s)):
        out[i] = s[i] - top
    exponentials(out, out)
    rest = _total_without(out, best)
    total = 1.0 + rest
    for i in range(len(s)):
        out[i] /= total
    return best, rest / total


@kernel
def label_softmax(first, last, ptr, labels, out):
    """Write the softmax of each query's labels."""
    for q in range(first, last):
        softmax(labels[ptr[q] : ptr[q + 1]], out[ptr[q] : ptr[q + 1]])


@kernel
def listnet(first, last, ptr, scores, target, bounded, grad, hess):
    """Cross-entropy between ``target``, which adds up to 1 or is all 0, and the softmax of the scores."""
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if not np.any(target[a:b] > 0.0):
            continue
        softmax(scores[a:b], grad[a:b])
        for i in range(a, b):
            hess[i] = grad[i] * (1.0 - grad[i])
            grad[i] -= target[i]
        if bounded:
            shorten_steps(grad[a:b], hess[a:b])


@kernel
def _softmax_without(s, rho, rest, best, out):
    """Write the softmax of all scores but the largest, and 0 for that one; `softmax` gave ``rho`` and ``rest``."""
    if rest > LEAST:
        for i in range(len(s)):
            out[i] = rho[i] / rest
        out[best] = 0.0
    else:
        out[:] = s
        out[best] = -np.inf
        softmax(out, out)


@kernel
def xendcg(first, last, ptr, scores, power, largest, given, noise, terms, bounded, seed, iteration, grad, hess):
    """XE-NDCG; ``given`` holds the u of each row, or nothing.

    ``power`` is divided by the query's ``largest``, which is 0 where nothing can be learned.
    """
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    rho_, part_, share_ = np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if largest[q] == 0.0:
            continue
        s, rho, part, share = scores[a:b], rho_[:n], part_[:n], share_[:n]
        g, h, y = grad[a:b], hess[a:b], power[a:b]
        best, rest = softmax(s, rho)
        unit = 1.0 / largest[q]
        if len(given) > 0:
            for i in range(n):
                part[i] = y[i] - given[a + i] * unit
        elif noise:
            key = stream(seed, iteration, np.uint64(q))
            for i in range(n):
                part[i] = y[i] - uniform(key, np.uint64(i)) * unit
        else:
            for i in range(n):
                part[i] = y[i] - 0.5 * unit
        total = _total(part)
        for i in range(n):
            part[i] = rho[i] - part[i] / total
            g[i] = part[i]
            h[i] = rho[i] * (1.0 - rho[i])
        h[best] = rho[best] * rest
        if terms > 1:
            _softmax_without(s, rho, rest, best, share)
        for _ in range(1, terms):
            first_part = part[best]
            for i in range(n):
                part[i] /= 1.0 - rho[i]
            part[best] = 0.0
            others = _total(part)
            for i in range(n):
                part[i] = rho[i] * (others - part[i]) + share[i] * first_part
                g[i] += part[i]
        if bounded:
            shorten_steps(g, h)

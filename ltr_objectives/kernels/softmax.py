"""Softmax of one list, and the objectives that compare it with a target distribution."""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.rng import stream, uniform
from ltr_objectives.kernels.sorting import all_equal


@kernel
def softmax(s, out):
    """Write ``exp(s) / sum(exp(s))``; return the place of the largest and the sum of all the others."""
    best = 0
    for i in range(len(s)):
        if s[i] > s[best]:
            best = i
    rest = 0.0
    for i in range(len(s)):
        out[i] = math.exp(s[i] - s[best])
        rest += out[i] if i != best else 0.0
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
def listnet(first, last, ptr, scores, target, grad, hess):
    """Cross-entropy between ``target``, which adds up to 1 or is all 0, and the softmax of the scores."""
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if not np.any(target[a:b] > 0.0):
            continue
        softmax(scores[a:b], grad[a:b])
        for i in range(a, b):
            hess[i] = grad[i] * (1.0 - grad[i])
            grad[i] -= target[i]


@kernel
def _sum_without(x, best, out):
    """Write the sum of all other ``x``; that of ``best``, which may be far larger than the rest, is never taken off."""
    rest = 0.0
    for i in range(len(x)):
        rest += x[i] if i != best else 0.0
    for i in range(len(x)):
        out[i] = rest if i == best else (rest - x[i]) + x[best]


@kernel
def xendcg(first, last, ptr, scores, labels, power, given, noise, terms, seed, iteration, grad, hess):
    """XE-NDCG; ``given`` holds the u of each row, or nothing."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    rho, part, others = np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if all_equal(labels[a:b]):
            continue
        best, rest = softmax(scores[a:b], rho[:n])
        key = stream(seed, iteration, np.uint64(q))
        largest, total = 0.0, 0.0
        for i in range(n):
            largest = max(largest, power[a + i])
        for i in range(n):
            u = 0.5
            if len(given) > 0:
                u = given[a + i]
            elif noise:
                u = uniform(key, np.uint64(i))
            part[i] = (power[a + i] - u) / largest
            total += part[i]
        for i in range(n):
            part[i] = rho[i] - part[i] / total
            grad[a + i] = part[i]
            miss = rest if i == best else 1.0 - rho[i]
            hess[a + i] = rho[i] * miss
        for _ in range(1, terms):
            for i in range(n):
                miss = rest if i == best else 1.0 - rho[i]
                part[i] = part[i] / miss if miss > 0.0 else 0.0
            _sum_without(part[:n], best, others)
            for i in range(n):
                part[i] = rho[i] * others[i]
                grad[a + i] += part[i]

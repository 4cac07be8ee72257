r"""The examination of positions, given scores: the most likely factors of a Plackett-Luce model of clicks.

A click on document i of query q, at position k(i), is a draw with chances exp(sigma s_i) theta_k(i) / Z_q, where
Z_q = sum_j exp(sigma s_j) theta_k(j). With clicks c_i, their totals C_q and weights w_q, the log likelihood

    sum_q w_q sum_i c_i [sigma s_i + log theta_k(i) - log Z_q]  +  a sum_k (log theta_k - theta_k)

is concave in log theta. Its last sum is a gamma prior: it adds ``a`` clicks to each position, and ``a`` to the clicks
expected there. The step

    theta_k = (sum_{i at k} w c_i + a) / (sum_{i at k} w C exp(sigma s_i) / Z + a)

never lowers the likelihood (Hunter, "MM algorithms for generalized Bradley-Terry models", 2004). At the maximum the
derivatives by log theta_k add up to 0, so that the mean theta is 1. So each step also divides theta by its mean. About
20 steps suffice; without the division the mean took thousands of steps to reach 1.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel

PRIOR = 0.5
TOLERANCE = 1e-6
STEPS = 200
WIDEST = 30.0  # keeps theta finite where a click is almost impossible at these scores


@kernel
def fit_examination(ptr, position, scores, sigma, clicks, weight, theta):
    """Improve ``theta`` in place until no entry changes by more than ``TOLERANCE`` of itself; return the steps."""
    queries, positions = len(ptr) - 1, len(theta)
    seen, due, likes, total = np.zeros(positions), np.empty(positions), np.empty(len(scores)), np.zeros(queries)
    for q in range(queries):
        top = scores[ptr[q]]
        for i in range(ptr[q], ptr[q + 1]):
            total[q] += weight[q] * clicks[i]
            seen[position[i]] += weight[q] * clicks[i]
            top = max(top, scores[i])
        for i in range(ptr[q], ptr[q + 1]):
            likes[i] = math.exp(max(sigma * (scores[i] - top), -WIDEST))
    for step in range(STEPS):
        due[:] = 0.0
        for q in range(queries):
            if total[q] == 0.0:
                continue
            z = 0.0
            for i in range(ptr[q], ptr[q + 1]):
                z += likes[i] * theta[position[i]]
            share = total[q] / z
            for i in range(ptr[q], ptr[q + 1]):
                due[position[i]] += likes[i] * share
        mean, largest = 0.0, 0.0
        for k in range(positions):
            due[k] = (seen[k] + PRIOR) / (due[k] + PRIOR)
            mean += due[k] / positions
        for k in range(positions):
            new = due[k] / mean
            largest = max(largest, abs(new - theta[k]) / new)
            theta[k] = new
        if largest <= TOLERANCE:
            return step + 1
    return STEPS

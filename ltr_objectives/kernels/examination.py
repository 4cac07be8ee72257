r"""The examination of positions, given scores: the most likely factors of a Plackett-Luce model of clicks.

A click on document :math:`i` of query :math:`q`, at position :math:`k(i)`, is a draw with chances
:math:`e^{\sigma s_i} \theta_{k(i)} / Z_q`, with :math:`Z_q = \sum_j e^{\sigma s_j} \theta_{k(j)}`. With clicks
:math:`c_i`, their totals :math:`C_q` and weights :math:`w_q`, the log likelihood

.. math::
    \sum_q w_q \sum_i c_i \left(\sigma s_i + \log \theta_{k(i)} - \log Z_q\right)
    + a \sum_k \left(\log \theta_k - \theta_k\right)

is concave in :math:`\log \theta`. Its last sum is a gamma prior: it adds :math:`a` clicks to each position, and
:math:`a` to the clicks expected there. The step

.. math::
    \theta_k = \frac{a + \sum_{i \text{ at } k} w_q c_i}{a + \sum_{i \text{ at } k} w_q C_q e^{\sigma s_i} / Z_q}

never lowers the likelihood (Hunter, "MM algorithms for generalized Bradley-Terry models", 2004). At the maximum the
derivatives by :math:`\log \theta_k` add up to 0, so that the mean :math:`\theta` is 1. So each step also divides
:math:`\theta` by its mean. About 20 steps suffice; without the division the mean took thousands of steps to reach 1.
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

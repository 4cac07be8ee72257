"""Derivatives of an expected metric under Gaussian noise: by quadrature over all rankings, and estimates of them."""

import itertools

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm


def exact_gradient(metric, z, labels, sigma):
    """Return gradient of ``E M(z + sigma eps)`` from the probability of every ranking; two or three documents."""
    n = len(z)
    out = np.zeros(n)
    for ranking in itertools.permutations(range(n)):
        value = metric.reference(labels[list(ranking)])
        if n == 2:
            a, b = ranking
            slope = norm.pdf(z[a] - z[b], scale=sigma * np.sqrt(2)) * value
            out[[a, b]] += slope, -slope
            continue
        a, b, c = ranking
        t = z[b] + sigma * np.linspace(-10, 10, 161)  # the trapezoid rule is exact to the last digits
        middle = norm.pdf(t, z[b], sigma) * sigma / 8 * value
        top = np.sum(middle * norm.pdf(t, z[a], sigma) * ndtr((t - z[c]) / sigma))
        bottom = -np.sum(middle * norm.pdf(t, z[c], sigma) * ndtr((z[a] - t) / sigma))
        out[[a, b, c]] += top, -top - bottom, bottom
    return out


def exact_curvature(metric, z, labels, sigma):
    """Return second derivatives, by differences of fourth order."""
    step = 2e-3 * sigma
    out = np.zeros(len(z))
    for i in range(len(z)):
        at = [exact_gradient(metric, z + k * step * (np.arange(len(z)) == i), labels, sigma)[i] for k in (-2, -1, 1, 2)]
        out[i] = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)
    return out


def conditional_estimates(metric, z, labels, sigma, eps):
    """Return the estimates of a query by definition, rank by rank: both derivatives, and the bounding sum."""
    n = len(z)
    slope, bend, size = np.zeros(n), np.zeros(n), np.zeros(n)
    if n < 2:
        return slope, bend, size
    tau = sigma * np.sqrt(n / (n - 1))
    x = z + sigma * eps
    for i in range(n):
        others = np.array([j for j in np.argsort(-x, kind="stable") if j != i])
        value = np.array([metric.reference(np.insert(labels[others], d, labels[i])) for d in range(n)])
        u = (x[others] - z[i] - sigma * eps[others].mean()) / tau
        density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) / tau
        edges = np.concatenate(([0.0], density, [0.0]))
        slope[i] = value @ (edges[1:] - edges[:-1])
        edges[1:-1] *= u / tau
        bend[i] = value @ (edges[1:] - edges[:-1])
        size[i] = np.abs(value[:-1] - value[1:]) @ density / tau
    return slope, bend, size

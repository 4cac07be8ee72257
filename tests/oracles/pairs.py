"""Gradients of pairwise losses with noise, by Monte Carlo, over all rankings or from the definition."""

import math

import numpy as np
from oracles.rankings import exact_rankings
from scipy import stats
from scipy.special import expit

from ltr_objectives.kernels.rng import GAMMA, NOISES, mix, quantile, stream, uniform

DISTRIBUTIONS = {"logistic": stats.logistic, "gaussian": stats.norm, "gumbel": stats.gumbel_r}


def monte_carlo(objective, scores, labels, noise, rounds):
    """Return mean and standard error of the gradient, with NumPy's own generator and the definition of the weights."""
    draws = DISTRIBUTIONS[noise].rvs(size=(rounds, len(scores)), random_state=7)
    orders = np.argsort(-(scores + objective.noise_scale * draws), axis=1, kind="stable")
    orders, counts = np.unique(orders, axis=0, return_counts=True)
    gradients = np.array([gradient_of(objective, scores, labels, order) for order in orders])
    mean = counts @ gradients / rounds
    return mean, np.sqrt(counts @ (gradients - mean) ** 2) / rounds


def over_all_rankings(objective, scores, labels):
    """Return the expected gradient with Gumbel noise, whose rankings have the probabilities of Plackett and Luce."""
    rankings, chances = exact_rankings(scores / objective.noise_scale, len(scores))
    return chances @ [gradient_of(objective, scores, labels, order) for order in rankings]


def gradient_of(objective, scores, labels, order):
    """Return the gradient of one draw."""
    n, weights = len(scores), objective.pair_weights(labels[order])
    gradient = np.zeros(n)
    for d, e in zip(*np.triu_indices(n, 1), strict=True):
        a, b = order[d], order[e]
        if labels[a] != labels[b] and e - d <= objective.pair_settings().near:
            hi, lo = (a, b) if labels[a] > labels[b] else (b, a)
            slope = weights[d, e] * expit(scores[lo] - scores[hi])
            gradient[[hi, lo]] += -slope, slope
    return gradient


def uniforms(key, n, draws):
    """Return the uniform numbers of n documents, by draw and document."""
    with np.errstate(over="ignore"):
        x = np.array([mix(key + GAMMA * np.uint64(i)) for i in range(n)], np.uint64)
    first, place = np.divmod((x >> np.uint64(32)) * np.uint64(draws), np.uint64(2**32))
    units = []
    for b in (b for b in range(1, max(draws, 2)) if math.gcd(b, draws) == 1):
        j = int(uniform(np.uint64(0), np.uint64(len(units))) * (len(units) + 1))
        units[j:] = [b, *units[j + 1 :], *units[j : j + 1]]
    k = np.arange(draws)[:, None]
    stratum = (first.astype(int) + k * np.resize(units, n)) % draws
    within = (place.astype(int) + k * (x & np.uint64(2**32 - 1)).astype(int)) % 2**32
    return (stratum + (within + 0.5) / 2**32) / draws


def by_definition(objective, scores, labels):
    """Return mean gradient and Hessian over the draws, pair by pair, with the random numbers of the kernel."""
    n, pairs, metric = len(scores), objective.pair_settings(), objective.weighing_metric
    key = np.uint64(stream(np.uint64(pairs.seed), np.uint64(0), np.uint64(0)))
    grad, hess, total = np.zeros(n), np.zeros(n), 0.0
    d, e = np.triu_indices(n, 1)
    for u in uniforms(key, n, pairs.draws):
        noisy = scores + pairs.noise_scale * np.array([quantile(NOISES[pairs.noise], x) for x in u])
        order = np.argsort(-noisy, kind="stable")
        a, b = order[d], order[e]
        counted = (labels[a] != labels[b]) & (d < (pairs.truncation or n)) & (e - d <= pairs.near)
        weights = objective.pair_weights(labels[order])[d, e] * counted
        hi, lo = np.where(labels[a] > labels[b], (a, b), (b, a))
        at = noisy if pairs.difference == "noisy" else scores
        slope, curve = (expit(sign * (at[lo] - at[hi])) for sign in (1, -1))
        for rows, sign in ((hi, -1), (lo, 1)):
            np.add.at(grad, rows, sign * weights * slope)
            np.add.at(hess, rows, weights * slope * curve)
        total += 2 * np.sum(weights * slope) / pairs.draws
    amounts = metric is not None and metric.maximum is None  # by which queries count
    norm = not amounts if pairs.lambda_norm is None else pairs.lambda_norm
    factor = np.log2(1 + total) / total if norm and total > 0 else 1.0
    return factor * grad / pairs.draws, factor * hess / pairs.draws

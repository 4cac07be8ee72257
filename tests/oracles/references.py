"""Gradient and Hessian of one list in NumPy, without noise, for each objective; no code is that of a kernel."""

import functools
import itertools
import math

import numpy as np
from oracles.rankings import exact_rankings
from oracles.stochasticrank import conditional_estimates, exact_gradient
from scipy.special import erfc, expit, softmax

import ltr_objectives as ours
from ltr_objectives import Queries
from ltr_objectives.metrics import gains
from ltr_objectives.objectives.approx import _Approx
from ltr_objectives.objectives.around import Wrapper
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.mixture import _labels_for
from ltr_objectives.objectives.neuralndcg import _Sorted
from ltr_objectives.objectives.reference import reference_gains, reference_head

STEP = 1e-100
POLICIES = {
    "exact": lambda grad, hess: hess,
    "double": lambda grad, hess: 2.0 * hess,
    "ones": lambda grad, hess: np.ones(len(hess)),
    "absolute": lambda grad, hess: np.abs(hess),
    "clipped": lambda grad, hess: np.maximum(hess, 0.0),
    "gradient": lambda grad, hess: np.abs(grad),
    "bounded": lambda grad, hess: np.maximum(hess, np.abs(grad)),
}


def gradient(loss, x):
    """Return the derivative of ``loss`` by each entry of ``x``: the imaginary part of ``loss(x + ih)`` over h.

    Nothing is subtracted, so all digits are exact.
    """
    grad = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        z = x.astype(np.complex128)
        z[at] += STEP * 1j
        grad[at] = np.imag(loss(z)) / STEP
    return grad


def derivatives(objective, scores, labels, curvature):
    """Return the gradient of the reference loss, and the Hessian that the objective's policy makes of ``curvature``."""
    grad = gradient(lambda s: objective.reference_loss(s, labels), scores)
    return grad, POLICIES[objective.policy](grad, curvature)


@functools.singledispatch
def reference(objective: ours.Objective, scores, labels):
    """Return gradient and Hessian of one query, by default those of the method ``reference``.

    They are expected values for an objective that is always random, in lists of at most 5 documents.
    """
    own = type(objective).reference
    return None if own is reference else own(objective, scores, labels)


@reference.register
def _(objective: Wrapper, scores, labels):
    grad, hess = reference(objective.objective, scores, labels)
    factor = objective.factor(Call.at(Queries(labels, [len(scores)]), scores))
    return factor * grad, factor * hess


@reference.register
def _(objective: ours.Langevin, scores, labels):
    grad, hess = reference(objective.objective, scores, labels)
    return grad + objective.shrink * hess * scores, hess


@reference.register
def _(objective: ours.Mixture, scores, labels):
    queries, total = Queries(labels, [len(scores)]), np.zeros((2, len(scores)))
    for part in objective.summands(queries, 1):
        total += part.factor * np.array(reference(part.objective, scores, _labels_for(part, queries)))
    return total[0], total[1]


@reference.register
def _(objective: ours.RMSE, scores, labels):
    return scores - labels, np.ones(len(scores))


@reference.register
def _(objective: ours.QueryRMSE, scores, labels):
    return scores - labels - np.mean(scores - labels), np.ones(len(scores))


@reference.register
def _(objective: ours.Ordinal, scores, labels):
    gaps = scores[:, None] - objective.thresholds
    return derivatives(objective, scores, labels, np.sum(expit(gaps) * expit(-gaps), axis=1))


@reference.register
def _(objective: ours.ListNet, scores, labels):
    rho = softmax(scores)
    return derivatives(objective, scores, labels, objective._reference_target(labels).sum() * rho * (1.0 - rho))


@reference.register
def _(objective: ours.ListMLE, scores, labels):
    hess = np.zeros(len(scores))
    for share in objective._open_shares(labels):
        chance = np.where(share > 0, share * np.exp(np.minimum(scores - scores[share > 0].max(), 0.0)), 0.0)
        chance /= chance.sum()
        hess += chance * (1.0 - chance)
    return derivatives(objective, scores, labels, hess)


@reference.register
def _(objective: ours.XENDCG, scores, labels):
    n = len(scores)
    if len(set(labels)) < 2:
        return np.zeros(n), np.zeros(n)
    rho, phi = softmax(scores), np.exp2(labels) - 0.5
    others = ~np.eye(n, dtype=bool)
    miss = np.array([rho[others[i]].sum() for i in range(n)])
    shares = np.zeros((n, n))
    for i in range(n):
        shares[i, others[i]] = softmax(scores[others[i]])
    part = grad = rho - phi / phi.sum()
    for _ in range(1, objective.terms):
        part = part @ shares
        grad = grad + part
    return grad, POLICIES[objective.hessian](grad, rho * miss)


@reference.register
def _(objective: _Approx, scores, labels):
    if len(set(objective._metric.gain(labels))) < 2:
        return np.zeros((2, len(scores)))
    chance, gaps = objective._chances(scores), objective.alpha * (scores - scores[:, None])
    pull = np.abs(gradient(lambda p: objective._loss(p, scores, labels), chance))
    curve = objective.alpha**2 / objective.step * pull * expit(gaps) * expit(-gaps)
    np.fill_diagonal(curve, 0.0)
    return derivatives(objective, scores, labels, curve.sum(axis=0) + curve.sum(axis=1))


@reference.register
def _(objective: ours.PLRank, scores, labels):
    theta, gain = objective.theta(len(scores)), gains.apply_gain(objective.gain, labels)
    ideal = float(np.dot(np.sort(gain)[::-1][: len(theta)], np.sort(theta)[::-1]))
    return _expected(objective, scores, (gain - gain.min()) / (ideal if objective.normalize and ideal > 0 else 1.0))


@reference.register
def _(objective: ours.FairExposure, scores, labels):
    theta, exposure = objective.theta(len(scores)), np.zeros(len(scores))
    for y, p in zip(*exact_rankings(scores, len(theta)), strict=True):
        exposure[y] += p * theta
    return _expected(objective, scores, objective._merit(Queries(labels, [len(scores)])) * exposure.sum() - exposure)


def _expected(objective, scores, gain):
    """Return gradient and Hessian of minus the expected sum of rank weight times ``gain``, over all rankings."""
    theta, n = objective.theta(len(scores)), len(scores)
    grad, hess = np.zeros(n), np.zeros(n)
    for y, p in zip(*exact_rankings(scores, len(theta)), strict=True):
        slope, curve = np.zeros(n), np.zeros(n)  # derivatives of the logarithm of p
        slope[y] = 1.0
        for i in range(len(y)):
            rest = np.setdiff1d(np.arange(n), y[:i])
            chance = softmax(scores[rest])
            slope[rest] -= chance
            curve[rest] -= chance * (1.0 - chance)
        reward = theta @ gain[y]
        grad -= p * reward * slope
        hess -= p * reward * (slope**2 + curve)
    return grad, POLICIES[objective.hessian](grad, hess)


@reference.register
def _(objective: ours.StochasticRank, scores, labels):
    n, z = len(scores), scores - objective.mu * objective.sigma * labels
    draws = np.random.default_rng(0).normal(size=(100, n))  # the estimates of two documents do not depend on them
    estimates = [conditional_estimates(objective.metric, z, labels, objective.sigma, eps) for eps in draws]
    slope, bend, size = np.mean(estimates, axis=0)
    if n == 3:
        slope = exact_gradient(objective.metric, z, labels, objective.sigma)
    if objective.sfa > 0 and n > 0:
        slope = slope - slope.mean()
        c = scores - scores.mean()
        if n > 2:
            slope = slope - objective.sfa * c * (c @ slope) / (np.linalg.norm(c) + objective.nu) ** 2
    return -slope, POLICIES[objective.policy](-slope, size if objective.hessian == "bounded" else -bend)


@reference.register
def _(objective: _Sorted, scores, labels):
    return derivatives(objective, scores, labels, np.zeros(len(scores)))


@reference.register
def _(objective: ours.SoftRank, scores, labels):
    chosen = reference_head(scores, labels, objective.max_documents)
    s, gain = scores[chosen], reference_gains(objective.gain, labels)[chosen]
    grad, hess = np.zeros(len(scores)), np.zeros(len(scores))
    n, width = len(s), 2.0 * objective.sigma
    beats = erfc((s[:, None] - s) / width) / 2.0
    lost = 1.0 / np.log2(np.arange(2, n + 1)) - 1.0 / np.log2(np.arange(3, n + 2))  # by one more rank
    for i, j in itertools.permutations(range(n), 2):
        u = (s[i] - s[j]) / width
        if gain[i] == 0.0 or abs(u) > 30.0:  # the density below is 0
            continue
        density = math.exp(-(u**2)) / (width * math.sqrt(math.pi))
        t = gain[i] * density * (number_of(np.delete(beats[i], (i, j))) @ lost)
        grad[chosen[j]] += t
        grad[chosen[i]] -= t
        hess[chosen[[i, j]]] += t / (objective.sigma * objective.step)
    return grad, hess


def number_of(chances):
    """Return the distribution of the number of independent events that happen, by the chance of each."""
    out = np.ones(1)
    for p in chances:
        out = np.append(out * (1.0 - p), 0.0) + np.append(0.0, out * p)
    return out

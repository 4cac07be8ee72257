r"""LambdaLoss: the bounds of NDCG that lie behind LambdaRank.

Each pair has a logistic loss in both directions, with weights that depend on its ranks. For ranks d < e, with gains
:math:`G` over the ideal DCG, discounts :math:`w` and chance :math:`p` that e beats d, it is

.. math:: a \log_2 \frac{1}{1 - p} + b \log_2 \frac{1}{p}

with :math:`a` the weight of d above e, and :math:`b` that of e above d. Only the document of larger gain has a weight,

.. math:: |G_d - G_e| \, (\mathrm{far} \cdot \delta_{e-d} + \mathrm{near} \cdot (w_d - w_e)).

There :math:`\delta_m` is the discount at rank m less that at rank m + 1, counted from 1; ``far`` and ``near`` choose
the loss.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.checks import (
    check_choice,
    check_draws,
    check_integer,
    check_not_negative,
    check_positive,
    check_seed,
)
from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.chances import chances
from ltr_objectives.kernels.exponential import relative_to_top
from ltr_objectives.kernels.partners import is_sampled, runs
from ltr_objectives.kernels.rankings import number_of
from ltr_objectives.kernels.records import MANY
from ltr_objectives.kernels.rng import NOISES, add_noise, stream
from ltr_objectives.kernels.sorting import all_equal, descending_order, longest_list, sorter
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.reference import sigmoid, softplus

WEIGHTS = ("ndcg2", "ndcg2++")
LOG2_E = 1.4426950408889634


class ByRank(NamedTuple):
    """The weights of pairs by their ranks."""

    sigma: float
    near: float
    far: float
    k: int
    partners: int


@dataclass(frozen=True)
class LambdaLoss(NDCGObjective, text="lambdaloss"):
    r"""LambdaLoss (Wang et al., "The LambdaLoss Framework for Ranking Metric Optimization", CIKM 2018).

    .. math:: \sum_{i, j} w_{ij} \log_2 \left(1 + e^{-\sigma (s_i - s_j)}\right)

    over pairs at the ranks d and e of the current ranking, with gains :math:`G` over the ideal DCG,
    :math:`D(d) = \log_2(1 + d)`, and weights

    * NDCG-Loss2: :math:`w_{ij} = |G_i - G_j| \left(1 / D(|d - e|) - 1 / D(|d - e| + 1)\right)` if :math:`y_i > y_j`;
    * NDCG-Loss2++: the same times ``mu``, plus LambdaRank's :math:`|G_i - G_j| \left|1 / D(d) - 1 / D(e)\right|`.

    Ranks count as constants; without noise and partners the Hessian is then exact. The Hessians of a query grow with
    its length n. Without a cutoff they add up to at most :math:`1.45 \log_2(1 + n)\, \sigma^2` for NDCG-Loss2. For
    NDCG-Loss2++ the limit is ``mu`` times this plus :math:`1.45\, n \sigma^2`. With 100 documents and ``mu=10`` the
    largest sums found are 3 and 63 times :math:`\sigma^2`. Without noise, Newton steps are at most
    :math:`2 / \sigma` for tied scores, longer for pairs far apart in the wrong order.

    Parameters
    ----------
    k : int, optional
        Cutoff of the ideal and of the pairs, of which one document must be within it; None is the whole list.
    weights : "ndcg2++" or "ndcg2"
        The loss: NDCG-Loss2++ or NDCG-Loss2.
    mu : float
        The factor above, for NDCG-Loss2++; 10 in the paper and in allRank.
    sigma : float
        Steepness of the logistic function, above 0.
    gain : "exp", "linear" or table
        As in :class:`NDCG`.
    partners : int, optional
        Pairs of a document with about this many others, drawn at random in each iteration, instead of all pairs of a
        longer list. Gradient and Hessian then have the same expected values, and the time of a list grows
        in proportion to its documents.
    seed : int
        Seed of the noise and of ``partners``.
    noise : "gumbel", "logistic", "gaussian" or None
        With noise the loss is its mean over ``samples`` draws of noise added to the scores. With "gumbel" that
        estimates the expected loss of Bruch et al., "A Stochastic Treatment of Learning to Rank Scoring Functions",
        WSDM 2020.
    samples : int
        Draws per iteration, from 1 to 1,000,000, if there is noise. Each takes as long as the loss without noise.
    noise_scale : float
        The noise is multiplied by this.

    Examples
    --------
    >>> grad, hess = LambdaLoss(weights="ndcg2").gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([-0.266228,  0.266228]), array([0.133114, 0.133114]))
    """

    weights: str = "ndcg2++"
    mu: float = 10.0
    sigma: float = 1.0
    partners: int | None = None
    seed: int = 0
    noise: str | None = None
    samples: int = 10
    noise_scale: float = 1.0

    fewer_pairs = "choose a cutoff, such as k=30, or partners=10"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("weights", self.weights, WEIGHTS)
        check_not_negative("mu", self.mu)
        check_positive("sigma", self.sigma)
        check_seed(self.seed)
        check_choice("noise", self.noise, tuple(NOISES))
        check_draws("samples", self.samples)
        check_positive("noise_scale", self.noise_scale)
        if self.partners is not None:
            check_integer("partners", self.partners)

    @property
    def random(self) -> bool:
        return self.noise is not None or self.partners is not None

    @property
    def hessian_kind(self) -> str:
        return "estimate" if self.random else "exact"

    def fill(self, call: Call) -> None:
        discount = 1.0 / np.log2(np.arange(2, call.queries.longest + 3))
        terms = self.terms(call.queries)._replace(discount=discount)
        near, far = (0.0, 1.0) if self.weights == "ndcg2" else (1.0, float(self.mu))
        how = ByRank(float(self.sigma), near, far, int(self.k or MANY), int(self.partners or MANY))
        draws = 1 if self.noise is None else self.samples
        draw = call.draw(self.seed, draws, NOISES[self.noise], self.noise_scale) if self.random else None
        call.run(_lambdaloss, terms, discount[:-1] - discount[1:], how, draw)

    def _weights(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Weight of each ordered pair of documents."""
        n = len(scores)
        rank = np.empty(n)
        rank[np.argsort(-scores.real, kind="stable")] = np.arange(1, n + 1)
        gain = self.reference_gains(labels)
        d, e = np.meshgrid(rank, rank, indexing="ij")
        gap = np.where(d == e, 1.0, np.abs(d - e))
        lower = 1.0 / np.log2(1.0 + gap) - 1.0 / np.log2(2.0 + gap)
        near = np.abs(1.0 / np.log2(1.0 + d) - 1.0 / np.log2(1.0 + e))
        w = (lower if self.weights == "ndcg2" else self.mu * lower + near) * np.maximum(gain[:, None] - gain, 0.0)
        return np.where((np.minimum(d, e) <= (self.k or n)) & (d != e), w, 0.0)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if self.random:
            return None
        gaps = scores[:, None] - scores
        return np.sum(self._weights(scores, labels) * softplus(-self.sigma * gaps)) / np.log(2.0)

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gaps = self.sigma * (scores[:, None] - scores)
        w = self._weights(scores, labels)
        slope = self.sigma * w * sigmoid(-gaps) / np.log(2.0)
        curve = self.sigma**2 * (w + w.T) * sigmoid(gaps) * sigmoid(-gaps) / np.log(2.0)
        return slope.sum(axis=0) - slope.sum(axis=1), curve.sum(axis=1)


@inlined
def pair(m, loses, wins):
    """Slope and curvature of a pair of weight |m|, whose first document is the better one if m > 0.

    ``loses`` and ``wins`` are the probabilities that the first document loses and wins.
    """
    return m * (loses if m > 0.0 else wins), abs(m) * loses * wins


class Ranked(NamedTuple):
    """One list in rank order: gains, chances ``p`` and ``rest = 1 - p`` of one rank, and the sums."""

    g: np.ndarray
    p: np.ndarray
    rest: np.ndarray
    lam: np.ndarray
    hes: np.ndarray


@inlined
def _row(d, end, how, w, delta, r):
    g_d, w_d, near, far = r.g[d], w[d], how.near, how.far
    g, lam, hes = r.g[d + 1 : end], r.lam[d + 1 : end], r.hes[d + 1 : end]
    p, rest, w = r.p[d + 1 : end], r.rest[d + 1 : end], w[d + 1 : end]
    down, curve = 0.0, 0.0
    for e in range(len(g)):
        x, h = pair((g_d - g[e]) * (far * delta[e] + near * (w_d - w[e])), p[e], rest[e])
        lam[e] += x
        hes[e] += h
        down += x
        curve += h
    r.lam[d] -= down
    r.hes[d] += curve


@inlined
def _some(a, b, weight, delta, how, w, wide, s, E, r):
    """The pair of ranks a < b, times ``weight``; ``delta`` is that of their distance."""
    gap = how.sigma * (s[a] - s[b])
    if wide:
        e = math.exp(-abs(gap))
        p = (e if gap > 0.0 else 1.0) / (1.0 + e)
        rest = (1.0 if gap > 0.0 else e) / (1.0 + e)
    else:
        p, rest = E[b] / (E[a] + E[b]), E[a] / (E[a] + E[b])
    x, h = pair((r.g[a] - r.g[b]) * (how.far * delta + how.near * (w[a] - w[b])), p, rest)
    r.lam[a] -= weight * x
    r.lam[b] += weight * x
    r.hes[a] += weight * h
    r.hes[b] += weight * h


@kernel
def _lambdaloss(first, last, ptr, scores, terms, delta, how, draw, out):
    """``delta[m - 1]`` is the discount at rank m less that at rank m + 1, counted from 1."""
    longest, w, draws = longest_list(ptr, first, last), terms.discount, number_of(draw)
    sort, order, E, noisy = sorter(longest), np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    r = Ranked(np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest))
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if terms.scale[q] == 0.0 or all_equal(terms.gain[a:b]) or out.skip[q]:
            continue
        for number in range(draws):
            x = scores[a:b]
            if draw is not None and draw.noise:
                key, start = stream(draw.seed, draw.iteration, np.uint64(q)), np.uint64(number) * np.uint64(2 * n)
                add_noise(x, draw.noise, draw.scale, key, start, noisy[:n])
                x = noisy[:n]
            descending_order(x, order, sort)
            s = sort.key
            wide = not relative_to_top(s[:n], how.sigma, E)
            for d in range(n):
                r.g[d] = terms.gain[a + order[d]] * terms.scale[q]
                r.lam[d], r.hes[d] = 0.0, 0.0
            ranks = min(n - 1, how.k)
            if draw is not None:
                top = n if ranks == n - 1 else ranks
                if is_sampled(n, top, how.partners):
                    found, weight = runs(n, top, how.partners, True, draw, q, number)
                    for k in range(len(weight)):
                        for i in range(found[2, k]):
                            d, e = found[0, k] + i, found[1, k] + i
                            _some(d, e, weight[k], delta[e - d - 1], how, w, wide, s, E, r)
                    ranks = 0
            for d in range(ranks):
                chances(d, s[:n], E, wide, how.sigma, d + 1, r.p, r.rest)
                _row(d, n, how, w, delta, r)
            for d in range(n):
                out.grad[a + order[d]] += r.lam[d] * how.sigma * LOG2_E / draws
                out.hess[a + order[d]] += r.hes[d] * how.sigma * how.sigma * LOG2_E / draws

r"""SoftRank: expected NDCG of documents with normally distributed scores, in quadratic time.

The rank of document i, counted from 0, is a sum of independent 0/1 variables: for each j the chance is :math:`p_{ij}`
that j beats i. Its distribution takes :math:`O(n^2)` a document by recursion. But let the discount be a sum of a few
exponentials, :math:`w_r = \sum_m c_m z_m^r` for r = 0, 1, ...: 41 for 1,000 ranks, exact to 1e-12. Then the expected
discount is a sum of products,

.. math:: \mathbb{E} w = \sum_m c_m \prod_j (1 - (1 - z_m) p_{ij}).

Its derivative by :math:`p_{ij}` has :math:`-(1 - z_m)` in place of the factor of j. That takes one division by the
factor, which is at least :math:`z_m > 0`. The derivative of a distribution would need the distribution without j, for
which no recursion is stable for all chances.
"""

import functools
import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.chosen import choose
from ltr_objectives.kernels.records import Out, Terms
from ltr_objectives.kernels.sorting import all_equal, longest_list, sorter
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import GainObjective
from ltr_objectives.objectives.reference import reference_gains, reference_head
from ltr_objectives.queries import Queries


class NormalScores(NamedTuple):
    """Normal scores, and the discount as a sum of exponentials."""

    sigma: float
    step: float
    c: np.ndarray
    miss: np.ndarray  # 1 - z
    most: int  # documents of a list that count


@functools.lru_cache
def discount_exponentials(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors c and z with ``sum_m c_m z_m^(d - 1)`` = 1 / log2(1 + d) for d = 1, ..., ranks, within 1e-12.

    1 / log(1 + d) is a mixture of exp(-x d) over x > 0, so a few, spread evenly in log x, suffice. The last z is 1.
    """
    least, most = 0.1 / ranks, 20.0
    rates = np.append(np.geomspace(least, most, math.ceil(3.3 * math.log(most / least))), 0.0)
    d = np.unique(np.rint(np.concatenate((np.arange(1, min(ranks, 200) + 1), np.geomspace(1, ranks, 400)))))
    factors = np.linalg.lstsq(np.exp(-np.outer(d - 1.0, rates)), 1.0 / np.log2(1.0 + d), rcond=1e-16)[0]
    return factors, np.exp(-rates)


@dataclass(frozen=True)
class SoftRank(GainObjective, text="softrank"):
    r"""SoftRank (Taylor et al., "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008), or SoftNDCG.

    .. math:: -\frac{1}{N} \sum_i G(y_i)\, \mathbb{E} \frac{1}{\log_2(1 + r_i)}, \quad
        r_i = 1 + \sum_{j \ne i} B_{ij}, \quad P(B_{ij} = 1) = \Phi\Big(\frac{s_j - s_i}{\sqrt 2 \sigma}\Big)

    with the ideal DCG N and independent :math:`B`, as in the paper: each score has a normal distribution, and the
    dependence between pairs with a document in common is left out. A query takes O(n^2) instead of the paper's O(n^3),
    because the discount is written as a sum of exponentials. A cutoff is not such a sum, so the whole list counts.

    The gradient is exact. The Hessian is an estimate: the sum of the absolute gradients of a document's pairs, divided
    by ``step`` times :math:`\sigma`. Queries whose labels are all equal have zero gradient.

    Parameters
    ----------
    sigma : float
        Standard deviation of each score.
    step : float
        Newton steps are at most this times :math:`\sigma`; 10 trained much better than 1 in LightGBM.
    gain, max_documents
        As in :class:`NeuralNDCG`.

    Examples
    --------
    >>> grad, hess = SoftRank().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.104113, -0.104113]), array([0.010411, 0.010411]))
    """

    sigma: float = 1.0
    _: KW_ONLY
    max_documents: int = 1000
    step: float = 10.0

    def visits(self, queries: Queries) -> float:
        n = min(queries.longest, self.max_documents)
        return float(n) * min(n, int(np.count_nonzero(queries.in_longest(queries.labels))))

    def fill(self, call: Call) -> None:
        terms = NDCG(gain_type=self.gain).terms(call.queries)
        factors, z = discount_exponentials(self.max_documents)
        soft = NormalScores(float(self.sigma), float(self.step), factors[:-1].copy(), 1.0 - z[:-1], self.max_documents)
        call.run(_softrank, call.queries.labels, terms, soft)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        chosen = reference_head(scores, labels, self.max_documents)
        s = scores[chosen]
        beats = np.vectorize(math.erfc)((s[:, None] - s) / (2.0 * self.sigma)) / 2.0
        np.fill_diagonal(beats, 0.0)
        factors, z = discount_exponentials(self.max_documents)
        discount = [np.prod(1.0 - np.outer(1.0 - z, p), axis=1) @ factors for p in beats]
        return -np.sum(reference_gains(self.gain, labels)[chosen] * discount)


@inlined
def _multiply(product, miss, p):
    """Multiply each product by its factor for a document that is ahead with the chance ``p``."""
    for m in range(len(miss)):
        product[m] *= 1.0 - miss[m] * p


@inlined
def _without(pull, miss, p):
    """Return the sum of the products, each divided by its factor for the chance ``p``."""
    total = 0.0
    for m in range(len(miss)):
        total += pull[m] / (1.0 - miss[m] * p)
    return total


@kernel
def _softrank(first, last, ptr, scores, labels, terms: Terms, soft: NormalScores, out: Out):
    """Write the derivatives of expected NDCG, and their absolute sums as Hessian."""
    longest = longest_list(ptr, first, last)
    sigma, c, miss, most, grad, hess = soft.sigma, soft.c, soft.miss, soft.most, out.grad, out.hess
    sort, order, chosen = sorter(longest), np.empty(longest, np.int64), np.empty(longest, np.int64)
    product, p = np.empty(len(c)), np.empty(min(longest, most))
    width = 2.0 * sigma  # deviation of the difference of two scores, times the square root of 2
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if terms.scale[q] == 0.0 or all_equal(terms.gain[a:b]) or out.skip[q]:
            continue
        n = choose(scores[a:b], labels[a:b], most, order, chosen, sort)
        for i in range(n):
            row = a + chosen[i]
            g = terms.gain[row] * terms.scale[q]
            if g == 0.0:
                continue
            # the expected discount: a product for each exponential, with a factor for each document ahead
            product[:] = 1.0
            for j in range(n):
                p[j] = 0.5 * math.erfc((scores[row] - scores[a + chosen[j]]) / width) if j != i else 0.0
                if p[j] > 0.0:
                    _multiply(product, miss, p[j])
            for m in range(len(c)):
                product[m] *= c[m] * miss[m]
            # its slope by the chance that j is ahead, times the density of a tie
            for j in range(n):
                u = (scores[row] - scores[a + chosen[j]]) / width
                density = math.exp(-u * u) / (width * math.sqrt(math.pi))
                if j != i and density > 0.0:
                    t = g * _without(product, miss, p[j]) * density
                    other = a + chosen[j]
                    grad[other] += t
                    grad[row] -= t
                    hess[other] += abs(t) / sigma
                    hess[row] += abs(t) / sigma
        for i in range(a, b):
            hess[i] /= soft.step

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

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel
from ltr_objectives.kernels.chosen import choose
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.sorting import Sorter, all_equal, sorter
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import GainObjective
from ltr_objectives.objectives.reference import reference_gains, reference_head
from ltr_objectives.queries import Queries


class NormalScores(NamedTuple):
    """The metric of normal scores, with the discount as a sum of exponentials."""

    terms: Terms
    labels: np.ndarray  # choose the documents of long lists
    sigma: float
    step: float
    c: np.ndarray
    miss: np.ndarray  # 1 - z
    most: int  # documents of a list that count


@functools.lru_cache
def discount_exponentials(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors c and z with ``sum_m c_m z_m^(d - 1)`` = 1 / log2(1 + d) for d = 1, ..., ranks, within 1e-12.

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

    def pairs_visited(self, queries: Queries) -> float:
        n = min(queries.longest, self.max_documents)
        return float(n) * min(n, int(np.count_nonzero(queries.in_longest(queries.labels))))

    def fill(self, call: Call) -> None:
        terms = NDCG(gain_type=self.gain).terms(call.queries)
        factors, z = discount_exponentials(self.max_documents)
        soft = NormalScores(terms, call.queries.labels, float(self.sigma), float(self.step), factors[:-1].copy(),
                            1.0 - z[:-1], self.max_documents)  # fmt: skip
        call.run(_expected_ndcg, soft)

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
    apart()
    for m in range(len(miss)):
        product[m] *= 1.0 - miss[m] * p


@inlined
def _without(pull, miss, p):
    """Return the sum of the products, each divided by its factor for the chance ``p``."""
    total = 0.0
    for m in range(len(miss)):
        total += pull[m] / (1.0 - miss[m] * p)
    return total


class Scratch(NamedTuple):
    """The order of a list, the documents that count, the chances that they beat one of them, and its products."""

    sort: Sorter
    order: np.ndarray
    chosen: np.ndarray
    p: np.ndarray
    product: np.ndarray


@allocating
def _scratch(longest, soft):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(sorter(longest), np.empty(longest, np.int64), np.empty(longest, np.int64),
                   np.empty(min(longest, soft.most)), np.empty(len(soft.c)))  # fmt: skip


@inlined_kernel
def _add_document(i, g, chosen, one: OneList, soft: NormalScores, r: Scratch):
    """Add the derivatives of the expected discount of document ``i``, of gain ``g``."""
    s, p, product = one.s, r.p, r.product
    width = 2.0 * soft.sigma  # deviation of the difference of two scores, times the square root of 2
    # the expected discount: a product for each exponential, with a factor for each document ahead
    product[:] = 1.0
    for k in range(len(chosen)):
        j = chosen[k]
        p[k] = 0.5 * math.erfc((s[i] - s[j]) / width) if j != i else 0.0
        if p[k] > 0.0:
            _multiply(product, soft.miss, p[k])
    for m in range(len(product)):
        product[m] *= soft.c[m] * soft.miss[m]
    # its slope by the chance that j is ahead, times the density of a tie
    for k in range(len(chosen)):
        j = chosen[k]
        u = (s[i] - s[j]) / width
        density = math.exp(-u * u) / (width * math.sqrt(math.pi))
        if j != i and density > 0.0:
            t = g * _without(product, soft.miss, p[k]) * density
            one.grad[j] += t
            one.grad[i] -= t
            one.hess[j] += abs(t) / soft.sigma
            one.hess[i] += abs(t) / soft.sigma


@inlined_kernel
def _softrank(one: OneList, soft: NormalScores, r: Scratch) -> None:
    """Write the derivatives of expected NDCG, and their absolute sums as Hessian."""
    gain, labels = soft.terms.gain[one.first : one.last], soft.labels[one.first : one.last]
    scale = soft.terms.scale[one.q]
    if scale == 0.0 or all_equal(gain):
        return
    chosen = r.chosen[: choose(one.s, labels, soft.most, r.order, r.chosen, r.sort)]
    for i in chosen:
        if gain[i] * scale != 0.0:
            _add_document(i, gain[i] * scale, chosen, one, soft, r)
    for i in range(len(one.s)):
        one.hess[i] /= soft.step


_expected_ndcg = each_list(_scratch, _softrank)

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

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel
from ltr_objectives.kernels.chosen import choose
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.sorting import Sorter, all_equal, sorter


class Inputs(NamedTuple):
    """The metric of normal scores, with the discount as a sum of exponentials."""

    terms: Terms
    labels: np.ndarray  # choose the documents of long lists
    sigma: float
    step: float
    c: np.ndarray
    miss: np.ndarray  # 1 - z
    most: int  # documents of a list that count


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
def _scratch(longest, inputs):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(
        sort=sorter(longest), order=np.empty(longest, np.int64), chosen=np.empty(longest, np.int64),
        p=np.empty(min(longest, inputs.most)), product=np.empty(len(inputs.c)),
    )  # fmt: skip


@inlined_kernel
def _add_document(i, g, chosen, one: OneList, inputs: Inputs, r: Scratch):
    """Add the derivatives of the expected discount of document ``i``, of gain ``g``."""
    s, p, product = one.s, r.p, r.product
    width = 2.0 * inputs.sigma  # deviation of the difference of two scores, times the square root of 2
    # the expected discount: a product for each exponential, with a factor for each document ahead
    product[:] = 1.0
    for k in range(len(chosen)):
        j = chosen[k]
        p[k] = 0.5 * math.erfc((s[i] - s[j]) / width) if j != i else 0.0
        if p[k] > 0.0:
            _multiply(product, inputs.miss, p[k])
    for m in range(len(product)):
        product[m] *= inputs.c[m] * inputs.miss[m]
    # its slope by the chance that j is ahead, times the density of a tie
    for k in range(len(chosen)):
        j = chosen[k]
        u = (s[i] - s[j]) / width
        density = math.exp(-u * u) / (width * math.sqrt(math.pi))
        if j != i and density > 0.0:
            t = g * _without(product, inputs.miss, p[k]) * density
            one.grad[j] += t
            one.grad[i] -= t
            one.hess[j] += abs(t) / inputs.sigma
            one.hess[i] += abs(t) / inputs.sigma


@inlined_kernel
def _softrank(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write the derivatives of expected NDCG, and their absolute sums as Hessian."""
    gain, labels = inputs.terms.gain[one.first : one.last], inputs.labels[one.first : one.last]
    scale = inputs.terms.scale[one.q]
    if scale == 0.0 or all_equal(gain):
        return
    chosen = r.chosen[: choose(one.s, labels, inputs.most, r.order, r.chosen, r.sort)]
    for i in chosen:
        if gain[i] * scale != 0.0:
            _add_document(i, gain[i] * scale, chosen, one, inputs, r)
    for i in range(len(one.s)):
        one.hess[i] /= inputs.step


expected_ndcg = each_list(_scratch, _softrank)

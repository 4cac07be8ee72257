r"""SoftRank: expected discounts of documents with normal scores, in O(n^2) a list.

The rank of document i less 1 is a sum of independent 0/1 variables, one for each j, with chance ``p_ij`` that j beats
i. Its distribution takes O(n^2) a document by recursion. But with discounts that are a sum of a few exponentials,
``w_r = sum_m c_m z_m^r`` for r = 0, 1, ..., the expected discount is a sum of products,

    E w = sum_m c_m prod_j (1 - (1 - z_m) p_ij),

and its derivative by ``p_ij`` the same with the factor of j replaced by ``-(1 - z_m)``: one division, by no less than
z_m > 0, instead of taking j out of a distribution, which no recursion does stably for all chances.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel, vector_kernel
from ltr_objectives.kernels.heads import head
from ltr_objectives.kernels.sorting import all_equal, scratch


@vector_kernel
def _multiply(product, miss, p):
    for m in range(len(miss)):
        product[m] *= 1.0 - miss[m] * p


@vector_kernel
def _without(pull, miss, p):
    total = 0.0
    for m in range(len(miss)):
        total += pull[m] / (1.0 - miss[m] * p)
    return total


@kernel
def softrank(first, last, ptr, scores, labels, gain, scale, sigma, c, miss, most, grad, hess, stop):
    """Gradient and Hessian of minus the expected NDCG; ``miss`` holds 1 - z."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    chosen = np.empty(longest, np.int64)
    product, p = np.empty(len(c)), np.empty(min(longest, most))
    width = 2.0 * sigma  # of the difference of two scores, times the square root of 2
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if scale[q] == 0.0 or all_equal(gain[a:b]):
            continue
        n = head(scores[a:b], labels[a:b], most, key, order, key2, order2, chosen)
        for i in range(n):
            if stop[0]:
                return
            row = a + chosen[i]
            g = gain[row] * scale[q]
            if g == 0.0:
                continue
            product[:] = 1.0
            for j in range(n):
                p[j] = 0.5 * math.erfc((scores[row] - scores[a + chosen[j]]) / width) if j != i else 0.0
                if p[j] > 0.0:
                    _multiply(product, miss, p[j])
            for m in range(len(c)):
                product[m] *= c[m] * miss[m]
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

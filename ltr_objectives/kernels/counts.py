"""How many pairs of documents have a weight, for reports: those of :mod:`ltr_objectives.kernels.pairs`."""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.sorting import descending_order, scratch
from ltr_objectives.kernels.swaps import restart, swap_terms


@kernel
def count_pairs(first, last, ptr, scores, kind, gain, w, scale, rows, neighbors, out, stop):
    """Write the number of pairs of each query ``first <= q < last`` whose trade of places changes the metric."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, ptr[q + 1] - ptr[q])
    key, order, key2, order2 = scratch(longest)
    g, U, A, V, W = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        n = b - a
        if n < 2 or scale[q] == 0.0:
            continue
        descending_order(scores[a:b], key, order, key2, order2)
        for d in range(n):
            g[d] = gain[a + order[d]]
        swap_terms(kind, g, w, scale[q], n, U, A, V)
        for d in range(min(rows, n - 1)):
            if stop[0]:
                return
            if A[d] < 0.0:
                restart(g, w, d, n, U, W)
            for e in range(d + 1, n if neighbors >= n else min(n, d + 1 + neighbors)):
                x = U[d] + W[e] if A[d] < 0.0 else U[d] + A[d] * V[e]
                out[q] += (g[e] - g[d]) * x != 0.0

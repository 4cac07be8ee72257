"""Choose the documents of a long list for losses of quadratic time and memory."""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.sorting import descending_order


@kernel
def head(scores, labels, most, key, order, key2, order2, chosen):
    """Write at most ``most`` documents into ``chosen`` by descending score; return how many.

    Of a longer list, half of ``most`` (rounded up) are the documents of the largest scores. The others are those of the
    largest labels among the rest, by score where labels are equal. ``key``, ``order``, ``key2`` and ``order2`` are
    scratch.
    """
    n = len(scores)
    descending_order(scores, key, order, key2, order2)
    if n <= most:
        for d in range(n):
            chosen[d] = order[d]
        return n
    first = most - most // 2
    rest = order[first:n].copy()
    taken = np.zeros(n, np.bool_)
    by_label = np.empty(n - first)
    for i in range(n - first):
        by_label[i] = labels[rest[i]]
    descending_order(by_label, key, chosen, key2, order2)
    for i in range(most - first):
        taken[first + chosen[i]] = True
    for i in range(first):
        taken[i] = True
    m = 0
    for i in range(n):
        if taken[i]:
            chosen[m] = order[i]
            m += 1
    return m

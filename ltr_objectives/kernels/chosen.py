"""Choose the documents of a long list for losses of quadratic time and memory."""

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.sorting import descending_order


@kernel
def choose(scores, labels, most, order, chosen, sort):
    """Write at most ``most`` documents into ``chosen`` by descending score; return how many. ``order`` is scratch.

    Of a longer list, half of ``most`` (rounded up) are the documents of the largest scores. The other half are the
    documents of the largest labels among the rest, by score if labels are equal.
    """
    n = len(scores)
    descending_order(scores, order, sort)
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
    descending_order(by_label, chosen, sort)
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

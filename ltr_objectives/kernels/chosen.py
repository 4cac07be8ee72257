"""Choose the documents of a long list for losses of quadratic time and memory."""

import numpy as np

from ltr_objectives.kernels._jit import allocating
from ltr_objectives.kernels.sorting import descending_order


@allocating
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
    # sort the others by label
    first = most - most // 2
    by_label, taken = np.empty(n - first), np.zeros(n, np.bool_)
    for d in range(first, n):
        by_label[d - first] = labels[order[d]]
    descending_order(by_label, chosen, sort)
    # mark what is taken by score and by label
    taken[:first] = True
    for i in range(most - first):
        taken[first + chosen[i]] = True
    # write it in the order of the scores
    m = 0
    for d in range(n):
        if taken[d]:
            chosen[m] = order[d]
            m += 1
    return m

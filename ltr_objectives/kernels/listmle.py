r"""ListMLE: the likelihood that a Plackett-Luce model ranks by label.

At rank d by label the documents from d on are open. Their mass :math:`S_d`, the sum of :math:`e^s`, is kept as a
multiple of its largest term, whose logarithm is the unit. It is summed from the last rank to the first, so that nothing
is subtracted and nothing overflows. Sums over the ranks above are taken from the first rank to the last, in the unit of
the current :math:`S`, so that each step multiplies them by at most 1. A list takes :math:`O(n)`.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.sorting import all_equal


class Inputs(NamedTuple):
    """Labels by row, and the documents of each query in their order."""

    labels: np.ndarray
    by_label: np.ndarray


@kernel
def _masses(s, end, unit, S):
    """Fill unit and open mass of each rank; ``end[d]`` is where the tie of rank d ends."""
    n = len(s)
    b = n
    top, below = -np.inf, 0.0
    while b > 0:
        a = b - 1
        while a > 0 and end[a - 1] == b:
            a -= 1
        new = top
        for i in range(a, b):
            new = max(new, s[i])
        below *= math.exp(top - new)
        tied = 0.0
        for i in range(a, b):
            tied += math.exp(s[i] - new)
        for i in range(a, b):
            unit[i] = new
            S[i] = below + tied * (b - i) / (b - a)
        top, below, b = new, below + tied, a


@kernel
def _derivatives(s, end, unit, S, order, grad, hess):
    """Write gradient and Hessian of documents in the order of labels.

    At rank i ``above`` is the sum of S_i / S_d over the ranks d <= i. In ``own`` a rank of the tie counts by the share
    of the tie that is open there. The others are sums of squares.
    """
    n = len(s)
    above, above2, a = 0.0, 0.0, 0
    while a < n:
        b = end[a]
        own, own2 = above, above2
        for i in range(a, b):
            if i > 0:
                shrink = math.exp(unit[i] - unit[i - 1]) * S[i] / S[i - 1]
                above, above2 = above * shrink, above2 * shrink * shrink
                own, own2 = own * shrink, own2 * shrink * shrink
            share = (b - i) / (b - a)
            above, above2 = above + 1.0, above2 + 1.0
            own, own2 = own + share, own2 + share * share
        for i in range(a, b):
            e = math.exp(s[i] - unit[b - 1]) / S[b - 1]
            grad[order[i]] = e * own - 1.0
            hess[order[i]] = max(e * own - e * e * own2, 0.0)
        a = b


class Scratch(NamedTuple):
    """By rank in the order of labels."""

    end: np.ndarray  # where the tie of the rank ends
    s: np.ndarray
    unit: np.ndarray
    S: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(end=np.empty(longest, np.int64), s=np.empty(longest), unit=np.empty(longest), S=np.empty(longest))


@inlined_kernel
def _listmle(one: OneList, inputs: Inputs, r: Scratch) -> None:
    """Write minus the log-likelihood's derivatives; a list of equal labels has none."""
    n, y, order = len(one.s), inputs.labels[one.first : one.last], inputs.by_label[one.first : one.last]
    if all_equal(y):
        return
    for i in range(n - 1, -1, -1):
        r.s[i] = one.s[order[i]]
        r.end[i] = r.end[i + 1] if i + 1 < n and y[order[i]] == y[order[i + 1]] else i + 1
    _masses(r.s[:n], r.end, r.unit, r.S)
    _derivatives(r.s[:n], r.end, r.unit, r.S, order, one.grad, one.hess)


likelihood = each_list(_scratch, _listmle)

r"""The logistic pairs of :mod:`ltr_objectives.kernels.pairs` for average precision, over all pairs.

Only swaps of a relevant document with one that is not relevant change average precision. The loop pairs each relevant
document with the others, which were copied together: R (n - R) pairs instead of n^2 / 2. In a list of 119 documents
with 57 relevant ones that takes 2/3 of the time, with 4 relevant ones 1/9.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.swaps import swap_terms


class Others(NamedTuple):
    """The documents of one list that are not relevant, in rank order."""

    rank: np.ndarray
    E: np.ndarray
    U: np.ndarray
    V: np.ndarray
    lam: np.ndarray
    hes: np.ndarray


@kernel
def others(longest):
    """Space for lists of up to ``longest`` documents."""
    return Others(
        np.empty(longest, np.int64), np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest),
        np.empty(longest),
    )  # fmt: skip


@inlined
def _with(E_d, part_d, E, part, lam, hes):
    """The pairs of one relevant document with others, of weight |part_d + part|; return sums of slope and curve."""
    up, curve = 0.0, 0.0
    for j in range(len(E)):
        inverse = 1.0 / (E_d + E[j])
        x = abs(part_d + part[j]) * (E[j] * inverse)
        h = x * (E_d * inverse)
        lam[j] += x
        hes[j] += h
        up += x
        curve += h
    return up, curve


@kernel
def relevant_pairs(n, scale, ranks, terms, r, sums, z):
    """Add the pairs of one list in rank order whose upper rank is below ``ranks``; return the sum of |slope|."""
    swap_terms(terms.kind, r.g, terms.discount, scale, n, r.U, r.A, r.V)
    count, near = 0, 0
    for d in range(n):
        if r.g[d] == 0.0:
            z.rank[count], z.E[count], z.U[count], z.V[count] = d, r.E[d], r.U[d], r.V[d]
            z.lam[count], z.hes[count] = 0.0, 0.0
            count += 1
            near += d < ranks
    total, above = 0.0, 0
    for d in range(n):
        if sums.stop[0]:
            return total
        if r.g[d] == 0.0:
            above += 1
            continue
        end = min(above, near)
        up, curve = _with(r.E[d], r.V[d], z.E[:end], z.U[:end], z.lam[:end], z.hes[:end])
        if d < ranks:
            more, much = _with(
                r.E[d], r.U[d], z.E[above:count], z.V[above:count], z.lam[above:count], z.hes[above:count]
            )
            up += more
            curve += much
        sums.lam[d] -= up
        sums.hes[d] += curve
        total += up
    for j in range(count):
        sums.lam[z.rank[j]] += z.lam[j]
        sums.hes[z.rank[j]] += z.hes[j]
    return total

r"""Rankings drawn from a Plackett-Luce model, without cancellation and without touching every document.

The model places documents one after another, each with probability :math:`e^{s_d} / S_k`, where :math:`S_k` is the mass
of the open documents, those not yet placed. Documents come sorted by descending score.

A table keeps the sums of the masses :math:`e^{s_d - s_0}` over a document and all below it. ``top`` is the first open
document. A uniform number is a share of the sum from ``top`` on, and a guide finds the document there in :math:`O(1)`.
A document already placed is rejected, and another uniform number drawn. Documents above ``top`` are all placed, and
none below has a larger mass. So with k placed documents at least one of k + 1 draws is expected to be accepted, however
few documents hold the mass. The open mass is the sum from ``top`` on less the masses placed there. It is at least a
(k + 1)-th of that sum, so that the relative error of the difference grows at most by a factor of k + 1.

A list whose scores span ``WIDEST`` or more is cut into blocks, each with a table of its own: all documents of a block
are placed before those of the next. A block ends at the largest gap between ``WIDEST / 2`` and ``WIDEST`` below its
first document. Only the order of the documents beside that gap becomes more certain than it is.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import inlined_kernel, kernel
from ltr_objectives.kernels.rng import uniform

WIDEST = 300.0  # masses are squared and divided by squares: exp(-600) is far from underflow
BUCKETS = 8  # of the guide, by document
ONE = np.uint64(1)  # indices are unsigned: numba checks whether signed ones are negative
FEW = np.uint64(4)  # documents that are tried one after the other; of more, half are left out at a time
FADED = 8.0  # a sum is added up anew if it was so many times as large as what it is subtracted from
REDRAWS = np.uint64(40)  # bits: the numbers of one ranking that are drawn again have counters from 2^40 (j + 1) on


class Placed(NamedTuple):
    """One ranking by rank, and scratch."""

    u: np.ndarray  # the share that draws the document
    y: np.ndarray  # the document, uint64
    e: np.ndarray  # its mass
    m: np.ndarray  # the open mass
    open_: np.ndarray  # by document: True if it is not yet placed, and for all between two rankings


class Strata(NamedTuple):
    """By rank: the step of a lattice from one ranking to the next, and the current stratum."""

    step: np.ndarray
    at: np.ndarray


class Table(NamedTuple):
    """One list, and how a share of its mass finds a document."""

    mass: np.ndarray
    tail: np.ndarray  # sums of mass over a document and all below it; one element longer
    guide: np.ndarray  # guide[b] is the last document whose tail exceeds b / scale; one element longer than the buckets
    scale: float


@kernel
def placed_space(ranks, n):
    """Space for rankings of ``ranks`` ranks of a list of ``n`` documents."""
    return Placed(np.empty(ranks), np.empty(ranks, np.uint64), np.empty(ranks), np.empty(ranks), np.ones(n, np.bool_))


@kernel
def end_of_block(s, start):
    """Return the end of the block of descending scores from ``start`` on."""
    end, largest = start + 1, 0.0
    if s[start] - s[-1] < WIDEST:
        return len(s)
    for d in range(start + 1, len(s)):
        if s[start] - s[d - 1] >= WIDEST:
            break
        gap = s[d - 1] - s[d]
        if s[start] - s[d] >= WIDEST / 2.0 and gap > largest:
            end, largest = d, gap
    return end


@kernel
def table_of(s):
    """The table of a list of descending scores."""
    n, buckets = len(s), BUCKETS * len(s)
    mass, tail, guide = np.empty(n), np.zeros(n + 1), np.zeros(buckets + 1, np.uint32)
    for i in range(n):
        mass[i] = math.exp(s[i] - s[0])
    for i in range(n - 1, -1, -1):
        tail[i] = tail[i + 1] + mass[i]
    i, scale = n - 1, buckets / tail[0]
    for b in range(buckets):
        while i > 0 and tail[i] * scale <= b:
            i -= 1
        guide[b] = i
    return Table(mass, tail, guide, scale)


@inlined_kernel
def find(x, top, table):
    """The last document from ``top`` on whose tail exceeds ``x``, a mass below ``tail[top]``."""
    tail, guide = table.tail, table.guide
    b = min(np.uint64(x * table.scale), np.uint64(len(guide) - 2))
    i, last = max(np.uint64(guide[b + ONE]), top), max(np.uint64(guide[b]), top)
    while last - i > FEW:
        middle = (i + last + ONE) >> ONE
        if tail[middle] > x:
            i = middle
        else:
            last = middle - ONE
    while i < last and tail[i + ONE] > x:
        i += ONE
    return i


@kernel
def lattice(key, rankings, ranks):
    """Draw the start and the step of each rank: ``at + step j`` modulo ``rankings`` meets each stratum once."""
    step, start = np.empty(ranks, np.int64), np.empty(ranks, np.int64)
    for k in range(ranks):
        start[k] = int(uniform(key, np.uint64(2 * k)) * rankings)
        step[k] = 1 + int(uniform(key, np.uint64(2 * k + 1)) * (rankings - 1))
        while math.gcd(step[k], rankings) > 1:
            step[k] += 1
    return Strata(step, start)


@inlined_kernel
def shares(key, j, rankings, strata, u):
    """Write the uniform numbers that draw ranking ``j``, and advance the lattice.

    The numbers of one ranking are independent and uniform, so that every estimate is unbiased.
    """
    step, at = strata.step, strata.at
    ranks = len(u)
    block = j + 2  # the first two blocks draw the lattice
    for k in range(ranks):
        x = uniform(key, np.uint64(block * ranks + k))
        u[k] = min((at[k] + x) / rankings, 1.0 - 1.1e-16)
        at[k] += step[k]
        if at[k] >= rankings:
            at[k] -= rankings


@inlined_kernel
def place(table, key, j, given, start, p):
    """Place ``len(p.u)`` documents of ranking ``j``: ``given - start``, or if that is -1, drawn by the shares ``p.u``.

    ``top`` is the first open document, ``placed`` the mass of the placed documents below it. Masses are added to that
    sum and subtracted from it, so its rounding error is relative to ``most``, its largest value so far. The sum is
    added up anew once ``most`` is far above the mass from ``top`` on.
    """
    mass, tail = table.mass, table.tail
    u, y, e, m, open_ = p.u, p.y, p.e, p.m, p.open_
    n, counter = np.uint64(len(mass)), np.uint64(j + 1) << REDRAWS
    top, placed, most = np.uint64(0), 0.0, 0.0
    for k in range(len(u)):
        m[k] = max(tail[top] - placed, mass[top])  # rounding must not leave less than the largest open mass
        if given[0] >= 0:
            i = np.uint64(given[k] - start)
        else:
            i = find(u[k] * tail[top], top, table)
            while not open_[i]:
                i = find(uniform(key, counter) * tail[top], top, table)
                counter += ONE
        y[k], e[k] = i, mass[i]
        open_[i] = False
        placed += mass[i]
        if i == top:
            most = max(most, placed)
            while top < n and not open_[top]:
                placed -= mass[top]
                top += ONE
            if most > FADED * tail[top]:
                placed = 0.0
                for at in range(k):
                    placed += mass[y[at]] if y[at] > top else 0.0
                most = placed
    for k in range(len(u)):
        open_[y[k]] = True

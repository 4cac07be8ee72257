r"""Rankings drawn from a Plackett-Luce model, without cancellation and without touching every document.

The model places documents one after another, each with probability :math:`e^{s_d} / S_k`, where :math:`S_k` is the mass
of the open documents, those not yet placed. Documents come sorted by descending score.

``narrow`` lists keep the sums of their masses :math:`e^{s_d - s_0}` over a document and all below it. ``top`` is the
first open document. A uniform number is a share of the sum from ``top`` on, and a guide finds the document there in
:math:`O(1)`. A document already placed is rejected, and another uniform number drawn. Documents above ``top`` are all
placed, and none below has a larger mass. So with k placed documents at least one of k + 1 draws is expected to be
accepted, however few documents hold the mass. The open mass is the sum from ``top`` on less the masses placed there. It
is at least a (k + 1)-th of that sum, so that the relative error of the difference grows at most by a factor of k + 1.

``wide`` lists have scores that span more than exponentials can hold. At each rank the scores are shifted by the largest
open one, and only the documents within ``REACH`` of it are read.

Both write a ``Placed`` record, with ``e[k]`` and ``m[k]`` in the same unit.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.exponential import REACH
from ltr_objectives.kernels.rng import uniform

BUCKETS = 8  # of the guide, by document
ONE = np.uint64(1)  # indices are unsigned: numba checks whether signed ones are negative
NEAR = np.uint64(4)  # documents that are tried one after the other; of more, half are left out at a time
FADED = 8.0  # recompute a running sum once it was this many times the remaining mass
REDRAWS = np.uint64(40)  # bits: the numbers of one ranking that are drawn again have counters from 2^40 (j + 1) on


class Placed(NamedTuple):
    """One ranking by rank, and scratch space."""

    u: np.ndarray  # the share that draws the document
    y: np.ndarray  # the document, uint64
    e: np.ndarray  # its mass
    m: np.ndarray  # the open mass
    shrink: np.ndarray  # this rank's unit divided by that of the rank above, at most 1
    later: np.ndarray  # scratch: sums over a rank and all below it; one element longer
    open_: np.ndarray  # by document: whether it is not yet placed; all True between two rankings


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


@allocating
def placed_space(ranks, longest):
    """Return space for rankings of up to ``ranks`` ranks of lists of up to ``longest`` documents."""
    return Placed(
        u=np.empty(ranks), y=np.empty(ranks, np.uint64), e=np.empty(ranks), m=np.empty(ranks), shrink=np.empty(ranks),
        later=np.empty(ranks + 1), open_=np.ones(longest, np.bool_),
    )  # fmt: skip


@allocating
def first_ranks(p: Placed, ranks):
    """Return the part of the space that ``ranks`` ranks need."""
    return Placed(
        u=p.u[:ranks], y=p.y[:ranks], e=p.e[:ranks], m=p.m[:ranks], shrink=p.shrink[:ranks],
        later=p.later, open_=p.open_,
    )  # fmt: skip


@allocating
def table_of(s):
    """Return the table of a list of descending scores."""
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
    return Table(mass=mass, tail=tail, guide=guide, scale=scale)


@inlined_kernel
def find(x, top, table: Table):
    """Return the last document from ``top`` on whose tail exceeds ``x``, a mass below ``tail[top]``."""
    tail, guide = table.tail, table.guide
    b = min(np.uint64(x * table.scale), np.uint64(len(guide) - 2))
    i, last = max(np.uint64(guide[b + ONE]), top), max(np.uint64(guide[b]), top)
    while last - i > NEAR:
        middle = (i + last + ONE) >> ONE
        if tail[middle] > x:
            i = middle
        else:
            last = middle - ONE
    while i < last and tail[i + ONE] > x:
        i += ONE
    return i


@kernel
def lattice(key, rankings, ranks, strata: Strata):
    """Draw the start and the step of each rank: ``at + step j`` modulo ``rankings`` meets each stratum once."""
    step, start = strata.step, strata.at
    for k in range(ranks):
        start[k] = int(uniform(key, np.uint64(2 * k)) * rankings)
        step[k] = 1 + int(uniform(key, np.uint64(2 * k + 1)) * (rankings - 1))
        while math.gcd(step[k], rankings) > 1:
            step[k] += 1


@inlined_kernel
def uniforms_by_rank(key, j, rankings, strata: Strata, u):
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
def open_all(p: Placed):
    """Mark the placed documents as open again."""
    for i in p.y:
        p.open_[i] = True


@inlined_kernel
def _placed_below(top, placed, mass):
    """Add up the masses of the ``placed`` documents that are below ``top``."""
    total = 0.0
    for i in placed:
        total += mass[i] if i > top else 0.0
    return total


@inlined_kernel
def place_narrow(table: Table, key, j, p: Placed):
    """Place ``len(p.u)`` documents of ranking ``j``, drawn by the shares ``p.u``.

    ``top`` is the first open document, ``placed`` the mass of the placed documents below it. Masses are added to that
    sum and subtracted from it, so its rounding error is relative to ``most``, its largest value so far. The sum is
    added up anew once ``most`` is far above the mass from ``top`` on.
    """
    mass, tail, open_ = table.mass, table.tail, p.open_
    counter, top, placed, most = np.uint64(j + 1) << REDRAWS, np.uint64(0), 0.0, 0.0
    for k in range(len(p.u)):
        # the document, drawn again if it is placed already
        p.m[k] = max(tail[top] - placed, mass[top])  # rounding must not leave less than the largest open mass
        i = find(p.u[k] * tail[top], top, table)
        while not open_[i]:
            i = find(uniform(key, counter) * tail[top], top, table)
            counter += ONE
        p.y[k], p.e[k] = i, mass[i]
        open_[i] = False
        # the first open document, and the mass placed below it
        placed += mass[i]
        if i == top:
            most = max(most, placed)
            while top < np.uint64(len(mass)) and not open_[top]:
                placed -= mass[top]
                top += ONE
            if most > FADED * tail[top]:
                placed = most = _placed_below(top, p.y[:k], mass)
    open_all(p)


@inlined_kernel
def _open_mass(s, top, open_):
    """Return the mass of the open documents, in units of that of ``top``, and the first document out of reach."""
    end, total = top, 0.0
    while end < len(s) and s[end] - s[top] > -REACH:
        if open_[end]:
            total += math.exp(s[end] - s[top])
        end += 1
    return total, end


@inlined_kernel
def _find_open(x, s, top, end, open_):
    """Return the document at which the open masses from ``top`` on exceed ``x``."""
    i = top
    for d in range(top, end):
        if open_[d]:
            i = d
            x -= math.exp(s[d] - s[top])
            if x < 0.0:
                break
    return i


@kernel
def place_wide(s, p: Placed):
    """As ``place_narrow`` for any scores; return the score whose mass is the unit of the last rank."""
    top, unit = 0, s[0]
    for k in range(len(p.u)):
        while not p.open_[top]:
            top += 1
        p.shrink[k] = math.exp(s[top] - unit)
        unit = s[top]
        p.m[k], end = _open_mass(s, top, p.open_)
        i = _find_open(p.u[k] * p.m[k], s, top, end, p.open_)
        p.y[k], p.e[k] = i, math.exp(s[i] - unit)
        p.open_[i] = False
    open_all(p)
    return unit

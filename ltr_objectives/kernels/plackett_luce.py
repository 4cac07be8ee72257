r"""Rankings drawn from a Plackett-Luce model, without cancellation and without touching every document.

The model places documents one after another, each with probability :math:`e^{s_d} / S_k`, where :math:`S_k` is the mass
of the open documents, those not yet placed. Documents come sorted by descending score.

``narrow`` lists keep the running sums of their masses :math:`e^{s_d - s_0}` and a guide into them. A uniform number is
a share of the open mass. Adding the placed masses that lie before it turns it into a position in the running sums. The
guide finds the document there in O(1): 3 times as fast as a tree. The open mass is a difference, which would cancel
where it is less than ``LEAST_OPEN`` of the total. There the ranking is drawn from a binary tree of sums: one descent
draws a document, one ascent removes it, each in O(log n). The root is :math:`S_k`, a sum of positive numbers. Neither
way rejects a draw, and both find the same document for the same share.

``wide`` lists have scores that span more than exponentials can hold. At each rank the scores are shifted by the largest
open one, and only the documents within ``REACH`` of it are read.

All write a ``Placed`` record, with ``e[k]`` and ``m[k]`` in the same unit. With ``given[0] >= 0`` the tree and ``wide``
lists place the documents of ``given`` instead of drawing.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.rng import uniform

WIDEST = 300.0  # masses are squared and divided by squares: exp(-600) is far from underflow
REACH = 745.0  # exp(-745) is the smallest number above 0
LEAST_OPEN = 2.0**-10
INDEPENDENT, ANTITHETIC, LATTICE = range(3)
VARIATES = {"independent": INDEPENDENT, "antithetic": ANTITHETIC, "lattice": LATTICE}


class Placed(NamedTuple):
    """One ranking by rank, and scratch space."""

    u: np.ndarray  # the share that draws the document
    y: np.ndarray  # the document
    e: np.ndarray  # its mass
    m: np.ndarray  # the open mass
    shrink: np.ndarray  # this rank's unit divided by that of the rank above, at most 1
    later: np.ndarray  # scratch: sums over a rank and all below it; one element longer
    places: np.ndarray  # scratch: the placed documents in ascending order


class Strata(NamedTuple):
    """By rank: the step of a lattice from one ranking to the next, and the current stratum."""

    step: np.ndarray
    at: np.ndarray


@kernel
def placed_space(ranks):
    """Space for rankings of up to ``ranks`` ranks."""
    return Placed(np.empty(ranks), np.empty(ranks, np.int64), np.empty(ranks), np.empty(ranks), np.empty(ranks),
                  np.empty(ranks + 1), np.empty(ranks, np.int64))  # fmt: skip


@kernel
def first_ranks(p, ranks):
    """The part of the space that ``ranks`` ranks need."""
    return Placed(p.u[:ranks], p.y[:ranks], p.e[:ranks], p.m[:ranks], p.shrink[:ranks], p.later, p.places[:ranks])


@kernel
def leaves(n):
    """Leaves of a tree over ``n`` documents."""
    size = 1
    while size < n:
        size *= 2
    return size


@kernel
def build(tree, size, mass, n):
    """Fill ``tree[1 : 2 size]`` with sums of ``mass[:n]``."""
    for i in range(size):
        tree[size + i] = mass[i] if i < n else 0.0
    for node in range(size - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]


@kernel
def change(tree, size, i, value):
    """Set leaf ``i`` and the sums above it."""
    node = size + i
    tree[node] = value
    while node > 1:
        value += tree[node ^ 1]
        node >>= 1
        tree[node] = value


@kernel
def find(tree, size, u):
    """The leaf where the running sum passes the share ``u`` of all mass; never a leaf of mass 0."""
    node = 1
    rest = u * tree[1]
    while node < size:
        node *= 2
        left = tree[node]
        right = (rest >= left) & (tree[node + 1] > 0.0)
        rest -= left * right
        node += right
    return node - size


@kernel
def guide_sums(mass, n, size, sums, guide):
    """Fill ``sums[:n + 1]`` with running sums of ``mass``, ``guide[b]`` with the document at b / size of the total."""
    sums[0] = 0.0
    for i in range(n):
        sums[i + 1] = sums[i] + mass[i]
    i = 0
    for b in range(size):
        while i < n - 1 and sums[i + 1] <= sums[n] * b / size:
            i += 1
        guide[b] = i


@kernel
def lattice(key, rankings, ranks, strata):
    """Draw the start and the step of each rank: ``at + step j`` modulo ``rankings`` meets each stratum once."""
    step, start = strata.step, strata.at
    for k in range(ranks):
        start[k] = int(uniform(key, np.uint64(2 * k)) * rankings)
        step[k] = 1 + int(uniform(key, np.uint64(2 * k + 1)) * (rankings - 1))
        while math.gcd(step[k], rankings) > 1:
            step[k] += 1


@kernel
def shares(key, j, rankings, variates, strata, u):
    """Write the uniform numbers that draw ranking ``j``, and advance a lattice.

    The numbers of one ranking are independent and uniform for all ``variates``, so that every estimate is unbiased.
    """
    step, at = strata.step, strata.at
    ranks = len(u)
    block = j >> 1 if variates == ANTITHETIC else j + 2  # the first two blocks draw the lattice
    for k in range(ranks):
        x = uniform(key, np.uint64(block * ranks + k))
        if variates == ANTITHETIC and j & 1:
            x = 1.0 - x
        elif variates == LATTICE:
            x = min((at[k] + x) / rankings, 1.0 - 1.1e-16)
            at[k] += step[k]
            if at[k] >= rankings:
                at[k] -= rankings
        u[k] = x


@kernel
def place_guided(sums, guide, mass, p):
    """Place ``len(p.u)`` documents, drawn by the shares ``p.u``.

    Return False, with the ranking half done, where too little mass is left open or rounding finds a placed document.
    """
    n, size = len(mass), len(guide)
    u, y, e, m, placed = p.u, p.y, p.e, p.m, p.places
    total, taken, top = sums[n], 0.0, 0
    buckets = size / total
    for k in range(len(u)):
        m[k] = max(total - taken, mass[top])  # rounding must not leave less than the largest open mass
        if m[k] < LEAST_OPEN * total:
            return False
        x = u[k] * m[k]
        at = 0
        while at < k and x >= sums[placed[at]]:
            x += mass[placed[at]]
            at += 1
        i = guide[min(int(x * buckets), size - 1)]
        while i < n - 1 and sums[i + 1] <= x:
            i += 1
        while at < k and placed[at] <= i:  # rounding can find a placed document
            at += 1
        while at > 0 and placed[at - 1] >= i:
            if placed[at - 1] == i:
                return False
            at -= 1
        for j in range(k, at, -1):
            placed[j] = placed[j - 1]
        placed[at] = i
        y[k], e[k] = i, mass[i]
        taken += mass[i]
        while top <= k and placed[top] == top:
            top += 1
        top = min(top, n - 1)
    return True


@kernel
def place_narrow(tree, mass, given, p):
    """Place ``len(p.u)`` documents, drawn by the shares ``p.u``, and leave the tree as it was."""
    u, y, e, m, shrink = p.u, p.y, p.e, p.m, p.shrink
    ranks, size = len(u), len(tree) // 2
    for k in range(ranks):
        m[k] = tree[1]
        i = given[k] if given[0] >= 0 else find(tree, size, u[k])
        y[k], e[k], shrink[k] = i, mass[i], 1.0
        change(tree, size, i, 0.0)
    for k in range(ranks):
        change(tree, size, y[k], e[k])


@kernel
def place_wide(s, open_, given, p):
    """As ``place_narrow`` for any scores; return the score whose mass is the unit of the last rank.

    ``open_`` is all True before and after.
    """
    u, y, e, m, shrink = p.u, p.y, p.e, p.m, p.shrink
    n = len(s)
    ranks = len(u)
    top = 0
    unit = s[0]
    for k in range(ranks):
        while not open_[top]:
            top += 1
        shrink[k] = math.exp(s[top] - unit)
        unit = s[top]
        end, total = top, 0.0
        while end < n and s[end] - unit > -REACH:
            if open_[end]:
                total += math.exp(s[end] - unit)
            end += 1
        i = given[k]
        if given[0] < 0:
            rest = u[k] * total
            i = top
            for d in range(top, end):
                if open_[d]:
                    i = d
                    rest -= math.exp(s[d] - unit)
                    if rest < 0.0:
                        break
        y[k], e[k], m[k] = i, math.exp(s[i] - unit), total
        open_[i] = False
    for k in range(ranks):
        open_[y[k]] = True
    return unit

r"""Uniform numbers of the documents of a list in N draws: over the draws a document has one in each of N equal strata.

.. math:: u_{ik} = \frac{(a_i + k b_i) \bmod N + (w_i + k v_i) \bmod 1}{N}

is the number of document i in draw k. The first stratum :math:`a_i` and the numbers :math:`w_i, v_i` in [0, 1) are
random and independent, so the numbers of one draw are independent and uniform: a mean over the draws has the expected
value of independent draws. The step :math:`b_i` is coprime to N, so each stratum comes once, as in a Latin hypercube
(McKay, Beckman and Conover, "A Comparison of Three Methods for Selecting Values of Input Variables", Technometrics
1979). Documents take the possible steps in turn. If N is prime, two of different steps have strata at each distance
once, which lowers the variance in short lists further.
"""

import math
from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined
from ltr_objectives.kernels.rng import GAMMA, mix, uniform

S32 = np.uint64(32)
UNIT = 2.0**-32


class Strata(NamedTuple):
    """By document, as uint32: the stratum and the place in it, and what each draw adds to them.

    A place counts in 2^-32, so that no number is rounded to 1 with up to 1,000,000 draws.
    """

    at: np.ndarray
    step: np.ndarray
    place: np.ndarray
    shift: np.ndarray


@allocating
def strata_for(longest, draws):
    """Return scratch for lists of up to ``longest`` documents, with the steps of all."""
    step, steps, found = np.empty(longest, np.uint32), np.empty(max(draws - 1, 1), np.uint32), 0
    # list the possible steps in random order: with small steps, many draws would be similar
    for b in range(1, len(steps) + 1):
        if math.gcd(b, draws) == 1:
            j = int(uniform(np.uint64(0), np.uint64(found)) * (found + 1))
            steps[found], steps[j] = steps[j], b
            found += 1
    for i in range(longest):
        step[i] = steps[i % found]
    at, place, shift = np.empty(longest, np.uint32), np.empty(longest, np.uint32), np.empty(longest, np.uint32)
    return Strata(at=at, step=step, place=place, shift=shift)


@inlined
def first_strata(key, n, draws, r: Strata):
    """Write the strata of the first draw and the places in them."""
    apart()
    at, place, shift = r.at[:n], r.place[:n], r.shift[:n]
    for i in range(len(at)):
        x = mix(key + GAMMA * np.uint64(i))
        scaled = (x >> S32) * np.uint64(draws)
        at[i], place[i], shift[i] = np.uint32(scaled >> S32), np.uint32(scaled), np.uint32(x)


@inlined
def next_uniforms(draws, r: Strata, out):
    """Write the numbers of a draw, times ``draws``, and advance to the next one."""
    apart()
    n, N = len(out), np.uint32(draws)
    at, step, place, shift = r.at[:n], r.step[:n], r.place[:n], r.shift[:n]
    for i in range(n):
        out[i] = at[i] + (place[i] + 0.5) * UNIT
        following = np.uint32(at[i] + step[i])
        at[i] = following if following < N else np.uint32(following - N)
        place[i] = np.uint32(place[i] + shift[i])

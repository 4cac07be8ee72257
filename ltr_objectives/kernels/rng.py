"""Random numbers that depend on a key and a counter alone, not on the order of the threads.

SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): the state is a
counter times an odd constant, the output a bijective mix of it.
"""

import math

import numpy as np

from ltr_objectives.kernels._jit import kernel

GAMMA = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
S12, S27, S30, S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)

ROUND = 1.5 * 2.0**52  # adding this rounds a number; the last bits of the sum hold the whole number

NO_NOISE, LOGISTIC_NOISE, GAUSSIAN_NOISE, GUMBEL_NOISE = range(4)
NOISES = {None: NO_NOISE, "logistic": LOGISTIC_NOISE, "gaussian": GAUSSIAN_NOISE, "gumbel": GUMBEL_NOISE}


@kernel
def mix(x):
    """Return a number in which every bit of ``x`` changes every bit: the finaliser of SplitMix64."""
    x = (x ^ (x >> S30)) * MIX1
    x = (x ^ (x >> S27)) * MIX2
    return x ^ (x >> S31)


@kernel
def stream(seed, iteration, query):
    """Return the key of one query's random numbers; all three arguments are unsigned 64-bit integers."""
    return mix(mix(mix(seed + GAMMA) ^ iteration) + GAMMA * query)


@kernel
def uniform(key, counter):
    """Return a number in the open interval (0, 1) with 52 bits, because with 53 the largest would round to 1."""
    return (float(mix(key + GAMMA * counter) >> S12) + 0.5) * 2.220446049250313e-16


@kernel
def uniforms(key, out):
    """Write numbers in (0, 1)."""
    for i in range(len(out)):
        out[i] = uniform(key, np.uint64(i))


@kernel
def _normal_quantile(u):
    """Return the quantile of the normal distribution, to 7 digits (Wichura, "Algorithm AS 241", 1988)."""
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        p = ((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179
        return q * p / (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0)
    r = math.sqrt(-math.log(min(u, 1.0 - u)))
    if r <= 5.0:
        r -= 1.6
        x = ((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777
        x /= (0.12021132975 * r + 0.73700164250) * r + 1.0
    else:
        r -= 5.0
        x = ((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150
        x /= (0.012258202635 * r + 0.24197894225) * r + 1.0
    return math.copysign(x, q)


@kernel
def quantile(noise, u):
    """Return the number that noise is below with probability ``u``."""
    if noise == LOGISTIC_NOISE:
        return math.log(u / (1.0 - u))
    if noise == GUMBEL_NOISE:
        return -math.log(-math.log(u))
    return _normal_quantile(u)


@kernel
def add_noise(s, noise, scale, key, start, out):
    """Write ``s`` plus noise, with counters from ``start`` on."""
    for i in range(len(s)):
        out[i] = s[i] + scale * quantile(noise, uniform(key, start + np.uint64(i)))

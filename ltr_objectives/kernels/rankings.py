"""The rankings that pairwise objectives look at: by score, or by score plus noise."""

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.exponential import exponentials
from ltr_objectives.kernels.rng import LOGISTIC, add_noise, times_logistic
from ltr_objectives.kernels.sorting import head_order

WIDEST = 600.0  # exp(-600) is far from underflow, and so is the sum of two such


@kernel
def prepare(x, sigma, noise, noise_scale, exp_, odds):
    """Write exp(sigma (x - max x)), and what logistic noise needs; return whether each can be held.

    Third comes whether the scores differ at all.
    """
    n = len(x)
    top, bottom = x[0], x[0]
    for i in range(n):
        top, bottom = max(top, x[i]), min(bottom, x[i])
    narrow = sigma * (top - bottom) < WIDEST
    if narrow:
        for i in range(n):
            exp_[i] = sigma * (x[i] - top)
        exponentials(exp_[:n], exp_)
    logistic = noise == LOGISTIC and top - bottom < WIDEST * noise_scale
    if logistic:
        for i in range(n):
            odds[i] = (x[i] - top) / noise_scale
        exponentials(odds[:n], odds)
    return narrow, logistic, top > bottom


@kernel
def ranking(x, top, noise, noise_scale, odds, logistic, stream_key, counter, noisy, key, order, key2, order2):
    """Order the ``top`` first ranks at least into ``order``, by scores plus the noise that starts at ``counter``."""
    n = len(x)
    if noise == 0:
        head_order(x, top, True, key, order, key2, order2)
        return
    if logistic:
        times_logistic(odds[:n], stream_key, counter, noisy)
    else:
        add_noise(x, noise, noise_scale, stream_key, counter, noisy[:n])
    head_order(noisy[:n], top, True, key, order, key2, order2)

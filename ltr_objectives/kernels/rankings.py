"""The rankings that pairwise objectives look at: by score, or by score plus noise."""

from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.rng import add_noise, times_logistic
from ltr_objectives.kernels.sorting import head_order


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

"""PL-Rank-3 with second derivatives in plain NumPy: the reference for the time of the kernel.

Oosterhuis, "Learning-to-Rank at the Speed of Sampling", SIGIR 2022, for the gradient; Kang, de Rijke and Oosterhuis,
SIGIR 2024, eqs. 5 to 10, for the Hessian. Each step works on all rankings of a query at once.
"""

import numpy as np


def plrank_numpy(
    scores: np.ndarray, gains: np.ndarray, theta: np.ndarray, samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and diagonal Hessian of minus the expected reward of one query."""
    n = len(scores)
    k = min(len(theta), n)
    noisy = scores + rng.gumbel(size=(samples, n))
    order = np.argsort(-noisy, axis=1)[:, :k]
    e = np.exp(scores - scores.max())
    open_mass = np.maximum(e.sum() - np.cumsum(e[order], axis=1) + e[order], 1e-300)  # before each placement
    reward = theta[:k] * gains[order]
    later = np.cumsum(reward[:, ::-1], axis=1)[:, ::-1]  # from each rank on
    terms = [later / open_mass, theta[:k] / open_mass, later / open_mass**2, theta[:k] / open_mass**2, 1.0 / open_mass]
    rank = np.full((samples, n), k)
    np.put_along_axis(rank, order, np.arange(k)[None, :], axis=1)
    placed, last = rank < k, np.minimum(rank, k - 1)
    RI, DR, RS, DS, DN = (np.take_along_axis(np.cumsum(term, axis=1), last, axis=1) for term in terms)
    after = placed * np.take_along_axis(later - reward, last, axis=1)
    a = gains * DR - RI
    grad = after + e * a
    hess = after + (1.0 + placed) * e * a - e * DN * after + e**2 * (RS - gains * DS - DN * a)
    return -grad.mean(axis=0), -hess.mean(axis=0)

"""The offset of each position that pairwise objectives add to the scores of clicks, in plain NumPy."""

from dataclasses import replace

import numpy as np
from oracles.references import reference


def offsets(objective, scores, clicks, position, group, weight):
    """One Newton step from 0 by each position's offset, whose second derivative is at least that of equal scores."""
    if "hessian" in objective.parameters():
        objective = replace(objective, hessian="exact")
    grad, size, hess = np.zeros((3, max(position) + 1))
    start = 0
    for n, w in zip(group, weight, strict=True):
        rows = slice(start, start + n)
        for k, g, h in zip(position[rows], *reference(objective, scores[rows], clicks[rows]), strict=True):
            grad[k] += w * g
            size[k] += w * abs(g)
            hess[k] += w * h
        start += n
    hess = np.maximum(hess, objective.sigma * size / 2)
    return np.array([-g / h if h > 0 else 0.0 for g, h in zip(grad, hess, strict=True)])

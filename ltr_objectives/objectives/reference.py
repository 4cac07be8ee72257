"""Functions for reference losses; the kernels do not use this module."""

from typing import Any

import numpy as np

from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric


def sigmoid(x: Any) -> Any:
    """Compute 1 / (1 + exp(-x)), for numbers of any size."""
    x = np.asarray(x)
    e = np.exp(np.where(x.real > 0, -x, x))  # never above 1
    return np.where(x.real > 0, 1.0 / (1.0 + e), e / (1.0 + e))


def softplus(x: Any) -> Any:
    """Compute log(1 + exp(x)), for numbers of any size."""
    x = np.asarray(x)
    e = np.exp(np.where(x.real > 0, -x, x))
    small = e - e**2 / 2.0 + e**3 / 3.0  # the logarithm of a complex number near 1 loses all digits
    return np.where(x.real > 0, x, 0.0) + np.where(np.abs(e) < 1e-6, small, np.log(1.0 + e))


def log_sum_exp(x: np.ndarray) -> Any:
    """Compute log(sum(exp(x))), for numbers of any size."""
    top = x[np.argmax(x.real)]
    return top + np.log(np.sum(np.exp(x - top)))


def reference_gains(gain: str | tuple[float, ...], labels: np.ndarray, k: int | None = None) -> np.ndarray:
    """Return the gains over the ideal DCG@k; all 0 if all are equal."""
    found = np.array(gains.apply_gain(gain, labels), float)
    if len(set(found)) < 2:
        return np.zeros(len(found))
    ideal = np.sort(found)[::-1][:k]
    return found / float(np.sum(ideal / np.log2(np.arange(2, len(ideal) + 2))))


def reference_head(scores: np.ndarray, labels: np.ndarray, most: int) -> np.ndarray:
    """Return the documents that count, in rank order: half the first ranks, half the most relevant of the others."""
    order = np.argsort(-scores, kind="stable")
    if len(order) <= most:
        return order
    first, rest = order[: most - most // 2], order[most - most // 2 :]
    relevant = rest[np.argsort(-labels[rest], kind="stable")][: most // 2]
    return np.array([i for i in order if i in first or i in relevant])


def brute_force_changes(metric: Metric, labels: np.ndarray, moves: bool = False) -> np.ndarray:
    """Return the changes of ``metric.reference`` if the documents at ranks ``d`` and ``e`` swap, or ``d`` moves."""
    n = len(labels)
    out, before, ranks = np.zeros((n, n)), metric.reference(labels.copy()), np.arange(n)
    for d in range(n):
        for e in range(0 if moves else d + 1, n):
            order = np.insert(np.delete(ranks, d), e, d) if moves else ranks.copy()
            if not moves:
                order[[d, e]] = e, d
            out[d, e] = metric.reference(labels[order]) - before
    return out

"""Compile every kernel once and leave the machine code in the cache: ``python -m ltr_objectives.warmup``.

For container images and batch jobs, so that the first training does not wait for the compiler.
"""

from time import perf_counter

import numpy as np

from ltr_objectives.kernels import _compiler
from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective, get_objective
from ltr_objectives.registry import metrics, objectives

__all__ = ["warm_up"]


def warm_up() -> float:
    """Run every objective and metric on a tiny list; return the seconds it took."""
    start = perf_counter()
    scores, labels, group = [0.0, 1.0, 2.0], [0, 1, 0], [3]
    for dtype in (np.float32, np.float64):
        content_stream(np.array(scores, dtype))
    for name in objectives():
        objective = Objective.named[name]()
        position = [0, 1, 2] if objective.facts.takes_clicks else None
        objective.gradient_hessian(scores, labels, group, position=position)
    for name in metrics():
        metric = Metric.named[name]
        (metric(k=2) if metric.cutoff == "required" else metric()).per_query(scores, labels, group)
    get_objective("yetiloss:gap").gradient_hessian(np.zeros(5), np.arange(5), [5])  # a sum of several metrics
    return perf_counter() - start


if __name__ == "__main__":
    print(f"compiled in {warm_up():.1f} s; cache: {_compiler.CACHE or 'none, no folder is writable'}")

"""Compile every kernel once and leave the machine code in the cache: ``python -m ltr_objectives.warmup``.

For container images and batch jobs, so that the first training does not wait for the compiler.
"""

from collections.abc import Callable, Iterable
from time import perf_counter

import numpy as np

from ltr_objectives.kernels._compiler import CACHE
from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.yetiloss import YetiLoss
from ltr_objectives.queries import Queries
from ltr_objectives.registry import metrics, objectives

__all__ = ["warm_up"]


def warm_up(track: Callable[[list[str]], Iterable[str]] = iter) -> float:
    """Run every objective and metric on a tiny list; return the seconds it took.

    ``track`` iterates over their names, and may show how far it is.
    """
    start = perf_counter()
    for dtype in (np.float32, np.float64):
        content_stream(np.array([0.0, 1.0, 2.0], dtype))
    for name in track([*objectives(), *metrics()]):
        (_objective if name in objectives() else _metric)(name)
    return perf_counter() - start


def _objective(name: str) -> None:
    objective = Objective.named[name]()
    position = [0, 1, 2] if objective.facts.takes_clicks else None
    objective.gradient_hessian([0.0, 1.0, 2.0], [0, 1, 0], [3], position=position)


def _metric(name: str) -> None:
    metric = Metric.named[name]
    made = metric(k=2) if metric.cutoff == "required" else metric()
    made.per_query([0.0, 1.0, 2.0], [0, 1, 0], [3])
    if name == "gap":  # a sum of several metrics
        YetiLoss(made).compute(Queries([0, 1, 2, 3, 4], [5]), np.zeros(5))


if __name__ == "__main__":
    print(f"compiled in {warm_up():.1f} s; cache: {CACHE or 'none, no folder is writable'}")

"""Compile every kernel once and leave the machine code in the cache: ``python -m ltr_objectives.warmup``.

For container images and batch jobs, so that the first training does not wait for the compiler.
"""

from time import perf_counter

import numpy as np

from ltr_objectives import registry
from ltr_objectives.kernels._jit import CACHE
from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.objectives.yetiloss import YetiLoss
from ltr_objectives.queries import Queries


def warm_up() -> float:
    """Run every objective and metric on a tiny list; return the seconds it took."""
    start = perf_counter()
    scores, labels, group = [0.0, 1.0, 2.0], [0, 1, 0], [3]
    graded = Queries([0, 1, 2, 3, 4], [5])
    for dtype in (np.float32, np.float64):
        content_stream(np.array(scores, dtype))
    for name in registry.objectives():
        objective = registry.objective_class(name)()
        objective.gradient_hessian(scores, labels, group, position=[0, 1, 2] if objective.facts.takes_clicks else None)
    for name in registry.metrics():
        metric = registry.metric_class(name)
        made = metric(k=2) if metric.cutoff == "required" else metric()
        made.per_query(scores, labels, group)
        if made.label_limit is None and len(made.layers(graded)) > 1:
            YetiLoss(made).compute(graded, np.zeros(5))
    return perf_counter() - start


if __name__ == "__main__":
    print(f"compiled in {warm_up():.1f} s; cache: {CACHE or 'none, no folder is writable'}")

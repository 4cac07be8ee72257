"""Compile the kernels of all named objectives and metrics into the package: ``python -m ltr_objectives.warmup``.

An installation runs this, so that little is compiled later. Run it again after an upgrade of numba alone. If the
package is read-only, the machine code is kept in the user's folder, or in that of ``NUMBA_CACHE_DIR``. Up to four
processes each compile a share of the names.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from ltr_objectives.kernels.scores import content_stream
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.around import UnitHessian
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries
from ltr_objectives.registry import metric_names, objective_names

__all__ = ["warm_up"]

FURTHER = (  # sums of metrics, two layers of pairs, noise, sums of objectives
    "lambdamart:gap", "hinge:gap", "yetiloss:gap", "yetiloss:map", "stochasticrank:gap", "ranknet:weights=all",
    "neuralndcg:noise=gumbel", "ranknet + listnet",
)  # fmt: skip
MOST_PROCESSES = 4


def warm_up(share: int = 0, shares: int = 1) -> None:
    """Compile what is not compiled yet, by a tiny list for each objective and metric; of several shares only one."""
    scores, labels = np.arange(5.0), np.array([0, 1, 0, 1, 0])
    graded = Queries(np.arange(5), [5])
    for dtype in (np.float32, np.float64):
        content_stream(scores.astype(dtype))
        for name in list(objective_names())[share::shares]:
            Objective.named[name]().compute(Queries(labels, [5]), scores.astype(dtype), dtype=dtype)
        for text in FURTHER[share::shares]:
            UnitHessian(get_objective(text)).compute(graded, scores, dtype=dtype)
    for name in list(metric_names())[share::shares]:
        metric = Metric.named[name]
        (metric(k=2) if metric.cutoff == "required" else metric()).values(Queries(labels, [5]), scores)


if __name__ == "__main__":
    package = Path(__file__).parent
    if os.access(package, os.W_OK):
        os.environ.setdefault("NUMBA_CACHE_DIR", str(package.parent))
    if sys.argv[1:]:
        warm_up(*map(int, sys.argv[1:]))
    else:
        shares = min(available_threads(), MOST_PROCESSES)
        command = [sys.executable, "-m", "ltr_objectives.warmup"]
        processes = [subprocess.Popen([*command, str(share), str(shares)]) for share in range(shares)]
        if sum(process.wait() != 0 for process in processes):
            sys.exit(1)
        from ltr_objectives.kernels import _compiler  # loads numba, which reads the variable

        print(f"cache: {_compiler.user_folder()}")

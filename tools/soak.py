"""Many trainings in one process: memory must not grow once everything has been used.

Run ``PYTHONPATH=tests python tools/soak.py``. The trainings alternate between the libraries and all objectives of the
registry, with weights or without, on data of changing size. The growth in as many trainings with a native objective is
the library's own, and is not counted.
"""

import argparse
import gc
import itertools
import os
import sys
import time
import warnings

import numpy as np
import psutil
from rankers import NATIVE
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from trainings import LIBRARIES, objectives, small_data, train

from ltr_objectives.errors import LTRWarning

MIB = 2**20
LIMIT = 20.0


def resident() -> float:
    """Return MiB of memory that this process holds."""
    gc.collect()
    return psutil.Process().memory_info().rss / MIB


def soak(trainings: int, warm_up: int, kind: str, progress: Progress, libraries=LIBRARIES) -> list[float]:
    """Return the resident MiB after the warm-up and after each tenth of the trainings."""
    found = []
    turns = itertools.cycle(itertools.product(libraries, objectives() if kind == "ours" else [None]))
    data = [small_data(20, size, seed=size) for size in (5, 9, 12)]
    task = progress.add_task(kind, total=warm_up + trainings, memory="")
    tenth = max(1, trainings // 10)
    for i, (library, objective) in zip(range(warm_up + trainings), turns, strict=False):
        native = None if objective else {"objective": NATIVE[library]}
        predictions = np.frombuffer(train(library, objective, rounds=3, native=native, data=data[i % len(data)]), "u1")
        assert predictions.any()
        done = i + 1 - warm_up
        if done >= 0 and done % tenth == 0:
            found.append(resident())
            progress.update(task, memory=f"{found[-1]:.1f} MiB ({found[-1] - found[0]:+.1f})")
        progress.advance(task)
    return found


def main() -> int:
    """Soak with ours, then each library with its own objective; exit status 1 where ours grow beyond the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainings", type=int, default=2000)
    parser.add_argument("--warm-up", type=int, default=200)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", LTRWarning)
    console, start = Console(), time.perf_counter()
    columns = TextColumn("{task.description:18}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    growth = {}
    with Progress(*columns, TextColumn("{task.fields[memory]}"), console=console) as progress:
        for kind in ("ours", "native"):
            found = soak(arguments.trainings, arguments.warm_up, kind, progress)
            growth[kind] = [x - found[0] for x in found]
    table = Table("trainings", *(f"{kind}: MiB grown" for kind in growth))
    for i, row in enumerate(zip(*growth.values(), strict=True)):
        table.add_row(str(i * arguments.trainings // 10), *(f"{x:+.2f}" for x in row))
    console.print(table)
    worst = max(growth["ours"])
    good = worst < LIMIT
    console.print(
        f"twice {arguments.trainings} trainings in {time.perf_counter() - start:.0f} s, at most {worst:+.1f} MiB: "
        f"{'below' if good else 'NOT BELOW'} {LIMIT:g}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())

"""``python -m benchmarks scaling``: time and memory of an iteration by rows, list length and threads."""

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from rich.console import Console
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.iteration import Timer, seconds
from benchmarks.workers import workers
from ltr_objectives.datasets import MSLR_SHARES
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective

LONG = "lambdamart:ndcg;truncation=30"
STATUS = Path("/proc/self/status")
KIB = 1024  # its unit


def most_memory() -> int:
    """The most bytes that this process has had, on Linux; the rusage of a new process counts its parent's as well."""
    return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * KIB if STATUS.exists() else 0


def lists(queries: int, mean: float = 120.0) -> np.ndarray:
    """Lengths of generated lists, as in :func:`ltr_objectives.datasets.make_ranking`."""
    lengths = np.random.default_rng(0).lognormal(np.log(mean) - 0.18, 0.6, queries)
    return np.maximum(np.rint(lengths), 1).astype(np.int64)


def measure(
    objective: str, group: np.ndarray, threads: int, rounds: int, clock: Timer = perf_counter
) -> tuple[float, float]:
    """Least seconds of an iteration, and bytes a row that the first one adds to the memory of the process."""
    rng = np.random.default_rng(0)
    rows = int(group.sum())
    labels = rng.choice(len(MSLR_SHARES), rows, p=MSLR_SHARES).astype(np.float32)
    scores = rng.standard_normal(rows)
    made = get_objective(objective)
    few = min(group[0], 1000)
    made.gradient_hessian(scores[:few], labels[:few], [few])  # compiles
    queries = Queries(labels, group)
    before = most_memory()
    made.compute(queries, scores, n_threads=threads)
    growth = (most_memory() - before) / rows
    return min(seconds(lambda: made.compute(queries, scores, n_threads=threads), clock) for _ in range(rounds)), growth


def apart(*arguments: Any) -> tuple[float, float]:
    """Measure in a new process, so that nothing else adds to its memory."""
    with workers(1) as pool:
        return pool.submit(measure, *arguments).result()


def scaling(
    objectives: Annotated[str, Option(help="Ours.")] = f"{LONG},lambdamart,yetiloss,plrank",
    rows: Annotated[str, Option(help="About so many.")] = "70000,230000,700000,2300000",
    longest: Annotated[int, Option(min=1000, help="Documents of the single long list, at truncation 30.")] = 100_000,
    rounds: Annotated[int, Option(min=1, help="The least time counts.")] = 5,
    threads: Annotated[int, Option(min=1)] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time an iteration by rows and threads, and measure its memory.

    It runs with one thread and with all, and on a single long list as well.
    """
    console = Console(width=None if sys.stdout.isatty() else 120)
    results: list[dict[str, Any]] = []
    sizes = [int(n) for n in rows.split(",")]
    names = [name.strip() for name in objectives.split(",")]
    for name, size in track([(n, s) for n in names for s in sizes], console=console, transient=True):
        group = lists(size // 118)
        (time, growth), (one, _) = apart(name, group, threads, rounds), apart(name, group, 1, rounds)
        per_row = time / group.sum()
        first = next((r for r in results if r["objective"] == name), None)
        results.append({"objective": name, "rows": int(group.sum()), "seconds": time, "one_thread": one,
                        "linear": per_row / first["per_row"] if first else 1.0, "per_row": per_row,
                        "bytes_a_row": growth})  # fmt: skip
    time, growth = apart(LONG, np.array([longest]), threads, rounds)
    long = {"objective": LONG, "rows": longest, "seconds": time, "bytes_a_row": growth}
    speed_tables.save("scaling", {"threads": threads, "results": results, "long_list": long}, out, console)

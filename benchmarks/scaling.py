"""``python -m benchmarks scaling``: time and memory of an iteration by rows, list length and threads."""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks.iteration import Timer, seconds
from benchmarks.publish import long_lists, pipe_table, save
from ltr_objectives.datasets import MSLR_SHARES
from ltr_objectives.kernels import threads as pool
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Queries
from ltr_objectives.registry import metric_names, objective_names
from ltr_objectives.workbench.texts import terminal

EVALUATE = "evaluate "  # before the name of a metric
SHORTER = (  # what costs less than the defaults in long lists
    "lambdamart:ndcg@10", "lambdamart:truncation=30", "stochasticrank:ndcg", "yetiloss:ndcg",
    *(f"{name}{';' if ':' in name else ':'}partners=10"
      for name in ("lambdamart", "ranknet", "hinge", "lambdaloss", "yetiloss:ndcg")),
)  # fmt: skip
SLOW = 1.0  # seconds of a first iteration that is not repeated
STATUS = Path("/proc/self/status")
KIB = 1024  # its unit
MORE_THREADS = 8, 32  # of the model
BYTES_A_ROW = 100  # that a gradient reads and writes: scores, gains, sums, and gradient and Hessian twice
COPIED, PIECES = 1 << 28, 64  # bytes, much more than a cache has


def most_memory() -> int:
    """Return the most bytes that this process has had, on Linux; a new process's rusage counts its parent's too."""
    return int(STATUS.read_text().partition("VmHWM:")[2].split()[0]) * KIB if STATUS.exists() else 0


def lists(queries: int, mean: float = 120.0) -> np.ndarray:
    """Return lengths of generated lists, as in :func:`ltr_objectives.datasets.make_ranking`."""
    lengths = np.random.default_rng(0).lognormal(np.log(mean) - 0.18, 0.6, queries)
    return np.maximum(np.rint(lengths), 1).astype(np.int64)


def measure(
    name: str, group: np.ndarray, threads: int, rounds: int, clock: Timer = perf_counter
) -> tuple[float, float]:
    """Measure the least seconds of a gradient or metric, and bytes a row that the first one adds to memory."""
    rng = np.random.default_rng(0)
    rows = int(group.sum())
    labels = rng.choice(len(MSLR_SHARES), rows, p=MSLR_SHARES).astype(np.float32)
    scores = rng.standard_normal(rows)
    made: Any = get_metric(name.removeprefix(EVALUATE)) if name.startswith(EVALUATE) else get_objective(name)
    compute = made.values if name.startswith(EVALUATE) else made.compute
    if made.label_limit is not None:
        labels = np.minimum(labels, np.float32(made.label_limit))
    few = min(group[0], 1000)
    compute(Queries(labels[:few], [few]), scores[:few])  # compiles
    queries = Queries(labels, group)
    before = most_memory()
    found = [seconds(lambda: compute(queries, scores, n_threads=threads), clock)]
    growth = (most_memory() - before) / rows
    while found[0] < SLOW and len(found) <= rounds:
        found.append(seconds(lambda: compute(queries, scores, n_threads=threads), clock))
    return min(found), growth


def serial_seconds(name: str, group: np.ndarray, threads: int, rounds: int) -> float:
    """Measure the least seconds of a gradient that more threads do not lower.

    Its kernels are called for as many parts of the data as so many threads take, but each part is empty.
    """
    made, queries = get_objective(name), Queries(np.arange(group.sum(), dtype=np.float32) % 2, group)
    scores = np.random.default_rng(0).standard_normal(queries.rows)
    made.compute(queries, scores)  # what is computed once for the data

    def run(kernel: Callable[..., Any], ptr: np.ndarray, arguments: tuple[Any, ...], *options: Any) -> None:
        for _ in range(min(pool.CHUNKS_PER_THREAD * threads, len(ptr) - 1)):
            kernel(0, 0, *arguments)

    with ExitStack() as stack:
        for module in [module for module in list(sys.modules.values()) if vars(module).get("run") is pool.run]:
            stack.enter_context(patch.object(module, "run", run))
        return min(seconds(lambda: made.compute(queries, scores, dtype=np.float32)) for _ in range(rounds))


def bytes_a_second(threads: int) -> float:
    """Measure the most bytes that all threads together read and write while they copy an array."""
    source, target = np.ones((2, PIECES, COPIED // PIECES), np.uint8)

    def copy(first: int, last: int) -> None:
        target[first:last] = source[first:last]

    took = min(seconds(lambda: pool.run(copy, np.arange(PIECES + 1), (), threads)) for _ in range(9))
    return 2 * COPIED / took


def modelled(serial: float, one_thread: float, rows: int, rate: float, threads: int) -> float:
    """Return the seconds of more threads: what is serial, and a share of the rest or what memory takes for the rows."""
    return serial + max((one_thread - serial) / threads, BYTES_A_ROW * rows / rate)


def apart(*arguments: Any) -> tuple[float, float]:
    """Measure in a new process, so that nothing else adds to its memory."""
    with ProcessPoolExecutor(1, get_context("spawn")) as processes:
        return processes.submit(measure, *arguments).result()


def all_names() -> list[str]:
    """Return every objective of the registry, those for long lists, and every metric."""
    cut = [f"{name}@10" if Metric.named[name].cutoff == "required" else name for name in metric_names()]
    return [*objective_names(), *SHORTER, *(EVALUATE + name for name in cut)]


def one_list(name: str, sizes: list[int], rounds: int, limit: float) -> list[dict[str, Any]]:
    """Measure processor time and memory of a single list of each size, the smallest first.

    If the square of the growth leads beyond ``limit`` seconds, that is the time, and nothing is measured.
    """
    found: list[dict[str, Any]] = []
    for rows in sizes:
        least = found[-1]["seconds"] * (rows / found[-1]["rows"]) ** 2 if found else 0.0
        time, growth = (least, None) if least > limit else apart(name, np.array([rows]), 1, rounds, process_time)
        found.append({"objective": name, "rows": rows, "seconds": time, "bytes_a_row": growth})
    return found


def scaling(
    objectives: Annotated[str, Option(help="Ours.")] = "lambdamart:ndcg;truncation=30,lambdamart,yetiloss:ndcg,plrank",
    rows: Annotated[str, Option(help="About so many.")] = "70000,230000,700000,2300000",
    longest: Annotated[str, Option(help="Documents of single long lists, for every objective and metric.")] = (
        "10000,100000,1000000"
    ),
    limit: Annotated[float, Option(help="Seconds of a gradient of a long list, beyond which it is not run.")] = 60.0,
    only: Annotated[str, Option(help="Part of the names of those in long lists.")] = "",
    rounds: Annotated[int, Option(min=1, help="The least time counts.")] = 5,
    threads: Annotated[int, Option(min=1)] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time an iteration by rows and threads, and measure its memory.

    It runs with one thread and with all. The time of all, of 8 and of 32 threads is modelled too: what is serial, and
    a share of the rest, or what this machine's memory takes for the rows if that is more. Every objective and metric
    runs on single long lists, in processor time.
    """
    console = terminal()
    results: list[dict[str, Any]] = []
    sizes = [int(n) for n in rows.split(",")]
    names = [name.strip() for name in objectives.split(",")]
    rate = bytes_a_second(threads)
    for name, size in track([(n, s) for n in names for s in sizes], console=console, transient=True):
        group = lists(size // 118)
        (time, growth), (one, _) = apart(name, group, threads, rounds), apart(name, group, 1, rounds)
        total = int(group.sum())
        per_row = time / total
        first = next((r for r in results if r["objective"] == name), None)
        serial = {p: serial_seconds(name, group, p, rounds) for p in (threads, *MORE_THREADS)}
        results.append({"objective": name, "rows": total, "seconds": time, "one_thread": one,
                        "linear": per_row / first["per_row"] if first else 1.0, "per_row": per_row,
                        "bytes_a_row": growth,
                        "serial": {str(p): s for p, s in serial.items()},
                        "modelled": {str(p): modelled(s, one, total, rate, p) for p, s in serial.items()}})  # fmt: skip
    long: list[dict[str, Any]] = []
    for name in track([n for n in all_names() if only in n], "long lists", console=console, transient=True):
        long += one_list(name, [int(n) for n in longest.split(",")], rounds, limit)
    console.print(pipe_table(long_lists({"long": long})), soft_wrap=True, markup=False)
    settings = {"threads": threads, "bytes_a_second": rate}
    save("scaling", {**settings, "results": results, "long": long}, out, console)

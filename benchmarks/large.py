"""``python -m benchmarks large``: seconds a tree and peak memory of XGBoost and LightGBM on millions of rows."""

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import write_whole
from benchmarks.scaling import most_memory
from benchmarks.workers import workers
from ltr_objectives import adapters
from ltr_objectives.datasets import make_ranking
from ltr_objectives.registry import objectives
from ltr_objectives.workbench.data import cut
from ltr_objectives.workbench.texts import terminal

LENGTH, PART = 100, 1_000_000  # mean rows of a query; rows of a part
FEW = 10_000  # rows to compile with
OURS = "lambdamart", "yetiloss"
CELLS = [("xgboost", name) for name in ("reg:squarederror", "rank:ndcg", *OURS)] + [
    ("lightgbm", name) for name in ("regression", "lambdarank", *OURS)
]
FORGET = Path("/proc/self/clear_refs")  # on Linux 5, written into it, forgets the peak


def write_parts(rows: int, features: int, folder: Path) -> None:
    """Write generated data in parts of whole queries; the last file appears when all are complete."""
    data = make_ranking(rows // LENGTH, features=features, mean_length=LENGTH)
    folder.mkdir(parents=True, exist_ok=True)
    ends = np.concatenate(([0], np.cumsum(data.group)))
    bounds = cut(data.group, -(-rows // PART))
    for part, (a, b) in enumerate(pairwise(bounds)):
        inside = slice(ends[a], ends[b])
        for name, values in (("X", data.X[inside]), ("y", data.y[inside]), ("group", data.group[a:b])):
            np.save(folder / f"{part:03}-{name}.npy", values)
    (folder / "rows").write_text(str(len(data.y)))


def parts(folder: Path) -> Iterator[tuple[np.ndarray, ...]]:
    """Features, labels and sizes of queries of each part."""
    for path in sorted(folder.glob("*-X.npy")):
        X, y, group = (np.load(str(path).replace("-X.", f"-{name}.")) for name in ("X", "y", "group"))
        yield X, y, group


def xgboost(objective: str, folder: Path, trees: int, threads: int, external: bool) -> tuple[list[float], int]:
    """Times at the begin and after each tree, and the peak of the memory before, with trees of depth 6."""
    import xgboost as xgb

    class Parts(xgb.DataIter):
        def __init__(self) -> None:
            self.left = parts(folder)
            super().__init__(cache_prefix=str(folder / "cache") if external else None)

        def next(self, input_data: Any) -> bool:
            part = next(self.left, None)
            if part is not None:
                input_data(data=part[0], label=part[1], qid=np.repeat(np.arange(len(part[2])), part[2]))
            return part is not None

        def reset(self) -> None:
            self.left = parts(folder)

    class Clock(xgb.callback.TrainingCallback):
        def after_iteration(self, *_: Any) -> bool:
            times.append(time.perf_counter())
            return False

    kind = xgb.ExtMemQuantileDMatrix if external else xgb.QuantileDMatrix
    dtrain = kind(Parts(), nthread=threads)
    params: dict[str, Any] = {"max_depth": 6, "eta": 0.1, "min_child_weight": 1e-3, "base_score": 0, "nthread": threads}
    before, times = forget_peak(), [time.perf_counter()]
    if objective in objectives():
        how: dict[str, Any] = {"obj": adapters.xgboost_objective(objective)}
    else:
        how, params["objective"] = {}, objective
    xgb.train(params, dtrain, trees, callbacks=[Clock()], **how)
    return times, before


def lightgbm(objective: str, folder: Path, trees: int, threads: int, _: bool) -> tuple[list[float], int]:
    """The same with trees of 31 leaves. The features are binned once, and read from a binary file."""
    import lightgbm as lgb

    class Rows(lgb.Sequence):
        batch_size = 65_536

        def __init__(self, X: np.ndarray) -> None:
            self.X = X

        def __getitem__(self, index: Any) -> np.ndarray:
            return self.X[index].astype(np.float64)  # LightGBM refuses float32 here

        def __len__(self) -> int:
            return len(self.X)

    params: dict[str, Any] = {"num_threads": threads, "force_col_wise": True, "verbose": -1}
    binary = folder / "lightgbm.bin"
    if not binary.exists():
        features = [Rows(np.load(path, mmap_mode="r")) for path in sorted(folder.glob("*-X.npy"))]
        labels, group = (np.concatenate(found) for found in zip(*((y, n) for _, y, n in parts(folder)), strict=True))
        made = lgb.Dataset(features, labels, group=group, params=params).construct()
        made.save_binary(folder / "new.bin")
        (folder / "new.bin").rename(binary)
        return [], 0
    dtrain = lgb.Dataset(binary, params=params).construct()
    before, times = forget_peak(), [time.perf_counter()]
    params["objective"] = adapters.lightgbm_objective(objective) if objective in objectives() else objective
    lgb.train(params, dtrain, trees, callbacks=[lambda _: times.append(time.perf_counter())])
    return times, before


def forget_peak() -> int:
    """The most bytes that this process has had, which the system forgets, to measure what comes after."""
    peak = most_memory()
    FORGET.write_text("5")
    return peak


def measure(library: str, objective: str, *arguments: Any) -> dict[str, Any]:
    """Seconds of each tree, and the most bytes before and during the training."""
    times, before = {"xgboost": xgboost, "lightgbm": lightgbm}[library](objective, *arguments)
    return {"library": library, "objective": objective, "seconds": np.diff(times).tolist(),
            "before": before, "training": most_memory()}  # fmt: skip


def large(
    rows: Annotated[int, Option(min=20_000, help="About so many, in queries of a hundred.")] = 20_000_000,
    features: Annotated[int, Option(min=10)] = 20,
    trees: Annotated[int, Option(min=2, help="The median counts.")] = 5,
    threads: Annotated[int, Option(min=1)] = 2,
    libraries: Annotated[str, Option(help="Any of xgboost, lightgbm.")] = "xgboost,lightgbm",
    external: Annotated[bool, Option(help="XGBoost keeps the features in files.")] = False,
    folder: Annotated[Path, Option(help="For the data, and trainings that are not repeated.")] = Path("build/large"),
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Train on millions of rows in processes of their own: seconds a tree, and memory beside squared error's."""
    console = terminal()
    cells = [cell for cell in CELLS if cell[0] in libraries.split(",")]
    small, whole = (folder / f"{n}x{features}" for n in (FEW, rows))
    with workers(1) as pool:  # a first training compiles, which needs memory
        pool.submit(write_parts, FEW, features, small).result()
        for library, objective in [*cells[-1:], *cells]:
            pool.submit(measure, library, objective, small, 2, threads, external).result()
    if not (whole / "rows").exists():
        with workers(1) as pool:
            pool.submit(write_parts, rows, features, whole).result()
    if "lightgbm" in libraries and not (whole / "lightgbm.bin").exists():
        with workers(1) as pool:
            pool.submit(measure, "lightgbm", "regression", whole, trees, threads, external).result()
    results = []
    for library, objective in track(cells, console=console, transient=True):
        path = whole / f"{library}-{objective.replace(':', '-')}-{trees}-{threads}{'-external' * external}.json"
        if not path.exists():
            with workers(1) as pool:
                write_whole(path, pool.submit(measure, library, objective, whole, trees, threads, external).result())
        results.append(json.loads(path.read_text()))
    settings = {"rows": int((whole / "rows").read_text()), "features": features, "trees": trees, "threads": threads}
    speed_tables.save("large", {**settings, "external": external, "results": results}, out, console)

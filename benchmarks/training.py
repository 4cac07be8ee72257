"""``python -m benchmarks training`` and ``evaluation``: seconds of whole trainings, of the libraries' own and ours."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks.iteration import TRIVIAL
from benchmarks.publish import save
from ltr_objectives import adapters
from ltr_objectives.datasets import RankingData, make_ranking
from ltr_objectives.workbench.texts import terminal

Change = Callable[[Any], Any]  # of the callable that an adapter makes
Train = Callable[..., float]  # trees, objective, change, metric -> seconds
OUR = "our "  # before our objectives and metrics; names without it are the library's


def unchanged(made: Any) -> Any:
    """Return the callable as it is."""
    return made


class Stored:
    """The gradients of one training, with which the same trees grow again though none is computed."""

    def __init__(self) -> None:
        self.calls: list[tuple[np.ndarray, np.ndarray]] = []

    def recording(self, made: Any) -> Any:
        """Return the callable, which keeps what it computes."""
        compute = made.gradients

        def gradients(*args: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
            found = compute(*args, **options)
            self.calls.append((found[0].copy(), found[1].copy()))
            return found

        made.gradients = gradients
        return made

    def interface(self, made: Any) -> Any:
        """Return the callable, which does all but compute."""
        calls = iter(self.calls)
        made.gradients = lambda *args, **options: next(calls)
        return made

    def alone(self, made: Any) -> Any:
        """Return a function for XGBoost and LightGBM without our package."""
        calls = iter(self.calls)
        return lambda scores, data: next(calls)


def xgboost(data: Sequence[RankingData], threads: int) -> Train:
    """Prepare trainings of depth 6 on the first data set, and evaluate on the others; all are reused."""
    import xgboost as xgb

    made = [xgb.QuantileDMatrix(data[0].X, data[0].y, qid=data[0].qid)]
    made += [xgb.QuantileDMatrix(each.X, each.y, qid=each.qid, ref=made[0]) for each in data[1:]]
    evals = [(each, f"eval{i}") for i, each in enumerate(made[1:])]

    def train(trees: int, objective: str, change: Change = unchanged, metric: str | None = None) -> float:
        params: dict[str, Any] = {"max_depth": 6, "eta": 0.1, "nthread": threads, "min_child_weight": 1e-3}
        params |= (
            {"disable_default_eval_metric": 1} if metric is None or metric.startswith(OUR) else {"eval_metric": metric}
        )
        obj = custom = None
        if objective.startswith(OUR):
            obj = change(adapters.xgboost_objective(objective.removeprefix(OUR), n_threads=threads))
        else:
            params["objective"] = objective
        if metric is not None and metric.startswith(OUR):
            custom = adapters.xgboost_metric(metric.removeprefix(OUR), n_threads=threads)
        start = time.perf_counter()
        xgb.train(params, made[0], trees, obj=obj, evals=evals, custom_metric=custom, verbose_eval=False)
        return time.perf_counter() - start

    return train


def lightgbm(data: Sequence[RankingData], threads: int) -> Train:
    """Prepare trainings of 31 leaves; the data sets are those of :func:`xgboost`."""
    import lightgbm as lgb

    options = {"verbose": -1, "force_col_wise": True}
    made = [lgb.Dataset(data[0].X, data[0].y, group=data[0].group, params=options)]
    made += [lgb.Dataset(each.X, each.y, group=each.group, params=options, reference=made[0]) for each in data[1:]]
    for each in made:
        each.construct()

    def train(trees: int, objective: str, change: Change = unchanged, metric: str | None = None) -> float:
        params: dict[str, Any] = {**options, "objective": objective, "num_threads": threads, "metric": "None"}
        feval = None
        if objective.startswith(OUR):
            params["objective"] = change(adapters.lightgbm_objective(objective.removeprefix(OUR), n_threads=threads))
        if metric is not None and metric.startswith(OUR):
            feval = adapters.lightgbm_metric(metric.removeprefix(OUR), n_threads=threads)
        elif metric is not None:
            params["metric"], params["eval_at"] = metric.split("@")
        start = time.perf_counter()
        lgb.train(params, made[0], trees, valid_sets=made[1:], feval=feval)
        return time.perf_counter() - start

    return train


def catboost(data: Sequence[RankingData], threads: int) -> Train:
    """Prepare trainings of depth 6, as :func:`xgboost`. Native objectives have CatBoost's own defaults."""
    import catboost as cb

    made = [cb.Pool(each.X, each.y, group_id=each.qid, thread_count=threads) for each in data]

    def train(trees: int, objective: str, change: Change = unchanged, metric: str | None = None) -> float:
        params: dict[str, Any] = {
            "iterations": trees, "depth": 6, "learning_rate": 0.1, "thread_count": threads, "random_seed": 0,
            "bootstrap_type": "No", "loss_function": objective, "allow_writing_files": False, "verbose": False,
            "eval_metric": metric or "NDCG", "metric_period": 1 if metric else 10_000, "use_best_model": False,
        }  # fmt: skip
        if objective.startswith(OUR):
            made_objective = adapters.catboost_objective(objective.removeprefix(OUR), made[0], n_threads=threads)
            params["loss_function"] = change(made_objective)
            params |= {"leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1}
        if metric is not None and metric.startswith(OUR):
            params["eval_metric"] = adapters.catboost_metric(metric.removeprefix(OUR), *made, n_threads=threads)
        start = time.perf_counter()
        cb.CatBoost(params).fit(made[0], eval_set=made[1:] or None)
        return time.perf_counter() - start

    return train


class Case(NamedTuple):
    """The contenders of one library."""

    make: Callable[[Sequence[RankingData], int], Train]
    natives: tuple[str, ...]
    twin: str  # our objective with the Hessians of the first native one
    metric: str  # its own NDCG@10


OURS = "lambdamart", "yetiloss:ndcg@10", "yetiloss:ndcg;permutations=10", "yetiloss:ndcg", "yetiloss:gap"
CASES = {
    "xgboost": Case(xgboost, ("rank:ndcg",), "lambdamart:preset=xgboost", "ndcg@10"),
    "lightgbm": Case(lightgbm, ("lambdarank",), "lambdamart:preset=lightgbm", "ndcg@10"),
    "catboost": Case(
        catboost, ("YetiRank:mode=NDCG;top=10", "YetiRank", "QueryRMSE"), "yetiloss:ndcg@10;neighbors=1", "NDCG:top=10"
    ),
}

Rows = Annotated[int, Option(min=1000, help="About so many generated rows, 136 features.")]
Trees = Annotated[int, Option(min=1)]
Rounds = Annotated[int, Option(min=1, help="Repetitions; the ratio is the median of theirs.")]
Libraries = Annotated[str, Option(help="Any of xgboost, lightgbm, catboost.")]
Threads = Annotated[int, Option(min=1)]
Out = Annotated[Path, Option(help="Folder for the JSON file.")]


def training(
    rows: Rows = 200_000,
    trees: Trees = 100,
    rounds: Rounds = 3,
    libraries: Libraries = "xgboost,lightgbm,catboost",
    threads: Threads = 2,
    out: Out = Path("results"),
) -> None:
    """Time whole trainings with native objectives, with ours, and with our gradients stored.

    With stored gradients the same trees grow, and the adapter does all but compute them; in XGBoost and LightGBM also
    without the adapter, which is the floor. They take turns with squared error, whose gradients cost nothing. Nothing
    is evaluated during a training. The training that records the gradients does not count.
    """
    console = terminal()
    data = make_ranking(max(1, rows // 118), seed=0)
    console.print(f"{data!r}, {trees} trees, {threads} threads")
    results: list[dict[str, Any]] = []
    for library in libraries.split(","):
        case = CASES[library]
        train = case.make([data], threads)
        bases = TRIVIAL[library], *case.natives
        contenders: dict[str, Callable[[], float]] = {}
        for name in bases:
            train(2, name)
            contenders[name] = partial(train, trees, name)
        for name in (*OURS, case.twin):
            stored = Stored()
            train(trees, OUR + name, stored.recording)
            contenders[name] = partial(train, trees, OUR + name)
            contenders[f"{name} interface"] = partial(train, trees, OUR + name, stored.interface)
            if library != "catboost":  # which calls an objective block by block
                contenders[f"{name} alone"] = partial(train, trees, OUR + name, stored.alone)
        seconds = _in_turn(contenders, rounds, library, console)
        for name in (*bases, *OURS, case.twin):
            over = {base: _ratio(seconds[name], seconds[base]) for base in bases}
            parts = {part: seconds[f"{name} {part}"] for part in ("interface", "alone") if f"{name} {part}" in seconds}
            floor = {"over_floor": _ratio(seconds[name], list(parts.values())[-1])} if parts else {}
            results.append(
                {"library": library, "objective": name, "seconds": seconds[name], "over": over, **parts, **floor}
            )
    settings = {"rows": len(data.y), "trees": trees, "threads": threads}
    save("training", {**settings, "results": results}, out, console)


def evaluation(
    rows: Rows = 200_000,
    trees: Trees = 50,
    rounds: Rounds = 3,
    libraries: Libraries = "xgboost,lightgbm,catboost",
    threads: Threads = 2,
    out: Out = Path("results"),
) -> None:
    """Time trainings that evaluate NDCG@10 on two data sets after each tree, by the library's metric and by ours.

    The objective is squared error. The time of the metric is the difference from a training without a metric; in
    CatBoost, whose metric cannot be left out, with RMSE. Each of the two data sets is as large as the training's.
    """
    console = terminal()
    data = [make_ranking(max(1, rows // 118), seed=seed) for seed in range(3)]
    results: list[dict[str, Any]] = []
    for library in libraries.split(","):
        case = CASES[library]
        train = case.make(data, threads)
        metrics = {"none": None if library != "catboost" else "RMSE", "own": case.metric, "ours": f"{OUR}ndcg@10"}
        for metric in metrics.values():
            train(2, TRIVIAL[library], metric=metric)
        contenders = {key: partial(train, trees, TRIVIAL[library], metric=metric) for key, metric in metrics.items()}
        seconds = _in_turn(contenders, rounds, library, console)
        results.append({"library": library, "metric": case.metric, **seconds})
    settings = {"rows": len(data[0].y), "trees": trees, "threads": threads}
    save("evaluation", {**settings, "results": results}, out, console)


def _in_turn(
    contenders: Mapping[str, Callable[[], float]], rounds: int, label: str, console: Any
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in track(range(rounds), label, console=console, transient=True):
        for name, contender in contenders.items():
            seconds[name].append(contender())
    return seconds


def _ratio(some: list[float], others: list[float]) -> list[float]:
    """Return least, median and most of the ratios by round."""
    return [float(q) for q in np.quantile(np.array(some) / np.array(others), (0, 0.5, 1))]

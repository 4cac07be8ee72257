"""``python -m benchmarks kernels``: time of an iteration's gradients, native objectives and ours in turn."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import iteration
from benchmarks.plrank_numpy import plrank_numpy
from benchmarks.publish import save
from ltr_objectives.datasets import RankingData, make_ranking
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.workbench.texts import terminal

Reference = Callable[[RankingData, int, int], iteration.Timer]  # data, threads, iterations


class Case(NamedTuple):
    """One line of the table: our kernel and its reference."""

    what: str
    ours: str
    against: str
    reference: Reference
    share: float = 1.0  # of the queries; less for slow references


def _native(library: str, objective: str, **options: Any) -> Reference:
    return lambda data, threads, n: iteration.native(library, objective, options, data, threads, n)


def _ours(objective: str) -> Reference:
    return lambda data, threads, n: iteration.ours(objective, data, threads, n)


def _plrank(data: RankingData, threads: int, n: int) -> iteration.Timer:
    theta, rng = get_objective("plrank").theta(10), np.random.default_rng(0)  # type: ignore[attr-defined]  # PLRank's own
    ends = np.cumsum(data.group)
    lists = [data.y[b - m : b] for b, m in zip(ends, data.group, strict=True)]
    return lambda: iteration.seconds(
        lambda: [plrank_numpy(0.3 * y + rng.normal(size=len(y)), np.exp2(y) - 1, theta, 200, rng) for y in lists]
    )


ALL, THIRD, FEW = 1.0, 1 / 3, 1 / 30
PAIRS = {"lambdarank_pair_method": "topk"}
CASES = (
    Case("LambdaMART NDCG, truncation 30", "lambdamart:ndcg;truncation=30", "LightGBM lambdarank",
         _native("lightgbm", "lambdarank", lambdarank_truncation_level=30)),
    Case("LambdaMART NDCG, truncation 32", "lambdamart:ndcg;truncation=32", "XGBoost rank:ndcg",
         _native("xgboost", "rank:ndcg", lambdarank_num_pair_per_sample=32, **PAIRS)),
    Case("LambdaMART NDCG, all pairs", "lambdamart:ndcg", "LightGBM lambdarank",
         _native("lightgbm", "lambdarank", lambdarank_truncation_level=10_000)),
    Case("LambdaMART NDCG, all pairs", "lambdamart:ndcg", "CatBoost LambdaMart",
         _native("catboost", "LambdaMart:metric=NDCG"), THIRD),
    Case("LambdaMART MAP, all pairs", "lambdamart:map", "our NDCG", _ours("lambdamart:ndcg")),
    Case("LambdaMART MRR, all pairs", "lambdamart:mrr", "our NDCG", _ours("lambdamart:ndcg")),
    Case("LambdaMART ERR, all pairs", "lambdamart:err", "our NDCG", _ours("lambdamart:ndcg")),
    Case("YetiRank", "yetirank", "CatBoost YetiRank", _native("catboost", "YetiRank"), THIRD),
    Case("YetiLoss NDCG@10, next neighbour", "yetiloss:ndcg@10;neighbors=1", "CatBoost YetiRank:mode=NDCG",
         _native("catboost", "YetiRank:mode=NDCG;top=10"), THIRD),
    Case("YetiLoss MAP, next neighbour", "yetiloss:map;neighbors=1", "CatBoost YetiRank:mode=MAP",
         _native("catboost", "YetiRank:mode=MAP"), THIRD),
    Case("YetiLoss MRR, next neighbour", "yetiloss:mrr;neighbors=1", "CatBoost YetiRank:mode=MRR",
         _native("catboost", "YetiRank:mode=MRR"), THIRD),
    Case("YetiLoss ERR, next neighbour", "yetiloss:err;neighbors=1", "CatBoost YetiRank:mode=ERR",
         _native("catboost", "YetiRank:mode=ERR"), THIRD),
    Case("YetiLoss NDCG@10, all pairs", "yetiloss:ndcg@10", "CatBoost YetiRank:mode=NDCG",
         _native("catboost", "YetiRank:mode=NDCG;top=10"), THIRD),
    Case("YetiLoss NDCG, all pairs", "yetiloss:ndcg", "CatBoost YetiRank:mode=NDCG",
         _native("catboost", "YetiRank:mode=NDCG"), THIRD),
    Case("YetiLoss NDCG, all pairs", "yetiloss:ndcg", "our ten rankings", _ours("yetiloss:ndcg;permutations=10")),
    Case("YetiLoss MAP, all pairs", "yetiloss:map", "CatBoost YetiRank:mode=MAP",
         _native("catboost", "YetiRank:mode=MAP"), THIRD),
    Case("YetiLoss gap, all pairs", "yetiloss:gap", "CatBoost YetiRank:mode=MAP",
         _native("catboost", "YetiRank:mode=MAP"), THIRD),
    Case("StochasticRank NDCG@10", "stochasticrank:ndcg@10", "CatBoost StochasticRank",
         _native("catboost", "StochasticRank:metric=NDCG;top=10;num_estimations=1"), THIRD),
    Case("StochasticRank MRR", "stochasticrank:mrr", "CatBoost StochasticRank",
         _native("catboost", "StochasticRank:metric=MRR;num_estimations=1"), THIRD),
    Case("StochasticRank ERR", "stochasticrank:err", "CatBoost StochasticRank",
         _native("catboost", "StochasticRank:metric=ERR;num_estimations=1"), THIRD),
    Case("PL-Rank, 10 ranks, 200 rankings", "plrank:samples=200", "PL-Rank-3 in NumPy", _plrank, FEW),
    Case("the same with second derivatives", "plrank:samples=200;hessian=absolute", "PL-Rank-3 in NumPy", _plrank, FEW),
    Case("XE-NDCG", "xendcg", "LightGBM rank_xendcg", _native("lightgbm", "rank_xendcg")),
    Case("metric NDCG@10", "ndcg@10", "LightGBM's metric", iteration.native_metric),
    Case("metric NDCG@10", "ndcg@10", "scikit-learn's ndcg_score", lambda d, t, n: iteration.sklearn_metric(d)),
)  # fmt: skip


BASELINE = "kernels.json of this command under NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=, as a column."


def kernels(
    queries: Annotated[int, Option(min=30, help="Generated, of 120 rows in the mean.")] = 6000,
    rounds: Annotated[int, Option(min=1, help="Repetitions of both, in turn; the medians count.")] = 5,
    iterations: Annotated[int, Option(min=1, help="Trees of each repetition of a native objective.")] = 3,
    threads: Annotated[int, Option(min=1)] = 2,
    only: Annotated[str, Option(help="Only the lines that contain this text.")] = "",
    baseline: Annotated[Path | None, Option(help=BASELINE)] = None,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time gradients, ours and the libraries' own.

    Ours are as the adapters compute them. A native objective's time is that of an iteration with trees of one split of
    four features, minus the same with squared error. With slow references both are timed on a part of the queries.
    """
    console = terminal()
    data = make_ranking(queries, seed=0)
    parts = {share: data.select(np.arange(max(1, round(queries * share)))) for share in {c.share for c in CASES}}
    console.print(f"{data!r}, {threads} threads")
    other_code = json.loads(baseline.read_text())["results"] if baseline else []
    published = {(r["what"], r["against"]): r["ours_ms"] for r in other_code}
    rows = []
    for case in track([c for c in CASES if only.lower() in f"{c.what} {c.against}".lower()], console=console):
        part = parts[case.share]
        metric = case.what.startswith("metric")
        own = (iteration.ours_metric if metric else iteration.ours)(case.ours, part, threads, iterations)
        other = case.reference(part, threads, iterations)
        times = np.array([(own(), other()) for _ in range(rounds)])
        ours_ms, other_ms = 1e3 * np.median(times, axis=0)
        rows.append({"what": case.what, "ours": case.ours, "against": case.against, "rows": len(part.y),
                     "ours_ms": ours_ms, "reference_ms": other_ms, "ratio": other_ms / ours_ms,
                     "baseline_ms": published.get((case.what, case.against)), "seconds": times.tolist()})  # fmt: skip
    settings = {"queries": queries, "rounds": rounds, "iterations": iterations, "threads": threads}
    save("kernels", {**settings, "results": rows}, out, console)

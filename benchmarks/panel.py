"""``python -m benchmarks panel``: very long queries, as of all stocks of a day, with partners instead of all pairs."""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.iteration import seconds
from ltr_objectives import adapters
from ltr_objectives.metrics.evaluation import evaluate
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.texts import terminal

METRICS = ["spearman", "ndcg@100"]
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "LightGBM regression": ("LGBMRanker", {"objective": "regression"}),
    "LightGBM lambdarank": ("LGBMRanker", {"objective": "lambdarank"}),
    "XGBoost rank:pairwise": ("XGBRanker", {"objective": "rank:pairwise"}),
    "XGBoost rank:pairwise, 10 pairs by mean": (
        "XGBRanker",
        {"objective": "rank:pairwise", "lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 10},
    ),
    **{
        f"LightGBM {name}": ("LGBMRanker", {"objective": name})
        for name in (
            "ranknet:partners=10", "ranknet:partners=100", "lambdamart:spearman;partners=10",
            "lambdamart:ndcg;partners=10", "hinge:spearman;partners=10", "lambdaloss:partners=10",
            "yetiloss:ndcg;partners=10", "yetiloss:ndcg@100",
        )
    },
}  # fmt: skip


def panel_data(rng: np.random.Generator, days: int, rows: int, features: int, weights: np.ndarray) -> Any:
    """Features, returns and their fifths by day: a weak signal, and a noise that is common to a day's volatility."""
    X = rng.normal(size=(days, rows, features)).astype(np.float32)
    signal = X @ weights + 0.3 * np.tanh(X[..., 0] * X[..., 1])
    returns = rng.lognormal(sigma=0.3, size=(days, 1)) * (0.06 * signal + rng.standard_t(4, size=(days, rows)))
    grades = (5 * returns.argsort(axis=1).argsort(axis=1)) // rows
    return X.reshape(-1, features), returns.ravel(), grades.ravel(), np.full(days, rows)


def panel(
    days: Annotated[int, Option(min=2, help="To train on; as many are tested.")] = 50,
    rows: Annotated[int, Option(min=10, help="Of each day.")] = 10_000,
    features: Annotated[int, Option(min=2)] = 20,
    trees: Annotated[int, Option(min=1, help="All are used.")] = 60,
    seed: Annotated[int, Option(min=0)] = 0,
    threads: Annotated[int, Option(min=1)] = 2,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Compare objectives on queries of thousands of rows: rank correlation with the returns, NDCG of their fifths.

    Times are of the processor.
    """
    console, rng = terminal(), np.random.default_rng(seed)
    weights = rng.normal(size=features).astype(np.float32) / np.sqrt(features)
    train, test = (panel_data(rng, days, rows, features, weights) for _ in range(2))
    found: dict[str, tuple[list[Any], float]] = {}
    for label, (name, settings) in track(TRAININGS.items(), "trainings", console=console, transient=True):
        quiet = {"verbose": -1} if name == "LGBMRanker" else {}
        how = {"n_estimators": trees, "n_jobs": threads, "learning_rate": 0.1, "num_leaves": 15, "max_leaves": 15}
        how.pop("max_leaves" if quiet else "num_leaves")
        X, _, grades, group = train
        getattr(adapters, name)(**how | {"n_estimators": 1}, **settings, **quiet).fit(X, grades, group=group)
        model = getattr(adapters, name)(**how, **settings, **quiet)
        took = seconds(lambda: model.fit(X, grades, group=group), time.process_time) / trees  # noqa: B023 - called at once
        scores = model.predict(test[0])
        labels = {"spearman": test[1], "ndcg@100": test[2]}
        values = [evaluate(metric, scores, labels[metric], test[3], per_query=True) for metric in METRICS]
        found[label] = values, took
    first = next(iter(found.values()))[0]
    results = [
        {"training": label, "ms_a_tree": 1000 * took}
        | {m: float(v.mean()) for m, v in zip(METRICS, values, strict=True)}
        | {f"{m} se": standard_error(v - base) for m, v, base in zip(METRICS, values, first, strict=True)}
        for label, (values, took) in found.items()
    ]
    speed_tables.save("panel", {"results": results}, out, console)

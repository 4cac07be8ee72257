"""``python -m benchmarks one-list``: average precision of one list without queries, beside logistic loss."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.progress import track
from typer import Option

from benchmarks.publish import save
from ltr_objectives import evaluate
from ltr_objectives.adapters import LGBMRanker
from ltr_objectives.workbench.texts import terminal

OBJECTIVES = "lambdamart:map;partners=10", "binary"
POSITIVE = 0.05  # the share of rows with label 1


def table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features, and labels by an additive score with an interaction and logistic noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 12)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 1.5 * np.maximum(X[:, 3], 0) + 0.5 * X[:, 4] + rng.logistic(size=rows)
    return X, (score > np.quantile(score, 1 - POSITIVE)).astype(float)


def one_list(
    rows: Annotated[int, Option(help="Of training, validation and test data each.")] = 12_000,
    seeds: Annotated[str, Option(help="Of the generated data.")] = "0,100",
    trees: Annotated[int, Option(help="At most; training stops after 20 without a better validation value.")] = 500,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Train LightGBM for average precision on one list alone, and with logistic loss."""
    console = terminal()
    results: list[dict[str, Any]] = []
    for seed, objective in track(
        [(int(s), o) for s in seeds.split(",") for o in OBJECTIVES], console=console, transient=True
    ):
        (X, y), (valid_X, valid_y), (test_X, test_y) = (table(rows, seed + part) for part in range(3))
        ranker = LGBMRanker(objective=objective, eval_metric="map", n_estimators=trees, num_leaves=15)
        ranker.fit(X, y, group=[rows], eval_set=[(valid_X, valid_y)], eval_group=[[rows]], early_stopping_rounds=20)
        value = evaluate("map", ranker.predict(test_X), test_y, [rows])
        results.append({"seed": seed, "objective": objective, "map": value, "trees": ranker.best_iteration_})
    save("one_list", {"rows": rows, "results": results}, out, console)

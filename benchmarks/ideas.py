"""``python -m benchmarks ideas``: ideas from elsewhere, on real data, each with and without and chosen on vali."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from rich.progress import track
from typer import Option

from benchmarks import speed_tables
from benchmarks.cells import write_whole
from benchmarks.folds import Fold, folds_of
from ltr_objectives.datasets import RankingData
from ltr_objectives.metrics.evaluation import evaluate
from ltr_objectives.workbench.libraries import LIBRARIES
from ltr_objectives.workbench.statistics import standard_error
from ltr_objectives.workbench.summary import POOLED
from ltr_objectives.workbench.texts import terminal
from ltr_objectives.workbench.trials import numbers

METRIC, TREES, PATIENCE, RATE, PARTS = "ndcg@10", 200, 20, 0.1, 3
WITHIN = ("z-score", "rank", "minus the best", "all three")  # features within the query, beside their own values
PARAMS: dict[tuple[str, str, str], dict[str, Any]] = {  # library, idea and arm; all else is as the estimators have it
    ("lightgbm", "other trees", "depth at most 5"): {"max_depth": 5},
    ("lightgbm", "linear leaves", "lambda 0.01"): {"linear_tree": True, "linear_lambda": 0.01},
    ("lightgbm", "linear leaves", "lambda 1"): {"linear_tree": True, "linear_lambda": 1.0},
    ("xgboost", "other trees", "lossguide, 31 leaves"): {"grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0},
    ("catboost", "other trees", "Depthwise"): {"grow_policy": "Depthwise"},
    ("catboost", "other trees", "Lossguide, 31 leaves"): {"grow_policy": "Lossguide", "max_leaves": 31},
}
KEYS = ["library", "idea", "arm", "data"]


def widened(data: RankingData, arm: str) -> RankingData:
    """Append features within the query: z-scores, ranks as shares, or the distance from the largest value."""
    own = pd.DataFrame(data.X)
    by = own.groupby(data.qid)
    z = (own - by.transform("mean")) / by.transform("std", ddof=0)
    made = {"z-score": z.fillna(0.0), "rank": by.rank(pct=True), "minus the best": own - by.transform("max")}
    parts = [part.to_numpy(np.float32) for name, part in made.items() if arm in (name, WITHIN[-1])]
    return replace(data, X=np.hstack([data.X, *parts]))


def softened(train: RankingData, scores: np.ndarray, weight: float) -> RankingData:
    """Mix gains with those expected by isotonic regression on a teacher's scores, with the same mean in each query."""
    from sklearn.isotonic import IsotonicRegression

    gain, z = pd.Series(np.exp2(train.y) - 1.0), widened(replace(train, X=scores[:, None]), "z-score").X[:, 1]
    expected = pd.Series(IsotonicRegression().fit_transform(z, gain))
    own, its = (values.groupby(train.qid).transform("mean") for values in (gain, expected))
    return replace(train, y=((1 - weight) * gain + weight * (expected * own / its).fillna(0.0)).to_numpy(np.float32))


def measured(fold: Fold, library: str, estimator: Any) -> list[dict[str, Any]]:
    """Idea and arm, the mean of the vali and the values of the test queries; the first is the model without ideas."""
    train, vali, test = parts = fold.load()

    def fitted(data: RankingData, on: RankingData | None = None, gain: str = "", **params: Any) -> Any:
        params = {"n_estimators": TREES, "learning_rate": RATE, LIBRARIES[library].threads: 1, **params}
        ranker = estimator(objective=f"yetiloss:ndcg{gain};seed={fold.seed}", eval_metric=METRIC, **params)
        stop = {"eval_set": [(on.X, on.y)], "eval_group": [on.group], "early_stopping_rounds": PATIENCE} if on else {}
        return ranker.fit(data.X, data.y, group=data.group, **stop)

    def record(idea: str, arm: str, data: RankingData, *parts: RankingData, **params: Any) -> dict[str, Any]:
        ranker = fitted(data, parts[0], **params)
        of = [evaluate(METRIC, ranker.predict(p.X), p.y, p.group, per_query=True, n_threads=1) for p in parts]
        means = {"vali": float(np.nanmean(of[0])), "test": numbers(of[1])}
        return {"idea": idea, "arm": arm, "trees": int(ranker.best_iteration_), **means}

    found = [record("", "", train, vali, test)]
    found += [record(*key[1:], train, vali, test, **of) for key, of in PARAMS.items() if key[0] == library]
    if library == "catboost":
        return found
    found += [record("features within the query", arm, *(widened(p, arm) for p in parts)) for arm in WITHIN]
    scores, part = np.empty(len(train.y), np.float32), np.arange(len(train.group)) % PARTS
    for p in range(PARTS):  # as many trees as the model without ideas
        teacher = fitted(train.select(np.flatnonzero(part != p)), n_estimators=max(1, found[0]["trees"]))
        own = np.repeat(part == p, train.group)
        scores[own] = teacher.predict(train.X[own])
    for w in (0.25, 0.5, 0.75):
        found.append(record("soft labels", f"{w:g}", softened(train, scores, w), vali, test, gain="(gain_type=linear)"))
    return found


def summary(found: dict[tuple[Fold, str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """By library, idea, arm and data: the mean difference over the queries; the arm without name is chosen on vali."""
    gaps = []
    for (fold, library), (base, *others) in found.items():
        for idea in dict.fromkeys(arm["idea"] for arm in others):
            arms = [arm for arm in others if arm["idea"] == idea]
            for arm in [*arms, max(base, *arms, key=lambda each: each["vali"]) | {"arm": ""}]:
                gap = np.array(arm["test"], float) - np.array(base["test"], float)
                key = dict(zip(KEYS, (library, idea, arm["arm"], fold.data), strict=True))
                gaps.append(pd.DataFrame({**key, "fold": fold.source, "query": np.arange(len(gap)), "gap": gap}))
    mean = pd.concat(gaps).groupby([*KEYS, "fold", "query"], sort=False)["gap"].mean().reset_index()  # over the seeds
    return [
        dict(zip(KEYS, key, strict=True)) | {"queries": int(part["gap"].count()), "difference": part["gap"].mean(),
                                             "se": standard_error(part["gap"].to_numpy())}
        for frame in (mean, mean.assign(data=POOLED)) for key, part in frame.groupby(KEYS, sort=False)
    ]  # fmt: skip


def ideas(
    data: Annotated[list[str], Option(help="As of `quality`; may be repeated.")],
    seeds: Annotated[int, Option(min=1, help="Number of seeds of the noise; a query has the mean over them.")] = 1,
    out: Annotated[Path, Option(help="Folder of the JSON file and of finished trainings.")] = Path("results"),
) -> None:
    """Measure ideas from elsewhere with YetiLoss: with and without, and the choice by the vali queries."""
    console, found = terminal(), {}
    cells = [(fold, library) for place in data for fold in folds_of(place, range(seeds)) for library in LIBRARIES]
    for fold, library in track(cells, "trainings", console=console, transient=True):
        path = out / "ideas" / f"{fold.data} {Path(fold.source).name} {fold.seed} {library}.json"
        if not path.exists():
            with LIBRARIES[library].estimator() as estimator:
                write_whole(path, measured(fold, library, estimator))
        found[fold, library] = json.loads(path.read_text())
    speed_tables.save("ideas", {"metric": METRIC, "results": summary(found)}, out, console)

"""The trainings of a study: each on a fold, with a file that keeps its record for later runs."""

import hashlib
import json
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.folds import Fold, load
from benchmarks.provenance import versions
from ltr_objectives._files import replacing
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.trials import Budget, Trial, queries_of, train

CONSTANT = "constant"  # the model that scores all documents alike
DRAWS, NOISE = 8, 0.1  # of a smoothed metric: noisy scores, and their noise in standard deviations of the scores
Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A training on a fold. Each metric is computed at its own early stop."""

    library: str
    objective: str
    label: str  # the objective as asked for, with {metric} not replaced
    metrics: tuple[str, ...]
    budget: Budget
    fold: Fold
    smooth: tuple[str, ...] = ()  # metrics whose validation value is the mean over slightly noisy scores

    @property
    def key(self) -> str:
        """A name for its file, equal for equal settings, whatever the number of threads."""
        settings = asdict(self)
        settings["budget"] |= {"threads": 1, "l2": 0.0, "smooth": settings.pop("smooth")}  # as in published studies
        settings |= {"stop": "", "fold": [self.fold.data, Path(self.fold.source).name, self.fold.seed]}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]

    def path(self, out: Path) -> Path:
        """Return where its record is kept."""
        return out / "cells" / f"{self.key}.json"

    def compute(self) -> Record:
        """Train and evaluate."""
        fold, threads = load(self.fold), self.budget.threads
        on_test = queries_of(fold.test)
        record: Record = asdict(self) | {"seconds": 0.0}
        record |= {name: {} for name in ("test", "vali", "trees", "curves")}
        metrics = [get_metric(name) for name in self.metrics]
        if self.objective == CONSTANT:
            constant = np.zeros(on_test.rows)
            return record | {"test": {str(m): numbers(m.values(on_test, constant)) for m in metrics}}
        assert fold.vali is not None
        rows = len(fold.vali.y)
        stops = [smoothed(m, rows) if str(m) in self.smooth else m for m in metrics]
        trial = Trial(self.library, self.objective, self.budget)
        ranker, record["seconds"] = train(trial, fold.train, fold.vali, stops)
        for metric in metrics:
            name, curve = str(metric), list(ranker.evals_result_["validation_0"][str(metric)])
            trees = best_round(curve, self.budget.patience)
            cut: dict[str, dict[str, Any]] = {
                "xgboost": {"iteration_range": (0, trees)}, "lightgbm": {"num_iteration": trees},
                "catboost": {"ntree_end": trees},
            }  # fmt: skip
            scores = np.asarray(ranker.predict(fold.test.X, **cut[self.library]), np.float64)
            record["trees"][name], record["vali"][name] = trees, curve[trees - 1]
            record["curves"][name] = numbers(curve)
            record["test"][name] = numbers(metric.values(on_test, scores, n_threads=threads))
        return record


def smoothed(metric: Metric, rows: int) -> Metric:
    """Return a copy of the metric whose mean over so many rows is that over slightly noisy scores."""
    noise = np.random.default_rng(0).standard_normal((DRAWS, rows))

    def mean(queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        s = np.asarray(scores, np.float64)
        noisy = (
            [s] if len(s) != rows else [s + NOISE * s.std() * each for each in noise]
        )  # CatBoost evaluates train too
        return float(np.mean([metric.mean(queries, each, n_threads=n_threads) for each in noisy]))

    found = copy(metric)
    vars(found)["mean"] = mean
    return found


def best_round(curve: Sequence[float], patience: int) -> int:
    """Return the best number of trees if early stopping watched this curve alone; the first of ties."""
    best = 0
    for i, value in enumerate(curve):
        if value > curve[best]:
            best = i
        if i - best >= patience:
            break
    return best + 1


def numbers(values: Any) -> list[float | None]:
    """Return values for JSON, which has no NaN."""
    return [None if np.isnan(v) else float(v) for v in values]


def run(cell: Cell, out: Path | None) -> Record:
    """Train, evaluate, and write the record; the file appears only when it is complete."""
    record = cell.compute() | {"versions": versions([cell.library] if cell.library else [])}
    if out is not None:
        write_whole(cell.path(out), record)
    return record


def write_whole(path: Path, document: Any, indent: int | None = None) -> None:
    """Write JSON; the file appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_text(json.dumps(document, indent=indent))

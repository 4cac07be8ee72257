"""The trials of a study: each on a fold, with a file that keeps its record for later runs."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.folds import Fold, load
from benchmarks.provenance import versions
from ltr_objectives._files import replacing
from ltr_objectives.metrics.base import get_metric
from ltr_objectives.workbench.trials import Record, Trial, measure, per_query, train, unmeasured

CONSTANT = "constant"  # the model that scores all documents alike


@dataclass(frozen=True)
class Cell(Trial):
    """A trial on a fold."""

    fold: Fold = field(kw_only=True)

    @property
    def key(self) -> str:
        """A name for its file, equal for equal settings, whatever the number of threads."""
        settings = asdict(replace(self, budget=replace(self.budget, threads=1)))
        settings["fold"] = [self.fold.data, Path(self.fold.source).name, self.fold.seed]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]

    def path(self, out: Path) -> Path:
        """Where its record is kept."""
        return out / "cells" / f"{self.key}.json"

    def compute(self) -> Record:
        """Train and evaluate."""
        data = load(self.fold)
        if self.objective != CONSTANT:
            return measure(self, data, train(self, data.train, data.vali))
        same = np.zeros(len(data.test.y))
        found = {m: per_query(get_metric(m), data.test, same, self.budget.threads) for m in self.metrics}
        return unmeasured(self) | {"test": found}


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

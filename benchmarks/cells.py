"""The trainings of a study: what each is, running one, and its file, which a later run finds again."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.experiment import per_query, prepare, seeded, split_vali
from benchmarks.libraries import LIBRARIES, Budget, Library, Training
from benchmarks.tables import versions
from ltr_objectives._files import replacing
from ltr_objectives.checks import check_choice
from ltr_objectives.datasets import MSLR_SHARES, RankingFold, load_letor, make_ranking_fold
from ltr_objectives.errors import LTRError, require
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_metric, get_objective

CONSTANT = "constant"  # the model that cannot tell documents apart
GENERATED = "generated"
SHARES = {GENERATED: MSLR_SHARES, "generated-binary": (0.985, 0.015)}  # of the labels, by kind of generated data


class Fold(NamedTuple):
    """Where one train, vali and test come from."""

    data: str  # name of the data set
    source: str  # folder of the fold; or sizes of generated parts
    seed: int

    def load(self) -> RankingFold:
        """Read or generate it; without a vali part, a fifth of the train queries."""
        if self.data.startswith(GENERATED):
            sizes = tuple(int(q) for q in self.source.split(","))
            shares = SHARES[self.data.partition(" ")[0]]
            return make_ranking_fold(sizes, self.seed, shares=shares)  # type: ignore[arg-type]  # three, as checked
        loaded = load_letor(self.source)
        require(isinstance(loaded, RankingFold), f"{self.source} is a file; pass a folder with train and test")
        assert isinstance(loaded, RankingFold)
        if loaded.vali is not None:
            return loaded
        return RankingFold(*split_vali(loaded.train, 0), loaded.test)


def folds_of(data: str, seeds: Sequence[int]) -> list[Fold]:
    """The folds of ``--data``: a folder of a fold or of folds, the start of names, or ``generated:TRAIN,VALI,TEST``.

    Generated data are new for each seed, or of the one in ``generated:TRAIN,VALI,TEST:SEED``; of others each fold is
    used with each seed. ``generated-binary`` has few relevant documents and no grades.
    """
    if data.startswith(GENERATED):
        kind, _, rest = data.partition(":")
        check_choice("data", kind, tuple(SHARES))
        sizes, _, own = (rest or "600,200,400").partition(":")
        require(not own or own.isdigit(), f"--data {data!r}: the seed at the end must be a number")
        seeds = [int(own)] if own else seeds
        parts = sizes.split(",")
        require(len(parts) == 3 and all(q.strip().isdigit() and int(q) for q in parts),
                f"--data {data!r}: the numbers of queries must be three, such as generated:600,200,400")  # fmt: skip
        return [Fold(f"{kind} {sizes}", sizes, seed) for seed in seeds]
    path = Path(data).expanduser().resolve()
    if any(path.parent.glob(f"{path.name}.train*")):  # such as yahoo/set1, for set1.train.txt
        return [Fold(f"{path.parent.name} {path.name}", str(path), seed) for seed in seeds]
    require(path.exists(), f"--data {data} does not exist")
    require(path.is_dir(), f"--data {data} is a file; pass the folder of a fold, or of several folds")
    folders = sorted(p for p in path.iterdir() if p.is_dir() and p.name.lower().startswith("fold")) or [path]
    name = path.parent.name if path.name.lower().startswith("fold") else path.name
    return [Fold(name, str(folder), seed) for folder in folders for seed in seeds]


@dataclass(frozen=True)
class Cell:
    """One training. It is stopped on each metric separately, and its test value taken by the trees of that stop."""

    fold: Fold
    library: str
    objective: str  # ours, a native one, or CONSTANT
    label: str  # as asked for, with {metric} still in it
    metrics: tuple[str, ...]
    budget: Budget

    @property
    def key(self) -> str:
        """A name for its file: the same settings have the same one, whatever the number of threads."""
        settings = asdict(replace(self, budget=replace(self.budget, threads=1)))
        if not self.budget.params:
            del settings["budget"]["params"]
        settings["fold"] = [self.fold.data, Path(self.fold.source).name, self.fold.seed]
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]

    def path(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.key}.json"

    def result(self, out: Path) -> dict[str, Any] | None:
        """The result of an earlier run; None where there is none."""
        path = self.path(out)
        return json.loads(path.read_text()) if path.exists() else None

    def trainings(self, out: Path | None) -> int:
        """How many it still has to do; without ``out`` all of them."""
        return 1

    def compute(self, out: Path | None) -> dict[str, Any]:
        """Train and evaluate; ``out`` is where to look for what was done of it before."""
        if self.objective == CONSTANT:
            data = _load(self.fold)
            same = np.zeros(len(data.test.y))
            found = per_query([get_metric(m) for m in self.metrics], data.test, same, self.budget.threads)
            return _nothing(self) | {"test": {metric: _numbers(v) for metric, v in found.items()}}
        library = library_of(self)
        return outcome(self, library, library.run(objective_of(self), lambda value: None))


@lru_cache(1)
def _load(fold: Fold) -> RankingFold:
    return fold.load()


@lru_cache(1)
def _prepare(fold: Fold, library: str, metrics: tuple[str, ...], budget: Budget, tuned: bool) -> Library:
    return prepare(library, _load(fold), [get_metric(m) for m in metrics], budget, tuned=tuned)


def library_of(cell: Cell, tuned: bool = False) -> Library:
    """The data sets stay prepared from one training to the next."""
    plain = replace(cell.budget, learning_rate=0.1, trees=1, params=())
    library = _prepare(cell.fold, cell.library, cell.metrics, plain, tuned)
    library.budget, library.params = cell.budget, {}
    return library


def objective_of(cell: Cell) -> str | Objective:
    """Ours with the seed of the cell, or the name of a native one."""
    if LIBRARIES[cell.library].knows(cell.objective):
        return cell.objective
    return seeded(get_objective(cell.objective), cell.budget.seed)


def run(cell: Cell, out: Path | None) -> dict[str, Any]:
    """Train, evaluate, and write the result; a file appears only when it is whole."""
    result = cell.compute(out) | {"versions": versions([cell.library] if cell.library else [])}
    if out is not None:
        write_whole(cell.path(out), result)
    return result


def outcome(cell: Cell, library: Library, training: Training) -> dict[str, Any]:
    """What a training comes to, of each metric by the trees of its own stop."""
    data = _load(cell.fold)
    result = _nothing(cell) | {"seconds": training.seconds}
    result["curves"] = {name: _numbers(np.array(curve)) for name, curve in training.curves.items()}
    for metric in map(get_metric, cell.metrics):
        name = str(metric)
        result["trees"][name] = training.best(name)
        result["vali"][name] = training.curves[name][training.best(name) - 1]
        result["train"][name] = metric.mean(library.train_queries, training.scores(data.train, name))
        [values] = per_query([metric], data.test, training.scores(data.test, name), cell.budget.threads).values()
        result["test"][name] = _numbers(values)
    return result


def write_whole(path: Path, document: Any, indent: int | None = None) -> None:
    """Write JSON so that the file is never seen half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_text(json.dumps(document, indent=indent))


def _nothing(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "test": {}, "vali": {}, "train": {}, "trees": {}, "seconds": 0.0}


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 7) for v in values]


def check(cells: Sequence[Cell]) -> None:
    """Raise for objectives that no library of the study knows, before anything is trained."""
    for library, objective in dict.fromkeys((c.library, c.objective) for c in cells if c.objective != CONSTANT):
        if LIBRARIES[library].knows(objective):
            continue
        try:
            get_objective(objective)
        except LTRError as error:
            raise LTRError(f"{objective} is no objective of {library}, and not one of ours: {error}") from None

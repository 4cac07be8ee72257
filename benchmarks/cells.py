"""The trainings of a study: their settings, how one is run, and the file that keeps its result for later runs."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.libraries import LIBRARIES, Library, Training
from benchmarks.provenance import versions
from benchmarks.watch import Report, silent
from ltr_objectives._files import replacing
from ltr_objectives.checks import check_choice
from ltr_objectives.workbench.trials import Budget, in_documents
from ltr_objectives.datasets import RankingData, RankingFold, load_letor, make_ranking_fold
from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import Mixture
from ltr_objectives.objectives.unit import UnitHessian
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_metric, get_objective

CONSTANT = "constant"  # the model that cannot tell documents apart
GENERATED = "generated"
KINDS: dict[str, dict[str, Any]] = {  # arguments of make_ranking_fold, by kind of generated data
    GENERATED: {},
    "generated-binary": {"shares": (0.985, 0.015)},
    "generated-calibrated": {"noise": 2.0, "agreement": 0.8},
}


class Fold(NamedTuple):
    """The source of one train, vali and test part."""

    data: str  # name of the data set
    source: str  # absolute path of the fold, or the sizes of generated parts
    seed: int
    split: int = 0  # without a vali part: seed of the choice of vali queries from train

    def load(self) -> RankingFold:
        """Read or generate it; without a vali part, a fifth of the train queries become vali."""
        if not Path(self.source).is_absolute():
            train, vali, test = map(int, self.source.split(","))
            return make_ranking_fold((train, vali, test), self.seed, **KINDS[self.data.partition(" ")[0]])
        loaded = load_letor(self.source)
        require(isinstance(loaded, RankingFold), f"{self.source} is a file; pass a folder with train and test")
        assert isinstance(loaded, RankingFold)
        if loaded.vali is not None:
            return loaded
        return RankingFold(*split_vali(loaded.train, self.split), loaded.test)


def split_vali(train: RankingData, seed: int, share: float = 0.2) -> tuple[RankingData, RankingData]:
    """Train and vali of randomly chosen queries; both keep the order of the data."""
    queries = len(train.group)
    require(queries >= 2, "the data has no vali part, and a single train query cannot be split")
    order = np.random.default_rng(seed).permutation(queries)
    cut = max(1, round(share * queries))
    return train.select(np.sort(order[cut:])), train.select(np.sort(order[:cut]))


def folds_of(data: str, seeds: Sequence[int]) -> list[Fold]:
    """The folds of ``--data``: a folder of folds or of one, a prefix of file names, or ``generated:TRAIN,VALI,TEST``.

    Data are generated anew for each seed, or once for that in ``generated:TRAIN,VALI,TEST:SEED``. Other folds are used
    with each seed. ``generated-binary`` has few relevant documents and no grades. ``generated-calibrated`` has little
    signal, and grades that depend on other features than relevance does.
    """
    if data.startswith(GENERATED):
        kind, _, rest = data.partition(":")
        check_choice("data", kind, tuple(KINDS))
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
    """One training. Each metric is computed at its own early stop, or all of them at that of the metric ``stop``."""

    fold: Fold
    library: str
    objective: str  # ours, a native one, or CONSTANT
    label: str  # the objective as given, with {metric} not replaced
    metrics: tuple[str, ...]
    budget: Budget
    stop: str = field(default="", kw_only=True)  # the one metric for early stopping, if any

    @property
    def native(self) -> bool:
        """Whether the objective is the library's own."""
        return LIBRARIES[self.library].knows(self.objective)

    @property
    def stops(self) -> dict[str, tuple[str, ...]]:
        """For each metric that stops the training, the metrics computed there."""
        return {self.stop: self.metrics} if self.stop else {metric: (metric,) for metric in self.metrics}

    @property
    def key(self) -> str:
        """A name for its file, equal for equal settings, whatever the number of threads."""
        settings = asdict(replace(self, budget=replace(self.budget, threads=1)))
        for name in ("params", "documents", "smooth"):  # added since studies were published
            if not settings["budget"][name]:
                del settings["budget"][name]
        if not self.stop:
            del settings["stop"]
        if self.library and not self.native and LIBRARIES[self.library].with_ours:
            settings["with_ours"] = LIBRARIES[self.library].with_ours
        settings["fold"] = [self.fold.data, Path(self.fold.source).name, self.fold.seed]
        if self.fold.split:
            settings["fold"].append(self.fold.split)
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]

    def path(self, out: Path) -> Path:
        """Where its result is kept."""
        return out / "cells" / f"{self.key}.json"

    def result(self, out: Path) -> dict[str, Any] | None:
        """The result of an earlier run; None where there is none."""
        path = self.path(out)
        return json.loads(path.read_text()) if path.exists() else None

    def trainings(self, out: Path | None) -> int:
        """How many trainings it still needs; all of them without ``out``."""
        return 1

    def compute(self, out: Path | None, report: Report = silent) -> dict[str, Any]:
        """Train and evaluate; ``out`` is the folder with earlier results."""
        if self.objective == CONSTANT:
            part = load(self.fold).test
            same = np.zeros(len(part.y))
            found = {m: per_query(get_metric(m), part, same, self.budget.threads) for m in self.metrics}
            return _nothing(self) | {"test": found}
        library = library_of(self)
        objective = objective_of(self)
        if self.budget.documents > 0:
            library.budget = in_documents(self.library, self.budget, objective, library.train_queries)
        return outcome(self, library, library.run(objective, report))


@lru_cache(1)
def load(fold: Fold) -> RankingFold:
    """The data of a fold, kept in memory until another fold is loaded."""
    return fold.load()


@lru_cache(1)
def _prepare(fold: Fold, name: str, metrics: tuple[str, ...], budget: Budget, tuned: bool) -> Library:
    data = load(fold)
    try:
        return LIBRARIES[name](data, [get_metric(m) for m in metrics], budget, tuned=tuned)
    except ImportError as error:
        raise LTRError(f"{name} is not installed: pip install ltr-objectives[{name}] ({error})") from None
    except Exception as error:  # each library has its own exceptions
        raise LTRError(f"{name} refuses the data: {error}") from error


def library_of(cell: Cell, tuned: bool = False) -> Library:
    """The library with its data sets prepared, which the next training reuses."""
    plain = Budget(seed=cell.budget.seed, threads=cell.budget.threads)
    library = _prepare(cell.fold, cell.library, tuple(cell.stops), plain, tuned)
    library.budget, library.params = cell.budget, {}
    return library


def objective_of(cell: Cell) -> str | Objective:
    """Ours with the seed of the cell, or the name of a native one."""
    if cell.native:
        return cell.objective
    objective = seeded(get_objective(cell.objective), cell.budget.seed)
    return UnitHessian(objective) if cell.budget.documents > 0 else objective


def seeded(objective: Objective, seed: int) -> Objective:
    if isinstance(objective, Mixture):
        return replace(objective, parts=[seeded(part, seed) for part, _ in objective.weighted])
    takes = "seed" in objective.parameters()
    return replace(objective, seed=seed) if takes else objective  # type: ignore[call-arg]  # of subclasses


def run(cell: Cell, out: Path | None, report: Report = silent) -> dict[str, Any]:
    """Train, evaluate, and write the result; the file appears only when it is complete."""
    result = cell.compute(out, report) | {"versions": versions([cell.library] if cell.library else [])}
    if out is not None:
        write_whole(cell.path(out), result)
    return result


def outcome(cell: Cell, library: Library, training: Training) -> dict[str, Any]:
    """The result of a training: for each metric its values, and the trees at its early stop."""
    data = load(cell.fold)
    result = _nothing(cell) | {"seconds": training.seconds}
    result["curves"] = {name: _numbers(np.array(curve)) for name, curve in training.curves.items()}
    for stop, names in cell.stops.items():
        trees = training.best(stop)
        result["vali"][stop] = training.curves[stop][trees - 1]
        on_train, on_test = (training.scores(part, stop) for part in (data.train, data.test))
        for name in names:
            metric = get_metric(name)
            result["trees"][name] = trees
            result["train"][name] = metric.mean(library.train_queries, on_train)
            result["test"][name] = per_query(metric, data.test, on_test, cell.budget.threads)
    return result


def per_query(metric: Metric, part: RankingData, scores: np.ndarray, threads: int) -> list[float | None]:
    """The value of each query; None where it has none."""
    return _numbers(metric.values(Queries(part.y, part.group), scores, n_threads=threads))


def write_whole(path: Path, document: Any, indent: int | None = None) -> None:
    """Write JSON; the file appears only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as new:
        new.write_text(json.dumps(document, indent=indent))


def _nothing(cell: Cell) -> dict[str, Any]:
    return {**asdict(cell), "test": {}, "vali": {}, "train": {}, "trees": {}, "seconds": 0.0}


def _numbers(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(v) else round(float(v), 7) for v in values]


def check(cells: Sequence[Cell]) -> None:
    """Raise for unknown objectives before anything is trained."""
    for cell in cells:
        if cell.objective == CONSTANT or cell.native:
            continue
        try:
            get_objective(cell.objective)
        except LTRError as error:
            text = f"{cell.objective} is not an objective of {cell.library}, nor one of ours: {error}"
            raise LTRError(text) from None

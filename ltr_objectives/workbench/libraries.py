"""The libraries as trials see them: our estimators, their own ranking objectives, and parameters that mean the same."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from operator import attrgetter
from typing import Any, NamedTuple

from ltr_objectives.errors import LTRError, essence
from ltr_objectives.language import split_metric
from ltr_objectives.natives import BINARY, NATIVES


class Library(NamedTuple):
    """One library."""

    name: str
    ranker: str  # our estimator
    error: str  # its exception
    endings: tuple[str, ...]  # of its models
    threads: str  # the parameter with their number
    first_trees: str  # the argument of predict that limits them
    natives: tuple[str, ...]  # its own ranking objectives
    rivals: tuple[str, ...]  # natives to compare with, whatever the metric
    rivals_for: Mapping[str, str] = {}  # by metric, a further one; {metric} is the metric as the library spells it
    unusable: tuple[str, ...] = ()  # beginnings of natives that cannot be trained
    binary: tuple[str, ...] = ()  # natives that learn only which documents are relevant, by a part of the name
    twins: Mapping[str, str] = {}  # ours with the Hessians of native objectives, which are 1 elsewhere
    capitals: bool = False  # whether the names of its objectives and metrics begin with one

    def knows(self, native: str) -> bool:
        """Return True if the library has a ranking objective of this name; settings may follow CatBoost's."""
        name = native.partition(":")[0] if self.capitals else native
        return name in self.natives and not native.startswith(self.unusable or ("\0",))

    def is_binary(self, native: str) -> bool:
        """Return True if this native objective ignores or refuses grades."""
        return self.knows(native) and any(part in native for part in self.binary)

    def spelled(self, metric: str) -> str:
        """A metric as the names of the library's own objectives spell it.

        >>> CATBOOST.spelled("ndcg@10")
        'NDCG;top=10'
        """
        name, _, k = split_metric(metric) or (metric, "", None)
        return (name.upper() + (f";top={k}" if k else "")) if self.capitals else f"{name}@{k}" if k else name

    @contextmanager
    def estimator(self) -> Iterator[Any]:
        """Yield our estimator's class. The library prints to stderr, and its errors become LTRError."""
        from ltr_objectives import adapters

        try:
            error = attrgetter(self.error)(importlib.import_module(self.name))
        except ModuleNotFoundError as missing:
            if missing.name != self.name:
                raise
            raise ImportError(f"{self.name} is not installed: pip install {self.name}") from None
        with redirect_stdout(sys.stderr):
            try:
                yield getattr(adapters, self.ranker)
            except LTRError:
                raise
            except (error, ValueError, TypeError) as said:
                raise LTRError(f"{self.name}: {essence(str(said))}") from None


XGBOOST = Library(
    name="xgboost",
    ranker="XGBRanker",
    error="core.XGBoostError",
    endings=(".json", ".ubj"),
    threads="nthread",
    first_trees="iteration_range",
    natives=("rank:ndcg", "rank:map", "rank:pairwise"),
    rivals=("rank:ndcg", "rank:pairwise"),
    rivals_for={"map": "rank:map"},
    binary=BINARY["xgboost"],
    twins=NATIVES["xgboost"],
)  # fmt: skip
LIGHTGBM = Library(
    name="lightgbm",
    ranker="LGBMRanker",
    error="basic.LightGBMError",
    endings=(".txt",),
    threads="num_threads",
    first_trees="num_iteration",
    natives=("lambdarank", "rank_xendcg"),
    rivals=("lambdarank", "rank_xendcg"),
    twins=NATIVES["lightgbm"],
)
CATBOOST = Library(
    name="catboost",
    ranker="CatBoostRanker",
    error="CatBoostError",
    endings=(".cbm",),
    threads="thread_count",
    first_trees="ntree_end",
    natives=(
        "YetiRank", "YetiRankPairwise", "QueryRMSE", "StochasticRank", "QuerySoftMax", "PairLogit", "PairLogitPairwise",
        "LambdaMart",
    ),
    rivals=("YetiRank", "QueryRMSE"),
    rivals_for=dict.fromkeys(("ndcg", "dcg", "map", "mrr", "err"), "YetiRank:mode={metric}"),
    unusable=("StochasticRank:metric=MAP", "YetiRank:mode=PRECISION"),
    binary=BINARY["catboost"],
    capitals=True,
)  # fmt: skip
LIBRARIES = {library.name: library for library in (XGBOOST, LIGHTGBM, CATBOOST)}


def is_native(library: str, label: str) -> bool:
    """Return True if the label is one of the library's own objectives."""
    return library in LIBRARIES and LIBRARIES[library].knows(label)


def named(library: str, label: str) -> str:
    """A label, marked as native if it is the library's own."""
    return f"{label} (native)" if is_native(library, label) else label

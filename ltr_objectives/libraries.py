"""A library is one class: facts as attributes, and in the order of a training what differs from the other libraries."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ltr_objectives.kernels.threads import at_most
from ltr_objectives.language import split_metric

if TYPE_CHECKING:
    from ltr_objectives.adapters._run import Run, Trained

MODULES = {name: f"ltr_objectives.adapters._{name}" for name in ("xgboost", "lightgbm", "catboost")}


class Library(ABC):
    """One library. A subclass gives a value to each fact that has none here, and the methods that are abstract."""

    name: ClassVar[str]
    ranker: ClassVar[str]  # our estimator
    model: ClassVar[str]  # its class of trained models
    error: ClassVar[str]  # its exception
    endings: ClassVar[tuple[str, ...]]  # of its model files
    threads: ClassVar[str]  # the parameter for the number of threads
    l2: ClassVar[str]  # the parameter that is added to the sum of Hessians of a leaf
    l2_default: ClassVar[float]
    l2_by_weight: ClassVar[bool] = False  # it is multiplied by the mean weight of the rows
    limits: ClassVar[tuple[str, ...]]  # parameters that may forbid every split
    regression: str  # its objective of squared error
    unread: ClassVar[tuple[str, ...]]  # parameters of its own objectives, not read beside ours
    usual_leaves: ClassVar[Mapping[str, tuple[Any, ...]]]  # values of parameters with which leaves are Newton steps
    of_the_data: ClassVar[tuple[str, ...]]  # parameters of its data sets, not of a training
    by_column: ClassVar[tuple[str, ...]]  # parameters that may number the columns, or have an entry for each
    objectives: ClassVar[str]  # pattern of the names of its objectives
    metrics: ClassVar[str]  # pattern of its metric names; it may ignore what follows a name that it knows
    natives: ClassVar[Mapping[str, str | None]]  # its ranking objectives, each with what `twin` returns
    rivals: ClassVar[tuple[str, ...]]  # natives to compare with, whatever the metric
    rivals_for: ClassVar[Mapping[str, str]] = {}  # by metric, a further one; {metric} as the library spells it
    unusable: ClassVar[tuple[str, ...]] = ()  # beginnings of natives that cannot be trained in a comparison
    binary: ClassVar[tuple[str, ...]] = ()  # natives that learn only which documents are relevant: parts of names
    chances: ClassVar[tuple[str, ...]] = ()  # natives whose labels are chances of the metric ERR: parts of names
    capitals: ClassVar[bool] = False  # the names of its objectives and metrics begin with a capital
    seed: ClassVar[str] = "seed"  # name of the parameter for the seed
    least_patience: ClassVar[int] = 1  # the least value of early_stopping_rounds
    least_hessian: ClassVar[str] = ""  # the parameter with the least sum of Hessians in a leaf
    least_hessian_default: ClassVar[float] = 0.0
    dtype: ClassVar[type[np.floating[Any]]] = np.float32  # of gradients as it stores them
    negative_hessians: ClassVar[bool] = False  # whether it learns from them

    def load(self) -> Any:
        """Import the library, or say what to install."""
        try:
            return importlib.import_module(self.name)
        except ModuleNotFoundError as error:
            if error.name != self.name:
                raise
            raise ImportError(f"{self.name} is not installed: pip install {self.name}") from None

    def exception(self) -> type[Exception]:
        """Return the class of its errors."""
        return attrgetter(self.error)(self.load())

    def knows(self, native: str) -> bool:
        """Return True if the library has a ranking objective of this name; settings may follow CatBoost's."""
        name = native.partition(":")[0] if self.capitals else native
        return name in self.natives and not native.startswith(self.unusable)

    def twin(self, objective: str) -> str | None:
        """Return our objective with the Hessians of a native one: "" if those are 1, None if they are not known."""
        return self.natives.get(objective, "")

    def is_binary(self, native: str) -> bool:
        """Return True if this native objective ignores or refuses grades."""
        return self.knows(native) and any(part in native for part in self.binary)

    def spelled(self, metric: str) -> str:
        """Return a metric as the names of the library's own objectives spell it.

        >>> LIBRARIES["catboost"].spelled("ndcg@10")
        'NDCG;top=10'
        """
        name, _, k = split_metric(metric) or (metric, "", None)
        return (name.upper() + (f";top={k}" if k else "")) if self.capitals else f"{name}@{k}" if k else name

    def n_threads(self, params: Mapping[str, Any] | None, chosen: int | None = None) -> int | None:
        """Return ``chosen``, or what a training with ``params`` uses, at most all processors; None if neither says."""
        if chosen is not None or params is None:
            return chosen
        asked = [n for name in self.names(self.threads) if (n := at_most(params.get(name), name)) is not None]
        return min(asked, default=None)

    def names(self, name: str) -> tuple[str, ...]:
        """Return all names of a parameter, the given one first."""
        found = (group for group in self.aliases() if name in group)
        return tuple(dict.fromkeys((name, *(each for group in found for each in group))))

    def given(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of ``params`` under any name of a parameter."""
        return {each: params[each] for each in self.names(name) if params.get(each) is not None}

    def leaf_limit(self, params: Mapping[str, Any]) -> tuple[str, float]:
        """Return the least sum of Hessians in a leaf: its name in ``params``, and its value."""
        found = self.given(self.least_hessian, params) or {self.least_hessian: self.least_hessian_default}
        return next((name, float(value)) for name, value in found.items())

    @abstractmethod
    def train(self, run: Run) -> Trained:
        """Train as ``run`` says, and return the model and its records.

        To be read are ``train`` and ``evals`` with their weights and initial scores, ``names``, `gradients` or the
        library's own ``objective``, `metric_values`, `native_metrics` and `functions` of ``metrics``, ``of_the_data``,
        ``params`` with `with_l2`, `start`, ``patience``, ``callbacks``, ``verbose``, ``n_threads`` and ``init_model``.
        A field that a library cannot honour is refused if it is given.
        """

    @abstractmethod
    def predict(self, model: Any, X: Any, params: Mapping[str, Any], **options: Any) -> Any:
        """Return the scores of a table by a model of a ranker with ``params``."""

    @abstractmethod
    def rounds(self, model: Any) -> int:
        """Return the number of rounds that a model predicts with."""

    @abstractmethod
    def splits(self, model: Any) -> float:
        """Return a number that is 0 if no tree of a model has a split."""

    @abstractmethod
    def features(self, model: Any) -> tuple[int, list[str] | None]:
        """Return the number of features of a model, and their names if it has names."""

    @abstractmethod
    def read(self, path: str) -> Any:
        """Return the model in a file; raise if the file was cut short."""

    @abstractmethod
    def merge(self, models: Sequence[Any]) -> Any:
        """Return the model whose raw scores are the mean of those of ``models``."""

    @abstractmethod
    def leaves(
        self, model: Any, X: Any, params: Mapping[str, Any]
    ) -> tuple[list[np.ndarray], np.ndarray, list[float], float]:
        """Return values of each tree's leaves, or nodes, the number of that of each row, learning rates, and the start.

        The numbers have the shape (rows, trees). The start is the score beside the trees.
        """

    @abstractmethod
    def with_leaves(self, model: Any, values: Sequence[np.ndarray]) -> Any:
        """Return a copy of a model with other values of the leaves, as :meth:`leaves` returns them."""

    @abstractmethod
    def shaped(self, leaves: int, l2: float, least_hessian: float) -> dict[str, Any]:
        """Return the parameters of trees of this shape, without randomness."""

    def aliases(self) -> Sequence[tuple[str, ...]]:
        """Return the names of each parameter that has several.

        ``n_estimators``, ``learning_rate``, ``random_state`` and ``early_stopping_rounds`` must be names of what they
        are in scikit-learn.
        """
        return ()

    def calls(self, given: Any, method: str) -> bool:
        """Return True if the library calls ``given`` for gradients or metrics; ``method`` is CatBoost's name for it."""
        return callable(given)

    def reproducible(self) -> dict[str, Any]:
        """Return the parameters without which equal trainings differ."""
        return {}

    def defaults(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return our defaults of a training with ``params``, without L2 and least Hessian."""
        return {}

    def may_grow(self, params: Mapping[str, Any]) -> bool:
        """Return True if a training with ``params`` may add a split."""
        return all(rounds != 0 for rounds in self.given("n_estimators", params).values())

    def has_every_round(self, params: Mapping[str, Any]) -> bool:
        """Return True if the records of a training with ``params`` have a value for each round."""
        return True

    def start(self, model: Any, X: Any) -> Any:
        """Return the model that a training goes on from, with the table ``X``; raise if it does not fit the model."""
        return model

    def categories(self, model: Any, X: Any) -> Mapping[Any, Sequence[Any]]:
        """Return the categories of a model by column of the table ``X``; none if the model does not name them."""
        return {}

    def stored(self, column: Any) -> str:
        """Return the name of a column as the library's models have it."""
        return str(column)

    def write(self, model: Any, path: str, **options: Any) -> None:
        """Write a model with its features and categories, so that what :meth:`read` returns predicts the same."""
        model.save_model(path, **options)


class _Libraries(Mapping[str, Library]):
    """The libraries by name. The module of one is imported when it is asked for."""

    def __getitem__(self, name: str) -> Library:
        found: Library = importlib.import_module(MODULES[name]).LIBRARY
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


LIBRARIES = _Libraries()


def is_native(library: str, label: str) -> bool:
    """Return True if the label is one of the library's own objectives."""
    return library in LIBRARIES and LIBRARIES[library].knows(label)


def named(library: str, label: str) -> str:
    """Return a label, marked as native if it is the library's own."""
    return f"{label} (native)" if is_native(library, label) else label

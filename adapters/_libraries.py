"""Differences between the libraries that fit in a table: one entry for each library."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels.threads import at_most


class Library(NamedTuple):
    """One library. Where it has several names for a parameter, the one to recommend comes first."""

    name: str
    model: str  # its class of trained models
    n_threads: tuple[str, ...]
    least_hessian: tuple[str, ...] = ()  # its names of the least sum of Hessians in a leaf
    least_hessian_default: float = 0.0
    l2: tuple[str, ...] = ()  # what is added to the sum of Hessians of a leaf
    of_the_data: tuple[str, ...] = ()  # parameters of its data sets, not of a training
    of_columns: tuple[str, ...] = ()  # those of them that name columns which need not be numbers
    renamed: tuple[tuple[str, str], ...] = ()  # parameters of its ranker: its name, and ours
    capitals: bool = False  # whether the names of its objectives and metrics begin with one
    dtype: type[np.floating[Any]] = np.float32  # of gradients as it stores them
    negative_hessians: bool = False  # whether it learns from them
    all_zero: str = ""  # why all labels may be 0 although the user's are not

    def load(self) -> Any:
        """Import the library, or say what to install."""
        try:
            return importlib.import_module(self.name)
        except ModuleNotFoundError as error:
            if error.name != self.name:
                raise
            raise ImportError(f"{self.name} is not installed: pip install ltr-objectives[{self.name}]") from None

    def threads(self, params: Mapping[str, Any] | None, chosen: int | None = None) -> int | None:
        """``chosen``, or what a training with ``params`` uses, at most all processors; None where neither says."""
        if chosen is not None or params is None:
            return chosen
        asked = [n for name in self.n_threads if (n := at_most(params.get(name))) is not None]
        return min(asked, default=None)

    def leaf_limit(self, params: Mapping[str, Any]) -> tuple[str, float]:
        """The least sum of Hessians in a leaf: its name in ``params``, and its value."""
        given = [(name, float(params[name])) for name in self.least_hessian if params.get(name) is not None]
        return given[0] if given else (self.least_hessian[0], self.least_hessian_default)


XGBOOST = Library(
    name="xgboost",
    model="Booster",
    n_threads=("n_jobs", "nthread"),
    least_hessian=("min_child_weight",),
    least_hessian_default=1.0,
    l2=("reg_lambda", "lambda"),
    of_the_data=("missing", "feature_types", "feature_weights", "enable_categorical"),
    all_zero="as if XGBoost got float64 of another byte order, which it does not check",
)

LIGHTGBM = Library(
    name="lightgbm",
    model="Booster",
    n_threads=("num_threads", "num_thread", "nthread", "nthreads", "n_jobs"),
    least_hessian=(
        "min_sum_hessian_in_leaf", "min_sum_hessian_per_leaf", "min_sum_hessian", "min_hessian", "min_child_weight"
    ),
    least_hessian_default=1e-3,
    l2=("reg_lambda", "lambda_l2", "lambda"),
    of_the_data=("categorical_feature", "feature_name"),
    renamed=(("metric", "eval_metric"),),
)  # fmt: skip

CATBOOST = Library(
    name="catboost",
    model="CatBoost",
    n_threads=("thread_count",),
    l2=("l2_leaf_reg", "reg_lambda"),
    of_the_data=("cat_features", "text_features", "embedding_features"),
    of_columns=("cat_features", "text_features", "embedding_features"),
    renamed=(("loss_function", "objective"),),
    capitals=True,
    dtype=np.float64,
    negative_hessians=True,
)

LIBRARIES = {library.name: library for library in (XGBOOST, LIGHTGBM, CATBOOST)}

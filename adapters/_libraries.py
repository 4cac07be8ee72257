"""Differences between the libraries that fit in a table: one entry for each library."""

import functools
import importlib
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.errors import require
from ltr_objectives.kernels.threads import at_most


def _check_bytes(labels: np.ndarray) -> None:
    """Raise for labels that XGBoost seems to have read in another byte order."""
    tiny = ((labels != 0) & (np.abs(labels) < np.finfo(np.float32).tiny)).any()
    huge = labels.any() and not (labels % 2**24).any()  # NaN is not a multiple
    require(
        not (tiny or huge),
        f"the DMatrix has labels {'below 1e-37' if tiny else 'that are all multiples of 2^24'}; probably they had "
        "another byte order, which XGBoost does not check: convert X, y and qid to native byte order, as with "
        "X.astype(np.float32)",
    )


@functools.cache
def _names_in_lightgbm() -> tuple[tuple[str, ...], ...]:
    """LightGBM's own table of the names of each parameter, which is not public; empty if it has none."""
    aliases: Any = getattr(LIGHTGBM.load().basic, "_ConfigAliases", None)
    if not hasattr(aliases, "_get_all_param_aliases"):
        return ()
    groups = aliases._get_all_param_aliases().values()
    return tuple(("eval_metric", *names) if "metric" in names else tuple(names) for names in groups)


class Library(NamedTuple):
    """One library."""

    name: str
    model: str  # its class of trained models
    n_threads: str
    least_hessian: str = ""  # the least sum of Hessians in a leaf
    least_hessian_default: float = 0.0
    l2: str = ""  # what is added to the sum of Hessians of a leaf
    limits: Mapping[str, float] = {}  # parameters that may forbid every split: values that forbid none
    aliases: Callable[[], tuple[tuple[str, ...], ...]] = tuple  # names of one parameter
    unread: tuple[str, ...] = ()  # parameters of its own objectives, not read beside ours
    of_the_data: tuple[str, ...] = ()  # parameters of its data sets, not of a training
    metrics: str = ""  # the forms of names of its metrics, of which it reads only the beginning
    dtype: type[np.floating[Any]] = np.float32  # of gradients as it stores them
    negative_hessians: bool = False  # whether it learns from them
    check_labels: Callable[[np.ndarray], None] = lambda labels: None  # raises for labels that it has misread
    error: str = ""  # its exception

    def load(self) -> Any:
        """Import the library, or say what to install."""
        try:
            return importlib.import_module(self.name)
        except ModuleNotFoundError as error:
            if error.name != self.name:
                raise
            raise ImportError(f"{self.name} is not installed: pip install {self.name}") from None

    def exception(self) -> type[Exception]:
        """The class of its errors."""
        return attrgetter(self.error)(self.load())

    def threads(self, params: Mapping[str, Any] | None, chosen: int | None = None) -> int | None:
        """``chosen``, or what a training with ``params`` uses, at most all processors; None if neither says."""
        if chosen is not None or params is None:
            return chosen
        asked = [n for name in self.names(self.n_threads) if (n := at_most(params.get(name), name)) is not None]
        return min(asked, default=None)

    def names(self, name: str) -> tuple[str, ...]:
        """All names of a parameter, the given one first."""
        found = (group for group in self.aliases() if name in group)
        return tuple(dict.fromkeys((name, *(each for group in found for each in group))))

    def given(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of ``params`` under any name of a parameter."""
        return {each: params[each] for each in self.names(name) if params.get(each) is not None}

    def leaf_limit(self, params: Mapping[str, Any]) -> tuple[str, float]:
        """The least sum of Hessians in a leaf: its name in ``params``, and its value."""
        found = self.given(self.least_hessian, params) or {self.least_hessian: self.least_hessian_default}
        return next((name, float(value)) for name, value in found.items())


XGBOOST = Library(
    name="xgboost",
    model="Booster",
    n_threads="n_jobs",
    least_hessian="min_child_weight",
    least_hessian_default=1.0,
    l2="reg_lambda",
    limits={"gamma": 0, "min_child_weight": 0, "reg_lambda": 0, "reg_alpha": 0},
    aliases=lambda: (
        ("learning_rate", "eta"), ("reg_lambda", "lambda"), ("reg_alpha", "alpha"), ("gamma", "min_split_loss"),
        ("random_state", "seed"), ("n_jobs", "nthread"),
    ),
    unread=(
        "scale_pos_weight", "ndcg_exp_gain", "lambdarank_pair_method", "lambdarank_num_pair_per_sample",
        "lambdarank_normalization", "lambdarank_score_normalization", "lambdarank_unbiased", "lambdarank_bias_norm",
    ),
    of_the_data=("missing", "feature_types", "feature_weights", "enable_categorical"),
    metrics=r"[a-z]+(-[a-z]+)*-?|(ndcg|map|pre)@[1-9]\d*-?|(error|ams|tweedie-nloglik)@\d*\.?\d+",
    check_labels=_check_bytes,
    error="core.XGBoostError",
)  # fmt: skip

LIGHTGBM = Library(
    name="lightgbm",
    model="Booster",
    n_threads="num_threads",
    least_hessian="min_sum_hessian_in_leaf",
    least_hessian_default=1e-3,
    l2="reg_lambda",
    limits={
        "min_child_samples": 1, "min_split_gain": 0, "min_sum_hessian_in_leaf": 0, "reg_lambda": 0, "reg_alpha": 0,
    },
    aliases=_names_in_lightgbm,
    unread=(
        "label_gain", "lambdarank_truncation_level", "lambdarank_norm", "lambdarank_position_bias_regularization",
        "sigmoid", "objective_seed", "alpha", "fair_c", "is_unbalance", "poisson_max_delta_step", "reg_sqrt",
        "scale_pos_weight", "tweedie_variance_power",
    ),
    of_the_data=("categorical_feature", "feature_name"),
    metrics=r"[a-z]\w*",
    error="basic.LightGBMError",
)  # fmt: skip

CATBOOST = Library(
    name="catboost",
    model="CatBoost",
    n_threads="thread_count",
    l2="l2_leaf_reg",
    limits={"depth": 6, "min_data_in_leaf": 1, "l2_leaf_reg": 0},
    aliases=lambda: (
        ("objective", "loss_function"), ("l2_leaf_reg", "reg_lambda"), ("early_stopping_rounds", "od_wait"),
    ),
    unread=("bayesian_matrix_reg",),
    of_the_data=("cat_features", "text_features", "embedding_features"),
    metrics=r"[A-Z]\w*(:.*)?",
    dtype=np.float64,
    negative_hessians=True,
    error="CatBoostError",
)  # fmt: skip

# The private names of the libraries that we use, beside the functions that _frames looks for on the stack. They were
# tried with xgboost 2.0.3, 3.2.0 and 3.4.1, lightgbm 4.0.0 and 4.7.0, catboost 1.2.0 and 1.2.10.
PRIVATE = {
    "xgboost": ("_Booster",),
    "lightgbm": (
        "_Booster",
        "_n_features",
        "_other_params",
        "fitted_",
    ),  # and basic._ConfigAliases, which may be missing
    "catboost": (
        "_init_params",
        "_object",
        "_set_trained_model_attributes",
        "_prepare_train_params",
        "_fit",
        "_process_predict_input_data",
    ),
}

LIBRARIES = {library.name: library for library in (XGBOOST, LIGHTGBM, CATBOOST)}

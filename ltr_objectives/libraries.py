"""Differences between the libraries that fit in a table: one entry for each library."""

import functools
import importlib
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels.threads import at_most
from ltr_objectives.language import split_metric


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
    ranker: str  # our estimator
    model: str  # its class of trained models
    error: str  # its exception
    endings: tuple[str, ...]  # of its model files
    threads: str  # the parameter with their number
    first_trees: str  # the argument of predict that limits them
    l2: str  # the parameter that is added to the sum of Hessians of a leaf
    limits: tuple[str, ...]  # parameters that may forbid every split
    aliases: Callable[[], tuple[tuple[str, ...], ...]]  # names of one parameter
    unread: tuple[str, ...]  # parameters of its own objectives, not read beside ours
    of_the_data: tuple[str, ...]  # parameters of its data sets, not of a training
    by_column: tuple[str, ...]  # parameters that may number the columns, or have an entry for each
    objectives: str  # the forms of names of its objectives
    metrics: str  # the forms of names of its metrics, of which it may read only the beginning
    natives: Mapping[str, str]  # its own ranking objectives: ours with the same Hessians; "" if those are 1
    rivals: tuple[str, ...]  # natives to compare with, whatever the metric
    rivals_for: Mapping[str, str] = {}  # by metric, a further one; {metric} is the metric as the library spells it
    unusable: tuple[str, ...] = ()  # beginnings of natives that cannot be trained in a comparison
    binary: tuple[str, ...] = ()  # natives that learn only which documents are relevant, by a part of the name
    capitals: bool = False  # whether the names of its objectives and metrics begin with one
    least_patience: int = 1  # of early stopping
    least_hessian: str = ""  # the parameter with the least sum of Hessians in a leaf
    least_hessian_default: float = 0.0
    dtype: type[np.floating[Any]] = np.float32  # of gradients as it stores them
    negative_hessians: bool = False  # whether it learns from them

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

    def n_threads(self, params: Mapping[str, Any] | None, chosen: int | None = None) -> int | None:
        """``chosen``, or what a training with ``params`` uses, at most all processors; None if neither says."""
        if chosen is not None or params is None:
            return chosen
        asked = [n for name in self.names(self.threads) if (n := at_most(params.get(name), name)) is not None]
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
    ranker="XGBRanker",
    model="Booster",
    error="core.XGBoostError",
    endings=(".json", ".ubj"),
    threads="nthread",
    first_trees="iteration_range",
    l2="reg_lambda",
    limits=("gamma", "min_child_weight", "reg_lambda", "reg_alpha"),
    aliases=lambda: (
        ("learning_rate", "eta"), ("reg_lambda", "lambda"), ("reg_alpha", "alpha"), ("gamma", "min_split_loss"),
        ("random_state", "seed"), ("n_jobs", "nthread"),
    ),
    unread=(
        "scale_pos_weight", "ndcg_exp_gain", "lambdarank_pair_method", "lambdarank_num_pair_per_sample",
        "lambdarank_normalization", "lambdarank_score_normalization", "lambdarank_unbiased", "lambdarank_bias_norm",
    ),
    by_column=("feature_weights", "interaction_constraints", "monotone_constraints"),
    of_the_data=("missing", "feature_types", "feature_weights", "enable_categorical"),
    objectives=r"(binary|count|multi|rank|reg|survival):\w+",
    metrics=r"[a-z]+(-[a-z]+)*-?|(ndcg|map|pre)@[1-9]\d*-?|(error|ams|tweedie-nloglik)@\d*\.?\d+",
    natives={
        "rank:ndcg": "lambdamart:preset=xgboost", "rank:map": "lambdamart:map;preset=xgboost",
        "rank:pairwise": "ranknet:preset=xgboost",
    },
    rivals=("rank:ndcg", "rank:pairwise"),
    rivals_for={"map": "rank:map"},
    binary=("rank:map",),
    least_hessian="min_child_weight",
    least_hessian_default=1.0,
)  # fmt: skip

LIGHTGBM = Library(
    name="lightgbm",
    ranker="LGBMRanker",
    model="Booster",
    error="basic.LightGBMError",
    endings=(".txt",),
    threads="num_threads",
    first_trees="num_iteration",
    l2="reg_lambda",
    limits=("min_child_samples", "min_split_gain", "min_sum_hessian_in_leaf", "reg_lambda", "reg_alpha"),
    aliases=_names_in_lightgbm,
    unread=(
        "label_gain", "lambdarank_truncation_level", "lambdarank_norm", "lambdarank_position_bias_regularization",
        "sigmoid", "objective_seed", "alpha", "fair_c", "is_unbalance", "poisson_max_delta_step", "reg_sqrt",
        "scale_pos_weight", "tweedie_variance_power",
    ),
    by_column=(
        "categorical_feature", "cegb_penalty_feature_coupled", "cegb_penalty_feature_lazy", "feature_contri",
        "forcedbins_filename", "forcedsplits_filename", "ignore_column", "interaction_constraints",
        "max_bin_by_feature", "monotone_constraints",
    ),
    of_the_data=("categorical_feature", "feature_name"),
    objectives=r"[a-z]\w*",
    metrics=r"[a-z]\w*",
    natives={"lambdarank": "lambdamart:preset=lightgbm", "rank_xendcg": "xendcg:hessian=exact"},
    rivals=("lambdarank", "rank_xendcg"),
    least_patience=-1,  # as 0, no early stopping
    least_hessian="min_sum_hessian_in_leaf",
    least_hessian_default=1e-3,
)  # fmt: skip

CATBOOST = Library(
    name="catboost",
    ranker="CatBoostRanker",
    model="CatBoost",
    error="CatBoostError",
    endings=(".cbm",),
    threads="thread_count",
    first_trees="ntree_end",
    l2="l2_leaf_reg",
    limits=("depth", "min_data_in_leaf", "l2_leaf_reg"),
    aliases=lambda: (
        ("objective", "loss_function"), ("l2_leaf_reg", "reg_lambda"), ("early_stopping_rounds", "od_wait"),
        ("random_state", "random_seed"),
    ),
    unread=("bayesian_matrix_reg",),
    by_column=(
        "cat_features", "embedding_features", "feature_weights", "first_feature_use_penalties", "fixed_binary_splits",
        "ignored_features", "input_borders", "monotone_constraints", "per_feature_ctr",
        "per_float_feature_quantization", "per_object_feature_penalties", "text_features",
    ),
    of_the_data=("cat_features", "text_features", "embedding_features"),
    objectives=r"[A-Z]\w*(:.*)?",
    metrics=r"[A-Z]\w*(:.*)?",
    natives=dict.fromkeys((
        "YetiRank", "YetiRankPairwise", "QueryRMSE", "StochasticRank", "QuerySoftMax", "PairLogit", "PairLogitPairwise",
        "LambdaMart", "StochasticFilter", "QueryCrossEntropy",
    ), ""),
    rivals=("YetiRank", "QueryRMSE"),
    rivals_for=dict.fromkeys(("ndcg", "dcg", "map", "mrr", "err"), "YetiRank:mode={metric}"),
    unusable=("StochasticRank:metric=MAP", "YetiRank:mode=PRECISION", "StochasticFilter", "QueryCrossEntropy"),
    binary=("mode=MAP", "mode=MRR", "metric=MRR"),
    capitals=True,
    dtype=np.float64,
    negative_hessians=True,
)  # fmt: skip

LIBRARIES = {library.name: library for library in (XGBOOST, LIGHTGBM, CATBOOST)}


def is_native(library: str, label: str) -> bool:
    """Return True if the label is one of the library's own objectives."""
    return library in LIBRARIES and LIBRARIES[library].knows(label)


def named(library: str, label: str) -> str:
    """A label, marked as native if it is the library's own."""
    return f"{label} (native)" if is_native(library, label) else label

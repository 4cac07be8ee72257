"""Objectives, metrics and estimators for XGBoost, LightGBM and CatBoost.

A library is imported with its estimator, or when a callable for it is first used.
"""

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

_MODULES = {
    "xgboost_objective": "_xgboost_callables",
    "xgboost_metric": "_xgboost_callables",
    "lightgbm_objective": "_lightgbm_callables",
    "lightgbm_metric": "_lightgbm_callables",
    "catboost_objective": "_catboost_callables",
    "catboost_metric": "_catboost_callables",
    "XGBRanker": "_xgboost_ranker",
    "LGBMRanker": "_lightgbm_ranker",
    "CatBoostRanker": "_catboost_ranker",
    "bagged": "_bags",
    "bounded": "_bounded",
    "tradeoff": "_tradeoff",
    "ComparisonDisplay": "_displays",
    "TradeoffDisplay": "_displays",
    "refit": "_refit",
    "position_offsets": "_position_offsets",
    "PropensityDisplay": "_displays",
    "torch_loss": "_torch",
    "cross_encoder_loss": "_torch",
    "dask_evaluate": "_dask",
    "dask_group": "_dask",
}


if TYPE_CHECKING:  # what the function below loads; tests/test_packaging.py says which line is missing
    from ltr_objectives.adapters._bags import bagged as bagged
    from ltr_objectives.adapters._bounded import bounded as bounded
    from ltr_objectives.adapters._catboost_callables import catboost_metric as catboost_metric
    from ltr_objectives.adapters._catboost_callables import catboost_objective as catboost_objective
    from ltr_objectives.adapters._catboost_ranker import CatBoostRanker as CatBoostRanker
    from ltr_objectives.adapters._dask import dask_evaluate as dask_evaluate
    from ltr_objectives.adapters._dask import dask_group as dask_group
    from ltr_objectives.adapters._displays import ComparisonDisplay as ComparisonDisplay
    from ltr_objectives.adapters._displays import PropensityDisplay as PropensityDisplay
    from ltr_objectives.adapters._displays import TradeoffDisplay as TradeoffDisplay
    from ltr_objectives.adapters._lightgbm_callables import lightgbm_metric as lightgbm_metric
    from ltr_objectives.adapters._lightgbm_callables import lightgbm_objective as lightgbm_objective
    from ltr_objectives.adapters._lightgbm_ranker import LGBMRanker as LGBMRanker
    from ltr_objectives.adapters._position_offsets import position_offsets as position_offsets
    from ltr_objectives.adapters._refit import refit as refit
    from ltr_objectives.adapters._torch import cross_encoder_loss as cross_encoder_loss
    from ltr_objectives.adapters._torch import torch_loss as torch_loss
    from ltr_objectives.adapters._tradeoff import tradeoff as tradeoff
    from ltr_objectives.adapters._xgboost_callables import xgboost_metric as xgboost_metric
    from ltr_objectives.adapters._xgboost_callables import xgboost_objective as xgboost_objective
    from ltr_objectives.adapters._xgboost_ranker import XGBRanker as XGBRanker
else:
    __all__ = [  # without what needs a library that is missing
        name
        for name, module in _MODULES.items()
        if not module.endswith(("_ranker", "_bags", "_tradeoff", "_position_offsets"))
        or importlib.util.find_spec(module[1:].removesuffix("_ranker") if module.endswith("_ranker") else "sklearn")
    ]

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            try:
                return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
            except AttributeError as error:  # which Python would replace by "cannot import name"
                library = sys.modules.get(_MODULES[name].split("_")[1])  # perhaps a script of the same name
                at = getattr(library, "__file__", "its library")
                raise ImportError(f"{name} cannot be imported, because {at} is broken: {error}") from error
        raise AttributeError(f"module 'ltr_objectives.adapters' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)

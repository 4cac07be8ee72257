"""Objectives, metrics and estimators for XGBoost, LightGBM and CatBoost.

A library is imported with its estimator, or when a callable for it is first used.
"""

import importlib
import importlib.util
import sys
from typing import TYPE_CHECKING, Any

_MODULES = {  # and the names that are loaded from them when they are first used
    "_bags": "bagged", "_bounded": "bounded", "_catboost_callables": "catboost_metric catboost_objective",
    "_catboost_ranker": "CatBoostRanker", "_dask": "dask_evaluate dask_group",
    "_displays": "ComparisonDisplay PropensityDisplay TradeoffDisplay",
    "_lightgbm_callables": "lightgbm_metric lightgbm_objective", "_lightgbm_ranker": "LGBMRanker",
    "_position_offsets": "position_offsets", "_refit": "refit", "_torch": "cross_encoder_loss torch_loss",
    "_tradeoff": "tradeoff", "_xgboost_callables": "xgboost_metric xgboost_objective", "_xgboost_ranker": "XGBRanker",
}  # fmt: skip
_NEEDED = {  # to import a module
    "_bags": "sklearn", "_position_offsets": "sklearn", "_refit": "sklearn", "_tradeoff": "sklearn",
    "_catboost_ranker": "sklearn catboost", "_lightgbm_ranker": "sklearn lightgbm",
    "_xgboost_ranker": "sklearn xgboost",
}  # fmt: skip


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
    __all__ = [
        name
        for module, names in _MODULES.items()
        if all(map(importlib.util.find_spec, _NEEDED.get(module, "").split()))
        for name in names.split()
    ]

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names.split():
                try:
                    return getattr(importlib.import_module(f".{module}", __name__), name)
                except AttributeError as error:  # which Python would replace by "cannot import name"
                    library = sys.modules.get(module.split("_")[1])  # perhaps a script of the same name
                    at = getattr(library, "__file__", "its library")
                    raise ImportError(f"{name} cannot be imported, because {at} is broken: {error}") from error
        raise AttributeError(f"module 'ltr_objectives.adapters' has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted(__all__)

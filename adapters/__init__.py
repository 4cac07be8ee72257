"""Our objectives and metrics inside XGBoost, LightGBM and CatBoost, and estimators. A library is loaded when used."""

import importlib
from typing import Any

_MODULES = {
    "xgboost_objective": "_xgboost",
    "xgboost_metric": "_xgboost",
    "lightgbm_objective": "_lightgbm",
    "lightgbm_metric": "_lightgbm",
    "catboost_objective": "_catboost",
    "catboost_metric": "_catboost",
    "XGBRanker": "_xgboost_ranker",
    "LGBMRanker": "_lightgbm_ranker",
    "CatBoostRanker": "_catboost_ranker",
    "dask_by_query": "_dask",
    "dask_evaluate": "_dask",
    "dask_group": "_dask",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"ltr_objectives.adapters.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'ltr_objectives.adapters' has no attribute {name!r}")

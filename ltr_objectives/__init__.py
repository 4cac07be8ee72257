"""Ranking objectives and metrics for XGBoost, LightGBM and CatBoost.

Importing this package loads neither numba nor any of the libraries; each name is loaded when it is first used.
"""

import importlib
from typing import Any

import ltr_objectives.metrics
import ltr_objectives.objectives  # noqa: F401 - both first, so that the functions of these names below stay bound
from ltr_objectives import registry
from ltr_objectives.errors import LTRError, LTRWarning
from ltr_objectives.registry import get_metric, get_objective, metrics, objectives

__version__ = "0.1.0"

_ELSEWHERE = {
    "evaluate": "ltr_objectives.metrics.evaluation",
    "Langevin": "ltr_objectives.objectives.langevin",
    "Metric": "ltr_objectives.metrics.base",
    "Objective": "ltr_objectives.objectives.base",
    "Queries": "ltr_objectives.queries",
    "Report": "ltr_objectives.diagnostics",
}

__all__ = [
    "LTRError",
    "LTRWarning",
    "get_metric",
    "get_objective",
    "metrics",
    "objectives",
    *_ELSEWHERE,
    *registry.public_classes(),
]


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    if name in registry.public_classes():
        return registry.load_public(name)
    raise AttributeError(f"module 'ltr_objectives' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

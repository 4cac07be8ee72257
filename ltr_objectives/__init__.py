"""Ranking objectives and metrics for XGBoost, LightGBM and CatBoost.

Importing this package loads neither NumPy, numba nor a boosting library.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if Path(__file__).with_name("adapters").is_file():
    raise ImportError(
        "ltr_objectives/adapters is a text file, but must be a symbolic link to adapters/; allow links (on Windows: "
        "turn on developer mode), then run: git config core.symlinks true && git checkout -- ltr_objectives"
    )

if TYPE_CHECKING:  # what the functions below load; tests/test_packaging.py says which line is missing
    from ltr_objectives.diagnostics import Report, report
    from ltr_objectives.errors import LTRError, LTRWarning
    from ltr_objectives.evaluation import evaluate
    from ltr_objectives.exposure import evaluate_exposure
    from ltr_objectives.items import evaluate_items
    from ltr_objectives.metrics.average_precision import GAP, MAP
    from ltr_objectives.metrics.base import Metric
    from ltr_objectives.metrics.binary import AUC, GAUC, RBP, Precision, Recall, RPrecision
    from ltr_objectives.metrics.cascade import ERR, MRR, Hit, PFound
    from ltr_objectives.metrics.correlation import Spearman
    from ltr_objectives.metrics.linear import DCG, NDCG, ExpDCG
    from ltr_objectives.metrics.text import get_metric
    from ltr_objectives.objectives.approx import ApproxMAP, ApproxMRR, ApproxNDCG
    from ltr_objectives.objectives.around import Langevin, Subsample, UnitHessian
    from ltr_objectives.objectives.base import Objective
    from ltr_objectives.objectives.hinge import Hinge
    from ltr_objectives.objectives.lambdaloss import LambdaLoss
    from ltr_objectives.objectives.lambdamart import LambdaMART
    from ltr_objectives.objectives.listmle import ListMLE
    from ltr_objectives.objectives.listnet import ListNet
    from ltr_objectives.objectives.mixture import Mixture, get_objective
    from ltr_objectives.objectives.neuralndcg import NeuralNDCG, NeuralSort
    from ltr_objectives.objectives.ordinal import Ordinal
    from ltr_objectives.objectives.plrank import FairExposure, PLRank
    from ltr_objectives.objectives.preferences import Preferences
    from ltr_objectives.objectives.queryrmse import QueryRMSE
    from ltr_objectives.objectives.ranknet import RankNet
    from ltr_objectives.objectives.rmse import RMSE
    from ltr_objectives.objectives.softrank import SoftRank
    from ltr_objectives.objectives.stochasticrank import StochasticRank
    from ltr_objectives.objectives.xendcg import XENDCG
    from ltr_objectives.objectives.yetiloss import YetiLoss
    from ltr_objectives.objectives.yetirank import YetiRank
    from ltr_objectives.queries import Queries
    from ltr_objectives.registry import metric_names, objective_for, objective_names
    from ltr_objectives.statistics import compare_scores
    from ltr_objectives.testing import check_metric, check_objective
    from ltr_objectives.trec import to_qrels, to_run

__version__ = "0.2.0"

_MODULES = {  # and the names that are loaded from them when they are first used
    "diagnostics": "Report report", "errors": "LTRError LTRWarning", "evaluation": "evaluate",
    "exposure": "evaluate_exposure", "items": "evaluate_items", "metrics.average_precision": "GAP MAP",
    "metrics.base": "Metric", "metrics.binary": "AUC GAUC RBP Precision Recall RPrecision",
    "metrics.cascade": "ERR MRR Hit PFound", "metrics.correlation": "Spearman", "metrics.linear": "DCG NDCG ExpDCG",
    "metrics.text": "get_metric", "objectives.approx": "ApproxMAP ApproxMRR ApproxNDCG",
    "objectives.around": "Langevin Subsample UnitHessian", "objectives.base": "Objective", "objectives.hinge": "Hinge",
    "objectives.lambdaloss": "LambdaLoss", "objectives.lambdamart": "LambdaMART", "objectives.listmle": "ListMLE",
    "objectives.listnet": "ListNet", "objectives.mixture": "Mixture get_objective",
    "objectives.neuralndcg": "NeuralNDCG NeuralSort", "objectives.ordinal": "Ordinal",
    "objectives.plrank": "FairExposure PLRank", "objectives.preferences": "Preferences",
    "objectives.queryrmse": "QueryRMSE", "objectives.ranknet": "RankNet", "objectives.rmse": "RMSE",
    "objectives.softrank": "SoftRank", "objectives.stochasticrank": "StochasticRank", "objectives.xendcg": "XENDCG",
    "objectives.yetiloss": "YetiLoss", "objectives.yetirank": "YetiRank", "queries": "Queries",
    "registry": "metric_names objective_for objective_names", "statistics": "compare_scores",
    "testing": "check_metric check_objective", "trec": "to_qrels to_run",
}  # fmt: skip

__all__ = [
    "AUC", "DCG", "ERR", "GAP", "GAUC", "MAP", "MRR", "NDCG", "RBP", "RMSE", "XENDCG", "ApproxMAP", "ApproxMRR",
    "ApproxNDCG", "ExpDCG", "FairExposure", "Hinge", "Hit", "LTRError", "LTRWarning", "LambdaLoss",
    "LambdaMART", "Langevin", "ListMLE", "ListNet", "Metric", "Mixture", "NeuralNDCG", "NeuralSort", "Objective",
    "Ordinal", "PFound", "PLRank", "Precision", "Preferences", "Queries", "QueryRMSE", "RPrecision", "RankNet",
    "Recall", "Report", "SoftRank", "Spearman", "StochasticRank", "Subsample", "UnitHessian",
    "YetiLoss", "YetiRank", "check_metric", "check_objective", "compare_scores", "evaluate", "evaluate_exposure",
    "evaluate_items", "get_metric", "get_objective", "metric_names", "objective_for", "objective_names", "report",
    "to_qrels", "to_run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names.split():
            globals()[name] = found = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

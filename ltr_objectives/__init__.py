"""Ranking objectives and metrics for XGBoost, LightGBM and CatBoost.

Importing this package loads neither numba nor a boosting library. Each name is loaded when it is first used.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if Path(__file__).with_name("adapters").is_file():
    raise ImportError(
        "ltr_objectives/adapters is a text file, but must be a symbolic link to adapters/; allow links (on Windows: "
        "turn on developer mode), then run: git config core.symlinks true && git checkout -- ltr_objectives"
    )

import ltr_objectives.metrics
import ltr_objectives.objectives  # noqa: F401 - before the functions of the same names, which replace these modules
from ltr_objectives import registry
from ltr_objectives.errors import LTRError as LTRError
from ltr_objectives.errors import LTRWarning as LTRWarning
from ltr_objectives.registry import get_metric as get_metric
from ltr_objectives.registry import get_objective as get_objective
from ltr_objectives.registry import metrics as metrics
from ltr_objectives.registry import objective_for as objective_for
from ltr_objectives.registry import objectives as objectives

__version__ = "0.2.0"

_ELSEWHERE = {
    "check_metric": "ltr_objectives.testing",
    "check_objective": "ltr_objectives.testing",
    "compare_scores": "ltr_objectives.workbench.statistics",
    "evaluate": "ltr_objectives.metrics.evaluation",
    "evaluate_exposure": "ltr_objectives.metrics.exposure",
    "evaluate_items": "ltr_objectives.metrics.items",
    "FairExposure": "ltr_objectives.objectives.plrank",
    "Langevin": "ltr_objectives.objectives.around",
    "Mixture": "ltr_objectives.objectives.mixture",
    "Metric": "ltr_objectives.metrics.base",
    "Objective": "ltr_objectives.objectives.base",
    "Preferences": "ltr_objectives.objectives.preferences",
    "Queries": "ltr_objectives.queries",
    "Report": "ltr_objectives.diagnostics",
    "StochasticLabels": "ltr_objectives.objectives.mixture",
    "Subsample": "ltr_objectives.objectives.around",
    "to_qrels": "ltr_objectives.metrics.trec",
    "to_run": "ltr_objectives.metrics.trec",
    "UnitHessian": "ltr_objectives.objectives.around",
}

if TYPE_CHECKING:  # what __getattr__ below loads; tests/test_packaging.py names a missing line
    from ltr_objectives.diagnostics import Report as Report
    from ltr_objectives.metrics.average_precision import GAP as GAP
    from ltr_objectives.metrics.average_precision import MAP as MAP
    from ltr_objectives.metrics.base import Metric as Metric
    from ltr_objectives.metrics.binary import AUC as AUC
    from ltr_objectives.metrics.binary import RBP as RBP
    from ltr_objectives.metrics.binary import Precision as Precision
    from ltr_objectives.metrics.binary import Recall as Recall
    from ltr_objectives.metrics.cascade import ERR as ERR
    from ltr_objectives.metrics.cascade import MRR as MRR
    from ltr_objectives.metrics.cascade import Hit as Hit
    from ltr_objectives.metrics.cascade import PFound as PFound
    from ltr_objectives.metrics.correlation import Kendall as Kendall
    from ltr_objectives.metrics.correlation import Spearman as Spearman
    from ltr_objectives.metrics.evaluation import evaluate as evaluate
    from ltr_objectives.metrics.exposure import evaluate_exposure as evaluate_exposure
    from ltr_objectives.metrics.items import evaluate_items as evaluate_items
    from ltr_objectives.metrics.linear import DCG as DCG
    from ltr_objectives.metrics.linear import NDCG as NDCG
    from ltr_objectives.metrics.linear import ExpDCG as ExpDCG
    from ltr_objectives.metrics.trec import to_qrels as to_qrels
    from ltr_objectives.metrics.trec import to_run as to_run
    from ltr_objectives.objectives.approx import ApproxMAP as ApproxMAP
    from ltr_objectives.objectives.approx import ApproxMRR as ApproxMRR
    from ltr_objectives.objectives.approx import ApproxNDCG as ApproxNDCG
    from ltr_objectives.objectives.around import Langevin as Langevin
    from ltr_objectives.objectives.around import Subsample as Subsample
    from ltr_objectives.objectives.around import UnitHessian as UnitHessian
    from ltr_objectives.objectives.base import Objective as Objective
    from ltr_objectives.objectives.hinge import Hinge as Hinge
    from ltr_objectives.objectives.lambdaloss import LambdaLoss as LambdaLoss
    from ltr_objectives.objectives.lambdamart import LambdaMART as LambdaMART
    from ltr_objectives.objectives.listmle import ListMLE as ListMLE
    from ltr_objectives.objectives.listnet import ListNet as ListNet
    from ltr_objectives.objectives.mixture import Mixture as Mixture
    from ltr_objectives.objectives.mixture import StochasticLabels as StochasticLabels
    from ltr_objectives.objectives.neuralndcg import NeuralNDCG as NeuralNDCG
    from ltr_objectives.objectives.neuralndcg import NeuralSort as NeuralSort
    from ltr_objectives.objectives.ordinal import Ordinal as Ordinal
    from ltr_objectives.objectives.plrank import FairExposure as FairExposure
    from ltr_objectives.objectives.plrank import PLRank as PLRank
    from ltr_objectives.objectives.preferences import Preferences as Preferences
    from ltr_objectives.objectives.queryrmse import QueryRMSE as QueryRMSE
    from ltr_objectives.objectives.ranknet import RankNet as RankNet
    from ltr_objectives.objectives.rmse import RMSE as RMSE
    from ltr_objectives.objectives.softrank import SoftRank as SoftRank
    from ltr_objectives.objectives.stochasticrank import StochasticRank as StochasticRank
    from ltr_objectives.objectives.xendcg import XENDCG as XENDCG
    from ltr_objectives.objectives.yetiloss import YetiLoss as YetiLoss
    from ltr_objectives.objectives.yetirank import YetiRank as YetiRank
    from ltr_objectives.queries import Queries as Queries
    from ltr_objectives.testing import check_metric as check_metric
    from ltr_objectives.testing import check_objective as check_objective
    from ltr_objectives.workbench.statistics import compare_scores as compare_scores
else:
    __all__ = [
        "LTRError",
        "LTRWarning",
        "get_metric",
        "get_objective",
        "metrics",
        "objective_for",
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
        return sorted(__all__)

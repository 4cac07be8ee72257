"""What every training of a comparison gets, and how each library spells it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ltr_objectives.adapters._libraries import LIBRARIES
from ltr_objectives.checks import check_choice
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.typical import typical
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_objective

SHARED = {"learning_rate": (0.03, 0.3), "leaves": (6, 48), "min_child_weight": (1.0, 50.0), "documents": (1.0, 300.0)}
Settings = dict[str, Any]


@dataclass(frozen=True)
class Budget:
    """What every training gets."""

    trees: int = 500
    learning_rate: float = 0.1
    leaves: int = 31
    patience: int = 50
    min_child_weight: float = 1e-3
    l2: float = 0.0
    threads: int = 1
    seed: int = 0
    params: tuple[tuple[str, Any], ...] = ()  # by the library's own names; they override the fields above
    documents: float = 0.0  # l2; min_child_weight is then in documents, too; 0 takes the l2 above
    smooth: tuple[str, ...] = ()  # metrics with a smoothed vali value


def drawn(count: int) -> list[Settings]:
    """So many settings within ``SHARED``, log-uniform and spread evenly (Halton); a longer list begins with a shorter.

    >>> drawn(2) == drawn(3)[:2]
    True
    """
    from scipy.stats import qmc

    least, most = np.log(np.array(list(SHARED.values()))).T
    points = qmc.Halton(len(SHARED), seed=0).random(count)
    found = [dict(zip(SHARED, map(float, np.exp(point)), strict=True)) for point in least + points * (most - least)]
    return [{**each, "leaves": round(each["leaves"])} for each in found]


def params_of(library: str, budget: Budget) -> dict[str, Any]:
    """The library's own parameters with the shape, regularisation, threads and seed of the budget.

    >>> params_of("catboost", Budget(leaves=31))["depth"]
    5
    """
    b = budget
    if library == "xgboost":
        return {
            "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": b.leaves, "max_depth": 0,
            "learning_rate": b.learning_rate, "min_child_weight": b.min_child_weight, "reg_lambda": b.l2,
            "nthread": b.threads, "seed": b.seed,
        }  # fmt: skip
    if library == "lightgbm":
        return {
            "num_leaves": b.leaves, "learning_rate": b.learning_rate, "lambda_l2": b.l2,
            "min_sum_hessian_in_leaf": b.min_child_weight, "num_threads": b.threads, "seed": b.seed,
            "deterministic": True, "force_col_wise": True,  # else timing chooses an algorithm, and so the last digits
        }  # fmt: skip
    check_choice("library", library, ("xgboost", "lightgbm", "catboost"))
    return {
        "depth": max(1, round(np.log2(b.leaves))), "learning_rate": b.learning_rate, "l2_leaf_reg": b.l2,
        "bootstrap_type": "No", "boosting_type": "Plain", "leaf_estimation_backtracking": "No",
        "thread_count": b.threads, "random_seed": b.seed,
    }  # fmt: skip


def in_documents(library: str, budget: Budget, objective: str | Objective, queries: Queries) -> Budget:
    """The budget with what it has in documents as the library takes it; ours already count documents.

    A string is a native objective, whose Hessians on ``queries`` are those of its twin.
    """
    twin = LIBRARIES[library].twins.get(objective) if isinstance(objective, str) else None
    unit = 1.0 if twin is None else typical(get_objective(twin), queries, budget.threads).hessian
    return replace(budget, l2=unit * budget.documents, min_child_weight=unit * budget.min_child_weight)

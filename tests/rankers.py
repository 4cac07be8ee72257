"""The three rankers for the tests: small, quiet, on one thread; and the data that most tests of them share."""

import numpy as np
import pytest

from ltr_objectives import adapters
from ltr_objectives.datasets import make_ranking_fold

LIBRARIES = {
    "xgboost": ("XGBRanker", {"n_estimators": 8, "max_depth": 3, "learning_rate": 0.3, "n_jobs": 1}),
    "lightgbm": (
        "LGBMRanker",
        {"n_estimators": 8, "num_leaves": 7, "learning_rate": 0.3, "n_jobs": 1, "deterministic": True},
    ),
    "catboost": ("CatBoostRanker", {"n_estimators": 8, "depth": 3, "learning_rate": 0.3, "thread_count": 1}),
}
NATIVE = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "YetiRank"}
SUFFIX = {"xgboost": ".json", "lightgbm": ".txt", "catboost": ".cbm"}
everywhere = pytest.mark.parametrize("library", LIBRARIES)


def ranker_class(library):
    return getattr(adapters, LIBRARIES[library][0])


def ranker(library, objective="yetiloss:map", **params):
    return ranker_class(library)(objective=objective, **{**LIBRARIES[library][1], **params})


def fold(seed=0):
    return make_ranking_fold((40, 15, 15), seed=seed, features=10, mean_length=15)


def query_weights(group, seed=0):
    return np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(group))


TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid]}


def fit(library, objective="yetiloss:map", given=None, **params):
    """Train with these parameters; ``given`` goes to `fit`."""
    return ranker(library, objective, **params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **(given or {}))

"""The three rankers for the tests: small, quiet, on one thread."""

import numpy as np

from ltr_objectives import UnitHessian, adapters
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


def ranker_class(library):
    return getattr(adapters, LIBRARIES[library][0])


def ranker(library, objective="yetiloss:map", **params):
    return ranker_class(library)(objective=objective, **{**LIBRARIES[library][1], **params})


def fold(seed=0):
    return make_ranking_fold((40, 15, 15), seed=seed, features=10, mean_length=15)


def query_weights(group, seed=0):
    return np.random.default_rng(seed).choice([0.5, 1.0, 3.0], len(group))


def through_the_adapter(library, objective, data, y, weight=None, **given):
    """Train as a user of the library itself with the settings of ``ranker``; ``weight`` is by query."""
    objective, by_row = UnitHessian(objective), None if weight is None else np.repeat(weight, data.group)
    if library == "xgboost":
        import xgboost as xgb

        train = xgb.DMatrix(data.X, y, qid=data.qid)
        if weight is not None:
            train.set_weight(weight)
        params = {"max_depth": 3, "eta": 0.3, "nthread": 1, "reg_lambda": 20, "base_score": 0}
        return xgb.train(params, train, 8, obj=adapters.xgboost_objective(objective, **given)).predict(train)
    if library == "lightgbm":
        import lightgbm as lgb

        params = {"num_leaves": 7, "learning_rate": 0.3, "num_threads": 1, "deterministic": True, "verbosity": -1}
        params |= {"lambda_l2": 20, "objective": adapters.lightgbm_objective(objective, **given)}
        return lgb.train(params, lgb.Dataset(data.X, y, group=data.group, weight=by_row), 8).predict(data.X)
    import catboost

    pool = catboost.Pool(data.X, y, group_id=data.qid, weight=by_row)
    params = {"iterations": 8, "depth": 3, "learning_rate": 0.3, "thread_count": 1, "leaf_estimation_method": "Newton"}
    params |= {"bootstrap_type": "No", "eval_metric": "NDCG", "verbose": False, "allow_writing_files": False}
    params |= {"random_strength": 0, "l2_leaf_reg": 20}
    params["loss_function"] = adapters.catboost_objective(objective, pool, **given)
    return catboost.CatBoost(params).fit(pool).predict(pool)

"""What runs on Ray's workers. They import this file."""

import os
import tempfile
from pathlib import Path

import lightgbm as lgb
import numpy as np
import ray.train
import ray.train.lightgbm
import xgboost as xgb

from ltr_objectives.adapters import lightgbm_objective, xgboost_metric, xgboost_objective

XGB = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1, "nthread": 1}
LGB = {"num_leaves": 7, "min_child_weight": 1e-3, "min_child_samples": 5, "verbose": -1, "metric": "None"}
LGB |= {"deterministic": True, "force_col_wise": True, "num_threads": 1}
ROUNDS = 8
FILE = "model.ubj"  # XGBoost warns of other endings; LightGBM writes its text under any


class Die(xgb.callback.TrainingCallback):
    """End the process of the second worker in the fourth round, unless the file says that it did."""

    def __init__(self, died):
        self.died = Path(died)

    def after_iteration(self, model, epoch, evals_log):
        if epoch == 3 and ray.train.get_context().get_world_rank() == 1 and not self.died.exists():
            self.died.touch()
            os._exit(1)
        return False


def share(X, y, qid):
    """The rows of this worker: whole queries."""
    worker = ray.train.get_context()
    queries = np.array_split(np.unique(qid), worker.get_world_size())[worker.get_world_rank()]
    mine = np.isin(qid, queries)
    return X[mine], y[mine], qid[mine]


def report(booster, **values):
    """Keep the model of the first worker."""
    with tempfile.TemporaryDirectory() as folder:
        first = ray.train.get_context().get_world_rank() == 0
        booster.save_model(f"{folder}/{FILE}")
        ray.train.report(values, checkpoint=ray.train.Checkpoint.from_directory(folder) if first else None)


def in_xgboost(config):
    X, y, qid = share(*config["data"])
    data, history = xgb.DMatrix(X, y, qid=qid), {}
    booster = xgb.train(
        XGB, data, ROUNDS, obj=xgboost_objective("lambdamart:map"), custom_metric=xgboost_metric("map"),
        evals=[(data, "train")], evals_result=history, verbose_eval=False,
        callbacks=[Die(config["died"])] if "died" in config else None,
    )  # fmt: skip
    report(booster, map=history["train"]["map"][-1])


def in_lightgbm(config):
    X, y, qid = share(*config["data"])
    params = {**LGB, "objective": lightgbm_objective("lambdamart:map"), "tree_learner": "data", "pre_partition": True}
    params |= ray.train.lightgbm.get_network_params()
    data = lgb.Dataset(X, y, group=np.unique(qid, return_counts=True)[1])
    report(lgb.train(params, data, ROUNDS), rows=len(y))

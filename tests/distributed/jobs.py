"""Jobs that run on Ray's workers, which import this file."""

import os
from pathlib import Path

import lightgbm as lgb
import numpy as np
import ray.train
import ray.train.lightgbm
import ray.train.xgboost
import xgboost as xgb

from ltr_objectives.adapters import lightgbm_objective, xgboost_metric, xgboost_objective

XGB = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1, "nthread": 1}
LGB = {"num_leaves": 7, "min_child_weight": 1e-3, "min_child_samples": 5, "verbose": -1, "metric": "None"}
LGB |= {"deterministic": True, "force_col_wise": True, "num_threads": 1}
ROUNDS = 8
FILE = "model.ubj"  # XGBoost warns of other endings; LightGBM writes its text under any


class Die(xgb.callback.TrainingCallback):
    """End the process of the second worker after three rounds, unless the file says that it did."""

    def __init__(self, died):
        self.died = died

    def before_iteration(self, model, epoch, evals_log):
        last = model.num_boosted_rounds() == 3 and ray.train.get_context().get_world_rank() == 1
        if last and not self.died.exists():
            ray.train.get_all_reported_checkpoints()  # waits until Ray has them
            self.died.touch()
            os._exit(1)
        return False


def share(X, y, qid, revenue):
    """Return the rows of this worker: whole queries."""
    worker = ray.train.get_context()
    queries = np.array_split(np.unique(qid), worker.get_world_size())[worker.get_world_rank()]
    mine = np.isin(qid, queries)
    return X[mine], y[mine], qid[mine], revenue[mine]


def labels_for(objective, revenue):
    """Return the labels of the objective's goals, in the rows of this worker."""
    return {"labels": {"revenue": revenue} if objective.facts.goals else None}


def in_xgboost(config):
    """Train from the last checkpoint, of which there is one after ``every`` rounds."""
    X, y, qid, revenue = share(*config["data"])
    objective = xgboost_objective(config["objective"], **labels_for(config["objective"], revenue))
    saved = ray.train.get_checkpoint()
    begun = None if saved is None else ray.train.xgboost.RayTrainReportCallback.get_model(saved, FILE)
    done = 0 if begun is None else begun.num_boosted_rounds()
    Path(config["folder"], f"{done} rounds").touch()
    data = xgb.DMatrix(X, y, qid=qid)
    callbacks = [Die(Path(config["folder"], "died"))] if config["die"] else []
    xgb.train(
        XGB, data, ROUNDS - done, obj=objective, custom_metric=xgboost_metric("map"), evals=[(data, "train")],
        verbose_eval=False, xgb_model=begun,
        callbacks=[*callbacks, ray.train.xgboost.RayTrainReportCallback(filename=FILE, frequency=config["every"])],
    )  # fmt: skip


def in_lightgbm(config):
    X, y, qid, revenue = share(*config["data"])
    objective = lightgbm_objective(config["objective"], **labels_for(config["objective"], revenue))
    params = {**LGB, "objective": objective, "tree_learner": "data", "pre_partition": True}
    params |= ray.train.lightgbm.get_network_params()
    data = lgb.Dataset(X, y, group=np.unique(qid, return_counts=True)[1])
    lgb.train(params, data, ROUNDS, callbacks=[ray.train.lightgbm.RayTrainReportCallback(filename=FILE)])

"""XGBoost on the workers of Ray, trained for MAP.

Each worker selects whole queries, and makes objective and metric itself.
"""

import tempfile

import numpy as np
import ray.train.xgboost
import xgboost as xgb

from ltr_objectives.adapters import xgboost_metric, xgboost_objective
from ltr_objectives.datasets import make_ranking


def train(config):  # runs on each worker
    worker = ray.train.get_context()
    queries = np.array_split(np.unique(config["qid"]), worker.get_world_size())[worker.get_world_rank()]
    mine = np.isin(config["qid"], queries)
    dtrain = xgb.DMatrix(config["X"][mine], config["y"][mine], qid=config["qid"][mine])
    booster = xgb.train(
        {"min_child_weight": 1e-3, "base_score": 0, "disable_default_eval_metric": 1, "nthread": 1},
        dtrain,
        20,
        obj=xgboost_objective("yetiloss:map"),
        custom_metric=xgboost_metric("map"),
        evals=[(dtrain, "train")],
        verbose_eval=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        booster.save_model(f"{folder}/model.ubj")
        first = worker.get_world_rank() == 0
        ray.train.report({}, checkpoint=ray.train.Checkpoint.from_directory(folder) if first else None)


data = make_ranking(60, features=10)
trainer = ray.train.xgboost.XGBoostTrainer(
    train,
    train_loop_config={"X": data.X, "y": data.y, "qid": data.qid},
    scaling_config=ray.train.ScalingConfig(num_workers=2),
)
result = trainer.fit()
model = xgb.Booster(model_file=f"{result.checkpoint.path}/model.ubj")

"""XGBoost on data larger than memory, trained for MAP: parts are read from files, and features are kept on disk.

Needs XGBoost 3.0 or newer. Each part has whole queries with ascending ids: XGBoost begins a new query at each part.
"""

from pathlib import Path

import numpy as np
import xgboost as xgb

from ltr_objectives.adapters import xgboost_metric, xgboost_objective
from ltr_objectives.datasets import make_ranking


class Parts(xgb.DataIter):
    """Parts of a data set, as files of features, labels and sizes of queries."""

    def __init__(self, folder):
        self.paths, self.done = sorted(folder.glob("*-X.npy")), 0
        super().__init__(cache_prefix=str(folder / "cache"))

    def next(self, input_data):
        if self.done == len(self.paths):
            return False
        X, y, group = (np.load(str(self.paths[self.done]).replace("-X.", f"-{name}.")) for name in ("X", "y", "group"))
        input_data(data=X, label=y, qid=np.repeat(np.arange(len(group)), group))  # weights by query: weight=
        self.done += 1
        return True

    def reset(self):
        self.done = 0


folder = Path("parts")
folder.mkdir()
for part in range(3):
    data = make_ranking(100, seed=part)
    for name, values in (("X", data.X), ("y", data.y), ("group", data.group)):
        np.save(folder / f"{part}-{name}.npy", values)
dtrain = xgb.ExtMemQuantileDMatrix(Parts(folder))  # of an eval set with ref=dtrain
params = {"min_child_weight": 1e-3, "disable_default_eval_metric": 1}
objective, metric = xgboost_objective("yetiloss:map"), xgboost_metric("map")
model = xgb.train(params, dtrain, 20, obj=objective, custom_metric=metric, evals=[(dtrain, "train")], verbose_eval=10)
print(len(dtrain.get_uint_info("group_ptr")) - 1, "queries")

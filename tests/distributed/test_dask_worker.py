"""Dask: a worker that dies. All else of Dask is in the suite."""

import os

import examples
import lightgbm as lgb
import pandas as pd
import pytest
import xgboost as xgb
import xgboost.dask as dxgb
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError
from generated import ranking

from ltr_objectives.adapters import dask_group, lightgbm_objective, xgboost_objective

OWN = "ignore:Parameter n_jobs will be ignored:UserWarning"  # LightGBM sets it itself, and warns of it
pytestmark = pytest.mark.filterwarnings(OWN)  # reasons are beside OWN

DIED = FutureCancelledError, xgb.core.XGBoostError, lgb.basic.LightGBMError  # the last two from the worker that is left
RECIPE = {}
examples.run(examples.script("dask_clusters"), RECIPE)
X, Y, QID = ranking(0)
TABLE = pd.DataFrame(X).add_prefix("f").assign(y=Y, qid=QID)


@pytest.fixture(scope="module")
def client():
    """Start two processes; one that dies is started again."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


def dying(path):
    """Return a callback, of both libraries, that ends the process of the first worker to come there."""

    def once():
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            return
        os._exit(1)

    class Die(xgb.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            if epoch == 3:
                once()
            return False

        def __call__(self, env):
            if env.iteration == 3:
                once()

    return Die()


def rounds(library, client, data, callbacks=()):
    """Train eight."""
    features = RECIPE["features"](data)
    if library == "lightgbm":
        objective = lightgbm_objective("lambdamart:map")
        ranker = lgb.DaskLGBMRanker(client=client, objective=objective, n_estimators=8, verbose=-1)
        return ranker.fit(
            features, data["y"], group=dask_group(data["qid"]), callbacks=list(callbacks)
        ).booster_.num_trees()
    dtrain = dxgb.DaskDMatrix(client, features, data["y"], qid=data["qid"])
    objective = xgboost_objective("lambdamart:map")
    return dxgb.train(client, {}, dtrain, 8, obj=objective, callbacks=callbacks)["booster"].num_boosted_rounds()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_training_ends_with_a_worker_that_dies_and_dask_makes_its_rows_again(client, library, tmp_path):
    data = RECIPE["spread"](TABLE, 2)
    with pytest.raises(DIED):
        rounds(library, client, data, [dying(tmp_path / "died")])
    assert (tmp_path / "died").exists()
    client.wait_for_workers(2)
    assert rounds(library, client, data) == 8

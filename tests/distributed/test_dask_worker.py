"""Dask: what a worker that dies takes with it. All else of Dask is in the suite."""

import os

import lightgbm as lgb
import pytest
import xgboost as xgb
import xgboost.dask as dxgb
from distributed import Client, LocalCluster
from distributed.client import FutureCancelledError, FuturesCancelledError
from generated import ranking

from ltr_objectives.adapters import dask_by_query, lightgbm_objective, xgboost_objective

OWN = "ignore:Parameter n_jobs will be ignored:UserWarning"  # LightGBM sets it itself, and warns of it
pytestmark = pytest.mark.filterwarnings(OWN)  # reasons are beside OWN

X, Y, QID = ranking(0)


@pytest.fixture(scope="module")
def client():
    """Two processes; one that dies is started again."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


def dying(path):
    """A callback, of both libraries, that ends the process of the first worker to come there."""

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
    if library == "lightgbm":
        objective = lightgbm_objective("lambdamart:map")
        ranker = lgb.DaskLGBMRanker(client=client, objective=objective, n_estimators=8, verbose=-1)
        return ranker.fit(data.X, data.y, group=data.group, callbacks=list(callbacks)).booster_.num_trees()
    dtrain = dxgb.DaskDMatrix(client, data.X, data.y, qid=data.qid)
    objective = xgboost_objective("lambdamart:map")
    return dxgb.train(client, {}, dtrain, 8, obj=objective, callbacks=callbacks)["booster"].num_boosted_rounds()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_worker_that_dies_takes_its_rows_with_it(client, library, tmp_path):
    data = dask_by_query(X, Y, QID, client=client)
    with pytest.raises((FutureCancelledError, lgb.basic.LightGBMError)):  # the second from the worker that is left
        rounds(library, client, data, [dying(tmp_path / "died")])
    assert (tmp_path / "died").exists()
    client.wait_for_workers(2)
    with pytest.raises(FuturesCancelledError):
        rounds(library, client, data)
    assert rounds(library, client, dask_by_query(X, Y, QID, client=client)) == 8

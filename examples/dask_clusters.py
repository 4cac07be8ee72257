"""XGBoost and LightGBM on the workers of Dask, trained for MAP.

Each worker computes the gradients of its own rows, so each partition has whole queries.
"""

import dask
import dask.array as da
import dask.dataframe as dd
import lightgbm as lgb
import pandas as pd
import xgboost.dask
from distributed import Client, LocalCluster

from ltr_objectives import YetiLoss
from ltr_objectives.adapters import (
    dask_evaluate,
    dask_group,
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)
from ltr_objectives.datasets import make_ranking_fold


def table_of(part):
    return pd.DataFrame(part.X).add_prefix("f").assign(y=part.y, qid=part.qid)


def spread(table, partitions):
    """Put whole queries into each partition, because Dask does not cut rows of one index."""
    return dd.from_pandas(table.set_index("qid"), npartitions=partitions).reset_index().persist()


def everywhere(table, workers):
    """Put all rows into each of as many partitions; return them, and the sizes of their queries."""
    sizes = table.groupby("qid", sort=False).size().to_numpy()
    parts = [dd.from_pandas(table, npartitions=1)] * workers
    return dd.concat(parts).persist(), da.concatenate([da.from_array(sizes, chunks=-1)] * workers)


def features(table):
    return table.drop(columns=["y", "qid"])


def in_xgboost(client, *tables):
    train, valid, test = (spread(table, 2) for table in tables)
    dtrain = xgboost.dask.DaskDMatrix(client, features(train), train["y"], qid=train["qid"])
    dvalid = xgboost.dask.DaskDMatrix(client, features(valid), valid["y"], qid=valid["qid"])
    output = xgboost.dask.train(
        client,
        {"eta": 0.1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1},
        dtrain,
        300,
        obj=xgboost_objective(YetiLoss("map")),
        custom_metric=xgboost_metric("map"),
        evals=[(dvalid, "valid")],
        early_stopping_rounds=30,
        verbose_eval=False,
    )
    best = output["booster"][: output["booster"].best_iteration + 1]
    return dask_evaluate("map", xgboost.dask.predict(client, best, features(test)), test["y"], test["qid"])


def in_lightgbm(client, train, valid, test):
    train, test = spread(train, 2), spread(test, 2)
    valid, valid_group = everywhere(valid, 2)  # each worker evaluates its own rows only
    ranker = lgb.DaskLGBMRanker(
        client=client,
        objective=lightgbm_objective(YetiLoss("map")),
        metric="None",
        n_estimators=300,
        deterministic=True,
        force_col_wise=True,
        verbose=-1,
    )
    with dask.config.set({"delayed_pure": True}):  # for equal models from run to run more often, see below
        ranker.fit(
            features(train),
            train["y"],
            group=dask_group(train["qid"]),
            eval_set=[(features(valid), valid["y"])],
            eval_group=[valid_group],
            eval_metric=lightgbm_metric("map"),
            callbacks=[lgb.early_stopping(30, verbose=False)],
        )
    return dask_evaluate("map", ranker.predict(features(test)), test["y"], test["qid"])


if __name__ == "__main__":  # the workers are processes, which import this file again
    tables = [table_of(part) for part in make_ranking_fold((200, 60, 60), seed=0)]
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        print("xgboost", in_xgboost(client, *tables))
        print("lightgbm", in_lightgbm(client, *tables))

"""Pools that CatBoost may cut, shuffle or mistake for others, for the tests of refusals."""

import numpy as np
import pandas as pd
from catboost import CatBoost, Pool

ROWS = 1500
BASE = {
    "iterations": 8, "eval_metric": "NDCG", "verbose": 0, "allow_writing_files": False, "bootstrap_type": "Bernoulli",
}  # fmt: skip
QID = np.arange(ROWS) // 10
WEIGHTS = np.random.default_rng(9).uniform(0.5, 2.0, ROWS // 10)[QID]


def features(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, 4))


def rich():
    return np.random.default_rng(1).integers(0, 4, ROWS).astype(float)


def sparse():
    """Labels that are mostly equal."""
    return (np.arange(ROWS) == 700).astype(float)


def make_pool(labels=rich, qid=QID, rows=slice(None), **arguments):
    return Pool(features()[rows], labels()[rows], group_id=qid[rows], **arguments)


def twice_as_long(labels):
    return Pool(np.tile(features(), (2, 1)), np.tile(labels(), 2), group_id=np.arange(2 * ROWS) // 10)


def categorical_pool(labels=rich):
    frame = pd.DataFrame(features(), columns=list("abcd")).assign(kind=(np.arange(ROWS) % 5).astype(str))
    return Pool(frame, labels(), group_id=QID, cat_features=["kind"])


def train(loss, pool, **params):
    arguments = {k: params.pop(k) for k in ("init_model", "eval_set") if k in params}
    return CatBoost({**BASE, "loss_function": loss, **params}).fit(pool, **arguments)

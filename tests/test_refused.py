"""Every call of refusals.toml raises LTRError with these words."""

import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from catboost import CatBoost, Pool

import ltr_objectives
from ltr_objectives import LTRError, adapters

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLES = tomllib.loads((Path(__file__).parent / "refusals.toml").read_text())
ROWS = [row for table in TABLES.values() for row in table.items()]

group, qid = [4] * 30, np.repeat(np.arange(30), 4)
rng = np.random.default_rng(0)
X, y, scores = rng.normal(size=(120, 3)), rng.integers(0, 3, 120).astype(float), rng.normal(size=120)
dtrain, heavy, pool = (
    xgb.DMatrix(X, y, qid=qid),
    xgb.DMatrix(X, y, qid=qid, weight=np.ones(30)),
    Pool(X, y, group_id=qid),
)


def xgb_train(data, objective="lambdamart", evals=False, **params):
    evaluated = [(data, "learn")] if evals else []
    return xgb.train({"nthread": 1, **params}, data, 1, obj=adapters.xgboost_objective(objective), evals=evaluated)


def lgb_train(data, objective="lambdamart", **params):
    params |= {"objective": adapters.lightgbm_objective(objective), "verbose": -1, "num_threads": 1}
    return lgb.train(params, data, 1)


def cat_train(fit_on=pool, **params):
    like = Pool(X, y, group_id=qid) if fit_on is pool or fit_on.get_cat_feature_indices() == [] else fit_on
    loss = adapters.catboost_objective("lambdamart", like)
    base = {"loss_function": loss, "eval_metric": "NDCG", "iterations": 1, "verbose": 0, "allow_writing_files": False}
    return CatBoost({**base, **params}).fit(fit_on)


NAMES = {
    "np": np,
    "pd": pd,
    "xgb": xgb,
    "lgb": lgb,
    "Pool": Pool,
    "CatBoost": CatBoost,
    "X": X,
    "table": pd.DataFrame(X, columns=["a", "b", "revenue"]).assign(revenue=y),
    "y": y,
    "scores": scores,
    "group": group,
    "qid": qid,
    "dtrain": dtrain,
    "heavy": heavy,
    "pool": pool,
    "xgb_train": xgb_train,
    "lgb_train": lgb_train,
    "cat_train": cat_train,
    "adapters": adapters,
    **{name: getattr(ltr_objectives, name) for name in ltr_objectives.__all__},
    **{name: getattr(adapters, name) for name in adapters.__all__},
}


@pytest.mark.parametrize(("call", "words"), ROWS, ids=[call for call, _ in ROWS])
def test_the_call_is_refused(call, words):
    with pytest.raises(LTRError) as caught:
        eval(call, dict(NAMES))
    if "no parameter 'bagging_by_query'" in str(caught.value) and lgb.__version__ < "4.6":
        pytest.skip("LightGBM before 4.6 does not have it")
    assert words in str(caught.value)

"""Every call of refusals.toml raises LTRError, and names what is wrong."""

from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from catboost import CatBoost, Pool
from loading import read_toml

import ltr_objectives.datasets
from ltr_objectives import LTRError, adapters

TABLES = read_toml(Path(__file__).parent / "refusals.toml")
ROWS = [row for name, table in TABLES.items() if name != "the_command_line" for row in table.items()]

group, qid = [4] * 30, np.repeat(np.arange(30), 4)
rng = np.random.default_rng(0)
X, y, scores = rng.normal(size=(120, 3)), rng.integers(0, 3, 120).astype(float), rng.normal(size=120)
dtrain, heavy = xgb.DMatrix(X, y, qid=qid), xgb.DMatrix(X, y, qid=qid, weight=np.ones(30))
pool, table = Pool(X, y, group_id=qid), pd.DataFrame(X, columns=["a", "b", "revenue"]).assign(revenue=y)
frame = pl.from_pandas(table)


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


PUBLIC = {name: getattr(module, name) for module in (ltr_objectives, adapters) for name in module.__all__}


@pytest.mark.filterwarnings("ignore:labels are up to 400")
@pytest.mark.parametrize(("call", "words"), ROWS, ids=[call for call, _ in ROWS])
def test_the_call_is_refused(call, words):
    with pytest.raises(LTRError) as caught:
        eval(call, globals() | PUBLIC)
    assert words in str(caught.value)

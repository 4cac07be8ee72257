"""Arguments of ``fit`` that the estimators take or refuse, beside the rows of refusals.toml."""

import numpy as np
import pandas as pd
import pytest
from rankers import EVAL, TRAIN, VALI, everywhere, fit, ranker


@everywhere
def test_arguments_of_another_library_are_refused(library):
    own = {"xgboost": "sample_weight_eval_set", "lightgbm": "eval_X", "catboost": "text_features"}
    for name in (*(name for of, name in own.items() if of != library), "foo"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            fit(library, given={name: None})


def test_xgboost_s_own_arguments_of_fit():
    weight = [np.random.default_rng(0).uniform(1, 2, len(VALI.group))]
    names = ("eval_sample_weight", "sample_weight_eval_set")
    one, two = (fit("xgboost", given={**EVAL, name: weight}).evals_result_ for name in names)
    assert one == two != fit("xgboost", given=EVAL).evals_result_
    assert fit("xgboost", given={"xgb_model": fit("xgboost")}).best_iteration_ == 16
    alone = fit("xgboost", given={"feature_weights": np.eye(10)[0]}, colsample_bytree=0.1)
    assert set(alone.booster_.get_score()) == {"f0"}


def test_lightgbm_s_own_arguments_of_fit():
    expected = fit("lightgbm", given=EVAL).evals_result_
    for X, y in ((VALI.X, VALI.y), ((VALI.X,), (VALI.y,))):
        assert fit("lightgbm", given={"eval_X": X, "eval_y": y, "eval_qid": [VALI.qid]}).evals_result_ == expected
    names = [f"x{i}" for i in range(10)]
    named = fit("lightgbm", "lambdarank", {**EVAL, "feature_name": names, "eval_at": [3]})
    assert named.booster_.feature_name() == names
    assert list(named.evals_result_["validation_0"]) == ["ndcg@3"]


@pytest.mark.parametrize("column", ["kind", 10])
def test_catboost_s_own_arguments_of_fit(column):
    X = pd.DataFrame(TRAIN.X).assign(kind=TRAIN.qid.astype(str)).rename(columns=str)
    X["colour"] = pd.Categorical(TRAIN.qid % 3)
    for named, of_fit in ({}, {"cat_features": [column]}), ({"cat_features": [column]}, {}):
        fitted = ranker("catboost", **named).fit(X, TRAIN.y, qid=TRAIN.qid, **of_fit)
        assert list(fitted.booster_.get_cat_feature_indices()) == [10, 11]

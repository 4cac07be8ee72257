"""`explain_pair`: the contributions add up to the difference of the scores that each library predicts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from matplotlib.figure import Figure
from rankers import LIBRARIES, ranker

from ltr_objectives import LTRError
from ltr_objectives.adapters import explain_pair
from ltr_objectives.datasets import make_ranking

catboost = pytest.importorskip("catboost")
lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")

DATA = make_ranking(30, features=10, mean_length=12, seed=0)
X, Y, QID, GROUP = DATA.X[:, :5], DATA.y, DATA.qid, DATA.group
TABLE = pd.DataFrame(X, columns=["a", "b", "c", "d", "e"])
TABLE["kind"] = pd.Categorical(np.where(Y > 0, "book", "film"))
TABLE.loc[::7, "kind"] = None
PAIRS = [(0, 1), (1, 0), (3, len(X) - 1), (2, 2)]


def check(model, data, scores, names):
    assert np.ptp(scores) > 0.1
    for i, j in PAIRS:
        table = explain_pair(model, data, i, j)
        assert list(table) == ["feature", "value_i", "value_j", "contribution"]
        assert sorted(table.feature) == names
        np.testing.assert_allclose(table.contribution.sum(), scores[i] - scores[j], atol=1e-5)
        assert (np.diff(table.contribution.abs()) <= 0).all()
        for feature, *values in table[["feature", "value_i", "value_j"]].itertuples(index=False):
            given = data[feature].iloc[[i, j]] if isinstance(data, pd.DataFrame) else data[[i, j], feature]
            assert all(a == b or (pd.isna(a) and pd.isna(b)) for a, b in zip(values, given, strict=True))


@pytest.mark.parametrize("library", LIBRARIES)
def test_estimators(library):
    fitted = ranker(library).fit(X, Y, qid=QID)
    check(fitted, X, fitted.predict(X), list(range(5)))
    fitted = ranker(library).fit(TABLE, Y, qid=QID)
    check(fitted, TABLE, fitted.predict(TABLE), [*"abcde", "kind"])
    beside = explain_pair(fitted, TABLE.assign(qid=QID), 0, 5)
    pd.testing.assert_frame_equal(beside, explain_pair(fitted, TABLE, 0, 5))


def test_models_of_the_libraries():
    dtrain, plain = xgb.DMatrix(X, Y, qid=QID), TABLE.drop(columns="kind")
    booster = xgb.train({"objective": "rank:ndcg"}, dtrain, 5)
    check(booster, X, booster.predict(dtrain), list(range(5)))
    early = xgb.XGBRanker(n_estimators=50, early_stopping_rounds=2, eval_metric="ndcg", learning_rate=1)
    early.fit(X, Y, qid=QID, eval_set=[(X[::-1], Y)], eval_qid=[QID], verbose=False)
    assert early.best_iteration < early.get_booster().num_boosted_rounds() - 1
    check(early, X, early.predict(X), list(range(5)))
    model = lgb.train({"objective": "lambdarank", "verbose": -1}, lgb.Dataset(plain, Y, group=GROUP), 5)
    check(model, plain, model.predict(plain), list("abcde"))
    pool = catboost.Pool(X, Y, group_id=QID)
    params = {"loss_function": "YetiRank", "iterations": 5, "verbose": False, "allow_writing_files": False}
    for kind in (catboost.CatBoost, catboost.CatBoostRanker):
        trained = kind(params).fit(pool) if kind is catboost.CatBoost else kind(**params).fit(pool)
        check(trained, X, trained.predict(X), list(range(5)))


@pytest.mark.parametrize("library", LIBRARIES)
def test_sparse_rows(library):
    fitted = ranker(library).fit(scipy.sparse.csr_matrix(X), Y, qid=QID)
    scores = fitted.predict(scipy.sparse.csr_matrix(X))
    found = explain_pair(fitted, scipy.sparse.csr_matrix(X), 0, 1).contribution.sum()
    np.testing.assert_allclose(found, scores[0] - scores[1], atol=1e-5)


def test_the_picture():
    fitted, axes = ranker("lightgbm").fit(TABLE, Y, qid=QID), Figure().subplots()
    table = explain_pair(fitted, TABLE, 0, 1, ax=axes)
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], table.contribution[::-1])
    texts = [text.get_text() for text in axes.get_yticklabels()]
    row = table.iloc[-1]
    assert texts[0].startswith(f"{row.feature}: ")
    wide = make_ranking(5, features=40, seed=0)
    axes = Figure().subplots()
    explain_pair(ranker("xgboost").fit(wide.X, wide.y, qid=wide.qid), wide.X, 0, 1, ax=axes)
    assert len(axes.patches) == 10


def test_wrong_arguments():
    fitted = ranker("xgboost").fit(X, Y, qid=QID)
    for arguments, message in (
        ((fitted, X, -1, 0), "i=-1 must be a whole number"),
        ((fitted, X, 0, len(X)), f"j={len(X)} must be a whole number of at least 0 and at most {len(X) - 1}"),
        ((fitted, X[0], 0, 1), "X must be a table of numbers"),
        ((fitted, xgb.DMatrix(X), 0, 1), "X is a DMatrix; give the features themselves"),
        (("model", X, 0, 1), "model is a str; pass a model or estimator"),
    ):
        with pytest.raises(LTRError, match=message):
            explain_pair(*arguments)

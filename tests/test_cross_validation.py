"""``xgb.cv`` and ``lgb.cv`` with our objectives, on folds of whole queries; refusals.toml has what they refuse."""

import numpy as np
import pytest
from generated import ranking
from sklearn.model_selection import GroupKFold

from ltr_objectives import evaluate
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective

X, LABELS, QID = ranking(6, queries=45)
GROUP = np.bincount(QID)
FOLDS = [*GroupKFold(3).split(X, groups=QID)]
XGB = {"max_depth": 3, "nthread": 1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
LGB = {
    "num_leaves": 7, "verbose": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True, "metric": "None",
}  # fmt: skip


def test_xgboost():
    xgb = pytest.importorskip("xgboost")
    ours = {"obj": xgboost_objective("yetiloss:map"), "custom_metric": xgboost_metric("map")}
    d = xgb.DMatrix(X, LABELS, qid=QID)
    table = xgb.cv(XGB, d, 6, nfold=3, shuffle=False, as_pandas=False, **ours)
    values = []
    for queries in np.array_split(np.arange(45), 3):  # as xgb.cv splits without shuffling
        inside = np.isin(QID, queries)
        learn, test = (xgb.DMatrix(X[rows], LABELS[rows], qid=QID[rows]) for rows in (~inside, inside))
        scores = xgb.train(XGB, learn, 6, obj=ours["obj"]).predict(test)
        values.append(evaluate("map", scores, LABELS[inside], qid=QID[inside]))
    assert table["test-map-mean"][-1] == pytest.approx(np.mean(values), abs=1e-6)
    with pytest.raises(xgb.core.XGBoostError, match="does not support group structure"):
        xgb.cv(XGB, d, 2, folds=FOLDS, **ours)
    d.set_weight(np.linspace(1, 2, 45))
    assert len(d.slice(np.flatnonzero(QID < 9), allow_groups=True).get_weight()) == 0  # xgb.cv ignores weights by query


@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm(weighted):
    lgb = pytest.importorskip("lightgbm")
    weight = np.linspace(1, 2, len(QID)) if weighted else None
    params = {**LGB, "objective": lightgbm_objective("yetiloss:map")}
    data = lgb.Dataset(X, LABELS, group=GROUP, weight=weight)
    record = lgb.cv(dict(params), data, 6, folds=GroupKFold(3), feval=lightgbm_metric("map"))
    values = []
    whole = lgb.Dataset(X, LABELS, group=GROUP, free_raw_data=False).construct()  # for the same bins
    for learn, test in FOLDS:
        part = lgb.Dataset(
            X[learn], LABELS[learn], group=np.bincount(QID[learn])[np.unique(QID[learn])], reference=whole,
            weight=None if weight is None else weight[learn],
        )  # fmt: skip
        scores = lgb.train(dict(params), part, 6).predict(X[test])
        held_out = None if weight is None else weight[test]
        if held_out is not None:  # a query counts by the mean weight of its rows
            held_out = np.array([held_out[QID[test] == q].mean() for q in np.unique(QID[test])])
        values.append(evaluate("map", scores, LABELS[test], qid=QID[test], weight=held_out))
    [mean] = [v for name, v in record.items() if name.endswith("map-mean")]
    assert mean[-1] == pytest.approx(np.mean(values), abs=1e-9)

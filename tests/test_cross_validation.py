"""``xgb.cv`` and ``lgb.cv`` with our objectives, on folds of whole queries. CatBoost's: test_catboost_refusals.py."""

import numpy as np
import pytest
from generated import ranking

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective

X, LABELS, QID = ranking(6, queries=45)
GROUP = np.bincount(QID)
FOLDS = [(np.flatnonzero(k != QID % 3), np.flatnonzero(k == QID % 3)) for k in range(3)]
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


def test_xgboost_refuses_what_is_given_by_row():
    xgb = pytest.importorskip("xgboost")
    data, by_row = xgb.DMatrix(X, LABELS, qid=QID), np.ones(len(X))
    for given in ({"labels": {"revenue": by_row}}, {"propensity": by_row}, {"position": by_row}):
        objective = xgboost_objective("lambdamart[revenue]" if "labels" in given else "lambdamart", **given)
        with pytest.raises(LTRError, match=r"call xgb.train on folds of your own"):
            xgb.cv(XGB, data, 2, nfold=3, shuffle=False, obj=objective)


@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm(weighted):
    lgb = pytest.importorskip("lightgbm")
    weight = np.linspace(1, 2, len(QID)) if weighted else None
    params = {**LGB, "objective": lightgbm_objective("yetiloss:map")}
    data = lgb.Dataset(X, LABELS, group=GROUP, weight=weight)
    record = lgb.cv(dict(params), data, 6, folds=FOLDS, feval=lightgbm_metric("map"))
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


@pytest.mark.parametrize("by_row", ["labels", "propensity", "position"])
def test_lightgbm_s_folds_take_their_rows_of_what_is_given_by_row(by_row):
    """Every fold has the same labels and sizes of queries, so that only the rows tell the folds apart."""
    lgb = pytest.importorskip("lightgbm")
    x, y, group = np.concatenate([X, X[::-1], -X]), np.tile(LABELS > 1, 3).astype(float), np.tile(GROUP, 3)
    folds = [(np.flatnonzero(k != block), np.flatnonzero(k == block)) for block in [np.repeat(np.arange(3), len(X))]
             for k in range(3)]  # fmt: skip
    revenue = np.digitize(x[:, 1], [0.0, 1.0]).astype(float)
    given = {"labels": {"revenue": revenue}, "propensity": 1 / (1 + revenue), "position": revenue}[by_row]
    text = "lambdamart:map + .5*lambdamart[revenue]" if by_row == "labels" else "lambdamart:map"
    data = lgb.Dataset(x, y, group=group, free_raw_data=False)
    record = lgb.cv(
        {**LGB, "objective": lightgbm_objective(text, **{by_row: given})}, data, 6, folds=folds,
        feval=lightgbm_metric("map"), return_cvbooster=True,
    )  # fmt: skip
    others = []
    for booster, (learn, _) in zip(record["cvbooster"].boosters, folds, strict=True):
        mine = {goal: r[learn] for goal, r in given.items()} if by_row == "labels" else given[learn]
        part = lgb.Dataset(x[learn], y[learn], group=np.tile(GROUP, 2), reference=data)
        alone = lgb.train({**LGB, "objective": lightgbm_objective(text, **{by_row: mine})}, part, 6)
        assert np.array_equal(booster.predict(x), alone.predict(x))
        without = lgb.train({**LGB, "objective": lightgbm_objective("lambdamart:map")}, part, 6)
        others.append(np.abs(without.predict(x) - alone.predict(x)).max())
    assert min(others) > 1e-3


def test_lightgbm_s_subset_may_have_labels_of_its_own_rows():
    lgb = pytest.importorskip("lightgbm")
    data, rows = lgb.Dataset(X, LABELS, group=GROUP), np.flatnonzero(QID % 2)
    revenue = np.digitize(X[:, 1], [0.0, 1.0]).astype(float)
    scores = []
    for mine in (revenue, revenue[rows]):
        objective = lightgbm_objective("lambdamart[revenue]", labels={"revenue": mine})
        scores.append(lgb.train({**LGB, "objective": objective}, data.subset(rows), 3).predict(X))
    assert np.array_equal(*scores)
    objective = lightgbm_objective("lambdamart[revenue]", labels={"revenue": revenue[1:]})
    with pytest.raises(LTRError, match=rf"labels\['revenue'\] has {len(X) - 1} rows, but the first labels {len(rows)}"):
        lgb.train({**LGB, "objective": objective}, data.subset(rows), 3)


def test_lightgbm_s_folds_that_cut_queries_are_refused():
    lgb = pytest.importorskip("lightgbm")
    model_selection = pytest.importorskip("sklearn.model_selection")
    params = {**LGB, "objective": lightgbm_objective("yetiloss:map")}

    def cv(**options):
        return lgb.cv(dict(params), lgb.Dataset(X, LABELS, group=GROUP), 2, feval=lightgbm_metric("map"), **options)

    rows = np.arange(len(X))
    for wrong in (
        {"nfold": 3, "stratified": False},
        {"nfold": 3},
        {"folds": [(rows[:-5], rows[-5:])]},
    ):
        with pytest.raises(LTRError, match="cuts queries in two"):
            cv(**wrong)
    assert len(cv(folds=model_selection.GroupKFold(3))) == 2

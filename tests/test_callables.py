"""The callables: every entry of XGBoost and LightGBM gives the same model, metrics have the right sign."""

import sys

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catalog import PATHS
from sklearn.model_selection import GroupKFold
from trainings import data_of

from ltr_objectives import LTRError, Metric, evaluate
from ltr_objectives.adapters import (
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

LGB = {
    "num_leaves": 7,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "metric": "None",
}
XGB = {"max_depth": 3, "nthread": 1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
OURS, RANDOM = PATHS["own Hessian"], PATHS["random"]
(X, LABELS, GROUP), _ = data_of("any", seed=11)
QID, SCORES = np.repeat(np.arange(len(GROUP)), GROUP), X[:, 0]
WEIGHT = np.random.default_rng(1).uniform(0.5, 2, len(GROUP)).astype(np.float32)
FOLDS = [*GroupKFold(3).split(X, groups=QID)]


def dmatrix(rows=slice(None), **given):
    return xgb.DMatrix(X[rows], LABELS[rows], qid=QID[rows], **given)


def dataset(rows=slice(None), **given):
    return lgb.Dataset(X[rows], LABELS[rows], group=np.unique(QID[rows], return_counts=True)[1], **given)


# ways into the libraries


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
@pytest.mark.filterwarnings("ignore:X does not have valid feature names, but LGBMRanker")  # LightGBM 4.6, of arrays
def test_one_object_gives_one_model_by_three_ways_into_lightgbm():
    ours = lightgbm_objective(RANDOM)
    expected = lgb.train({**LGB, "objective": ours}, dataset(), 8).predict(X)
    booster = lgb.Booster({**LGB, "objective": "none"}, dataset())
    for _ in range(8):
        booster.update(fobj=ours)
    ranker = lgb.LGBMRanker(objective=ours, n_estimators=8, **LGB)
    ranker.fit(X, LABELS, group=GROUP, eval_set=[(X, LABELS)], eval_group=[GROUP], eval_metric=lightgbm_metric("map"))
    assert np.array_equal(booster.predict(X), expected)
    assert np.array_equal(ranker.predict(X), expected)
    [values] = ranker.evals_result_.values()
    assert values["map"][-1] == pytest.approx(evaluate("map", expected, LABELS, GROUP))


def test_metrics_are_means_by_weight_and_losses_if_xgboost_would_minimise_them():
    names = "map", "mrr", "dcg@3"
    means = [pytest.approx(evaluate(name, SCORES, LABELS, GROUP, WEIGHT)) for name in names]
    found = xgboost_metric(*names)(SCORES, dmatrix(weight=WEIGHT))
    assert [name for name, _ in found] == ["map", "1-mrr", "-dcg@3"]
    assert [found[0][1], 1 - found[1][1], -found[2][1]] == means
    by_row = np.repeat(WEIGHT, GROUP)
    for arguments in ((SCORES, dataset(weight=by_row).construct()), (LABELS, SCORES, by_row, GROUP)):
        assert lightgbm_metric(*names)(*arguments) == [*zip(names, means, [True] * 3, strict=True)]


def test_a_metric_may_define_its_own_mean():
    class Best(Metric.named["map"]):
        def mean(self, queries, scores, *, n_threads=None):
            return self.values(queries, scores, n_threads=n_threads).max()

    best = Best().per_query(SCORES, LABELS, GROUP).max()
    assert xgboost_metric(Best())(SCORES, dmatrix()) == [("map", best)]
    assert lightgbm_metric(Best())(LABELS, SCORES, None, GROUP) == [("map", best, True)]
    assert best > evaluate("map", SCORES, LABELS, GROUP)


def test_data_that_changes_between_trainings_is_seen():
    ours, data = xgboost_objective(OURS), dmatrix()
    before = ours(SCORES, data)
    data.set_label(LABELS[::-1].copy())
    after = ours(SCORES, data)
    assert not np.array_equal(before[0], after[0])
    assert np.array_equal(after[0], xgboost_objective(OURS)(SCORES, data)[0])


# cross-validation on folds of whole queries


def test_xgb_cv_evaluates_each_fold():
    ours = {"obj": xgboost_objective("yetiloss:map"), "custom_metric": xgboost_metric("map")}
    table = xgb.cv(XGB, dmatrix(), 6, nfold=3, shuffle=False, as_pandas=False, **ours)
    values = []
    for queries in np.array_split(np.arange(len(GROUP)), 3):  # as xgb.cv splits without shuffling
        inside = np.isin(QID, queries)
        scores = xgb.train(XGB, dmatrix(~inside), 6, obj=ours["obj"]).predict(dmatrix(inside))
        values.append(evaluate("map", scores, LABELS[inside], qid=QID[inside]))
    assert table["test-map-mean"][-1] == pytest.approx(np.mean(values), abs=1e-6)


def test_lgb_cv_evaluates_each_fold():
    weight = np.linspace(1, 2, len(QID))
    params = {**LGB, "objective": lightgbm_objective("yetiloss:map")}
    record = lgb.cv(dict(params), dataset(weight=weight), 6, folds=FOLDS, feval=lightgbm_metric("map"))
    whole, values = dataset(free_raw_data=False).construct(), []  # for the same bins
    for learn, test in FOLDS:
        part = dataset(learn, weight=weight[learn], reference=whole)
        given = {"qid": QID[test], "weight": weight[test]}
        values.append(evaluate("map", lgb.train(dict(params), part, 6).predict(X[test]), LABELS[test], **given))
    [mean] = [v for name, v in record.items() if name.endswith("map-mean")]
    assert mean[-1] == pytest.approx(np.mean(values), abs=1e-9)


# what would abort the process, or mislead


def test_weights_by_query_beside_metrics_by_row():
    """XGBoost would abort the process."""
    plain, heavy = dmatrix(), dmatrix(weight=WEIGHT)
    ours, off = xgboost_objective(OURS), {"disable_default_eval_metric": 1}

    def train(evaluated, params, data=heavy, **how):
        evals = [(each, f"set{i}") for i, each in enumerate(evaluated)]
        return xgb.train(params, data, 1, obj=ours, evals=evals, verbose_eval=False, **how).num_boosted_rounds()

    with pytest.raises(LTRError, match="disable_default_eval_metric"):  # a user's loop may evaluate any metric
        xgb.Booster({}, [heavy]).update(heavy, 0, fobj=ours)
    first, silent = (xgb.train(params, heavy, 1, obj=ours) for params in ({}, off))
    for how in ({"data": plain}, {"xgb_model": first}):
        with pytest.raises(LTRError, match="disable_default_eval_metric"):
            train([heavy], {}, **how)
    for metrics in ("rmse", ["ndcg", "mae"], ["mphe", "auc"]):
        for more in ({"objective": "rank:ndcg"}, off):
            with pytest.raises(LTRError, match="custom_metric"):
                train([plain, heavy], {"eval_metric": metrics, **more}, plain)
        assert train([], {"eval_metric": metrics}) == train([plain], {"eval_metric": metrics}, plain) == 1
    for params in (off, {"objective": "rank:ndcg"}, {"eval_metric": "ndcg"}):
        assert train([heavy], params) == 1
    assert train([], {}) == train([plain], {}) == 1
    assert train([heavy], off, xgb_model=silent) == 2


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_byte_order_makes_no_difference(dtype):
    propensity = 1.0 / (1.0 + np.arange(len(LABELS)) % 7)
    clicks, scores, weight = (a.astype(dtype) for a in (LABELS > 1, SCORES, np.repeat(WEIGHT, GROUP)))
    ours = lightgbm_objective(PATHS["propensity"], propensity=propensity.astype(dtype))
    native = (a.astype(float) for a in (clicks, scores, weight))
    expected = lightgbm_objective(PATHS["propensity"], propensity=propensity.astype(dtype).astype(float))(
        *native, GROUP
    )
    np.testing.assert_array_equal(ours(clicks, scores, weight, GROUP.astype(">i4")), expected)


class OtherMatrix:
    """The DMatrix of a library with XGBoost's interface, which has `get_group` but not `get_uint_info`."""

    def __init__(self, group, weight=()):
        self.num_row, self.get_label = lambda: len(LABELS), lambda: LABELS
        self.get_group, self.get_weight = lambda: np.array(group), lambda: np.array(weight)


def test_a_library_with_the_interface_of_xgboost(monkeypatch):
    makers = (lambda: xgboost_objective(OURS)), (lambda: xgboost_metric("map", "mrr"))
    expected = [make()(SCORES, dmatrix(weight=WEIGHT)) for make in makers]
    monkeypatch.setitem(sys.modules, "xgboost", None)  # not installed
    for make, of_xgboost in zip(makers, expected, strict=True):
        for weight in (WEIGHT, np.repeat(WEIGHT, GROUP)):
            found = make()(SCORES, OtherMatrix(GROUP, weight))
            assert np.array_equal(np.array(found, object), np.array(of_xgboost, object))
        with pytest.raises(LTRError, match="queries"):
            make()(SCORES, OtherMatrix([]))

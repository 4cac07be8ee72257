"""XGBoost and LightGBM: every entry gives the same model, early stopping has the right sign, errors are clear."""

import inspect
import itertools
import pickle
import re
import sys

import numpy as np
import pytest
from catalog import EXAMPLES

from ltr_objectives import LTRError, Metric, Objective, adapters, evaluate, registry
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from ltr_objectives.adapters._callables import Memo
from ltr_objectives.kernels.scores import content_stream

lgb = pytest.importorskip("lightgbm")
xgb = pytest.importorskip("xgboost")
XGB = {"max_depth": 3, "nthread": 1, "base_score": 0, "disable_default_eval_metric": 1}
LGB = {"num_leaves": 7, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 0, "metric": "None"}


@pytest.fixture
def data():
    rng = np.random.default_rng(11)
    group = rng.integers(1, 25, 80)
    n = int(group.sum())
    X = rng.normal(size=(n, 6))
    labels = np.digitize(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + rng.normal(size=n), [0.5, 1.5, 2.5]).astype(float)
    return X, labels, group


def dmatrix(X, labels, group, weight=None):
    d = xgb.DMatrix(X, labels, qid=np.repeat(np.arange(len(group)), group))
    if weight is not None:
        d.set_weight(weight)
    return d


def examples(name):
    # the options of an objective change nothing in an adapter; one example that takes the labels of the data is enough
    cls = Objective.named[name]
    return next(e for e in (cls(), *EXAMPLES[cls.name]) if e.label_limit is None or e.label_limit >= 3)


@pytest.mark.parametrize("name", registry.objectives())
def test_every_objective_learns_in_xgboost_and_lightgbm(name, data):
    X, labels, group = data
    objective = examples(name)
    constant = evaluate("ndcg@10", np.zeros(len(labels)), labels, group)
    booster = xgb.train({**XGB, "min_child_weight": 1e-6}, dmatrix(*data), 10, obj=xgboost_objective(objective))
    assert evaluate("ndcg@10", booster.predict(dmatrix(*data)), labels, group) > constant + 0.1
    params = {**LGB, "objective": lightgbm_objective(objective), "min_sum_hessian_in_leaf": 1e-6}
    model = lgb.train(params, lgb.Dataset(X, labels, group=group), 10)
    assert evaluate("ndcg@10", model.predict(X), labels, group) > constant + 0.1


@pytest.mark.parametrize("name", registry.objectives())
def test_gradients_are_the_objective_s_and_float32(name, data):
    X, labels, group = data
    objective = examples(name)
    scores = np.random.default_rng(0).normal(size=len(labels)).astype(np.float32)
    expected = objective.gradient_hessian(scores, labels, group, iteration=content_stream(scores))
    calls = [
        xgboost_objective(objective)(scores, dmatrix(*data)),
        lightgbm_objective(objective)(scores, lgb.Dataset(X, labels, group=group).construct()),
        lightgbm_objective(objective)(labels, scores, None, group),
    ]
    for call in calls:
        for ours, theirs in zip(call, expected, strict=True):
            assert ours.dtype == np.float32
            assert np.array_equal(ours, theirs.astype(np.float32))


def test_three_ways_into_lightgbm_give_one_model(data):
    X, labels, group = data
    train = lgb.train({**LGB, "objective": lightgbm_objective("yetiloss:map")}, lgb.Dataset(X, labels, group=group), 8)
    booster = lgb.Booster({**LGB, "objective": "none"}, lgb.Dataset(X, labels, group=group))
    for _ in range(8):
        booster.update(fobj=lightgbm_objective("yetiloss:map"))
    ranker = lgb.LGBMRanker(
        objective=lightgbm_objective("yetiloss:map"), n_estimators=8, num_leaves=7, verbose=-1, n_jobs=1,
        deterministic=True, random_state=0,
    ).fit(X, labels, group=group)  # fmt: skip
    assert np.array_equal(train.predict(X), booster.predict(X))
    assert np.array_equal(train.predict(X), ranker.predict(X))


def test_a_used_or_pickled_or_threaded_adapter_gives_the_same_model(data):
    X, labels, group = data
    adapter = xgboost_objective("yetiloss:ndcg@10")
    models = []
    for objective in (
        adapter,
        adapter,
        pickle.loads(pickle.dumps(adapter)),
        xgboost_objective("yetiloss:ndcg@10", n_threads=1),
    ):
        models.append(bytes(xgb.train(XGB, dmatrix(*data), 8, obj=objective).save_raw("ubj")))
    assert len(set(models)) == 1
    light = lightgbm_objective("yetirank")
    texts = {
        lgb.train({**LGB, "objective": light}, lgb.Dataset(X, labels, group=group), 8).model_to_string()
        for _ in range(2)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("metric", ["ndcg@5", "map", "mrr", "err", "dcg@5", "expdcg", "recall@3", "precision@3", "auc"])
def test_early_stopping_finds_the_best_iteration(metric, data):
    X, labels, group = data
    rows = np.arange(len(labels)) < group[:50].sum()
    learn, valid = (X[rows], labels[rows], group[:50]), (X[~rows], labels[~rows], group[50:])
    booster = xgb.train(
        {**XGB, "eta": 1.0}, dmatrix(*learn), 40,
        obj=xgboost_objective("lambdamart:ndcg"), custom_metric=xgboost_metric(metric),
        evals=[(dmatrix(*valid), "valid")], early_stopping_rounds=5, verbose_eval=False,
    )  # fmt: skip
    values = [
        evaluate(metric, booster.predict(dmatrix(*valid), iteration_range=(0, i + 1)), valid[1], valid[2])
        for i in range(booster.num_boosted_rounds())
    ]
    assert booster.num_boosted_rounds() < 40
    assert values[booster.best_iteration] == pytest.approx(max(values), abs=2e-6)  # XGBoost prints six digits
    train = lgb.Dataset(*learn[:2], group=learn[2])
    record = {}
    model = lgb.train(
        {**LGB, "objective": lightgbm_objective("lambdamart:ndcg"), "learning_rate": 1.0}, train, 40,
        valid_sets=[lgb.Dataset(*valid[:2], group=valid[2], reference=train)], feval=lightgbm_metric(metric),
        callbacks=[lgb.early_stopping(5, verbose=False), lgb.record_evaluation(record)],
    )  # fmt: skip
    assert model.best_iteration < 40
    assert record["valid_0"][metric][model.best_iteration - 1] == max(record["valid_0"][metric])
    assert evaluate(metric, model.predict(valid[0]), valid[1], valid[2]) == pytest.approx(
        max(record["valid_0"][metric])
    )


def test_metrics_of_several_data_sets_and_weights(data):
    X, labels, group = data
    weight = np.random.default_rng(1).uniform(0.5, 2, len(group))
    scores = X[:, 0]
    expected = evaluate("map", scores, labels, group, weight)
    assert xgboost_metric("map", "mrr")(scores, dmatrix(*data, weight))[0] == ("map", pytest.approx(expected))
    assert xgboost_metric("mrr")(scores, dmatrix(*data))[0] == ("1-mrr", 1 - evaluate("mrr", scores, labels, group))
    assert xgboost_metric("dcg@3")(scores, dmatrix(*data))[0] == ("-dcg@3", -evaluate("dcg@3", scores, labels, group))
    by_row = np.repeat(weight, group)
    adapter = lightgbm_metric("map")
    light = lgb.Dataset(X, labels, group=group, weight=by_row).construct()
    assert adapter(scores, light)[0] == ("map", pytest.approx(expected), True)
    assert adapter(labels, scores, by_row, group)[0][1] == pytest.approx(expected)
    assert adapter(labels[: group[0]], scores[: group[0]], None, group[:1])[0][1] == evaluate(
        "map", scores[: group[0]], labels[: group[0]], group[:1]
    )


def test_a_metric_may_define_its_own_mean(data):
    class Best(Metric.named["map"]):
        def mean(self, queries, scores, *, n_threads=None):
            return self.values(queries, scores, n_threads=n_threads).max()

    X, labels, group = data
    best = Best().per_query(X[:, 0], labels, group).max()
    assert xgboost_metric(Best())(X[:, 0], dmatrix(*data)) == [("map", best)]
    assert lightgbm_metric(Best())(labels, X[:, 0], None, group) == [("map", best, True)]
    assert best > evaluate("map", X[:, 0], labels, group)


def test_data_that_changes_between_trainings_is_seen(data):
    X, labels, group = data
    adapter, d = xgboost_objective("lambdamart"), dmatrix(*data)
    before = adapter(X[:, 0], d)
    d.set_label(labels[::-1].copy())
    after = adapter(X[:, 0], d)
    assert not np.array_equal(before[0], after[0])
    assert np.array_equal(after[0], xgboost_objective("lambdamart")(X[:, 0], dmatrix(X, labels[::-1], group))[0])


def test_xgboost_s_abort_with_weights_becomes_an_error(data):
    plain, heavy = dmatrix(*data), dmatrix(*data, np.ones(len(data[2])))
    ours = xgboost_objective("lambdamart")
    for train, valid in ((heavy, heavy), (plain, heavy)):
        with pytest.raises(LTRError, match="add 'disable_default_eval_metric': 1"):
            xgb.train({"max_depth": 2}, train, 1, obj=ours, evals=[(valid, "valid")])
    with pytest.raises(LTRError, match="disable_default_eval_metric"):  # a user's loop may evaluate any metric
        xgb.Booster({"max_depth": 2}, [heavy]).update(heavy, 0, fobj=ours)
    for params in ({"disable_default_eval_metric": 1}, {"objective": "rank:ndcg"}, {"eval_metric": "ndcg"}):
        booster = xgb.train(params, heavy, 1, obj=ours, evals=[(heavy, "valid")], verbose_eval=False)
        assert booster.num_boosted_rounds() == 1
    assert xgb.train({"max_depth": 2}, heavy, 1, obj=ours).num_boosted_rounds() == 1
    assert (
        xgb.train({"max_depth": 2}, heavy, 1, obj=ours, evals=[(plain, "p")], verbose_eval=False).num_boosted_rounds()
        == 1
    )


def test_metrics_by_row_with_weights_by_query_become_an_error(data):
    plain, heavy = dmatrix(*data), dmatrix(*data, np.ones(len(data[2])))
    ours = xgboost_objective("lambdamart")
    for metrics in ("rmse", ["ndcg", "mae"], ["mphe", "auc"]):
        params = {"max_depth": 2, "eval_metric": metrics}
        for more in ({}, {"objective": "rank:ndcg"}, {"disable_default_eval_metric": 1}):
            with pytest.raises(LTRError, match=r"eval_metric=.*leave it out, and pass custom_metric"):
                xgb.train({**params, **more}, plain, 1, obj=ours, evals=[(plain, "learn"), (heavy, "valid")])
        assert xgb.train(params, heavy, 1, obj=ours).num_boosted_rounds() == 1
        xgb.train(params, plain, 1, obj=ours, evals=[(plain, "learn")], verbose_eval=False)
    before = xgb.train({"max_depth": 2}, heavy, 1, obj=ours)
    with pytest.raises(LTRError, match="disable_default_eval_metric"):
        xgb.train({"max_depth": 2}, heavy, 1, obj=ours, evals=[(heavy, "valid")], xgb_model=before)
    off = {"max_depth": 2, "disable_default_eval_metric": 1}
    before = xgb.train(off, heavy, 1, obj=ours)
    after = xgb.train(off, heavy, 1, obj=ours, evals=[(heavy, "v")], xgb_model=before, verbose_eval=False)
    assert after.num_boosted_rounds() == 2


def test_lgbmranker_stops_early_on_our_metric(data):
    X, labels, group = data
    named = "eval_X" in inspect.signature(lgb.LGBMRanker.fit).parameters  # newer versions deprecate eval_set
    reverse = X[::-1], labels[::-1]
    valid = {"eval_X": reverse[:1], "eval_y": reverse[1:]} if named else {"eval_set": [reverse]}
    ranker = lgb.LGBMRanker(
        objective=lightgbm_objective("lambdamart"), metric="None", n_estimators=60, learning_rate=1.0, num_leaves=7,
        verbose=-1, n_jobs=1,
    ).fit(
        X, labels, group=group, eval_group=[group[::-1]], **valid,
        eval_metric=lightgbm_metric("map"), callbacks=[lgb.early_stopping(5, verbose=False)],
    )  # fmt: skip
    assert ranker.best_iteration_ < 60
    values = ranker.evals_result_["valid_0"]["map"]
    assert values[ranker.best_iteration_ - 1] == max(values)


TEXT = "map(threshold=2.5)"
OURS = {"objective": lightgbm_objective("yetiloss")}


@pytest.mark.parametrize(
    ("params", "feval", "remedy"),
    [
        ({"objective": TEXT}, lightgbm_metric("map"), "lightgbm_objective"),
        ({"metric": TEXT, "objective": "lambdarank"}, lightgbm_metric("map"), "feval=lightgbm_metric"),
        ({"metrics": ["auc", TEXT], **OURS}, None, "feval=lightgbm_metric"),
    ],
)
def test_our_text_that_lightgbm_would_drop_is_refused(params, feval, remedy, data):
    lgb = pytest.importorskip("lightgbm")
    train = lgb.Dataset(*data[:2], group=data[2])
    message = rf"^{next(iter(params))}=.*does not know our names, .*; give {remedy}\('{re.escape(TEXT)}'\)$"
    with pytest.raises(LTRError, match=message):
        lgb.train({**params, "verbose": -1}, train, 1, [train], feval=feval)


def test_adapters_print_what_they_hold():
    assert repr(xgboost_objective("yetirank")).startswith("xgboost_objective(YetiRank(decay=0.85")
    assert repr(lightgbm_metric("map@3")).startswith("lightgbm_metric(MAP(k=3, ties='average', empty=0.0")


def test_a_single_number_is_no_weight():
    with pytest.raises(LTRError, match="weight must be one-dimensional"):
        Memo().queries([0, 1], {}, group=[2], weight=3.0)


@pytest.mark.parametrize("dtype", [">f4", ">f8"])
def test_byte_order_that_can_be_seen_makes_no_difference(data, dtype):
    X, labels, group = data
    weight = np.random.default_rng(0).uniform(1, 2, len(labels)).astype(np.float32)
    position = (np.arange(len(labels)) % 7).astype(">i4")
    scores = X[:, 0].astype(dtype)
    clicks = (labels > 1).astype(dtype)
    ours = lightgbm_objective("lambdamart", position=position)
    found = ours(clicks, scores, weight.astype(dtype), group.astype(">i4"))
    native = clicks.astype(float), X[:, 0].astype(dtype).astype(float), weight, group
    expected = lightgbm_objective("lambdamart", position=position.astype(int))(*native)
    np.testing.assert_array_equal(found, expected)
    train = lgb.Dataset(X.astype(dtype), labels.astype(dtype), group=group.astype(">i4"), weight=weight.astype(dtype))
    same = lgb.Dataset(X.astype(dtype[1:]), labels, group=group, weight=weight)
    params = {**LGB, "objective": lightgbm_objective("lambdamart")}
    assert np.array_equal(lgb.train(params, train, 3).predict(X), lgb.train(params, same, 3).predict(X))


class OtherMatrix:
    """The DMatrix of a library with XGBoost's interface, which has `get_group` but not `get_uint_info`."""

    def __init__(self, labels, group, weight=()):
        self.num_row = lambda: len(labels)
        self.get_label, self.get_group, self.get_weight = (lambda a=a: np.array(a) for a in (labels, group, weight))


def test_a_library_with_the_interface_of_xgboost(data, monkeypatch):
    X, labels, group = data
    scores, weight = X[:, 0].astype(np.float32), np.linspace(1, 2, len(group))
    makers = (lambda: xgboost_objective("yetiloss:map")), (lambda: xgboost_metric("map", "mrr"))
    expected = [make()(scores, dmatrix(X, labels, group, weight)) for make in makers]
    monkeypatch.setitem(sys.modules, "xgboost", None)  # not installed
    for given in (weight, np.repeat(weight, group)):
        for make, of_xgboost in zip(makers, expected, strict=True):
            found = make()(scores, OtherMatrix(labels, group, given.astype(np.float32)))
            assert np.array_equal(np.array(found, object), np.array(of_xgboost, object))
    for make in makers:
        with pytest.raises(LTRError, match="the DMatrix has no queries"):
            make()(scores, OtherMatrix(labels, []))
    with pytest.raises(LTRError, match="the data has no queries; make it with Dataset"):
        lightgbm_objective("lambdamart")(scores, OtherMatrix(labels, group))


def test_xgboost_stops_on_the_last_metric_or_on_the_one_that_a_callback_names(data):
    valid = dmatrix(*data)
    how = {"obj": xgboost_objective("lambdamart"), "custom_metric": xgboost_metric("map", "ndcg@3")}
    how |= {"evals": [(valid, "valid")], "verbose_eval": False}
    params = {**XGB, "eta": 1.0, "subsample": 0.3}
    for name, stop in (
        ("ndcg@3", {"early_stopping_rounds": 4}),
        ("map", {"callbacks": [xgb.callback.EarlyStopping(rounds=4, metric_name="map", data_name="valid")]}),
    ):
        record = {}
        booster = xgb.train(params, dmatrix(*data), 200, evals_result=record, **how, **stop)
        values = record["valid"][name]
        assert booster.best_iteration == np.argmax(values) == len(values) - 5


def test_a_callable_of_another_library_is_refused(data):
    catboost, (X, labels, group) = pytest.importorskip("catboost"), data
    pool, d = catboost.Pool(X, labels, group_id=np.repeat(np.arange(len(group)), group)), dmatrix(X, labels, group)
    objectives = {"xgboost": xgboost_objective("ranknet"), "lightgbm": lightgbm_objective("ranknet")}
    objectives["catboost"] = adapters.catboost_objective("ranknet", pool)
    metrics = {"xgboost": xgboost_metric("map"), "lightgbm": lightgbm_metric("map")}
    metrics["catboost"] = adapters.catboost_metric("map", pool)
    rows = lgb.Dataset(X, labels, group=group, weight=np.ones(len(labels)))
    quiet = {"iterations": 1, "verbose": False, "allow_writing_files": False, "eval_metric": "NDCG"}

    def train(library, objective, metric):
        if library == "xgboost":
            xgb.train(XGB, d, 1, obj=objective, evals=[(d, "d")], custom_metric=metric, verbose_eval=False)
        elif library == "lightgbm":
            lgb.train({**LGB, "objective": objective}, rows, 1, valid_sets=[rows], feval=metric)
        else:
            given = {**quiet, "loss_function": objective, **({} if metric is None else {"eval_metric": metric})}
            catboost.CatBoost(given).fit(pool)

    for library, other in itertools.permutations(objectives, 2):
        for given in ((objectives[other], None), (objectives[library], metrics[other])):
            with pytest.raises(Exception, match=r"no attribute|no queries|not callable|Unknown type|CatBoost alone"):
                train(library, *given)
    for made in objectives:
        for given in ({"objective": objectives[made]}, {"eval_metric": metrics[made]}):
            with pytest.raises(LTRError, match="must be a string such as"):
                adapters.LGBMRanker(**given).fit(X, labels, group=group)
    assert callable(metrics["catboost"])  # LightGBM's rankers silently leave out what is neither that nor a known name

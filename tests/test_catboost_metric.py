"""The CatBoost metric: CatBoost records the value of `evaluate`, and early stopping follows it."""

import pickle

import numpy as np
import pandas as pd
import pytest
from catalog import ONE_OF_EACH
from catboost import CatBoost, CatBoostError, Pool
from catboost_fits import sampled

from ltr_objectives import evaluate
from ltr_objectives.adapters import _catboost_fit
from ltr_objectives.adapters._catboost import catboost_metric, catboost_objective
from ltr_objectives.errors import LTRError

BASE = {
    "iterations": 25, "depth": 3, "learning_rate": 0.3, "thread_count": 2, "verbose": 0, "allow_writing_files": False,
}  # fmt: skip
LABELS = np.random.default_rng(3).integers(0, 2, 800).astype(float)


class Data:
    """A pool together with the arrays it is made of."""

    def __init__(self, seed, labels=LABELS, longest=20, **arguments):
        rng = np.random.default_rng(seed)
        self.labels = labels
        self.group = np.diff(np.unique([0, *rng.integers(1, len(labels), 2 * len(labels) // longest), len(labels)]))
        weight = arguments.get("weight", arguments.get("group_weight"))
        self.weight = None if weight is None else weight.astype(np.float32)  # as CatBoost keeps it
        self.X = rng.normal(size=(len(labels), 5)) + 0.3 * labels[:, None]
        self.pool = Pool(self.X, labels, group_id=np.repeat(np.arange(len(self.group)), self.group), **arguments)

    def values(self, metric, model):
        """The metric after each tree."""
        staged = model.staged_predict(self.pool, prediction_type="RawFormulaVal")
        return [evaluate(metric, scores, self.labels, self.group, self.weight) for scores in staged]


def group_weighted(seed):
    plain = Data(seed)
    weight = np.random.default_rng(seed).uniform(0.1, 3, len(plain.group))
    return Data(seed, group_weight=np.repeat(weight, plain.group))


def train(metric, *data, loss="QueryRMSE", use_best_model=False, early_stopping_rounds=None, **params):
    pool, *eval_sets = (d.pool for d in data)
    loss = catboost_objective("queryrmse", pool) if loss == "ours" else loss
    params = {**BASE, "loss_function": loss, "eval_metric": catboost_metric(metric, pool, *eval_sets), **params}
    stop = {"use_best_model": use_best_model, "early_stopping_rounds": early_stopping_rounds}
    return CatBoost(params).fit(pool, eval_set=eval_sets or None, **stop)


def recorded(metric, model):
    """Values by data set, in the order of the pools."""
    return [columns[str(metric)] for columns in model.evals_result_.values()]


def assert_recorded(metric, model, *data):
    assert len(model.evals_result_) == len(data)
    for column, one in zip(recorded(metric, model), data, strict=True):
        np.testing.assert_allclose(column, one.values(metric, model), rtol=0, atol=1e-9)
        assert np.ptp(column) > 0


@pytest.mark.parametrize("loss", ["ours", "QueryRMSE", "RMSE"])
def test_recorded_values(loss):
    for number in (1, 3):
        data = [Data(seed, LABELS) for seed in range(number)]  # equal labels, other queries
        assert_recorded("ndcg@5", train("ndcg@5", *data, loss=loss), *data)


@pytest.mark.parametrize("metric", sampled(ONE_OF_EACH, 4), ids=str)
def test_every_metric(metric):
    few = LABELS * (np.random.default_rng(4).random(800) < 0.2)  # so that a hit is not certain
    labels = few * min(4.0, metric.label_limit or 4.0)
    data = [Data(seed, labels[: 800 - 100 * seed], longest=80) for seed in range(2)]
    assert_recorded(metric, train(metric, *data, loss="ours", iterations=4), *data)


@pytest.mark.parametrize("loss", ["RMSE", "QueryRMSE"])
def test_weights(loss):
    by_row = [Data(seed, weight=np.random.default_rng(seed).uniform(0, 2, 800)) for seed in range(3)]
    assert_recorded("map", train("map", *by_row, loss=loss), *by_row)
    by_query = [group_weighted(seed) for seed in range(3)]
    assert_recorded("map", train("map", *by_query, loss=loss), *by_query)
    some = [Data(0), by_row[1], by_query[2]]
    assert_recorded("map", train("map", *some, loss=loss), *some)


def test_thread_counts_and_objects_used_again():
    data = [Data(0), Data(1)]
    metric = catboost_metric("ndcg", *(d.pool for d in data))
    columns = []
    for threads in (1, 2, 4):
        for used in (metric, pickle.loads(pickle.dumps(metric))):
            params = {**BASE, "loss_function": "QueryRMSE", "eval_metric": used, "thread_count": threads}
            columns.append(recorded("ndcg", CatBoost(params).fit(data[0].pool, eval_set=data[1].pool)))
    assert all(column == columns[0] for column in columns)


def test_early_stopping_and_the_best_model():
    data, stop = [Data(seed) for seed in range(3)], {"iterations": 300, "early_stopping_rounds": 5}
    model = train("ndcg@3", *data, loss="ours", **stop)
    column = recorded("ndcg@3", model)[-1]  # CatBoost stops by the last eval set
    assert model.get_best_iteration() == np.argmax(column)
    assert len(column) == np.argmax(column) + 5 + 1 < 300
    best = train("ndcg@3", *data, loss="ours", **stop, use_best_model=True)
    assert best.tree_count_ == np.argmax(column) + 1
    assert data[-1].values("ndcg@3", best)[-1] == pytest.approx(max(column), abs=1e-9)


def test_metric_period():
    data = [Data(0), Data(1)]
    model = train("ndcg", *data, metric_period=10)
    for column, one in zip(recorded("ndcg", model), data, strict=True):
        every = np.array(one.values("ndcg", model))
        np.testing.assert_allclose(column, every[[0, 10, 20, 24]], rtol=0, atol=1e-9)


def test_baselines():
    data = [Data(0, baseline=np.linspace(0, 1, 800)), Data(1, baseline=np.linspace(1, 0, 800))]
    model = train("ndcg", *data, loss="ours")
    for column, one in zip(recorded("ndcg", model), data, strict=True):
        staged = model.staged_predict(one.X, prediction_type="RawFormulaVal")
        start = np.asarray(one.pool.get_baseline()).reshape(-1)
        expected = [evaluate("ndcg", s + start, one.labels, one.group) for s in staged]
        np.testing.assert_allclose(column, expected, atol=1e-9)


def test_training_continues():
    data = [Data(0), Data(1)]
    params = {**BASE, "loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg", *(d.pool for d in data))}
    given = {"X": data[0].pool, "eval_set": data[1].pool, "use_best_model": False}
    begun = CatBoost(params).fit(**given)
    ended = CatBoost(params).fit(**given, init_model=begun)
    for column, one in zip(recorded("ndcg", ended), data, strict=True):
        np.testing.assert_allclose(column, one.values("ndcg", ended)[-len(column) :], rtol=0, atol=1e-9)


def test_categorical_features_in_the_order_of_the_pool():
    one = Data(0)
    frame = pd.DataFrame(one.X, columns=list("abcde")).assign(kind=(np.arange(800) % 5).astype(str))
    one.pool = Pool(frame, one.labels, group_id=one.pool.get_group_id_hash(), cat_features=["kind"])
    assert_recorded("ndcg", train("ndcg", one, has_time=True), one)


def fit_with(metric, pool, eval_set, **params):
    return CatBoost({**BASE, "loss_function": "RMSE", "eval_metric": metric, **params}).fit(pool, eval_set=eval_set)


def test_other_pools_than_those_given():
    a, b, c = (Data(seed).pool for seed in range(3))
    metric = catboost_metric("ndcg", a, b, c)
    fit_with(metric, a, [b, c])
    for train_pool, eval_set in ((a, [c, b]), (b, [a, c]), (a, [b, b])):
        with pytest.raises(LTRError, match=r"is not pool \d of catboost_metric: they differ in group"):
            fit_with(metric, train_pool, eval_set)
    for eval_set in (None, b, [b, c, c]):
        with pytest.raises(LTRError, match="then each pool of eval_set in order"):
            fit_with(metric, a, eval_set)
    with pytest.raises(LTRError, match=r"eval set 1 must be a catboost\.Pool"):
        fit_with(metric, a, [b, (Data(2).X, LABELS)])


def test_our_metric_beside_catboost_s():
    a, b = Data(0), Data(1)
    model = fit_with(catboost_metric("ndcg@10", a.pool, b.pool), a.pool, b.pool, custom_metric=["MAP"])
    assert {name.partition(":")[0] for name in model.evals_result_["validation"]} >= {"ndcg@10", "MAP"}


@pytest.fixture
def unguarded(monkeypatch):
    """Training without the checks of `fit`; those of the values that CatBoost passes remain."""
    monkeypatch.setattr(_catboost_fit.Fit, "require_known_rows", lambda *arguments: None)
    monkeypatch.setattr(_catboost_fit.Rows, "check_same", lambda *arguments: None)


def test_rows_that_are_not_those_of_the_pools(unguarded):
    a, b = Data(0), Data(1, LABELS[::-1])
    with pytest.raises(CatBoostError, match="other rows, or another order"):
        fit_with(catboost_metric("ndcg", a.pool, b.pool), b.pool, a.pool)
    with pytest.raises(CatBoostError, match="other rows, or another order"):
        fit_with(catboost_metric("ndcg", a.pool), a.pool, None, boosting_type="Ordered")
    params = {"leaf_estimation_backtracking": "AnyImprovement", "leaf_estimation_iterations": 4}
    params["loss_function"] = catboost_objective("queryrmse", a.pool)
    with pytest.raises(CatBoostError, match=r"other rows, or another order|Backtracking is not supported"):
        fit_with(catboost_metric("ndcg", a.pool), a.pool, None, **params)

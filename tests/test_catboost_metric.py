"""The CatBoost metric: CatBoost records the value of `evaluate`."""

import itertools
import pickle
from types import SimpleNamespace

import examples
import numpy as np
import pandas as pd
import pytest
from catalog import ONE_OF_EACH
from catboost import CatBoost, Pool
from catboost_fits import fit
from trainings import data_of, sampled

from ltr_objectives import LTRError, evaluate
from ltr_objectives.adapters import catboost_metric, catboost_objective

RNG = np.random.default_rng(3)
LABELS = RNG.integers(0, 2, 800).astype(float)


class Data:
    """A pool together with the arrays it is made of."""

    def __init__(self, seed, labels=LABELS, longest=20, weigh=None, baseline=None):
        rng = np.random.default_rng(seed)
        self.labels, self.baseline = labels, baseline
        self.group = np.diff(np.unique([0, *rng.integers(1, len(labels), 2 * len(labels) // longest), len(labels)]))
        qid = np.repeat(np.arange(len(self.group)), self.group)
        by_row = rng.uniform(0, 2, len(labels)).astype(np.float32)  # as CatBoost keeps them
        self.weight = {None: None, "weight": by_row, "group_weight": by_row[qid]}[weigh]
        given = {} if weigh is None else {weigh: self.weight}
        self.X = rng.normal(size=(len(labels), 5)) + 0.3 * labels[:, None]
        self.pool = Pool(self.X, labels, group_id=qid, baseline=baseline, **given)

    def values(self, metric, model):
        """Return the metric after each tree."""
        start = 0.0 if self.baseline is None else np.float32(self.baseline)
        staged = model.staged_predict(self.X, prediction_type="RawFormulaVal")
        return [evaluate(metric, start + scores, self.labels, self.group, self.weight) for scores in staged]


def train(metric, pools, loss="QueryRMSE", **params):
    pool, *eval_sets = pools
    params = {"depth": 3, "learning_rate": 0.3, "eval_metric": metric, **params}
    return fit(loss, pool, params=params, eval_set=eval_sets or None, use_best_model=False)


def assert_recorded(name, data, loss="QueryRMSE", **params):
    pools = [each.pool for each in data]
    model = train(catboost_metric(name, *pools), pools, loss, **params)
    for column, each in zip(model.evals_result_.values(), data, strict=True):
        assert column[str(name)] == pytest.approx(each.values(name, model), abs=1e-9)
        assert np.ptp(column[str(name)]) > 0


CASES = {
    "one pool": [Data(0)],
    "three pools": [Data(0), Data(1), Data(2)],  # of equal labels, but other queries
    "weights by row": [Data(seed, weigh="weight") for seed in range(3)],
    "weights by query": [Data(seed, weigh="group_weight") for seed in range(3)],
    "some weights": [Data(0), Data(1, weigh="weight"), Data(2, weigh="group_weight")],
    "baselines": [Data(seed, baseline=RNG.normal(size=800)) for seed in range(2)],
}


@pytest.mark.parametrize("loss", ["QueryRMSE", "RMSE"])
@pytest.mark.parametrize("case", CASES)
def test_recorded_values(case, loss):
    assert_recorded("map", CASES[case], loss)


@pytest.mark.parametrize("metric", sampled(ONE_OF_EACH, 4), ids=str)
def test_every_metric_beside_an_objective_of_ours(metric):
    few = LABELS * (np.random.default_rng(4).random(800) < 0.1)  # so that a hit is not certain
    labels = few * min(4.0, metric.label_limit or 4.0)
    data = [Data(seed, labels[: 800 - 100 * seed], longest=80) for seed in range(2)]
    assert_recorded(metric, data, catboost_objective("queryrmse", data[0].pool), iterations=4)


def test_categorical_features_in_the_order_of_the_pool():
    data = Data(0)
    data.X = pd.DataFrame(data.X, columns=list("abcde")).assign(kind=(np.arange(800) % 5).astype(str))
    data.pool = Pool(data.X, data.labels, group_id=data.pool.get_group_id_hash(), cat_features=["kind"])
    assert_recorded("ndcg", [data], has_time=True)


def test_an_object_used_again_or_pickled_and_any_threads_give_the_same_values():
    pools = [Data(0).pool, Data(1).pool]
    metric = catboost_metric("ndcg", *pools)
    first, *others = (
        train(used, pools, thread_count=threads).evals_result_
        for used, threads in itertools.product((metric, metric, pickle.loads(pickle.dumps(metric))), (1, 2, 4))
    )
    assert all(other == first for other in others)


def test_other_pools_than_those_given():
    a, b, c = (Data(seed).pool for seed in range(3))
    metric = catboost_metric("ndcg", a, b, c)
    for pools in ((a, c, b), (b, a, c), (a, b, b)):
        with pytest.raises(LTRError, match=r"pool \d of catboost_metric"):
            train(metric, pools)
    for pools in ((a,), (a, b), (a, b, c, c)):
        with pytest.raises(LTRError, match="then each pool of eval_set in order"):
            train(metric, pools)
    with pytest.raises(LTRError, match="eval set 1"):
        train(metric, [a, b, (Data(2).X, LABELS)])


def test_the_page_s_change_of_a_metric_is_that_of_catboost():
    (X, y, group), _ = data_of("any", queries=30)
    part = SimpleNamespace(X=X, y=y, group=group, qid=np.repeat(np.arange(len(group)), group))
    code = examples.block("docs/from_catboost.md", "ShapValues").replace('"map"', '"ndcg"')
    pool = Pool(X, y, group_id=part.qid)
    params = {"loss_function": "YetiRank:mode=NDCG", "iterations": 5, "verbose": 0, "allow_writing_files": False}
    model = CatBoost({**params, "thread_count": 1}).fit(pool)
    names = {"Pool": Pool, "test": part, "ranker": model}
    examples.run(code.replace("test.group)", "test.group, convention='catboost')"), names)
    expected = model.get_feature_importance(pool, type="LossFunctionChange")
    np.testing.assert_allclose(names["change"], expected, atol=1e-12)
    assert expected.max() > 0.01

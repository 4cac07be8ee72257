"""Bags: the merged model is the mean of models trained on resampled queries, and an ordinary model of its library."""

import pickle

import catboost
import numpy as np
import pandas as pd
import pytest
from rankers import SUFFIX, TRAIN, everywhere, query_weights, ranker, ranker_class

from ltr_objectives import LTRError, Queries, objective_for
from ltr_objectives.adapters import _bags, bagged
from ltr_objectives.adapters._data import read_part
from ltr_objectives.libraries import LIBRARIES as FACTS
from ltr_objectives.objectives.around import UnitHessian

SEED = {library: facts.seed for library, facts in FACTS.items()}
CODES = (TRAIN.y * 3 + np.random.default_rng(0).integers(0, 25, len(TRAIN.y))).astype(int)
TABLE = pd.DataFrame(TRAIN.X, columns=[f"f{i}" for i in range(10)])
TABLE = TABLE.assign(place=pd.Categorical([f"p{i}" for i in CODES]))  # which tells much about the labels
WEIGHT = query_weights(TRAIN.group)


def bag(given, X=TRAIN.X, bags=2, **more):
    return bagged(given, X, TRAIN.y, qid=TRAIN.qid, bags=bags, **more)


def test_catboost_s_statistics_of_categories_are_refused():
    with pytest.raises(catboost.CatBoostError, match="CtrIntersects"):
        bag(ranker("catboost", n_estimators=30), TABLE)


def bags_apart(library, objective, X, bags, **params):
    """Yield the bags as single rankers, on the queries that the generator of the seed draws."""
    rng = np.random.default_rng(5)
    for i in range(bags):
        times = np.bincount(rng.integers(len(TRAIN.group), size=len(TRAIN.group)), minlength=len(TRAIN.group))
        drawn, left = np.repeat(times, TRAIN.group) > 0, np.repeat(times, TRAIN.group) == 0
        one = ranker(library, objective, **{SEED[library]: 5 + i}, **params)
        stops = {"eval_set": [(X[left], TRAIN.y[left])], "eval_qid": [TRAIN.qid[left]]}
        weights = {"sample_weight": (times * WEIGHT)[times > 0], "eval_sample_weight": [WEIGHT[times == 0]]}
        yield one.fit(X[drawn], TRAIN.y[drawn], qid=TRAIN.qid[drawn], **weights, **stops)


@everywhere
def test_the_merged_model_is_the_mean_of_its_bags(library, tmp_path):
    more = {"catboost": {"one_hot_max_size": 40}, "lightgbm": {"verbosity": -1}}  # fit has verbose=
    params = {"early_stopping_rounds": 2} | more.get(library, {})
    given = ranker(library, **params, **{SEED[library]: 5})
    merged = bag(given, TABLE, 3, sample_weight=WEIGHT)
    apart = list(bags_apart(library, "yetiloss:map", TABLE, 3, **params))
    mean = np.mean([one.predict(TABLE) for one in apart], axis=0)
    assert len({one.best_iteration_ for one in apart}) > 1  # their numbers of trees differ
    np.testing.assert_allclose(merged.predict(TABLE), mean, rtol=2e-6, atol=2e-6)
    assert merged.best_iteration_ == sum(one.best_iteration_ for one in apart)
    assert merged.get_params() == given.get_params()
    assert str(merged.objective_) == str(apart[0].objective_)
    assert not hasattr(merged, "evals_result_")
    assert list(merged.feature_names_in_) == list(TABLE)
    assert not hasattr(given, "booster_")  # it is not fitted itself
    merged.save_model(tmp_path / f"model{SUFFIX[library]}")
    loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    for again in (loaded, pickle.loads(pickle.dumps(merged))):
        assert np.array_equal(again.predict(TABLE), merged.predict(TABLE))


@everywhere
def test_the_seed_decides(library):
    def scores(**seed):
        return bag(ranker(library, **seed)).predict(TRAIN.X)

    assert np.array_equal(scores(), scores(**{SEED[library]: 0}))
    assert not np.array_equal(scores(), scores(**{SEED[library]: 1}))
    assert np.array_equal(*(scores(**{SEED[library]: np.random.RandomState(3)}) for _ in range(2)))


@everywhere
def test_contributions_of_features_add_up_to_the_scores(library):
    fitted = bag(ranker(library))
    found = {
        "xgboost": lambda: fitted.predict(TRAIN.X, pred_contribs=True),
        "lightgbm": lambda: fitted.predict(TRAIN.X, pred_contrib=True),
        "catboost": lambda: fitted.get_feature_importance(catboost.Pool(TRAIN.X), type="ShapValues"),
    }[library]()
    np.testing.assert_allclose(found.sum(axis=1), fitted.predict(TRAIN.X), rtol=1e-4, atol=1e-5)


def test_a_bag_leaves_a_query_out():
    pair = read_part(np.zeros((2, 1)), np.zeros(2), group=[1, 1])
    assert all(len(_bags.resampled(pair, np.random.default_rng(seed))[1].queries) == 1 for seed in range(9))


@pytest.mark.parametrize(
    ("library", "params"),
    [
        ("xgboost", {"booster": "dart", "rate_drop": 0.5}),
        ("xgboost", {"num_parallel_tree": 2}),
        ("lightgbm", {"linear_tree": True}),
    ],
)
def test_other_kinds_of_trees(library, params):
    objective = UnitHessian("yetiloss:map")
    merged = bag(ranker(library, objective, **params, **{SEED[library]: 5}), sample_weight=WEIGHT)
    mean = np.mean([one.predict(TRAIN.X) for one in bags_apart(library, objective, TRAIN.X, 2, **params)], axis=0)
    np.testing.assert_allclose(merged.predict(TRAIN.X), mean, rtol=2e-6, atol=2e-6)


def test_dart_of_lightgbm():
    """Merged by themselves, because LightGBM drops other trees each time if the objective is a user's."""
    dart = ranker("lightgbm", boosting_type="dart")
    apart = [dart.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid).booster_ for _ in range(2)]
    mean = np.mean([one.predict(TRAIN.X) for one in apart], axis=0)
    np.testing.assert_allclose(FACTS["lightgbm"].merge(apart).predict(TRAIN.X), mean, rtol=2e-6, atol=2e-6)


@everywhere
def test_metrics_of_goals_read_the_labels_of_the_queries_that_were_not_drawn(library):
    given = ranker(library, "yetiloss:ndcg[revenue]", eval_metric="ndcg@5[revenue]", early_stopping_rounds=2)
    assert 2 <= bag(given, labels={"revenue": TRAIN.y}).best_iteration_ <= 16


def test_a_metric_without_weights_evaluates_bags():
    given = ranker("xgboost", "rank:ndcg", eval_metric="rmse", early_stopping_rounds=2)
    assert bag(given).best_iteration_ >= 2


@everywhere
def test_queries_of_weight_0_are_in_no_bag(library):
    some = np.arange(len(TRAIN.group)) % 8 == 0
    rows = np.repeat(some, TRAIN.group)
    for seed in range(4):
        params = {SEED[library]: seed, "n_estimators": 2}
        found = bag(ranker(library, **params), sample_weight=1.0 * some)
        expected = bagged(ranker(library, **params), TRAIN.X[rows], TRAIN.y[rows], qid=TRAIN.qid[rows], bags=2)
        assert np.array_equal(found.predict(TRAIN.X), expected.predict(TRAIN.X))


@everywhere
def test_all_bags_train_the_objective_for_the_labels_of_all_data(library):
    amounts = TRAIN.y.copy()
    amounts[np.argmax(amounts)] = 40.0  # one query of an amount, which a bag may leave out
    objective = objective_for("map", Queries(amounts, TRAIN.group))
    assert objective != objective_for("map", Queries(TRAIN.y, TRAIN.group))
    found = [
        bagged(ranker(library, named, eval_metric="map"), TRAIN.X, amounts, qid=TRAIN.qid, bags=3)
        for named in (None, objective)
    ]
    assert found[0].objective_ == objective
    assert np.array_equal(*(each.predict(TRAIN.X) for each in found))


def test_arguments_of_the_library_s_fit():
    names = [f"x{i}" for i in range(10)]
    assert bag(ranker("lightgbm"), feature_name=names).booster_.feature_name() == names
    merged = bagged(ranker("catboost"), TRAIN.X, TRAIN.y, group_id=TRAIN.qid, bags=2)
    assert np.array_equal(merged.predict(TRAIN.X), bag(ranker("catboost")).predict(TRAIN.X))
    with pytest.raises(LTRError, match="qid= and group_id="):
        bag(ranker("catboost"), group_id=TRAIN.qid)

"""Bags: the merged model is the mean of models trained on resampled queries, and an ordinary model of its library."""

import pickle

import numpy as np
import pandas as pd
import pytest
from rankers import LIBRARIES, SUFFIX, fold, ranker, ranker_class

from ltr_objectives.adapters import _bags, bagged
from ltr_objectives.adapters._data import read_part
from ltr_objectives.objectives.around import UnitHessian

for name in LIBRARIES:
    pytest.importorskip(name)
everywhere = pytest.mark.parametrize("library", LIBRARIES)
SEED = {"xgboost": "random_state", "lightgbm": "random_state", "catboost": "random_seed"}


def table():
    """Features, one of them with categories that tell much about the labels."""
    data = fold().train
    rng = np.random.default_rng(0)
    code = (data.y * 3 + rng.integers(0, 25, len(data.y))).astype(int)
    X = pd.DataFrame(data.X, columns=[f"f{i}" for i in range(data.X.shape[1])])
    return X.assign(place=pd.Categorical([f"p{i}" for i in code])), data


def test_catboost_s_statistics_of_categories_are_refused():
    X, data = table()
    with pytest.raises(Exception, match="CtrIntersects"):
        bagged(ranker("catboost"), X, data.y, qid=data.qid, bags=2)


def bags_apart(library, objective, X, data, bags, patience, **params):
    """The bags as single rankers, on the queries that the generator of the seed draws."""
    rng = np.random.default_rng(5)
    queries = read_part(X, data.y, data.group, None, None).queries
    for bag in range(bags):
        times = np.bincount(rng.integers(len(queries), size=len(queries)), minlength=len(queries))
        drawn, left = np.repeat(times, data.group) > 0, np.repeat(times, data.group) == 0
        one = ranker(library, objective, **{SEED[library]: 5 + bag}, **params)
        part = X[left], data.y[left]
        stops = {"eval_set": [part], "eval_qid": [data.qid[left]], "early_stopping_rounds": patience}
        yield one.fit(X[drawn], data.y[drawn], qid=data.qid[drawn], sample_weight=times[times > 0], **stops)


@everywhere
@pytest.mark.parametrize("of", [pytest.param("array", marks=pytest.mark.release), "table"])
def test_the_merged_model_is_the_mean_of_its_bags(library, of, tmp_path):
    X, data = table()
    X = data.X if of == "array" else X
    params = {"one_hot_max_size": 40} if library == "catboost" else {}
    patience = 1 if library == "catboost" else 2
    given = ranker(library, early_stopping_rounds=patience, **params, **{SEED[library]: 5})
    merged = bagged(given, X, data.y, qid=data.qid, bags=3)
    apart = list(bags_apart(library, "yetiloss:map", X, data, 3, patience, **params))
    mean = np.mean([one.predict(X) for one in apart], axis=0)
    assert len({one.best_iteration_ for one in apart}) > 1  # their numbers of trees differ
    np.testing.assert_allclose(merged.predict(X), mean, rtol=2e-6, atol=2e-6)
    assert merged.best_iteration_ == sum(one.best_iteration_ for one in apart)
    assert merged.get_params() == given.get_params()
    assert str(merged.objective_) == str(apart[0].objective_)
    assert not hasattr(merged, "evals_result_")
    if of == "table":
        assert list(merged.feature_names_in_) == list(X)
    assert not hasattr(given, "booster_")  # it is not fitted itself
    merged.save_model(tmp_path / f"model{SUFFIX[library]}")
    loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    assert np.array_equal(loaded.predict(X), merged.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(merged)).predict(X), merged.predict(X))


@everywhere
def test_the_seed_decides(library):
    data = fold().train

    def scores(**seed):
        return bagged(ranker(library, **seed), data.X, data.y, qid=data.qid, bags=2).predict(data.X)

    assert np.array_equal(scores(), scores(**{SEED[library]: 0}))
    assert not np.array_equal(scores(), scores(**{SEED[library]: 1}))
    assert np.array_equal(*(scores(**{SEED[library]: np.random.RandomState(3)}) for _ in range(2)))


@everywhere
def test_contributions_of_features_add_up_to_the_scores(library):
    data = fold().train
    fitted = bagged(ranker(library), data.X, data.y, qid=data.qid, bags=2)
    if library == "catboost":
        import catboost

        found = fitted.get_feature_importance(catboost.Pool(data.X), type="ShapValues")
    else:
        found = fitted.predict(data.X, **{"pred_contribs" if library == "xgboost" else "pred_contrib": True})
    np.testing.assert_allclose(found.sum(axis=1), fitted.predict(data.X), rtol=1e-4, atol=1e-5)


def test_chosen_queries_keep_labels_weights_and_propensities():
    rng = np.random.default_rng(0)
    y, revenue, group = rng.integers(0, 3, 12).astype(float), rng.random(12), np.array([4, 3, 5])
    weight, propensity = rng.random(12) + 0.5, rng.random(12) + 0.5
    X = np.arange(24.0).reshape(12, 2)
    part = read_part(X, y, group, None, weight, {"revenue": revenue}, propensity=propensity)
    times = np.bincount(np.random.default_rng(0).integers(3, size=3), minlength=3)
    assert (times == 0).any()
    by_row = np.repeat(times, group)
    parts = _bags.resampled(part, np.random.default_rng(0))
    for found, chosen in zip(parts, (by_row > 0, by_row == 0), strict=True):
        assert np.array_equal(found.X, X[chosen])
        assert np.array_equal(found.queries.labels, y[chosen])
        assert np.array_equal(found.queries.of("revenue").labels, part.queries.of("revenue").labels[chosen])
        expected = part.queries.weight_by_row * np.maximum(by_row, 1)
        assert np.array_equal(found.queries.weight_by_row, expected[chosen])
        assert np.array_equal(found.queries.propensity, propensity[chosen])
    plain = read_part(X, y, group, None, None, position=np.arange(12))
    drawn, left_out = _bags.resampled(plain, np.random.default_rng(0))
    assert np.array_equal(drawn.group, group[times > 0])
    assert np.array_equal(drawn.queries.weight_by_row, by_row[by_row > 0])
    assert left_out.queries.weight_by_row is None
    assert np.array_equal(left_out.queries.position, np.flatnonzero(by_row == 0))


def test_a_bag_draws_as_many_queries_as_there_are():
    part = read_part(np.zeros((2000, 1)), np.zeros(2000), np.full(1000, 2), None, None)
    drawn, left_out = _bags.resampled(part, np.random.default_rng(0))
    assert drawn.queries.weight_by_row.sum() == 2000
    assert len(drawn.queries) + len(left_out.queries) == 1000
    assert abs(len(left_out.queries) / 1000 - np.exp(-1)) < 4 * 0.0097  # four standard deviations of its binomial bound
    pair = read_part(np.zeros((2, 1)), np.zeros(2), [1, 1], None, None)
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
    data = fold().train
    objective = UnitHessian("yetiloss:map")
    given = ranker(library, objective, **params, **{SEED[library]: 5})
    merged = bagged(given, data.X, data.y, qid=data.qid, bags=2)
    apart = bags_apart(library, objective, data.X, data, 2, None, **params)
    mean = np.mean([one.predict(data.X) for one in apart], axis=0)
    np.testing.assert_allclose(merged.predict(data.X), mean, rtol=2e-6, atol=2e-6)


def test_dart_of_lightgbm():
    """Merged by themselves, because LightGBM drops other trees each time if the objective is a user's."""
    data = fold().train
    apart = [ranker("lightgbm", boosting_type="dart").fit(data.X, data.y, qid=data.qid).booster_ for _ in range(2)]
    mean = np.mean([one.predict(data.X) for one in apart], axis=0)
    np.testing.assert_allclose(_bags.MERGE["lightgbm"](apart).predict(data.X), mean, rtol=2e-6, atol=2e-6)


@everywhere
def test_metrics_of_goals_read_the_labels_of_the_queries_that_were_not_drawn(library):
    data = fold().train
    given = ranker(library, "yetiloss:ndcg[revenue]", eval_metric="ndcg@5[revenue]", early_stopping_rounds=2)
    found = bagged(given, data.X, np.zeros(len(data.y)) + data.y % 2, qid=data.qid, labels={"revenue": data.y}, bags=2)
    assert 2 <= found.best_iteration_ <= 16


def test_a_metric_without_weights_evaluates_bags():
    data = fold().train
    given = ranker("xgboost", "rank:ndcg", eval_metric="rmse", early_stopping_rounds=2)
    assert bagged(given, data.X, data.y, qid=data.qid, bags=2).best_iteration_ >= 2

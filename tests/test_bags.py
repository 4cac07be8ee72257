"""Bags: the merged model is the mean of models trained on resampled queries, and an ordinary model of its library."""

import pickle

import numpy as np
import pandas as pd
import pytest
from rankers import LIBRARIES, NATIVE, SUFFIX, fold, ranker, ranker_class

from ltr_objectives.adapters import _bags
from ltr_objectives.adapters._ranker_inputs import read_part
from ltr_objectives.errors import LTRError
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
    with pytest.raises(LTRError, match="set one_hot_max_size= to the largest number of categories"):
        ranker("catboost", bags=2).fit(X, data.y, qid=data.qid)


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
@pytest.mark.parametrize("of", ["array", "table"])
def test_the_merged_model_is_the_mean_of_its_bags(library, of, tmp_path):
    X, data = table()
    X = data.X if of == "array" else X
    params = {"one_hot_max_size": 40} if library == "catboost" else {}
    patience = 1 if library == "catboost" else 2
    merged = ranker(library, bags=3, **params, **{SEED[library]: 5})
    merged.fit(X, data.y, qid=data.qid, early_stopping_rounds=patience)
    apart = list(bags_apart(library, "yetiloss:map", X, data, 3, patience, **params))
    mean = np.mean([one.predict(X) for one in apart], axis=0)
    assert len({one.best_iteration_ for one in apart}) > 1  # their numbers of trees differ
    np.testing.assert_allclose(merged.predict(X), mean, rtol=2e-6, atol=2e-6)
    assert merged.bag_rounds_ == [one.best_iteration_ for one in apart]
    assert merged.evals_result_ == {f"bag_{i}": one.evals_result_["validation_0"] for i, one in enumerate(apart)}
    merged.save_model(tmp_path / f"model{SUFFIX[library]}")
    loaded = ranker_class(library)().load_model(tmp_path / f"model{SUFFIX[library]}")
    assert np.array_equal(loaded.predict(X), merged.predict(X))
    assert np.array_equal(pickle.loads(pickle.dumps(merged)).predict(X), merged.predict(X))


@everywhere
def test_the_seed_decides(library):
    data = fold().train
    one = ranker(library, bags=1).fit(data.X, data.y, qid=data.qid)
    assert np.array_equal(one.predict(data.X), ranker(library).fit(data.X, data.y, qid=data.qid).predict(data.X))

    def scores(seed):
        fitted = ranker(library, bags=2, **{SEED[library]: seed}).fit(data.X, data.y, qid=data.qid)
        return fitted.predict(data.X)

    assert np.array_equal(scores(0), scores(0))
    assert not np.array_equal(scores(0), scores(1))


@everywhere
def test_contributions_of_features_add_up_to_the_scores(library):
    data = fold().train
    fitted = ranker(library, bags=2).fit(data.X, data.y, qid=data.qid)
    if library == "catboost":
        import catboost

        found = fitted.get_feature_importance(catboost.Pool(data.X), type="ShapValues")
    else:
        found = fitted.predict(data.X, **{"pred_contribs" if library == "xgboost" else "pred_contrib": True})
    np.testing.assert_allclose(found.sum(axis=1), fitted.predict(data.X), rtol=1e-4, atol=1e-5)


@everywhere
def test_objectives_take_turns(library):
    data = fold().train
    objectives = ["yetiloss:map", NATIVE[library]]
    merged = ranker(library, objectives, **{SEED[library]: 5}).fit(data.X, data.y, qid=data.qid)
    apart = [
        next(one for i, one in enumerate(bags_apart(library, objective, data.X, data, 2, None)) if i == bag)
        for bag, objective in enumerate(objectives)
    ]
    mean = np.mean([one.predict(data.X) for one in apart], axis=0)
    np.testing.assert_allclose(merged.predict(data.X), mean, rtol=2e-6, atol=2e-6)
    assert [str(each) for each in merged.objective_] == [str(one.objective_) for one in apart]
    with pytest.raises(LTRError, match="bags=3 must be a multiple of the 2 objectives"):
        ranker(library, objectives, bags=3).fit(data.X, data.y, qid=data.qid)


@everywhere
def test_eval_sets_are_evaluated_by_each_bag(library):
    parts = fold()
    given = {"eval_set": [(parts.vali.X, parts.vali.y)], "eval_qid": [parts.vali.qid]}
    found = ranker(library, bags=2).fit(parts.train.X, parts.train.y, qid=parts.train.qid, **given).evals_result_
    assert set(found) == {"bag_0", "bag_1", "bag_0_validation_0", "bag_1_validation_0"}
    assert {len(values["map"]) for values in found.values()} == {8}


def test_chosen_queries_keep_labels_weights_and_propensities():
    rng = np.random.default_rng(0)
    labels = {"relevance": rng.integers(0, 3, 12).astype(float), "revenue": rng.random(12)}
    weight, propensity = rng.random(12) + 0.5, rng.random(12) + 0.5
    X = np.arange(24.0).reshape(12, 2)
    goals = {"revenue": labels["revenue"]}
    part = read_part(X, labels["relevance"], [4, 3, 5], None, weight, goals, propensity=propensity)
    chosen = _bags.selected(part, np.array([True, False, True]), np.array([2, 0, 1]))
    rows, times = [0, 1, 2, 3, 7, 8, 9, 10, 11], [2] * 4 + [1] * 5
    assert np.array_equal(chosen.X, X[rows])
    assert np.array_equal(chosen.group, [4, 5])
    assert np.array_equal(chosen.queries.labels, labels["relevance"][rows])
    assert np.array_equal(chosen.queries.of("revenue").labels, part.queries.of("revenue").labels[rows])
    assert np.array_equal(chosen.queries.weight_by_row, part.queries.weight_by_row[rows] * times)
    assert np.array_equal(chosen.queries.propensity, propensity[rows])
    left_out = _bags.selected(part, np.array([False, True, False]))
    assert np.array_equal(left_out.queries.weight_by_row, part.queries.weight_by_row[4:7])
    plain = read_part(X, labels["relevance"], [4, 3, 5], None, None, position=np.arange(12))
    assert _bags.selected(plain, np.array([False, True, False])).queries.weight_by_row is None
    assert _bags.selected(plain, np.array([False, True, True])).queries.position.tolist() == [4, 5, 6, 7, 8, 9, 10, 11]


def test_a_bag_draws_as_many_queries_as_there_are():
    part = read_part(np.zeros((2000, 1)), np.zeros(2000), np.full(1000, 2), None, None)
    drawn, left_out = _bags.resampled(part, np.random.default_rng(0))
    assert drawn.queries.weight_by_row.sum() == 2000
    assert len(drawn.queries) + len(left_out.queries) == 1000
    assert abs(len(left_out.queries) / 1000 - np.exp(-1)) < 4 * 0.0097  # four standard deviations of its binomial bound
    pair = read_part(np.zeros((2, 1)), np.zeros(2), [1, 1], None, None)
    assert all(len(_bags.resampled(pair, np.random.default_rng(seed))[1].queries) == 1 for seed in range(9))


@everywhere
def test_what_bags_cannot_do_is_refused(library):
    data = fold().train
    given = {"qid": data.qid}
    first = ranker(library).fit(data.X, data.y, **given)
    for params, more, said in (
        ({"bags": 0}, {}, "bags=0 must be a whole number of at least 1"),
        ({"objective": []}, {}, r"objective=\[\] names no objective"),
        ({"bags": 2, "objective": "auto"}, {}, 'objective="auto" trains one model'),
        ({"objective": ["auto"]}, {}, 'objective="auto" trains one model'),
        ({"bags": 2, SEED[library]: -1}, {}, "=-1 must be a whole number of at least 0"),
        ({"bags": 2}, {"init_model": first}, "leave init_model= out"),
        ({"bags": 2}, {"callbacks": [print]}, "leave callbacks= or bags= out"),
    ):
        with pytest.raises(LTRError, match=said):
            ranker(library, **params).fit(data.X, data.y, **given, **more)
    with pytest.raises(LTRError, match="the data has only one; leave bags= out"):
        ranker(library, bags=2).fit(data.X[:5], data.y[:5], qid=np.zeros(5))


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
    merged = ranker(library, objective, bags=2, **params, **{SEED[library]: 5}).fit(data.X, data.y, qid=data.qid)
    apart = bags_apart(library, objective, data.X, data, 2, None, **params)
    mean = np.mean([one.predict(data.X) for one in apart], axis=0)
    np.testing.assert_allclose(merged.predict(data.X), mean, rtol=2e-6, atol=2e-6)


def test_dart_of_lightgbm():
    """Merged by themselves, because LightGBM drops other trees each time if the objective is a user's."""
    data = fold().train
    apart = [ranker("lightgbm", boosting_type="dart").fit(data.X, data.y, qid=data.qid).booster_ for _ in range(2)]
    mean = np.mean([one.predict(data.X) for one in apart], axis=0)
    np.testing.assert_allclose(_bags.MERGE["lightgbm"](apart).predict(data.X), mean, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("library", "params", "said"),
    [
        ("xgboost", {"booster": "gblinear", "max_depth": None}, "gblinear has none"),
        ("lightgbm", {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, "boosting='rf' has none"),
        ("lightgbm", {"objective": "binary"}, "objective='binary' transforms them"),
        ("catboost", {"save_snapshot": True}, "save_snapshot= saves one training"),
    ],
)
def test_models_that_are_no_sum_are_refused(library, params, said):
    data = fold().train
    objective = params.pop("objective", NATIVE[library])
    with pytest.raises(LTRError, match=said):
        ranker(library, objective, bags=2, **params).fit(data.X, np.minimum(data.y, 1), qid=data.qid)


@everywhere
def test_metrics_of_goals_need_labels_of_the_train_queries(library):
    parts = fold()
    labels = {"eval_labels": [{"revenue": parts.vali.y}], "eval_qid": [parts.vali.qid]}
    given = {"eval_set": [(parts.vali.X, parts.vali.y)], "qid": parts.train.qid, **labels}
    bagged = ranker(library, bags=2, eval_metric="ndcg@5[revenue]")
    with pytest.raises(LTRError, match=r"pass their labels too: labels=\{'revenue': array\}"):
        bagged.fit(parts.train.X, parts.train.y, **given)
    found = bagged.fit(parts.train.X, parts.train.y, labels={"revenue": parts.train.y}, **given).evals_result_
    assert list(found["bag_1"]) == ["ndcg@5[revenue]"]


@everywhere
def test_weights_of_the_user_multiply_counts(library):
    data = fold().train
    weight = np.where(np.arange(len(data.group)) % 2, 1.0, 1e-6)
    found = ranker(library, bags=2).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    doubled = ranker(library, bags=2).fit(data.X, data.y, qid=data.qid)
    assert not np.array_equal(found.predict(data.X), doubled.predict(data.X))


def test_a_metric_without_weights_evaluates_bags():
    data = fold().train
    bagged = ranker("xgboost", "rank:ndcg", bags=2, eval_metric="rmse").fit(data.X, data.y, qid=data.qid)
    assert len(bagged.evals_result_["bag_0"]["rmse"]) == 8

"""Bounds: one metric is maximised while others keep their bounds on the last eval set."""

import pickle

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from catboost import CatBoost, CatBoostError, Pool
from own_classes import Right
from rankers import LIBRARIES, ranker_class
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from trainings import data_of as data_of_path
from trainings import objectives, release
from two_goals import BOTH, EVAL, LABELS, MAP, MONEY, NDCG, TEST, TRAIN, VALI, revenue

from ltr_objectives import LTRError, LTRWarning, Queries, evaluate, get_objective
from ltr_objectives.adapters import bounded
from ltr_objectives.objectives.bounded import Bounded, Multipliers
from ltr_objectives.objectives.typical import typical_size

everywhere = pytest.mark.parametrize("library", LIBRARIES)
one_library = pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])
# between what 20 rounds for money and for NDCG reach on VALI in each library
LEAST = {NDCG: 0.76, MAP: 0.79}


def ranker(library, metric=MONEY, bounds=LEAST, rounds=20, **params):
    params = {**LIBRARIES[library][1], "n_estimators": rounds, **params}
    return ranker_class(library)(eval_metric=metric, bounds=bounds, **params)


def fit(library, *args, given=None, **params):
    return ranker(library, *args, **params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **{**LABELS, **EVAL, **(given or {})})


def by_hand(values, bound):
    """Return the multipliers of the rounds, from the values after them."""
    found = [0.5]
    for value in values[:-1]:
        found.append(min(max(found[-1] * np.exp(20 * (bound - value) / bound), 0.02), 50))
    return found


@everywhere
def test_multipliers_follow_the_validation_values_and_the_best_round_in_bounds_is_kept(library):
    found = fit(library)
    record = found.evals_result_["validation_0"]
    assert set(record) == {MONEY, *LEAST}
    rounds = len(record[MONEY])
    assert rounds == 20
    for metric, bound in LEAST.items():
        # XGBoost records six digits
        np.testing.assert_allclose(found.multipliers_[metric], by_hand(record[metric], bound), rtol=1e-3)
        assert evaluate(metric, found.predict(VALI.X), BOTH, qid=VALI.qid) == pytest.approx(found.bounds_[metric])
    keeps = np.all([np.array(record[metric]) >= bound for metric, bound in LEAST.items()], axis=0)
    assert len(set(keeps)) == 2
    assert found.best_iteration_ == np.where(keeps, record[MONEY], -1).argmax() + 1
    weights = [1.0, *(values[found.best_iteration_ - 1] for values in found.multipliers_.values())]
    assert found.objective_.weights == pytest.approx(weights)


def test_the_gradient_is_the_sum_of_parts_of_one_size_with_the_multipliers():
    rng = np.random.default_rng(0)
    queries = Queries({"y": TRAIN.y, "revenue": revenue(TRAIN)}, TRAIN.group)
    parts, goals = [get_objective("ranknet"), get_objective("yetiloss:dcg(gain_type=linear)")], [None, "revenue"]
    multipliers = Multipliers([0.7])
    bounded = Bounded(parts, [1.0, 0.5], labels=goals, multipliers=multipliers)
    for value in (0.6, 0.65, 0.72):
        scores = rng.normal(size=queries.rows)
        a = float(multipliers.now[0])
        expected = np.zeros((2, queries.rows))
        for part, goal, weight in zip(parts, goals, (1, a), strict=True):
            size = typical_size(part, queries.for_goal(goal)).gradient
            labels = queries.for_goal(goal).labels
            expected += weight / (1 + a) / size * np.array(part.gradient_hessian(scores, labels, TRAIN.group))
        np.testing.assert_allclose(bounded.compute(queries, scores), expected, rtol=1e-10, atol=1e-15)
        multipliers.follow([value])
    assert len(multipliers.used) == 3


@everywhere
def test_the_same_parameters_train_the_same_bytes(library):
    first = fit(library)
    scores = first.predict(TEST.X).tobytes()
    again = clone(first).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **LABELS, **EVAL)
    assert again.predict(TEST.X).tobytes() == scores
    multipliers = first.multipliers_
    assert first.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **LABELS, **EVAL).predict(TEST.X).tobytes() == scores
    assert first.multipliers_ == multipliers
    copied = pickle.loads(pickle.dumps(first))
    assert copied.predict(TEST.X).tobytes() == scores
    assert (copied.bounds_, copied.get_params()["bounds"]) == (first.bounds_, LEAST)


@everywhere
def test_without_a_round_in_bounds_the_nearest_is_kept_with_a_warning(library):
    with pytest.warns(LTRWarning, match="ndcg@10 is"):
        found = fit(library, MONEY, {NDCG: 0.99, MAP: 0.1})
    record = found.evals_result_["validation_0"]
    assert found.best_iteration_ == int(np.argmax(record[NDCG])) + 1
    assert max(found.multipliers_[NDCG]) == 50


@everywhere
def test_a_training_stops_early_by_what_chooses_the_round(library):
    found = fit(library, rounds=60, given={"early_stopping_rounds": 4})
    record = found.evals_result_["validation_0"]
    assert len(record[MONEY]) == found.best_iteration_ + 4 < 60
    assert all(found.bounds_[metric] >= bound for metric, bound in LEAST.items())


@everywhere
def test_a_training_that_goes_on_counts_its_own_rounds(library):
    before = ranker_class(library)(eval_metric=NDCG, **LIBRARIES[library][1]).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    found = fit(library, MONEY, {NDCG: 0.76}, given={"init_model": before})
    record = found.evals_result_["validation_0"]
    keeps = np.array(record[NDCG]) >= 0.76
    assert found.best_iteration_ == 8 + np.where(keeps, record[MONEY], -1).argmax() + 1
    assert len(found.multipliers_[NDCG]) == len(record[NDCG])
    assert found.bounds_[NDCG] == pytest.approx(record[NDCG][found.best_iteration_ - 9])


@one_library
def test_one_training_is_on_the_front_of_weights(library):
    """No fixed weight has more of the first metric in the bound, as measured where the rounds are chosen."""
    best, rounds = 0.0, 30
    for weight in (0.03, 0.1, 0.3, 1, 3, 10):
        fixed = get_objective(f"yetiloss:ndcg + {weight}*yetiloss:dcg(gain_type=linear)[revenue]")
        params = {**LIBRARIES[library][1], "n_estimators": rounds}
        model = ranker_class(library)(objective=fixed, eval_metric=[NDCG, MONEY], **params)
        record = model.fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **LABELS, **EVAL).evals_result_["validation_0"]
        best = max([best, *np.array(record[MONEY])[np.array(record[NDCG]) >= LEAST[NDCG]]])
    found = fit(library, MONEY, {NDCG: LEAST[NDCG]}, rounds)
    assert found.best_score_["validation_0"][MONEY] > 0.98 * best > 0


@everywhere
def test_bounds_of_own_metrics_goals_sums_and_segments(library):
    segment = {"first": np.where(VALI.qid % 2 == 0, VALI.y, 0)}, {"first": np.where(TRAIN.qid % 2 == 0, TRAIN.y, 0)}
    bounds = {Right(k=5): 0.1, f"{NDCG}+0.001*{MONEY}": 0.6, "ndcg(empty=skip)@10[first]": 0.5, NDCG: 0.5}
    given = {
        "labels": {**LABELS["labels"], **segment[1]},
        "eval_labels": [{**EVAL["eval_labels"][0], **segment[0]}],
    }
    found = fit(library, [MONEY, MAP], bounds, given=given)
    assert set(found.bounds_) == {*map(str, bounds)}
    assert {MONEY, MAP, *found.bounds_} == set(found.evals_result_["validation_0"])
    assert all(found.bounds_[str(metric)] >= bound for metric, bound in bounds.items())


@everywhere
def test_weights_of_rows_count_in_the_bound_and_in_the_gradient(library):
    rng = np.random.default_rng(0)
    weight = rng.choice([0.2, 1.0, 4.0], len(TRAIN.y))
    of_vali = np.repeat(rng.choice([0.2, 1.0, 4.0], len(VALI.group)), VALI.group)
    found = fit(library, given={"sample_weight": weight, "eval_sample_weight": [of_vali]})
    for metric, value in found.bounds_.items():
        mean = evaluate(metric, found.predict(VALI.X), BOTH, qid=VALI.qid, weight=of_vali)
        assert value == pytest.approx(mean)
        assert evaluate(metric, found.predict(VALI.X), BOTH, qid=VALI.qid) != pytest.approx(mean)
    equal = fit(library, given={"eval_sample_weight": [of_vali]})
    assert not np.array_equal(equal.predict(TEST.X), found.predict(TEST.X))


def bounded_sum(objective, value=0.6):
    """Return the objective and one on a goal, after a round."""
    parts = [objective, get_objective("yetiloss:dcg(gain_type=linear)")]
    found = Bounded(parts, [1.0, 0.5], labels=[None, "revenue"], multipliers=Multipliers([0.7]))
    found.multipliers.follow([value])
    return found


@pytest.mark.parametrize("objective", [*objectives()], ids=str)
def test_clicks_reach_the_parts_that_take_them_and_are_refused_by_others(objective):
    (_, y, group), given = data_of_path("propensity", queries=20)
    revenue = np.random.default_rng(0).exponential(size=len(y))
    queries, scores = Queries({"y": y, "revenue": revenue}, group, **given), np.linspace(0, 1, len(y))
    bounded = bounded_sum(objective)
    if not objective.facts.takes_clicks:
        with pytest.raises(LTRError, match="propensity"):
            bounded.compute(queries, scores)
        return
    again = bounded.at(bounded.multipliers.now)
    expected = np.array(again.compute(queries, scores)) / (1 + bounded.multipliers.now[0])
    np.testing.assert_allclose(bounded.compute(queries, scores), expected, rtol=1e-6)
    plain = np.array(bounded.compute(Queries({"y": y, "revenue": revenue}, group), scores))
    assert not np.allclose(plain, expected)


@one_library
@pytest.mark.parametrize(
    ("words", "given", "params"),
    [
        ("bounds", {}, {"bounds": {}}),
        ("bounds", {}, {"bounds": ["ndcg@10"]}),
        ("bounds", {}, {"bounds": {NDCG: 0}}),
        ("bounds", {}, {"bounds": {NDCG: "0.7"}}),
        ("bounds", {}, {"bounds": {NDCG: 74.2}}),
        ("ndcgg", {}, {"bounds": {"ndcgg": 0.7}}),
        ("rmse", {}, {"bounds": {"rmse": 0.7}}),
        ("revenu", {}, {"bounds": {"ndcg@10[revenu]": 0.7}}),
        ("eval_metric=", {}, {"eval_metric": NDCG}),
        ("eval_metric=", {}, {"eval_metric": None}),
        ("eval_set", {"eval_set": None, "eval_qid": None, "eval_labels": None}, {}),
        ("objective", {}, {"objective": "auto"}),
    ],
)
def test_what_cannot_be_bounded_is_refused_before_training(library, words, given, params):
    with pytest.raises(LTRError, match=words):
        ranker(library).set_params(**params).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid, **{**LABELS, **EVAL, **given})


@pytest.mark.parametrize(
    ("library", "params"),
    [
        ("lightgbm", {"boosting_type": "dart"}),
        ("lightgbm", {"objective": "lambdarank"}),
        ("xgboost", {"booster": "dart"}),
        ("xgboost", {"objective": "rank:ndcg"}),
        ("catboost", {"metric_period": 2}),
        ("catboost", {"objective": "YetiRank"}),
    ],
)
def test_what_cannot_follow_bounds_is_refused_in_each_library(library, params):
    with pytest.raises(LTRError, match="bounds"):
        fit(library, **params)


# by the libraries' own functions


def data_of(library, data):
    """Return the library's data set."""
    if library == "lightgbm":
        return lgb.Dataset(data.X, data.y, group=data.group)
    if library == "xgboost":
        return xgb.DMatrix(data.X, data.y, qid=data.qid)
    return Pool(data.X, data.y, group_id=data.qid)


def pair_of(library, train, valid, bounds=LEAST):
    return bounded(MONEY, bounds, train, valid, valid_labels=EVAL["eval_labels"][0], **LABELS)


def train_by_function(library, train, valid, pair, rounds=20, evaluated=True):
    """Return scores of VALI by the rounds that early stopping keeps."""
    evals = [valid] if evaluated else []
    if library == "lightgbm":
        params = {"objective": pair.objective, "metric": "None", "verbose": -1, "num_threads": 1, "num_leaves": 7}
        stop = [lgb.early_stopping(rounds, verbose=False)] if evaluated else []
        model = lgb.train(params, train, rounds, valid_sets=evals, feval=pair.metric, callbacks=stop)
        return model.predict(VALI.X)
    if library == "xgboost":
        params = {"max_depth": 3, "nthread": 1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}
        model = xgb.train(
            params, train, rounds, obj=pair.objective, custom_metric=pair.metric, evals=[(e, "valid") for e in evals],
            early_stopping_rounds=rounds if evaluated else None, verbose_eval=False,
        )  # fmt: skip
        return model.predict(valid, iteration_range=(0, model.best_iteration + 1))
    metric = pair.metric if evaluated else "NDCG"
    params = {
        "loss_function": pair.objective, "eval_metric": metric, "iterations": rounds, "depth": 3, "verbose": False,
        "learning_rate": 0.3, "allow_writing_files": False, "random_strength": 0, "thread_count": 1,
    }  # fmt: skip
    return CatBoost(params).fit(train, eval_set=valid, use_best_model=True).predict(VALI.X)


@everywhere
def test_objective_and_metric_of_a_pair_share_the_multipliers_of_each_training(library):
    train, valid = data_of(library, TRAIN), data_of(library, VALI)
    pair = pair_of(library, train, valid)
    scores = train_by_function(library, train, valid, pair)
    history = pair.objective.history
    assert all(len(values) == 20 for of in history.values() for values in of.values())
    for metric, bound in LEAST.items():
        np.testing.assert_allclose(history[metric]["multiplier"], by_hand(history[metric]["value"], bound))
        assert evaluate(metric, scores, BOTH, qid=VALI.qid) >= bound
    again = train_by_function(library, train, valid, pair)
    assert again.tobytes() == scores.tobytes()
    assert pair.objective.history == history


@everywhere
def test_a_pair_without_values_of_valid_is_refused_in_the_second_round(library):
    train, valid = data_of(library, TRAIN), data_of(library, VALI)
    pair = pair_of(library, train, valid)
    with pytest.raises((LTRError, CatBoostError), match="valid"):
        train_by_function(library, train, valid, pair, evaluated=False)
    assert pair.objective.history == {metric: {"value": [], "multiplier": []} for metric in LEAST}


@everywhere
def test_a_pair_refuses_what_it_cannot_follow(library):
    train, valid = data_of(library, TRAIN), data_of(library, VALI)
    for words, call in {
        "bounds": lambda: pair_of(library, train, valid, {}),
        "revenue": lambda: bounded(MONEY, LEAST, train, valid),
        "other": lambda: bounded(MONEY, LEAST, train, valid, labels={**LABELS["labels"], "other": TRAIN.y}),
        "valid": lambda: bounded(NDCG, {MAP: 0.7}, train, VALI.X),
    }.items():
        with pytest.raises(LTRError, match=words):
            call()
    pair = pair_of(library, train, valid)
    valid.set_weight(np.linspace(1, 2, len(VALI.group if library == "xgboost" else VALI.y)))
    with pytest.raises((LTRError, CatBoostError), match="differ in weight"):
        train_by_function(library, train, valid, pair)


def test_a_pair_is_refused_by_cross_validation_of_the_library():
    train, valid = data_of("lightgbm", TRAIN), data_of("lightgbm", VALI)
    pair = bounded(MAP, {NDCG: 0.5}, train, valid)
    params, folds = {"objective": pair.objective, "metric": "None", "verbose": -1}, GroupKFold(3)
    with pytest.raises(LTRError, match="valid"):
        lgb.cv(params, data_of("lightgbm", TRAIN), 5, folds=folds.split(TRAIN.X, groups=TRAIN.qid), feval=pair.metric)

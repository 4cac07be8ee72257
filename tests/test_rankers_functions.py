"""Functions of the libraries' own forms as objective and metric, and LightGBM's other names in `fit`."""

import numpy as np
import pytest
from rankers import fold, ranker

from ltr_objectives import LTRError, LTRWarning, Objective

lgb = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
TRAIN, VALI, TEST = fold(seed=3)
EVAL = {"eval_set": [(VALI.X, VALI.y), (TEST.X, TEST.y)], "eval_group": [VALI.group, TEST.group]}
WEIGHTS = {"sample_weight": 1.0 + TRAIN.y, "eval_sample_weight": [1.0 + VALI.y, 1.0 + TEST.y]}


def squared(labels, scores, weight=1.0):
    return weight * (scores - labels), weight * np.ones(len(labels))


OBJECTIVES = {
    "two": lambda labels, scores: squared(labels, scores),
    "three": squared,
    "four": lambda labels, scores, weight, group: squared(labels, scores, weight * len(group)),
}
METRICS = {
    "two": lambda labels, scores: ("l1", np.abs(labels - scores).mean(), False),
    "three": lambda labels, scores, weight: ("weighted", np.average(np.abs(labels - scores), weights=weight), False),
    "four": lambda labels, scores, weight, group: [("a", len(group), True), ("b", scores[0] + weight[0], True)],
}


def of_lightgbm(objective, **given):
    params = {"n_estimators": 8, "num_leaves": 7, "learning_rate": 0.3, "n_jobs": 1, "deterministic": True}
    of_its_own = lgb.LGBMRanker(objective=objective, **params, metric="None", verbose=-1)
    return of_its_own.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, **WEIGHTS, **given)


@pytest.mark.parametrize("arguments", OBJECTIVES)
def test_a_function_is_the_objective_as_in_lightgbm(arguments):
    function = OBJECTIVES[arguments]
    own = ranker("lightgbm", function).fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, **WEIGHTS)
    np.testing.assert_array_equal(own.predict(TEST.X), of_lightgbm(function).predict(TEST.X))
    assert own.objective_ is function
    assert not isinstance(own.objective_, Objective)


@pytest.mark.parametrize("objective", ["lambdarank", "yetiloss:map"])
def test_functions_are_metrics_as_in_lightgbm(objective):
    functions = [*METRICS.values()]
    own = ranker("lightgbm", objective, eval_metric=[*functions, "map", "average_precision"])
    own.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, **WEIGHTS)
    found = own.evals_result_["validation_1"]
    assert sorted(found) == ["a", "average_precision", "b", "l1", "map", "weighted"]
    if objective == "lambdarank":
        expected = of_lightgbm(objective, eval_metric=functions).evals_result_["valid_1"]
        assert {name: found[name] for name in expected} == expected
    with pytest.warns(LTRWarning, match=r"score is the mean ndcg@10, because eval_metric=<function"):
        own.score(TEST.X, TEST.y, group=TEST.group)


def test_early_stopping_by_a_function():
    own = ranker("lightgbm", eval_metric=[METRICS["two"], "map"], n_estimators=60, learning_rate=1.0)
    own.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, early_stopping_rounds=4)
    values = own.evals_result_["validation_1"]["l1"]
    assert own.best_iteration_ == np.argmin(values) + 1 == len(values) - 4
    with pytest.raises(LTRError, match="LightGBM stops early on average_precision"):
        own.set_params(eval_metric=[METRICS["two"], "average_precision"]).fit(
            TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, early_stopping_rounds=4
        )


def test_names_and_metrics_of_fit():
    own = ranker("lightgbm", eval_metric="ndcg@5", n_estimators=60, learning_rate=1.0)
    names = {"eval_names": ["vali", "test"], "eval_metric": ["map", "average_precision"]}
    own.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, **names, early_stopping_rounds=4)
    assert list(own.evals_result_) == list(own.best_score_) == ["vali", "test"]
    assert list(own.best_score_["test"]) == ["average_precision", "map"]
    assert own.best_score_["test"]["map"] == max(own.evals_result_["test"]["map"])
    for wrong in (["vali"], ["vali", "vali"]):
        with pytest.raises(LTRError, match=r"eval_names must have one name for each eval set \(2\)"):
            own.fit(TRAIN.X, TRAIN.y, group=TRAIN.group, **EVAL, eval_names=wrong)

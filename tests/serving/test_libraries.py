"""hessboost and Perpetual train with our objectives. Run by ``make test-serving``."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import xgboost as xgb
from catalog import EXAMPLES
from generated import ranking
from sklearn.base import clone

from ltr_objectives import LTRError, evaluate, registry
from ltr_objectives.adapters import perpetual_objective, xgboost_objective

hessboost = pytest.importorskip("hessboost")  # both need Python 3.11
perpetual = pytest.importorskip("perpetual")

X, Y, QID = ranking(0)
X, GROUP = X.astype(np.float32), np.bincount(QID)
WEIGHT = np.linspace(0.5, 2, len(GROUP))


def test_hessboost_grows_the_trees_of_xgboost():
    params = {"max_depth": 3, "min_child_weight": 1e-3, "base_score": 0, "tree_method": "exact", "nthread": 1}
    weight = np.repeat(WEIGHT, GROUP)
    for objective in ("queryrmse", "yetiloss:map"):
        objective = xgboost_objective(objective)
        data = hessboost.DMatrix(X, Y, group=GROUP, weight=weight)
        ours = hessboost.train(params, data, 10, obj=objective, verbose_eval=False).predict(data)
        theirs = xgb.DMatrix(X, Y, group=GROUP, weight=WEIGHT)
        expected = xgb.train({**params, "disable_default_eval_metric": 1}, theirs, 10, obj=objective).predict(theirs)
        assert np.ptp(expected) > 1
        np.testing.assert_allclose(ours, expected, atol=1e-4)
    with pytest.raises(LTRError, match="the DMatrix has no queries"):
        hessboost.train(params, hessboost.DMatrix(X, Y), 1, obj=objective, verbose_eval=False)


def trained(objective, kind=perpetual.PerpetualBooster, **fit):
    return kind(objective=objective, iteration_limit=10).fit(X, Y, **fit).predict(X)


@pytest.mark.parametrize("name", registry.objectives())
def test_perpetual_learns_from_every_objective(name):
    cls = registry.objective_class(name)
    objective = next(e for e in (cls(), *EXAMPLES[cls.name]) if e.label_limit is None or e.label_limit >= Y.max())
    scores = trained(perpetual_objective(objective, Y, GROUP))
    assert evaluate("ndcg@10", scores, Y, GROUP) > evaluate("ndcg@10", np.zeros(len(Y)), Y, GROUP) + 0.1


def test_one_objective_trains_perpetual_again_and_again():
    made = perpetual_objective("yetiloss:map", Y, GROUP, n_threads=1)
    expected = trained(made)
    cloned = clone(perpetual.PerpetualRanker(objective=made)).objective
    for again in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made), cloned):
        assert np.array_equal(trained(again), expected)
        assert np.array_equal(trained(again, perpetual.PerpetualRanker, group=GROUP), expected)
    assert np.array_equal(trained(perpetual_objective("yetiloss:map", Y, GROUP)), expected)


def test_weights_in_perpetual():
    made = perpetual_objective("queryrmse", Y, GROUP, weight=WEIGHT)
    weighted = trained(made)
    assert not np.array_equal(weighted, trained(perpetual_objective("queryrmse", Y, GROUP)))
    by_row = np.repeat(WEIGHT, GROUP)
    assert np.array_equal(trained(perpetual_objective("queryrmse", Y, GROUP, weight=by_row)), weighted)
    given = trained(made, sample_weight=by_row)  # which also moves the borders of bins
    assert np.array_equal(trained(perpetual_objective("queryrmse", Y, GROUP), sample_weight=by_row), given)


def test_the_loss_of_squared_errors_is_itself():
    """Perpetual's own squared error is (y - s)^2, and starts at the mean."""
    labels = Y - Y.mean()
    booster = perpetual.PerpetualBooster(objective="SquaredLoss", iteration_limit=10).fit(X, labels)
    found = perpetual.PerpetualBooster(objective=perpetual_objective("rmse", labels, GROUP), iteration_limit=10)
    np.testing.assert_allclose(found.fit(X, labels).predict(X), booster.predict(X), atol=1e-3)


def test_data_that_perpetual_cannot_learn_from_are_refused_at_once():
    for given, message in (
        ({"y": Y[1:], "group": GROUP}, "group adds up to"),
        ({"y": Y - 1, "group": GROUP}, "needs labels of at least 0"),
        ({"y": Y, "group": GROUP, "weight": [1.0]}, "one per query"),
        ({"y": Y, "group": GROUP, "labels": {"a": Y}}, "'a'"),
    ):
        with pytest.raises(LTRError, match=message):
            perpetual_objective("lambdamart", **given)
    script = """
import numpy as np, perpetual
from ltr_objectives.adapters import perpetual_objective
X, y, group = np.arange(60.0).reshape(30, 2) % 7, np.arange(30) % 3, np.array([10, 10, 10])
booster = perpetual.PerpetualBooster(objective=perpetual_objective("lambdamart", y, group)).fit(X, y)
booster.prune(X, y, group=group)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode != 0
    assert "prune needs the loss of single rows" in ended.stderr

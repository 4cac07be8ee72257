"""hessboost and Perpetual train with our objectives."""

import examples
import numpy as np
import pytest
import xgboost as xgb
from catalog import EXAMPLES
from generated import ranking

from ltr_objectives import LTRError, Objective, evaluate, registry
from ltr_objectives.adapters import xgboost_objective

hessboost = pytest.importorskip("hessboost")
perpetual = pytest.importorskip("perpetual")

X, Y, QID = ranking(0)
X, GROUP = X.astype(np.float32), np.bincount(QID)
WEIGHT = np.linspace(0.5, 2, len(GROUP))
NAMES = {}
examples.run(examples.script("perpetual"), NAMES)
perpetual_functions = NAMES["perpetual_functions"]


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


@pytest.mark.parametrize("name", registry.objective_names())
def test_perpetual_learns_from_every_objective(name):
    cls = Objective.named[name]
    objective = next(e for e in (cls(), *EXAMPLES[cls.name]) if e.label_limit is None or e.label_limit >= Y.max())
    scores = trained(perpetual_functions(objective, Y, GROUP))
    assert evaluate("ndcg@10", scores, Y, GROUP) > evaluate("ndcg@10", np.zeros(len(Y)), Y, GROUP) + 0.1


def test_the_loss_of_squared_errors_is_itself():
    """Perpetual's own squared error is (y - s)^2, and starts at the mean."""
    labels = Y - Y.mean()
    booster = perpetual.PerpetualBooster(objective="SquaredLoss", iteration_limit=10).fit(X, labels)
    found = perpetual.PerpetualBooster(objective=perpetual_functions("rmse", labels, GROUP), iteration_limit=10)
    np.testing.assert_allclose(found.fit(X, labels).predict(X), booster.predict(X), atol=1e-3)

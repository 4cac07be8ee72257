"""A pointwise part gives scores a scale of their own."""

import numpy as np
import pytest
from rankers import ranker
from sklearn import metrics

from ltr_objectives import Langevin, Mixture, Ordinal, evaluate, get_objective, registry


def test_a_pointwise_part_or_shrinkage_fixes_the_constant():
    for name in registry.objectives():
        free = get_objective(name).facts.shift_invariant
        assert Mixture([name, "ranknet"]).facts.shift_invariant == free
        assert Mixture([name, "rmse"], [1, 0]).facts.shift_invariant == free
        assert not Mixture([name, "rmse"]).facts.shift_invariant
        assert not Langevin(name, shrink=0.1).facts.shift_invariant


@pytest.mark.parametrize(
    "library", ["lightgbm", *(pytest.param(name, marks=pytest.mark.release) for name in ("xgboost", "catboost"))]
)
def test_a_pointwise_part_separates_queries_and_keeps_the_ranking(library):
    """Documents are relevant by a feature of their own and, more often, by one of their query."""
    rng = np.random.default_rng(3)
    group = np.full(300, 12)
    rows = int(group.sum())
    X = np.column_stack([rng.normal(size=rows), np.repeat(rng.normal(size=len(group)), group)])
    y = (rng.random(rows) < 1 / (1 + np.exp(-1.5 * X[:, 0] - 2.5 * X[:, 1]))).astype(float)
    half = rows // 2
    found = {}
    for name, objective in (("ranking", "yetiloss"), ("mixture", Mixture(["yetiloss", Ordinal((0.0,))]))):
        model = ranker(library, objective, n_estimators=30)
        scores = model.fit(X[:half], y[:half], group=group[:150]).predict(X[half:])
        within = evaluate("auc", scores, y[half:], group[150:])
        found[name] = metrics.roc_auc_score(y[half:] > 0, scores), within
    assert found["mixture"][0] > found["ranking"][0] + 0.1
    assert found["mixture"][1] > found["ranking"][1] - 0.02

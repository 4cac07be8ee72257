"""A warning names the cost of a gradient over the pairs of a long list before the gradient is computed."""

import numpy as np
import pytest
from conftest import OBJECTIVES

from ltr_objectives import LTRWarning, Mixture, Queries, Subsample, UnitHessian, diagnostics, get_objective
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.objectives.base import Objective


def test_pairs_grow_with_the_square_of_the_list_at_most():
    for objective in OBJECTIVES:
        (small, fewer), (large, _) = (diagnostics._pairs(objective, n) for n in (1000, 2000))
        assert (small == 0) == (large == 0) == (not fewer), objective
        assert small == 0 or 1.0 <= large / small <= 4.0, objective


def test_cutoffs_and_neighbors_bound_the_pairs():
    for few in ("lambdamart:truncation=30", "lambdamart:ndcg@30", "yetiloss:ndcg;neighbors=30;permutations=1"):
        assert diagnostics._pairs(get_objective(few), 10**6)[0] == 30 * 10**6
    whole = get_objective("lambdamart:ndcg")
    for around in (whole, Mixture([whole, "listnet"]), UnitHessian(Subsample(whole))):
        assert diagnostics._pairs(around, 10**6)[0] == 10**12


def test_long_lists_are_warned_of_before_the_first_gradient(monkeypatch):
    queries, scores = Queries(np.arange(300) % 2, [300]), np.zeros(300)
    monkeypatch.setattr(diagnostics, "SECONDS_A_PAIR", 1.0)
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    slow = [o for o in OBJECTIVES if diagnostics._pairs(o, 300)[0]]
    assert len(slow) > 20
    for objective in slow:
        with pytest.warns(LTRWarning, match="pairs of documents of one query"), pytest.raises(pytest.fail.Exception):
            objective.gradient_hessian(scores, queries.labels, [300])
        with pytest.warns(LTRWarning, match="pairs of documents of one query"), pytest.raises(pytest.fail.Exception):
            lightgbm_objective(objective)(queries.labels, scores, None, np.array([300]))


def test_usual_lists_are_not(recwarn):
    queries = Queries(np.arange(20_000) % 2, np.full(20, 1000))
    for objective in OBJECTIVES:
        diagnostics.warn_if_long(objective, queries)
    assert not recwarn

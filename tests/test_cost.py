"""A warning names the cost of a gradient over the pairs of a long list before the gradient is computed."""

import numpy as np
import pytest

from ltr_objectives import LTRWarning, Queries, diagnostics
from ltr_objectives.adapters import lightgbm_objective
from ltr_objectives.objectives.base import Objective


def test_pairs_grow_with_the_square_of_the_list_at_most(any_objective):
    def visited(n):
        return any_objective.inner.pairs_visited(Queries(np.arange(n) % 2, [n]))

    small, large = visited(1000), visited(2000)
    assert (small is None) == (large is None)
    if small is not None:
        assert 1.0 <= large[0] / small[0] < 4.1
        assert small[0] > 0


def test_long_lists_are_warned_of_before_the_first_gradient(any_objective, monkeypatch):
    queries, scores = Queries(np.arange(300) % 2, [300]), np.zeros(300)
    pairs = any_objective.inner.pairs_visited(queries)
    if pairs is None:
        pytest.skip("time grows with the list")
    monkeypatch.setattr(diagnostics, "SECONDS_A_PAIR", 1.0)
    monkeypatch.setattr(Objective, "compute", lambda *_, **__: pytest.fail("no word before"))
    with pytest.warns(LTRWarning, match="pairs of documents of one query"), pytest.raises(pytest.fail.Exception):
        any_objective.gradient_hessian(scores, queries.labels, [300])
    with pytest.warns(LTRWarning, match="pairs of documents of one query"), pytest.raises(pytest.fail.Exception):
        lightgbm_objective(any_objective)(queries.labels, scores, None, np.array([300]))


def test_usual_lists_are_not(any_objective, recwarn):
    diagnostics.warn_if_long(any_objective, Queries(np.arange(20_000) % 2, np.full(20, 1000)))
    assert not recwarn

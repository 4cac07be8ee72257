"""Trainings that the CatBoost adapter refuses, by the checks of `fit` and, if these do not, by the passes."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostError, Pool, cv
from catboost_fits import QUIET, arrays, fit
from trainings import sampled

from ltr_objectives import LTRError
from ltr_objectives.adapters import _catboost_fit, _catboost_passes, catboost_metric, catboost_objective
from ltr_objectives.adapters._catboost_passes import Passes

ROWS = 1500
X, RICH, QID = arrays(ROWS)
SPARSE = (np.arange(ROWS) == 700).astype(float)  # labels that are mostly equal
WEIGHTS = np.random.default_rng(9).uniform(0.5, 2.0, ROWS)[QID]
FEW = {"iterations": 8, "bootstrap_type": "Bernoulli"}


def make_pool(labels=RICH, rows=slice(None), **given):
    return Pool(X[rows], labels[rows], group_id=QID[rows], **given)


CUTS = {
    "cv": lambda model, params, pool: cv(pool, params, fold_count=3),
    "grid_search": lambda model, params, pool: model.grid_search({"depth": [2, 3]}, pool, verbose=False),
    "randomized_search": lambda model, params, pool: model.randomized_search({"depth": [2, 3]}, pool, verbose=False),
    "select_features": lambda model, params, pool: model.select_features(
        pool, features_for_select="0-3", num_features_to_select=2, steps=1
    ),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("what", ["objective", "metric"])
def test_functions_that_cut_the_pool(what, cut, workplace):
    pool = make_pool()
    ours = {
        "objective": {"loss_function": catboost_objective("queryrmse", pool)},
        "metric": {"loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg", pool)},
    }[what]
    params = {**QUIET, **FEW, **ours}
    with pytest.raises(LTRError, match="only a training started by fit"):
        CUTS[cut](CatBoost(params), params, pool)


def test_other_weights_by_query_than_those_of_the_pool():
    pool = make_pool(group_weight=WEIGHTS)
    for other, given in ((pool, 2 * WEIGHTS), (make_pool(), WEIGHTS)):
        with pytest.raises(CatBoostError, match="group_weight"):
            fit(catboost_objective("queryrmse", other, group_weight=given), other)
    assert fit(catboost_objective("queryrmse", pool, group_weight=WEIGHTS), pool).tree_count_ == 20


@pytest.fixture
def unguarded(monkeypatch):
    """Train without the checks of `fit`; those of the values that CatBoost passes remain."""
    monkeypatch.setattr(_catboost_fit.Fit, "require_known_rows", lambda *arguments: None)
    monkeypatch.setattr(_catboost_fit.Rows, "check_same", lambda *arguments: None)
    monkeypatch.setattr(_catboost_passes, "WAIT_SECONDS", 10.0)


UNKNOWN = {  # parameters of the training
    "ordered": {"boosting_type": "Ordered"},
    "leafwise": {"dev_leafwise_approxes": True, "leaf_estimation_iterations": 3},
    "eval_fraction": {"eval_fraction": 0.3},
    "categorical": {},
    "longer": {},
    "shorter": {},
    "labels": {},
}


@pytest.mark.filterwarnings("ignore:.*queries have zero gradient")  # sparse labels
@pytest.mark.parametrize(
    ("threads", "labels", "what"), sampled(itertools.product((1, 2, 4), (RICH, SPARSE), UNKNOWN), 4)
)
def test_passes_refuse_what_is_not_understood(unguarded, threads, labels, what):
    pool = make_pool(labels)
    if what == "categorical":
        frame = pd.DataFrame(X).assign(kind=(np.arange(ROWS) % 5).astype(str))
        pool = Pool(frame, labels, group_id=QID, cat_features=["kind"])
    known = {
        "longer": make_pool(labels, slice(1400)),
        "shorter": Pool(np.tile(X, (2, 1)), np.tile(labels, 2), group_id=np.concatenate([QID, QID + ROWS])),
        "labels": make_pool(np.roll(labels, 1)),
    }.get(what, pool)
    with pytest.raises(CatBoostError, match=r"LTRError: CatBoost .* is not certain"):
        fit(catboost_objective("queryrmse", known), pool, params={**FEW, "thread_count": threads, **UNKNOWN[what]})


def test_a_metric_refuses_rows_that_are_not_those_of_the_pools(unguarded):
    a, b = make_pool(), make_pool(RICH[::-1])
    backtracking = {"leaf_estimation_backtracking": "AnyImprovement", "leaf_estimation_iterations": 4}
    for pools, loss, params in (
        ((b, a), "RMSE", {}),
        ((a,), "RMSE", {"boosting_type": "Ordered"}),
        ((a,), catboost_objective("queryrmse", a), backtracking),
    ):
        metric = catboost_metric("ndcg", a, *([b] if len(pools) > 1 else []))
        with pytest.raises(CatBoostError, match=r"other rows, or another order|Backtracking is not supported"):
            fit(loss, pools[0], params={"eval_metric": metric, **params}, eval_set=list(pools[1:]) or None)


class Imitation:
    """Calls `Passes` as CatBoost does, on labels that cannot tell pools apart."""

    def __init__(self, rows=2500):
        self.rows = rows
        self.start = np.zeros(rows)
        self.computed = []
        self.passes = Passes(np.zeros(rows, np.float32), None, self.start, self.gradients, newton_splits=False)
        self.labels = {"structure": np.zeros(rows, np.float32), "leaves": np.zeros(rows, np.float32)}
        self.scores = {"structure": self.start.copy(), "leaves": self.start.copy()}
        self.cuts = {"structure": 1000, "leaves": 500}

    def gradients(self, scores, new_tree):
        self.computed.append(scores.copy())
        return -scores - 1, -scores - 2

    def ask(self, which, first, last, shift=0):
        moved = self.scores[which][first + shift : last + shift]
        return self.passes.answer(moved, self.labels[which][first:last], None)

    def whole(self, which, order=slice(None)):
        cut = self.cuts[which]
        for first in [0, *range(cut, self.rows, cut)[order]]:
            last = min(first + cut, self.rows)
            expected = self.scores[which][first:last]
            np.testing.assert_array_equal(self.ask(which, first, last), np.stack((expected + 1, expected + 2), axis=1))

    def grow(self, steps=1):
        self.whole("structure")
        self.scores["leaves"] = self.scores["structure"].copy()
        for _ in range(steps):
            self.whole("leaves", slice(None, None, -1))
            self.scores["leaves"] += np.random.default_rng(0).normal(size=self.rows)
        self.scores["structure"][:] = self.scores["leaves"]


def test_imitation_of_what_is_supported():
    imitation = Imitation()
    for steps in (1, 3, 2):
        imitation.grow(steps)
    assert len(imitation.computed) == 3 + 2 + 1


def strange(rows=9, labels=0.0, weight=None, scores=9):
    """Return a block at an address that was not seen before."""
    weights = None if weight is None else np.full(rows, weight, np.float32)
    return lambda imitation: imitation.passes.answer(np.zeros(scores), np.full(rows, labels, np.float32), weights)


def drift(imitation):
    imitation.scores["structure"][[0, 1500]] += 1
    imitation.scores["leaves"][0] += 1


def move(imitation):
    imitation.scores["structure"] = imitation.scores["structure"].copy()


FIRST, SECOND, THIRD = ("structure", 0, 1000), ("structure", 1000, 2000), ("structure", 2000, 2500)
MISTAKES = {
    # after how many trees, what is asked for or happens, what is said
    "row twice": (0, [FIRST, ("structure", 500, 1500), THIRD], "asks for a row twice"),
    "too many rows": (0, [FIRST, ("structure", 500, 1500), ("structure", 1500, 2500)], "asks for a row twice"),
    "rows before the first": (0, [SECOND, FIRST], "outside of the pool"),
    "rows after the last": (0, [strange(rows=2501, scores=2501)], "outside of the pool"),
    "unequal lengths": (0, [strange(scores=8)], "other blocks"),
    "another start": (0, [drift, FIRST], "starts from other scores"),
    "scores elsewhere": (0, [FIRST, (*SECOND, 5)], "moved the scores during a pass"),
    "other weights": (0, [strange(weight=2.0)], "group_weight"),
    "other labels": (0, [strange(labels=1.0)], "shows other labels"),
    "incomplete structure": (0, [FIRST, "leaves"], "outside of the pool|other labels|begins a pass"),
    "structure twice at first": (0, ["structure", "structure"], "without estimating leaves"),
    "structure twice": (2, ["structure", "structure"], "without estimating leaves"),
    "block missing": (1, [FIRST, ("leaves", 0, 500)], "before the last one is complete"),
    "block twice": (1, [FIRST, FIRST], "before the last one is complete"),
    "shorter block": (1, [("structure", 0, 999)], "other blocks"),
    "unknown vector": (1, ["structure", strange()], "outside of the pool|other blocks"),
    "structure moved": (1, [move, FIRST], "moved the scores"),
    "scores changed": (1, [FIRST, drift, SECOND], "changes scores during a pass"),
    "leaves start elsewhere": (1, ["structure", drift, "leaves"], "changes scores"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_in_an_error_for_good(mistake):
    trees, steps, message = MISTAKES[mistake]
    imitation = Imitation()
    for _ in range(trees):
        imitation.grow(2)

    def carry_out(step):
        if isinstance(step, str):
            imitation.whole(step)
        elif isinstance(step, tuple):
            imitation.ask(*step)
        else:
            step(imitation)

    for step in steps[:-1]:
        carry_out(step)
    with pytest.raises(LTRError, match=message) as first:
        carry_out(steps[-1])
    with pytest.raises(LTRError) as again:
        imitation.ask("structure", 0, 1000)
    assert again.value is first.value, "the first failure answers every later call"


def test_only_the_thread_that_called_fit_opens_a_first_pass(monkeypatch):
    monkeypatch.setattr(_catboost_passes, "WAIT_SECONDS", 0.05)
    imitation = Imitation()
    with ThreadPoolExecutor(1) as other, pytest.raises(LTRError, match="does not begin in the thread that called fit"):
        other.submit(imitation.ask, *SECOND).result()


def test_other_threads_wait_for_the_thread_that_called_fit():
    imitation = Imitation()
    with ThreadPoolExecutor(4) as others:
        asked = [others.submit(imitation.ask, "structure", first, first + 500) for first in (500, 1000, 1500, 2000)]
        assert not any(each.done() for each in asked)
        imitation.ask("structure", 0, 500)
        assert [len(each.result(10)) for each in asked] == [500] * 4
    imitation.whole("leaves")
    assert len(imitation.computed) == 1


def test_a_failure_reaches_waiting_threads():
    imitation = Imitation()
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(imitation.ask, *SECOND)
        for answer in (lambda: strange(labels=1.0)(imitation), asked.result):
            with pytest.raises(LTRError, match="shows other labels"):
                answer()


def test_an_interrupt_reaches_waiting_threads(monkeypatch):
    imitation = Imitation()
    here, address_of = threading.get_ident(), _catboost_passes.address_of

    def interrupt(view):
        if threading.get_ident() == here:
            raise KeyboardInterrupt
        return address_of(view)

    monkeypatch.setattr(_catboost_passes, "address_of", interrupt)
    with ThreadPoolExecutor(1) as other:
        asked = other.submit(imitation.ask, *SECOND)
        with pytest.raises(KeyboardInterrupt):
            imitation.ask(*FIRST)
        with pytest.raises(LTRError, match="the training was interrupted"):
            asked.result()


def test_a_training_without_weights_is_refused():
    passes = Passes(np.zeros(9, np.float32), None, np.zeros(9), lambda *_: (np.ones(9), np.ones(9)), newton_splits=True)
    with pytest.raises(LTRError, match="keeps no weights for this pool"):
        passes.answer(np.zeros(9), np.zeros(9, np.float32), None)

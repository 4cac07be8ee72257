"""What the CatBoost adapter refuses: nothing may go wrong silently."""

import pickle
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostError, Pool, cv

from ltr_objectives.adapters import _catboost_fit, _catboost_passes
from ltr_objectives.adapters._catboost import catboost_metric, catboost_objective
from ltr_objectives.adapters._catboost_passes import Passes
from ltr_objectives.errors import LTRError, LTRWarning

ROWS = 1500
BASE = {
    "iterations": 8,
    "eval_metric": "NDCG",
    "verbose": 0,
    "allow_writing_files": False,
    "bootstrap_type": "Bernoulli",
}
QID = np.arange(ROWS) // 10
WEIGHTS = np.random.default_rng(9).uniform(0.5, 2.0, ROWS // 10)[QID]


def features(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, 4))


def rich():
    return np.random.default_rng(1).integers(0, 4, ROWS).astype(float)


def sparse():
    """Labels that hardly show an order."""
    return (np.arange(ROWS) == 700).astype(float)


def make_pool(labels=rich, qid=QID, rows=slice(None), **arguments):
    return Pool(features()[rows], labels()[rows], group_id=qid[rows], **arguments)


def twice_as_long(labels):
    return Pool(np.tile(features(), (2, 1)), np.tile(labels(), 2), group_id=np.arange(2 * ROWS) // 10)


def categorical_pool(labels=rich):
    frame = pd.DataFrame(features(), columns=list("abcd")).assign(kind=(np.arange(ROWS) % 5).astype(str))
    return Pool(frame, labels(), group_id=QID, cat_features=["kind"])


def train(loss, pool, **params):
    arguments = {k: params.pop(k) for k in ("init_model", "eval_set") if k in params}
    return CatBoost({**BASE, "loss_function": loss, **params}).fit(pool, **arguments)


PARAMETERS = {
    "boosting_type": ({"boosting_type": "Ordered"}, "set 'Plain'"),
    "task_type": ({"task_type": "GPU"}, "set 'CPU'"),
    "eval_fraction": ({"eval_fraction": 0.2}, "make two pools"),
    "dev_leafwise_approxes": ({"dev_leafwise_approxes": True}, "leave it out"),
    "leaf_estimation_backtracking": ({"leaf_estimation_backtracking": "AnyImprovement"}, "set 'No'"),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_refused_by_fit(name):
    params, advice = PARAMETERS[name]
    pool = make_pool()
    with pytest.raises(LTRError, match=rf"{name}.*{advice}"):
        train(catboost_objective("queryrmse", pool), pool, **params)
    with pytest.raises(LTRError, match=rf"{name}.*{advice}"):
        train("QueryRMSE", pool, **{**params, "eval_metric": catboost_metric("ndcg", pool)})


@pytest.mark.parametrize(
    "declared", [{}, {"has_time": False}, {"one_hot_max_size": 100}, {"ignored_features": [4]}], ids=str
)
def test_categorical_features_need_has_time(declared):
    pool = categorical_pool()
    with pytest.raises(LTRError, match=r"categorical features.*add has_time=True"):
        train(catboost_objective("queryrmse", pool), pool, **declared)
    with pytest.raises(LTRError, match=r"categorical features.*add has_time=True"):
        train("QueryRMSE", pool, **{**declared, "eval_metric": catboost_metric("ndcg", pool)})


OTHER_POOLS = {
    "other labels": (lambda: make_pool(sparse), "labels"),
    "other groups": (lambda: make_pool(qid=np.arange(ROWS) // 15), "group"),
    "other order of groups": (lambda: make_pool(qid=np.sort(np.random.default_rng(0).integers(0, 150, ROWS))), "group"),
    "weights": (lambda: make_pool(weight=np.linspace(1, 2, ROWS)), "weight"),
    "baseline": (lambda: make_pool(baseline=np.linspace(1, 2, ROWS)), "baseline"),
    "slice": (lambda: make_pool().slice(np.arange(1000)), "labels"),
    "slice in another order": (lambda: make_pool().slice(np.arange(ROWS).reshape(-1, 10)[::-1].ravel()), "labels"),
    "longer": (
        lambda: Pool(np.tile(features(), (2, 1)), np.tile(rich(), 2), group_id=np.arange(2 * ROWS) // 10),
        "labels",
    ),
    "arrays": (lambda: features(), "catboost.Pool"),
}


@pytest.mark.parametrize("other", OTHER_POOLS)
def test_another_pool(other):
    make, what = OTHER_POOLS[other]
    pool = make_pool()
    model = CatBoost({**BASE, "loss_function": catboost_objective("queryrmse", pool)})
    with pytest.raises(LTRError, match=what):
        model.fit(make(), **({"y": rich(), "group_id": QID} if other == "arrays" else {}))


def test_equal_labels_in_another_order_of_queries():
    one = Pool(features(), np.tile([1.0, 0.0], ROWS // 2), group_id=np.repeat([1, 2, 3], [500, 400, 600]))
    two = Pool(features(), np.tile([1.0, 0.0], ROWS // 2), group_id=np.repeat([2, 1, 3], [400, 500, 600]))
    with pytest.raises(LTRError, match="differ in group"):
        train(catboost_objective("queryrmse", one), two)


def test_pool_changed_after_the_object_was_made():
    pool = make_pool()
    loss = catboost_objective("queryrmse", pool)
    pool.set_baseline(np.linspace(0, 1, ROWS))
    with pytest.raises(LTRError, match="differ in baseline"):
        train(loss, pool)


def test_other_features_for_the_same_rows_are_fine():
    loss = catboost_objective("queryrmse", make_pool())
    fewer = Pool(features()[:, :2], rich(), group_id=QID)
    assert train(loss, fewer).tree_count_ == 8


CUTS = {
    "cv": lambda model, params, pool: cv(pool, params, fold_count=3),
    "grid_search": lambda model, params, pool: model.grid_search({"depth": [2, 3]}, pool, verbose=False),
    "grid_search with cv": lambda model, params, pool: model.grid_search(
        {"depth": [2, 3]}, pool, verbose=False, search_by_train_test_split=False
    ),
    "randomized_search": lambda model, params, pool: model.randomized_search({"depth": [2, 3]}, pool, verbose=False),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("what", ["objective", "metric"])
def test_what_cuts_the_pool(what, cut, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # cv writes files
    pool = make_pool()
    ours = {
        "objective": {"loss_function": catboost_objective("queryrmse", pool)},
        "metric": {"loss_function": "QueryRMSE", "eval_metric": catboost_metric("ndcg", pool)},
    }[what]
    params = {**BASE, **ours}
    with pytest.raises(CatBoostError, match="only a training started by fit"):
        CUTS[cut](CatBoost(params), params, pool)


def test_unknown_group_weight():
    pool = make_pool(group_weight=WEIGHTS)
    with pytest.raises(CatBoostError, match=r"pass the same values to catboost_objective\(\.\.\., group_weight"):
        train(catboost_objective("queryrmse", pool), pool)
    with pytest.raises(CatBoostError, match="group_weight"):
        train(catboost_objective("queryrmse", pool, group_weight=2 * WEIGHTS), pool)
    assert train(catboost_objective("queryrmse", pool, group_weight=WEIGHTS), pool).tree_count_ == 8
    with pytest.raises(CatBoostError, match="group_weight"):
        train(catboost_objective("queryrmse", make_pool(), group_weight=WEIGHTS), make_pool())
    with pytest.raises(LTRError, match="weights by row"):
        catboost_objective("queryrmse", make_pool(weight=WEIGHTS), group_weight=WEIGHTS)


@pytest.mark.parametrize("weights", [{"class_weights": np.array([1, 2])}, {"auto_class_weights": "Balanced"}], ids=str)
def test_weights_by_class(weights):
    pool = make_pool(sparse)
    with pytest.raises(LTRError, match=r"class_weights=.*give the pool weights by row"):
        train(catboost_objective("queryrmse", pool), pool, **weights)


def test_unknown_start(tmp_path):
    pool = make_pool()
    other = train("QueryRMSE", pool)
    with pytest.raises(CatBoostError, match="training starts from other scores"):
        train(catboost_objective("queryrmse", pool, init_model=other), pool)
    files = {"allow_writing_files": True, "train_dir": str(tmp_path), "save_snapshot": True, "snapshot_interval": 0}
    train(catboost_objective("queryrmse", pool), pool, **files)
    with pytest.raises(CatBoostError, match=r"to resume a snapshot, pass catboost_objective\(\.\.\., init_model=\)"):
        train(catboost_objective("queryrmse", pool), pool, **{**files, "iterations": 12})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pool(features(), rich()), "no queries"),
        (lambda: Pool(features(), group_id=QID), "no labels"),
        (lambda: Pool(features(), ["a", "b"] * (ROWS // 2), group_id=QID), "must be numbers"),
        (lambda: Pool(features(), np.stack((rich(), rich()), 1), group_id=QID), "one label a row"),
        (lambda: Pool(features(), rich(), group_id=QID, baseline=np.ones((ROWS, 2))), "one baseline a row"),
        (lambda: features(), "must be a catboost.Pool"),
    ],
    ids=["queries", "labels", "text labels", "two labels", "two baselines", "array"],
)
def test_pools_that_cannot_be_right(make, message):
    with pytest.raises(LTRError, match=message):
        catboost_objective("queryrmse", make())
    with pytest.raises(LTRError, match=f"pool 1.*{message}"):
        catboost_metric("ndcg", make_pool(), make())


def test_without_catboost(monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    with pytest.raises(ImportError, match=r"pip install ltr-objectives\[catboost\]"):
        catboost_objective("queryrmse", None)
    with pytest.raises(ImportError, match=r"pip install ltr-objectives\[catboost\]"):
        catboost_metric("ndcg", None)


@pytest.mark.filterwarnings("ignore:1500 of 1500 queries give no gradient")
@pytest.mark.parametrize("bootstrap", [{"bootstrap_type": "MVS"}, {"bootstrap_type": None}], ids=str)
def test_nothing_to_learn_says_what_to_set(bootstrap):
    """With one row a query no gradient is left."""
    pool = make_pool(qid=np.arange(ROWS))
    params = {k: v for k, v in {**BASE, **bootstrap}.items() if v is not None}
    model = CatBoost({**params, "loss_function": catboost_objective("queryrmse", pool)})
    message = r"every gradient is zero.*set bootstrap_type='Bernoulli' or 'No'"
    with pytest.warns(LTRWarning, match=message), pytest.raises(CatBoostError, match="Too few sampling units"):
        model.fit(pool)
    assert train(catboost_objective("queryrmse", pool), pool).tree_count_ == 8


def test_threads_that_wait_hear_of_an_interrupt(monkeypatch):
    labels, scores, errors = rich().astype(np.float32), np.zeros(ROWS), []
    passes = Passes(labels, None, scores, lambda s: np.zeros((len(s), 2)))

    def ask():
        with pytest.raises(LTRError) as caught:
            passes.answer(scores[500:], labels[500:], None)
        errors.append(str(caught.value))

    waiting = threading.Thread(target=ask)
    waiting.start()
    here, address_of = threading.get_ident(), _catboost_passes.address_of

    def interrupt(view):
        if threading.get_ident() == here:
            raise KeyboardInterrupt
        return address_of(view)

    monkeypatch.setattr(_catboost_passes, "address_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        passes.answer(scores[:500], labels[:500], None)
    waiting.join(5)
    assert errors == ["the training was interrupted"]


# What follows is the second line of defence: the checks of the passes, with those of `fit` switched off.


@pytest.fixture
def unguarded(monkeypatch):
    for check in ("require_cpu", "require_pool_order", "require_plain_leaves"):
        monkeypatch.setattr(_catboost_fit.Fit, check, lambda self: None)
    monkeypatch.setattr(_catboost_fit.Rows, "check_same", lambda *arguments: None)
    monkeypatch.setattr(_catboost_passes, "WAIT_SECONDS", 10.0)


@pytest.mark.filterwarnings("ignore:.*queries give no gradient")  # sparse labels
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("labels", [rich, sparse], ids=["rich", "sparse"])
@pytest.mark.parametrize("what", ["ordered", "categorical", "leafwise", "eval_fraction", "longer", "shorter", "labels"])
def test_passes_refuse_what_is_not_understood(unguarded, what, labels, threads):
    params = {
        "ordered": {"boosting_type": "Ordered"},
        "leafwise": {"dev_leafwise_approxes": True, "leaf_estimation_iterations": 3},
        "eval_fraction": {"eval_fraction": 0.3},
    }.get(what, {})
    pool = categorical_pool(labels) if what == "categorical" else make_pool(labels)
    given = {
        "longer": make_pool(labels, rows=slice(1400)),
        "shorter": twice_as_long(labels),
        "labels": make_pool(lambda: np.roll(labels(), 1)),
    }.get(what, pool)
    with pytest.raises(CatBoostError, match=r"LTRError: CatBoost .* is not certain"):
        train(catboost_objective("queryrmse", given), pool, thread_count=threads, **params)


class Imitation:
    """Calls `Passes` as CatBoost does, on labels that prove nothing."""

    def __init__(self, rows=2500):
        self.rows = rows
        self.start = np.zeros(rows)
        self.computed = []
        self.passes = Passes(np.zeros(rows, np.float32), None, self.start, self.derivatives)
        self.labels = {"structure": np.zeros(rows, np.float32), "leaves": np.zeros(rows, np.float32)}
        self.scores = {"structure": self.start.copy(), "leaves": self.start.copy()}
        self.cuts = {"structure": 1000, "leaves": 500}

    def derivatives(self, scores):
        self.computed.append(scores.copy())
        return np.stack((scores + 1, scores + 2), axis=1)

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


def ask(*blocks):
    return lambda imitation: [imitation.ask(*block) for block in blocks]


def whole(*vectors):
    return lambda imitation: [imitation.whole(vector) for vector in vectors]


def drift(which, row):
    """One score changes."""

    def change(imitation):
        imitation.scores[which][row] += 1

    return change


def strange(rows=9, labels=0.0, weight=None, scores=9):
    """A block from a place never seen before."""
    weights = None if weight is None else np.full(rows, weight, np.float32)
    return lambda imitation: imitation.passes.answer(np.zeros(scores), np.full(rows, labels, np.float32), weights)


def move(imitation):
    imitation.scores["structure"] = imitation.scores["structure"].copy()


FIRST, SECOND, THIRD = ("structure", 0, 1000), ("structure", 1000, 2000), ("structure", 2000, 2500)
MISTAKES = {
    # after how many trees, what happens, what is said
    "row twice": (0, [ask(FIRST, ("structure", 500, 1500), THIRD)], "asks for a row twice"),
    "too many rows": (0, [ask(FIRST, ("structure", 500, 1500), ("structure", 1500, 2500))], "asks for a row twice"),
    "rows before the first": (0, [ask(SECOND, FIRST)], "outside of the pool"),
    "rows after the last": (0, [strange(rows=2501, scores=2501)], "outside of the pool"),
    "unequal lengths": (0, [strange(scores=8)], "other blocks"),
    "another start": (0, [drift("structure", 2400), ask(FIRST, SECOND, THIRD)], "starts from other scores"),
    "scores elsewhere": (0, [ask(FIRST, (*SECOND, 5))], "moved the scores during a pass"),
    "other weights": (0, [strange(weight=2.0)], "group_weight"),
    "other labels": (0, [strange(labels=1.0)], "shows other labels"),
    "incomplete structure": (0, [ask(FIRST), whole("leaves")], "outside of the pool|other labels|begins a pass"),
    "structure twice at first": (0, [whole("structure", "structure")], "without estimating leaves"),
    "structure twice": (2, [whole("structure", "structure")], "without estimating leaves"),
    "block missing": (1, [ask(FIRST, ("leaves", 0, 500))], "before the last one is complete"),
    "block twice": (1, [ask(FIRST, FIRST)], "before the last one is complete"),
    "shorter block": (1, [ask(("structure", 0, 999))], "other blocks"),
    "unknown vector": (1, [whole("structure"), strange()], "outside of the pool|other blocks"),
    "structure moved": (1, [move, ask(FIRST)], "moved the scores"),
    "scores changed in a pass": (
        1,
        [ask(FIRST), drift("structure", 1500), ask(SECOND)],
        "changes scores during a pass",
    ),
    "leaves start elsewhere": (1, [whole("structure"), drift("leaves", 0), whole("leaves")], "changes scores"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_end_in_an_error_for_good(mistake):
    trees, steps, message = MISTAKES[mistake]
    imitation = Imitation()
    for _ in range(trees):
        imitation.grow(2)
    *before, last = steps
    for step in before:
        step(imitation)
    with pytest.raises(LTRError, match=message) as first:
        last(imitation)
    with pytest.raises(LTRError) as again:
        imitation.ask("structure", 0, 1000)
    assert again.value is first.value, "the first failure answers every later call"


def test_only_the_thread_that_called_fit_opens_a_first_pass(monkeypatch):
    monkeypatch.setattr(_catboost_passes, "WAIT_SECONDS", 0.05)
    imitation, failures = Imitation(), []

    def other():
        try:
            imitation.ask("structure", 1000, 2000)
        except LTRError as error:
            failures.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(failures) == 1
    assert "does not begin in the thread that called fit" in failures[0]


def test_other_threads_wait_for_the_thread_that_called_fit():
    imitation, answers = Imitation(), {}

    def other(first):
        answers[first] = imitation.ask("structure", first, first + 500)

    threads = [threading.Thread(target=other, args=(first,)) for first in (500, 1000, 1500, 2000)]
    for thread in threads:
        thread.start()
    assert not answers
    imitation.ask("structure", 0, 500)
    for thread in threads:
        thread.join()
    assert sorted(answers) == [500, 1000, 1500, 2000]
    imitation.whole("leaves")
    assert len(imitation.computed) == 1


def test_waiting_threads_are_told_of_a_failure():
    imitation, failures = Imitation(), []

    def other():
        try:
            imitation.ask("structure", 1000, 2000)
        except LTRError as error:
            failures.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    with pytest.raises(LTRError, match="shows other labels"):
        imitation.passes.answer(np.zeros(9), np.ones(9, np.float32), None)
    thread.join(10)
    assert "shows other labels" in failures[0]


def test_objects_not_in_a_training():
    pool = make_pool()
    loss, metric = catboost_objective("queryrmse", pool), catboost_metric("ndcg", pool)
    for obj in (loss, pickle.loads(pickle.dumps(loss))):
        with pytest.raises(LTRError, match="only a training started by fit"):
            obj.calc_ders_range(np.zeros(3), np.zeros(3, np.float32), None)
    with pytest.raises(LTRError, match="only a training started by fit"):
        metric.evaluate([np.zeros(3)], np.zeros(3, np.float32), None)

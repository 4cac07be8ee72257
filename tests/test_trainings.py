"""The contract of every training: (library, its own function or our estimator, path through the adapter)."""

import multiprocessing
import pickle

import numpy as np
import pytest
from catalog import OBJECTIVES, ONE_OF_EACH, PATHS
from catboost import CatBoost, Pool
from rankers import LIBRARIES, ranker
from recording import Recording
from trainings import NEWTON, WAYS, data_of, objectives, release, trained
from xgboost import DMatrix

from ltr_objectives import Metric, Objective, adapters, evaluate

libraries = pytest.mark.parametrize("library", LIBRARIES)
ways = pytest.mark.parametrize("way", WAYS)
paths = pytest.mark.parametrize("path", PATHS)


# models


@libraries
@ways
@pytest.mark.parametrize("objective", [*PATHS, *release(objectives())])
def test_it_learns(library, way, objective):
    data, given = data_of(objective)
    X, y, group = data_of("any")[0]
    model = trained(library, way, PATHS.get(objective, objective), *data, 10, **given)
    assert evaluate("ndcg@10", model.predict(X), y, group) > evaluate("ndcg@10", np.zeros(len(y)), y, group) + 0.1


@libraries
@pytest.mark.parametrize("metric", ["map", "mrr", "dcg@5", *release(["ndcg@5", "err", "recall@3", "auc"])])
def test_early_stopping_keeps_the_best_round(library, metric):
    valid, rate = data_of("any", seed=8)[0], {"learning_rate": 1.0}
    data = data_of("any")[0]
    model = trained(
        library, "callable", PATHS["own Hessian"], *data, 60, valid=valid, metric=metric, stop=5, params=rate
    )
    [(name, values)] = model.log.items()  # XGBoost minimises what does not have a name that it knows
    values = [1 - v for v in values] if name.startswith("1-") else np.abs(values)
    assert len(values) < 60
    assert model.rounds - 1 == np.argmax(values)
    assert evaluate(metric, model.predict(valid[0]), *valid[1:]) == pytest.approx(max(values), abs=2e-6)


@libraries
@ways
@paths
def test_three_rounds_and_three_more_are_six(library, way, path):
    (X, y, group), given = data_of(path)
    whole = trained(library, way, PATHS[path], X, y, group, 6, **given).predict(X)
    first = trained(library, way, PATHS[path], X, y, group, 3, **given)
    restarted = first._replace(model=pickle.loads(pickle.dumps(first.model)))
    assert np.ptp(whole) > 1e-3
    for before in (first, restarted):
        both = trained(library, way, PATHS[path], X, y, group, 3, before=before, **given).predict(X)
        np.testing.assert_array_equal(both, whole)


@libraries
@ways
@paths
def test_threads_change_no_byte(library, way, path):
    (X, y, group), given = data_of(path)
    one, two = (trained(library, way, PATHS[path], X, y, group, 4, threads=n, **given).predict(X) for n in (1, 2))
    assert np.array_equal(one, two)


# other processes


(X, LABELS, GROUP), _ = data_of("any", queries=25)
LABELS = (LABELS > 0).astype(np.float32)
QID, SCORES = np.repeat(np.arange(25), GROUP), X[:, 0]


def compute(obj):
    """Return the bytes of all that one of our objects computes."""
    if isinstance(obj, Objective):
        found = obj.gradient_hessian(SCORES, LABELS, GROUP, iteration=7)
    elif isinstance(obj, Metric):
        found = obj.per_query(SCORES, LABELS, GROUP)
    elif obj.library.name == "catboost":
        pool = Pool(X, LABELS, group_id=QID)
        loss = {"loss_function": obj} if hasattr(obj, "calc_ders_range") else {"eval_metric": obj}
        quiet = {"iterations": 3, "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        model = CatBoost({"loss_function": "RMSE", "eval_metric": "NDCG", **quiet, **NEWTON, **loss}).fit(pool)
        found = model.predict(pool), repr(model.get_evals_result())
    else:
        found = (
            obj(LABELS, SCORES, None, GROUP)
            if obj.library.name == "lightgbm"
            else obj(SCORES, DMatrix(X, LABELS, qid=QID))
        )
    return [each.tobytes() if isinstance(each, np.ndarray) else repr(each) for each in found]


def test_objects_compute_the_same_bytes_in_another_process():
    pool, revenue = Pool(X, LABELS, group_id=QID), {"revenue": 1 - LABELS}
    objects = [
        adapters.xgboost_objective(PATHS["random"]), adapters.xgboost_metric("map", "mrr"),
        adapters.lightgbm_objective(PATHS["goals"], labels=revenue), adapters.lightgbm_metric("map", "mrr"),
        adapters.catboost_objective(PATHS["random"], pool), adapters.catboost_metric("map", pool),
        adapters.catboost_objective(PATHS["goals"], pool, labels=revenue), *OBJECTIVES.values(), *ONE_OF_EACH,
    ]  # fmt: skip
    expected = [compute(each) for each in objects]  # before they are pickled; their caches must stay here
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for each, here, there in zip(objects, expected, pool.map(compute, objects), strict=True):
            assert here == there, each


@libraries
def test_ctrl_c_is_a_keyboard_interrupt(library, monkeypatch):
    """Even if CatBoost turns it into its own error."""
    calls, fill = [], Recording.fill

    def interrupted(self, call):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        fill(self, call)

    monkeypatch.setattr(Recording, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker(library, Recording(), n_estimators=50).fit(X, LABELS, group=GROUP)
    assert len(calls) == 5

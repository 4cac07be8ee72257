"""Trainings use as many threads as they are given."""

import json

import numpy as np
import pytest
from rankers import LIBRARIES, fit, ranker_class
from recording import Recording, threads_of
from trainings import data_of, trained

from ltr_objectives.adapters import lightgbm_metric
from ltr_objectives.kernels import threads
from ltr_objectives.libraries import LIBRARIES as FACTS
from ltr_objectives.metrics import base

(X, LABELS, GROUP), _ = data_of("any", seed=11)
QID, SCORES = np.repeat(np.arange(len(GROUP)), GROUP), X[:, 0]


@pytest.fixture
def asked(monkeypatch):
    """Return the numbers of threads that metrics ask for, on a machine with five processors."""
    numbers = []
    monkeypatch.setattr(threads, "available_threads", lambda: 5)
    monkeypatch.setattr(base, "run", lambda *a: numbers.append(a[3]) or threads.run(*a))
    return numbers


@pytest.mark.parametrize("library", LIBRARIES)
def test_callables_use_the_training_s_threads_or_their_own(library, asked):
    def used(count, **own):
        data = X, LABELS, GROUP
        how = {"valid": data, "metric": "map", "threads": count}
        return threads_of(lambda: trained(library, "callable", Recording(), *data, 2, **how, **own))

    assert [used(count) for count in (1, 64, -1)] == [1, 5, 5]
    assert used(1, n_threads=4) == 4
    asked.clear()
    assert used(3, n_threads=1) == 1
    assert {*asked} - {None} == {3}  # the metric does not use those of the objective
    asked.clear()
    lightgbm_metric("map", n_threads=2)(LABELS, SCORES, None, GROUP)
    assert set(asked) == {2}


@pytest.mark.parametrize(("library", "name"), [
    ("xgboost", "n_jobs"), ("xgboost", "nthread"), ("catboost", "thread_count"),
    *(("lightgbm", name) for name in FACTS["lightgbm"].names("num_threads")),
])  # fmt: skip
def test_the_rankers_use_the_training_s_threads(library, name, asked):
    rounds = {"iterations" if library == "catboost" else "n_estimators": 2}
    for count, used in ((1, 1), (3, 3), (64, 5), (None, 5)):
        params = {} if count is None else {name: count}
        made = ranker_class(library)(objective=Recording(), eval_metric="map", **rounds, **params)
        assert threads_of(lambda made=made: made.fit(X, LABELS, qid=QID)) == used


def test_an_xgboost_model_from_a_file_has_the_number_of_threads_of_the_ranker(tmp_path):
    fit("xgboost").save_model(tmp_path / "model.json")
    loaded = ranker_class("xgboost")(n_jobs=1).load_model(tmp_path / "model.json")
    for n in (1, 2):
        config = json.loads(loaded.set_params(n_jobs=n).booster_.save_config())
        assert config["learner"]["generic_param"]["nthread"] == str(n)


def test_no_threads_are_all_threads_in_catboost():
    """CatBoost ends the process."""
    assert fit("catboost", thread_count=0).best_iteration_ == 8

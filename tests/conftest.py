"""Data for the tests: everything in the registry, and how many examples the property tests try."""

import contextlib
import itertools
import os
import sys

import catalog
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from ltr_objectives import Metric, Objective

HOW = {"deadline": None, "database": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("default", max_examples=100, derandomize=True, **HOW)
settings.register_profile("nightly", max_examples=10_000, **HOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
if settings.default.derandomize:  # the same examples after any change: no literals of the package among them
    with contextlib.suppress(ImportError):  # older versions of hypothesis draw none
        from hypothesis.internal.conjecture import providers

        providers._get_local_constants = providers.Constants

OBJECTIVES = list(itertools.chain(*catalog.SOME.values()))
METRICS = list(itertools.chain(*map(catalog.some_metrics, catalog.METRICS)))
LISTS = {
    "every_objective": [  # before a release with every metric
        o if o in OBJECTIVES else pytest.param(o, marks=pytest.mark.release)
        for o in itertools.chain(*catalog.EXAMPLES.values())
    ],
    "any_objective": OBJECTIVES,
    "quiet_objective": [quiet for objective in OBJECTIVES if (quiet := objective.without_noise())],
    "each_objective": [*catalog.OBJECTIVES.values(), *catalog.MIXTURES[:1]],  # one of each class
    "any_metric": METRICS,
    "any_learned_metric": [metric for metric in METRICS if metric.name in catalog.LEARNED],
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, values in LISTS.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, values, ids=lambda value: value.name)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240917)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Return an empty folder in which the test runs, with a cache of its own."""
    monkeypatch.setenv("LTR_OBJECTIVES_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


OWN = """
from ltr_objectives import NDCG, RMSE
class Mine(NDCG, text="mine"): ...
class Error(RMSE, text="error"): ...
"""


@pytest.fixture
def own_names(workplace):
    """Yield the metric "mine", which is NDCG, and the objective "error", which is RMSE, in a module of this folder."""
    (workplace / "own_names.py").write_text(OWN)
    yield "own_names"
    for known in (Metric.named, Objective.named, sys.modules):
        for name in ("mine", "error", "own_names"):
            known.pop(name, None)


@pytest.fixture(scope="module")
def client():
    """Yield a Dask cluster whose workers are threads of this process, each with connections of its own.

    It starts in milliseconds, and machine code is compiled once. The example has processes as
    workers.
    """
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 3, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client

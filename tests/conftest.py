"""Data for the tests: random queries, ugly lists, and everything in the registry."""

import numpy as np
import pytest

from ltr_objectives import registry

OBJECTIVES = [example for name in registry.objectives() for example in registry.objective_class(name).examples()]
METRICS = [example for name in registry.metrics() for example in registry.metric_class(name).examples()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, values in (("any_objective", OBJECTIVES), ("any_metric", METRICS)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, values, ids=[f"{i}-{v.name}" for i, v in enumerate(values)])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240917)

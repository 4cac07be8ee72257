"""Labels too large for exponential gains: warnings and errors, for the labels and for those of a goal."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
from catalog import OBJECTIVES

from ltr_objectives import LTRError, Mixture, evaluate, get_metric, registry
from ltr_objectives.metrics.gains import LARGEST_EXPONENT

SIZES = [1, 2, 9, 30, 20]
ROWS = sum(SIZES)


def of_objective(name):
    """The largest label, and the gradient by labels and by those of a goal."""
    objective = OBJECTIVES[name]
    on_goal = Mixture([objective], labels=["revenue"], normalize=False)
    return objective.label_limit, objective.gradient_hessian, on_goal.gradient_hessian


def of_metric(name):
    name += "@5" if registry.metric_class(name).cutoff == "required" else ""
    return get_metric(name).label_limit, partial(evaluate, name), partial(evaluate, f"{name}[revenue]")


METRICS = [name for name in registry.metrics() if name != "kendall"]  # of few labels


@pytest.mark.parametrize(
    ("make", "name"), [*((of_objective, name) for name in OBJECTIVES), *((of_metric, name) for name in METRICS)]
)
def test_large_labels_of_a_goal_are_warned_of_as_labels_are(make, name, rng):
    scores, (limit, plain, on_goal) = rng.normal(size=ROWS), make(name)
    for most in (31.0, 100.0, 5000.0):
        labels = np.resize([0.0, 1.0, most], ROWS)
        alone, of_goal = (
            told(plain, scores, labels),
            told(on_goal, scores, {"relevance": labels % 2, "revenue": labels}),
        )
        assert {re.sub(r"^labels\['revenue'\]: |\['?revenue'?\]", "", text) for text in of_goal} == alone
        assert bool(alone) == ((limit == LARGEST_EXPONENT and most > 31) or (limit or most) < most)


def told(call, scores, labels):
    """The texts of an error or of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(scores, labels, SIZES)
        except LTRError as error:
            return {str(error)}
    return {str(warning.message) for warning in caught}

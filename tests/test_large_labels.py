"""Labels too large for exponential gains: warnings and errors, for the labels and for those of a goal."""

import warnings

import numpy as np
import pytest
from catalog import EXAMPLES

from ltr_objectives import LTRError, Mixture, evaluate, get_metric, registry
from ltr_objectives.metrics.gains import LARGEST_EXPONENT

SIZES = [1, 2, 9, 30, 20]
ROWS = sum(SIZES)


@pytest.fixture
def scores(rng):
    return rng.normal(size=ROWS)


@pytest.mark.parametrize("name", registry.objectives())
def test_large_labels_of_a_goal_are_warned_of_as_labels_are(name, scores):
    for most in (31.0, 100.0, 5000.0):
        check_objective(EXAMPLES[name][-1], most, scores)


def check_objective(objective, most, scores):
    labels = np.resize([0.0, 1.0, most], ROWS)
    alone = told(lambda: objective.gradient_hessian(scores, labels, SIZES))
    on_goal = Mixture([objective], labels=["revenue"], normalize=False)
    of_goal = told(lambda: on_goal.gradient_hessian(scores, {"relevance": labels % 2, "revenue": labels}, SIZES))
    assert {text.removeprefix("labels['revenue']: ").replace("['revenue']", "") for text in of_goal} == alone
    exponential = objective.label_limit == LARGEST_EXPONENT
    assert bool(alone) == ((exponential and most > 31) or (objective.label_limit or most) < most)


@pytest.mark.parametrize("name", [name for name in registry.metrics() if name != "kendall"])  # of few labels
def test_metrics_of_a_goal_warn_of_large_labels_as_others_do(name, scores):
    for most in (31.0, 100.0, 5000.0):
        check_metric(name, most, scores)


def check_metric(name, most, scores):
    cutoff = "@5" if registry.metric_class(name).cutoff == "required" else ""
    labels = np.resize([0.0, 1.0, most], ROWS)
    alone = told(lambda: evaluate(name + cutoff, scores, labels, SIZES))
    goals = {"relevance": labels % 2, "revenue": labels}
    of_goal = told(lambda: evaluate(f"{name}{cutoff}[revenue]", scores, goals, SIZES))
    assert {text.replace("[revenue]", "").replace("['revenue']", "") for text in of_goal} == alone
    limit = get_metric(name + cutoff).label_limit
    assert bool(alone) == ((limit == LARGEST_EXPONENT and most > 31) or (limit or most) < most)


def told(call):
    """The texts of an error or of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except LTRError as error:
            return {str(error)}
    return {str(warning.message) for warning in caught}

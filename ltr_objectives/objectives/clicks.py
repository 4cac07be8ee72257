"""Checks of labels that are clicks."""

import numpy as np

from ltr_objectives.errors import warn


def warn_of_propensities(propensity: np.ndarray, labels: np.ndarray) -> None:
    """Warn of labels that are no clicks, and of propensities that are no probabilities."""
    if propensity.max() > 1:
        warn(
            f"propensity is up to {propensity.max():g}, but a probability is at most 1: if these are inverse "
            "weights, pass 1 / weights, else divide them by the largest"
        )
    warn_of_labels(labels, "propensity")


def warn_of_labels(labels: np.ndarray, given: str) -> None:
    """Warn of labels that are no clicks, though the argument ``given`` says so."""
    other = labels[(labels != 0) & (labels != 1)]
    if len(other):
        warn(
            f"with {given}, labels are clicks, 0 or 1, but some are {other[0]:g}: relevance that was judged has no "
            f"position bias, so leave {given} out; for degrees of clicks, such as purchases, pass labels > 0"
        )

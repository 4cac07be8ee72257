"""The check of labels that are clicks, with propensities or positions."""

from ltr_objectives.errors import warn
from ltr_objectives.queries import Queries


def warn_of_clicks(queries: Queries) -> None:
    """Warn of labels that are no clicks, and of propensities that are no probabilities."""
    if queries.propensity is not None and queries.propensity.max() > 1:
        warn(
            f"propensity is up to {queries.propensity.max():g}, but a probability is at most 1: if these are inverse "
            "weights, pass 1 / weights, else divide them by the largest"
        )
    name = "propensity" if queries.position is None else "position"
    other = queries.labels[(queries.labels != 0) & (queries.labels != 1)]
    if len(other):
        warn(
            f"with {name}, labels are clicks, 0 or 1, but some are {other[0]:g}: relevance that was judged has no "
            f"position bias, so leave {name} out; for degrees of clicks, such as purchases, pass labels > 0"
        )

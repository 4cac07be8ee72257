"""Checks of data whose labels are clicks, with propensities or positions."""

from ltr_objectives.errors import require, warn
from ltr_objectives.queries import Queries


def check_clicks(queries: Queries, objective: str, takes_clicks: bool) -> None:
    """Raise for clicks if the objective of this name does not take them; warn of such that are none."""
    if queries.propensity is not None or queries.position is not None:
        require(
            takes_clicks,
            f"{objective} does not take propensity or position; leave them out, or use LambdaMART or YetiLoss",
        )
        queries.once("clicks", lambda: warn_of_clicks(queries))


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

"""The size of an objective's gradients and Hessians on a data set, before anything is learned."""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels.rng import GAUSSIAN_NOISE, add_noise
from ltr_objectives.metrics.gains import SMALLEST
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.composite import initial_score, on_all_queries
from ltr_objectives.queries import Queries


class Typical(NamedTuple):
    """Mean absolute gradient and Hessian of a row at random scores: standard normal around a training's start.

    Weights are scaled to mean 1, and a mean of 0 is replaced by 1.
    """

    gradient: float
    hessian: float


def typical_size(objective: Objective, queries: Queries, n_threads: int | None = None) -> Typical:
    """Return the typical size of the objective's gradients and Hessians; equal queries give equal values.

    The random scores go to the documents of a query by label, not by row. So an objective without noise has the same
    values, up to rounding, whatever the order of the rows in a query, unless rows of equal labels have other weights.
    """
    objective = on_all_queries(objective)  # all queries, not those of one draw

    def measure() -> Typical:
        normal, scores = np.empty(queries.rows), np.empty(queries.rows)
        add_noise(np.zeros(queries.rows), GAUSSIAN_NOISE, 1.0, np.uint64(0), np.uint64(0), normal)
        order = queries.by_label + np.repeat(queries.ptr[:-1], np.diff(queries.ptr))
        scores[order] = normal + initial_score(objective, queries)
        weight = objective.row_weight(queries)
        mean = 1.0 if weight is None else float(weight.mean()) or 1.0
        sizes = [np.abs(x).mean() / mean for x in objective.compute(queries, scores, n_threads=n_threads)]
        return Typical(*(float(size) if size > SMALLEST else 1.0 for size in sizes))

    return queries.cached(("typical", objective), measure)

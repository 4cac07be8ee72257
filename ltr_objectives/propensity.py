r"""Estimate from clicks how likely each position is examined: the additive method."""

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_positive
from ltr_objectives.errors import require
from ltr_objectives.kernels.examination import fit_examination
from ltr_objectives.queries import Queries

__all__ = ["position_propensity"]


def position_propensity(
    scores: ArrayLike,
    clicks: ArrayLike,
    position: ArrayLike,
    group: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    sigma: float = 1.0,
) -> np.ndarray:
    r"""Estimate the propensity of each position from clicks, at given scores.

    Let users examine position :math:`k` with probability :math:`\theta_k`, and click an examined document with
    probability :math:`\gamma_i`. Then :math:`P(c_i = 1) = \theta_{k(i)} \gamma_i`. With
    :math:`\gamma_i \propto e^{\sigma s_i}` within each query, the propensities that make the clicks most likely solve

    .. math::
        \theta_k = \frac{\sum_{i: k(i) = k} c_i}{\sum_{i: k(i) = k} C_{q(i)} \, e^{\sigma s_i} / Z_{q(i)}}, \qquad
        Z_q = \sum_{j \in q} e^{\sigma s_j} \theta_{k(j)}

    with :math:`C_q` the clicks of the query. The objectives add :math:`\log \theta_k` to the scores, as LightGBM does.
    They solve for :math:`\theta` exactly; LightGBM takes one Newton step an iteration. The likelihood is in
    :mod:`ltr_objectives.kernels.examination`; it has a weak prior for positions with few clicks.

    Parameters
    ----------
    scores : array of shape (rows,)
        Scores of a ranker that was not trained on these clicks; otherwise it would explain too many of them.
    clicks : array of shape (rows,)
        At least 0; usually 0 or 1.
    position : array of shape (rows,)
        Where each document was shown: whole numbers of at least 0. Merge rare positions, for example with
        ``np.minimum(position, 50)``.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row.
    weight : array of shape (queries,) or (rows,), optional
        The weight of a query is the mean of its rows' weights.
    sigma : float
        The ``sigma`` of the objective that the scores were trained with.

    Returns
    -------
    float64 array of shape (largest position + 1,)
        Relative to the largest, which is 1. Positions that do not occur get the mean of the others.

    Raises
    ------
    LTRError
        For invalid input.

    Notes
    -----
    The estimate is only as good as the scores. If all scores are equal, :math:`\theta_k` is the click rate of the
    position, which includes how relevant the documents are that the logged ranking showed there.

    Examples
    --------
    Four rankings of two equal documents; position 0 was clicked in three of them, position 1 in one:

    >>> theta = position_propensity([0.0] * 8, [1, 0, 1, 0, 1, 0, 0, 1], [0, 1] * 4, group=[2] * 4)
    >>> theta.round(2)
    array([1.  , 0.43])
    """
    check_positive("sigma", sigma)
    require(position is not None, "position is None; pass where each document was shown")
    queries = Queries(clicks, group, qid=qid, weight=weight, position=position)
    theta = examination(queries, queries.check_scores(scores).values, sigma)
    return np.asarray(theta / theta[queries.position].max())


def examination(queries: Queries, scores: np.ndarray, sigma: float) -> np.ndarray:
    """Propensity of each position; the mean over the positions that occur is 1."""
    assert queries.position is not None
    position: np.ndarray = queries.position
    found, dense = queries.once("positions that occur", lambda: tuple(np.unique(position, return_inverse=True)))
    weight = queries.weight_by_query
    weight = np.ones(len(queries)) if weight is None else weight
    theta = np.ones(len(found))
    fit_examination(queries.ptr, dense, scores, float(sigma), queries.labels, weight, theta)
    out = np.ones(int(found[-1]) + 1)
    out[found] = theta
    return out

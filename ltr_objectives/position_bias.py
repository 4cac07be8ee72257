r"""Position bias of clicks: an offset to the scores for each position, estimated before a training.

In the position-based model a document :math:`i`, shown at position :math:`k_i`, is clicked with probability
:math:`\theta_{k_i} \gamma_i`. So the chance that a click of a list is one on :math:`i` is the softmax of
:math:`\log \theta_{k_i} + \log \gamma_i`, however frequent clicks are. The unknown :math:`\log \gamma_i` is replaced by
what decided where the document stood: :math:`e_i = E[-\log(1 + k_i) \mid x_i]`, by a regression of the position on the
features. Given :math:`e`, positions are as good as random (adjustment for a propensity score; Robinson, "Root-N-
Consistent Semiparametric Regression", Econometrica 1988).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import Queries, check_rows, vector

BENT = 256  # positions before this one have an offset of their own; from there on the curve goes on
RIDGE = 3.0  # of the offset of a position around the curve
STEPS = 50  # of Newton's method, which needs about eight
MOST_POSITIONS = 100_000
# the advice
NEARLY_RIGHT = 0.25  # of the curve is left to the old ranking
DETERMINED = 0.97  # of the variance of positions is explained by the features


@dataclass(frozen=True)
class PositionOffsets:
    """The estimate of :func:`ltr_objectives.adapters.position_offsets`: one offset to the scores for each position.

    Attributes
    ----------
    offsets : float64 array of shape (positions,)
        What a training adds to the scores of the documents at each position, 0 at the first.
    log_propensities : float64 array of shape (positions,)
        How much less often each position is looked at than the first: the logarithm of the ratio, 0 at the first. They
        are the offsets, but for the part that is ``left``.
    errors : float64 array of shape (positions,)
        Standard errors of ``log_propensities``.
    documents, clicks : int64 arrays of shape (positions,)
        How many documents were shown at each position, and how many clicks they got.
    eta, eta_error : float
        The exponent of the curve :math:`(1 + k)^{-\\eta}` through the propensities, and its standard error. 0 is no
        position bias, and 1 is usual.
    trust, trust_error : float
        The coefficient of what the features say of the position. Above 0, the old ranking was right beyond its bias.
    r2 : float
        The share of the variance of positions that the features explain, on queries that the regression did not see.
    left : float
        The part of ``eta`` that is not corrected, because the old ranking deserves it; 0 if it was large and trees
        explain clicks beyond the old ranking.
    first : int
        The number of the first position, 0 or 1.
    """

    offsets: np.ndarray
    log_propensities: np.ndarray
    errors: np.ndarray
    documents: np.ndarray
    clicks: np.ndarray
    eta: float
    eta_error: float
    trust: float
    trust_error: float
    r2: float
    left: float
    first: int

    @property
    def propensities(self) -> np.ndarray:
        """How often each position is looked at, as a share of the first."""
        return np.exp(self.log_propensities)

    @property
    def advice(self) -> str:
        """Why a correction would not help; empty if it should."""
        if self.r2 >= DETERMINED:
            return f"the features determine the positions (R2 {self.r2:.3f}), so that nothing shows their bias"
        if self.eta < 2 * self.eta_error:
            return f"no position bias is found: eta is {self.eta:.2f} with an error of {self.eta_error:.2f}"
        if self.left > NEARLY_RIGHT * self.eta:
            return f"the old ranking is nearly right: {self.left / self.eta:.0%} of the bias is what it knew"
        return ""

    def at(self, position: ArrayLike) -> np.ndarray:
        """Return the offset of each row, whose ``position`` is numbered as in the estimate; the last one beyond.

        Add them to the scores that a training starts from: ``init_score`` in LightGBM, ``base_margin`` in XGBoost,
        ``baseline`` in CatBoost.
        """
        return self.offsets[self._row(position)]

    def log_likelihood(
        self, clicks: ArrayLike, scores: ArrayLike, position: ArrayLike, *, group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> float:  # fmt: skip
        r"""Mean logarithm of the chance that the model gives to each click of other queries; higher is better.

        .. math:: \frac{1}{C} \sum_q \sum_{i \in q} y_i \log \frac{e^{s_i + b_i}}{\sum_{j \in q} e^{s_j + b_j}}

        with :math:`C` clicks and the log propensity :math:`b_i` of where document i was shown. Unlike metrics of clicks
        it favours no model for showing what was shown.

        Parameters
        ----------
        clicks, scores, position : arrays of shape (rows,)
            The clicks, at least 0; the scores of the model; and the positions where users saw the documents.
        group : array of shape (queries,), optional
            Sizes of the queries. Give this or ``qid``.
        qid : array of shape (rows,), optional
            Query id of each row.

        Examples
        --------
        >>> found = estimate(Queries([1, 0, 1, 0, 0, 1], [2, 2, 2]), [0, 1, 0, 1, 0, 1])
        >>> round(found.log_likelihood([1, 0], [0.3, 0.0], [0, 1], group=[2]), 1)
        -0.3
        """
        queries = Queries(clicks, group, qid=qid)
        s = queries.check_scores(scores).values + self.log_propensities[self._row(position)]
        y = queries.labels
        require(y.min() >= 0 and y.any(), "clicks must be at least 0, and some above 0")
        return float(y @ log_chances(s, queries) / y.sum())

    def _row(self, position: ArrayLike) -> np.ndarray:
        given = vector("position", position)
        require((given >= self.first).all(), f"position counts from {self.first} here, as in the estimate")
        return np.minimum(given.astype(np.int64) - self.first, len(self.offsets) - 1)


def check_positions(position: ArrayLike, rows: int) -> np.ndarray:
    """Return positions as int64; raise unless they are whole numbers of at least 0, one a row."""
    given = vector("position", position)
    check_rows("position", given, rows)
    good = (given == np.floor(given)) & (given >= 0) & (given < MOST_POSITIONS)
    if not good.all():
        row = int(np.argmin(good))
        raise LTRError(
            f"position must be whole numbers from 0 to {MOST_POSITIONS - 1}, but row {row} has {given[row]:g}"
        )
    return given.astype(np.int64)


def ranks_of(position: np.ndarray) -> tuple[np.ndarray, int]:
    """Return positions counted from 0, and the number of the first, 0 or 1."""
    first = int(position.min() >= 1)
    return position - first, first


def centred(values: np.ndarray, queries: Queries) -> np.ndarray:
    """Return the values minus the mean of their query."""
    mean: np.ndarray = np.add.reduceat(values, queries.ptr[:-1]) / np.diff(queries.ptr)
    return values - mean[queries.query_by_row]


def log_chances(scores: np.ndarray, queries: Queries) -> np.ndarray:
    """Return the logarithm of the softmax over each query."""
    starts, row = queries.ptr[:-1], queries.query_by_row
    shifted = scores - np.maximum.reduceat(scores, starts)[row]
    chances: np.ndarray = shifted - np.log(np.add.reduceat(np.exp(shifted), starts))[row]
    return chances


def estimate(
    queries: Queries, position: ArrayLike, expected: np.ndarray | None = None, r2: float = 0.0
) -> PositionOffsets:
    r"""Estimate the offsets of positions from clicks, and from what the features say of the positions.

    With :math:`f_i = -\eta \log(1 + k_i) + d_{k_i} + c\,e_i` maximise

    .. math:: \sum_q \sum_{i \in q} y_i \log \frac{e^{f_i}}{\sum_{j \in q} e^{f_j}} - \frac{3}{2} \sum_k d_k^2
        - \frac{c^2}{20}

    by Newton's method. The log propensity is :math:`b_k = -\eta \log(1 + k) + d_k - d_0`. If :math:`c` is above its
    standard error, the old ranking was right beyond its bias, and the part
    :math:`m = \min(R^2 (c - \mathrm{se}(c)), 0.6\,\eta)` of the curve is left to it: the offset is
    :math:`b_k + m \log(1 + k)`.

    Parameters
    ----------
    queries : Queries
        Their labels are clicks, at least 0. Weights are not read.
    position : array of shape (rows,)
        Where each document was shown, from 0 or 1.
    expected : array of shape (rows,), optional
        :math:`e`, centred in each query, for each row by a regression on other queries; 0 by default.
    r2 : float
        The share of the variance that ``expected`` explains.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> position = np.tile(np.arange(10), 2000)
    >>> clicks = rng.random(20_000) < 0.3 / (1 + position)
    >>> found = estimate(Queries(clicks, [10] * 2000), position)
    >>> round(found.eta, 1), found.propensities[:2].round(1)
    (1.0, array([1. , 0.5]))
    """
    require(queries.labels.min() >= 0, "with position, labels are clicks and must not be negative")
    place, first = ranks_of(check_positions(position, queries.rows))
    x, covariance = _fit(queries, place, expected)
    curve = -np.log1p(np.arange(int(place.max()) + 1))
    log, errors = _log_propensities(curve, x, covariance)
    eta, trust = x[:2].tolist()
    eta_error, trust_error = np.sqrt(covariance.diagonal()[:2]).tolist()
    left = min(max(r2, 0.0) * max(trust - trust_error, 0.0), 0.6 * max(eta, 0.0))
    documents, clicks = np.bincount(place), np.bincount(place, queries.labels).astype(np.int64)
    return PositionOffsets(
        log - left * curve, log, errors, documents, clicks, eta, eta_error, trust, trust_error, r2, left, first
    )


def _fit(queries: Queries, place: np.ndarray, expected: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the maximum of the likelihood, the parameters ``eta, c, d_0, d_1, ...``, and their covariance."""
    from scipy import sparse  # which the estimators need anyway

    y, bent = queries.labels, min(int(place.max()) + 1, BENT)
    clicked = np.add.reduceat(y, queries.ptr[:-1]) > 0
    rows = np.flatnonzero(clicked[queries.query_by_row])
    y, k, n = y[rows], place[rows], int(clicked.sum())
    q = np.repeat(np.arange(n), np.diff(queries.ptr)[clicked])
    starts = np.flatnonzero(np.diff(q, prepend=-1))
    total = np.bincount(q, y, n)  # clicks of each query
    own = np.flatnonzero(k < bent)
    D = sparse.hstack(
        [
            np.column_stack([-np.log1p(k), np.zeros(len(k)) if expected is None else expected[rows]]),
            sparse.csr_matrix((np.ones(len(own)), (own, k[own])), (len(k), bent)),
        ],
        format="csr",
    )
    penalty, x = np.r_[1e-6, 0.1, np.full(bent, RIDGE)], np.zeros(bent + 2)
    for _ in range(STEPS):
        f = D @ x
        p = np.exp(f - np.maximum.reduceat(f, starts)[q]) if n else f
        p /= np.bincount(q, p, n)[q]
        mean = sparse.csr_matrix((p, (q, np.arange(len(q)))), (n, len(q))) @ D
        hess = (D.T @ D.multiply((total[q] * p)[:, None]) - mean.T @ mean.multiply(total[:, None])).toarray()
        hess += np.diag(penalty)
        step = np.linalg.solve(hess, D.T @ (y - total[q] * p) - penalty * x)
        x += step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-8:
            break
    return x, np.linalg.inv(hess)


def _log_propensities(curve: np.ndarray, x: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log propensity of each position, and its standard error; ``curve`` is that of ``eta`` = 1."""
    bent = len(x) - 2
    to_log = np.zeros((len(curve), len(x)))  # from the parameters to the log propensities
    to_log[:, 0] = curve
    to_log[np.arange(bent), 2 + np.arange(bent)] = 1.0
    to_log[:, 2] -= 1.0
    return to_log @ x, np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", to_log, covariance, to_log), 0.0))

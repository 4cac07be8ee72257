"""Expected exposure: how a ranker, perhaps a random one, shares attention among documents and their owners."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_choice, check_fraction
from ltr_objectives.errors import require
from ltr_objectives.metrics.correlation import sorted_with_ties
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.plrank import PLRank
from ltr_objectives.queries import Queries, check_rows, codes_of, ids_of, to_numpy


def evaluate_exposure(
    scores: ArrayLike,
    labels: ArrayLike,
    group: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    patience: float = 0.8,
    policy: str = "sorted",
    samples: int = 1000,
    seed: int = 0,
    owner: ArrayLike | None = None,
) -> dict[str, float]:
    r"""Compare the expected exposure of documents with that of an ideal ranker, in the mean over queries.

    Diaz, Mitra, Ekstrand, Biega and Carterette, "Evaluating Stochastic Rankings with Expected Exposure", CIKM 2020. A
    user looks at rank :math:`d` with probability :math:`p^{d-1}`, as in :class:`ltr_objectives.RBP`, so a document has
    an expected exposure :math:`\varepsilon_i`. The target :math:`\varepsilon^*_i` is that of rankings by label in which
    documents of equal labels are in random order.

    * ``ee_d``: disparity :math:`\sum_i \varepsilon_i^2`, least if all documents have equal exposure;
    * ``ee_r``: relevance :math:`\sum_i \varepsilon_i \varepsilon^*_i`;
    * ``ee_l``: loss :math:`\sum_i (\varepsilon_i - \varepsilon^*_i)^2 = \mathrm{ee}_d - 2 \, \mathrm{ee}_r +
      \sum_i {\varepsilon^*_i}^2`; 0 is best.

    With ``owner`` also ``owner_ee_d``, ``owner_ee_r`` and ``owner_ee_l``, the same of the sums over the documents of
    each owner in a query. ``exposure[x]`` and ``target[x]`` are the shares of the owner ``x`` in the exposure of all
    queries.

    Parameters
    ----------
    scores : array of shape (rows,) or (rows, draws)
        Finite numbers; higher ranks first, and equal scores are in random order. Each column is one draw of a random
        ranker.
    labels : array of shape (rows,)
        Relevance, finite.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row.
    patience : float
        :math:`p`, above 0 and at most 1.
    policy : "sorted" or "plackett-luce"
        "plackett-luce" ranks at random, with the probabilities of :class:`ltr_objectives.PLRank`; ``samples`` rankings
        of each query are drawn.
    samples : int
        Number of rankings of each query with the policy "plackett-luce".
    seed : int
        Selects these rankings.
    owner : array of shape (rows,), optional
        The group that a document belongs to, such as its author or seller: numbers or strings.

    Raises
    ------
    LTRError
        For invalid input.

    Examples
    --------
    >>> evaluate_exposure([1, 0], [1, 1], group=[2], patience=0.5)  # one of two equal documents always comes first
    {'ee_d': 1.25, 'ee_r': 1.125, 'ee_l': 0.125}
    >>> evaluate_exposure([[1, 0], [0, 1]], [1, 1], group=[2], patience=0.5)["ee_l"]
    0.0
    """
    check_fraction("patience", patience)
    check_choice("policy", policy, ("sorted", "plackett-luce"))
    queries, table = Queries(labels, group, qid=qid), to_numpy(scores, "scores")
    queries.check_order({"scores": scores, "owner": owner})
    require(table.ndim in (1, 2) and table.size, f"scores must have shape (rows,) or (rows, draws), got {table.shape}")
    drawn = [queries.check_scores(column).values for column in (table.T if table.ndim == 2 else [table])]
    attention = patience ** np.arange(queries.longest, dtype=np.float64)
    if policy == "sorted":
        exposures = [_sorted(queries, s, attention) for s in drawn]
    else:
        model = PLRank(None, discount=tuple(attention), samples=samples, seed=seed)
        exposures = [model.exposure(Call.at(queries, s)) for s in drawn]
    exposure, target = np.mean(exposures, axis=0), _sorted(queries, queries.labels, attention)
    query = queries.query_by_row
    found = _compared("", exposure, target, len(queries))
    if owner is not None:
        ids = ids_of(owner, "owner")
        check_rows("owner", ids, queries.rows)
        names, which = codes_of(ids)
        both = np.unique(query * len(names) + which, return_inverse=True)[1]
        found |= _compared("owner_", np.bincount(both, exposure), np.bincount(both, target), len(queries))
        for kind, e in (("exposure", exposure), ("target", target)):
            shares = np.bincount(which, e) / e.sum()
            found |= {f"{kind}[{name}]": float(share) for name, share in zip(names, shares, strict=True)}
    return found


def _compared(prefix: str, exposure: np.ndarray, target: np.ndarray, queries: int) -> dict[str, float]:
    sums = {"ee_d": exposure @ exposure, "ee_r": exposure @ target, "ee_l": ((exposure - target) ** 2).sum()}
    return {prefix + name: float(value) / queries for name, value in sums.items()}


def _sorted(queries: Queries, values: np.ndarray, attention: np.ndarray) -> np.ndarray:
    """Return attention at the rank of each row in descending order of ``values``; the mean of equal ones of a query."""
    rows, starts = sorted_with_ties(queries, values)
    tied = np.repeat(np.arange(len(starts)), np.diff(starts, append=queries.rows))
    ranks = np.arange(queries.rows) - np.repeat(queries.ptr[:-1], np.diff(queries.ptr))
    mean = np.bincount(tied, attention[ranks]) / np.bincount(tied)
    out = np.empty(queries.rows)
    out[rows] = mean[tied]
    return out

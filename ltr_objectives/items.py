"""Beyond accuracy: which items the first documents of all queries show, how familiar and how alike they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require
from ltr_objectives.queries import Queries, check_rows, ids_of, to_numpy, vector


def evaluate_items(
    scores: ArrayLike,
    item: ArrayLike,
    group: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    k: int = 10,
    catalogue: int | None = None,
    familiarity: ArrayLike | None = None,
    vectors: Any = None,
    labels: ArrayLike | None = None,
    expected: ArrayLike | None = None,
) -> dict[str, float]:
    r"""Measure coverage, diversity, novelty and serendipity of the first :math:`k` documents :math:`T_q` of each query.

    * ``items``: number of distinct items in :math:`\bigcup_q T_q`, the aggregate diversity of Adomavicius and Kwon
      (2012); ``coverage``: its share of the catalogue (Ge, Delgado-Battenfeld and Jannach, 2010).
    * ``novelty``, with ``familiarity`` :math:`p`: mean over :math:`T_q` of the self-information
      :math:`-\log_2 p_i` (Zhou et al., 2010).
    * ``diversity``, with ``vectors`` :math:`v`: mean over the pairs of :math:`T_q` of
      :math:`1 - \cos(v_i, v_j)` (Smyth and McClave, 2001; Ziegler et al., 2005). Queries
      with one document do not count.
    * ``serendipity``, with ``labels`` and ``expected``: share of :math:`T_q` that is relevant and not expected (Ge et
      al., 2010).

    Parameters
    ----------
    scores : array of shape (rows,)
        Finite numbers; higher ranks first. Documents with equal scores rank in their order.
    item : array of shape (rows,)
        The item of each row: numbers or strings.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row.
    k : int
        The first documents of each query that count.
    catalogue : int, optional
        Number of items that could be shown; by default those in ``item``.
    familiarity : array of shape (rows,), optional
        Share of the users who know the item, above 0 and at most 1.
    vectors : array or sparse matrix of shape (rows, dimensions), or column of arrays, optional
        Features of the items, such as embeddings; none may be all zeros.
    labels : array of shape (rows,), optional
        A document is relevant if its label is above 0.
    expected : array of shape (rows,) of bool, optional
        True for documents that a plain recommender shows too, such as one of the most popular items.

    Returns
    -------
    dict of float
        The values that the arguments allow; means over queries.

    Raises
    ------
    LTRError
        For invalid input, or one of ``labels`` and ``expected`` without the other.

    Examples
    --------
    >>> evaluate_items([3, 2, 1, 3, 2, 1], ["a", "b", "c", "a", "c", "d"], [3, 3], k=2, familiarity=[0.5] * 6)
    {'items@2': 3.0, 'coverage@2': 0.75, 'novelty@2': 1.0}
    """
    ids = ids_of(item, "item")
    k = check_integer("k", k)
    queries = Queries(np.zeros(len(to_numpy(scores, "scores"))) if labels is None else labels, group, qid=qid)
    check_rows("item", ids, queries.rows)
    queries.check_order({"item": item, "familiarity": familiarity, "vectors": vectors, "expected": expected})
    s = queries.check_scores(scores).values
    query = queries.query_by_row
    order = np.lexsort((-s, query))
    top = order[np.arange(queries.rows) - queries.ptr[query] < k]
    of = query[top]
    shown, known = len(set(ids[top].tolist())), len(set(ids.tolist()))
    size = known if catalogue is None else check_integer("catalogue", catalogue, least=known)
    found = {"items": float(shown), "coverage": shown / size}

    def mean(values: np.ndarray) -> float:
        return float((np.bincount(of, values) / np.bincount(of)).mean())

    if familiarity is not None:
        p = vector("familiarity", familiarity)
        check_rows("familiarity", p, queries.rows)
        require(((p > 0) & (p <= 1)).all(), "familiarity must be shares of users above 0 and at most 1")
        found["novelty"] = mean(-np.log2(p[top]))
    if vectors is not None:
        found["diversity"] = _diversity(_matrix(vectors), top, of, queries)
    require(
        (labels is None) == (expected is None), "serendipity needs both labels= and expected=; pass both or neither"
    )
    if expected is not None:
        e = to_numpy(expected, "expected").reshape(-1)
        require(e.dtype == bool, f"expected must be True and False, got {e.dtype}")
        check_rows("expected", e, queries.rows)
        found["serendipity"] = mean((queries.labels[top] > 0) & ~e[top])
    return {f"{name}@{k}": value for name, value in found.items()}


def _matrix(vectors: Any) -> np.ndarray:
    """Return the vectors of a matrix, also a sparse one, or of a column of arrays."""
    given = to_numpy(vectors.toarray() if hasattr(vectors, "toarray") else vectors, "vectors")
    rows = to_numpy(given.tolist(), "vectors") if given.dtype == object else given
    return vector("vectors", rows.reshape(-1)).reshape(rows.shape)


def _diversity(vectors: np.ndarray, top: np.ndarray, of: np.ndarray, queries: Queries) -> float:
    """Average distances of pairs over queries: of n unit vectors the mean is (n^2 - |sum|^2) / (n (n - 1))."""
    require(vectors.ndim == 2, f"vectors must have shape (rows, dimensions), got {vectors.shape}")
    check_rows("vectors", vectors, queries.rows)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    good = np.isfinite(length) & (length > 0)
    require(good.all(), f"vectors must be finite and not all zeros, but row {int(np.argmin(good))} is not")
    n = np.bincount(of)
    if not (n > 1).any():
        return float("nan")
    total = np.add.reduceat((vectors / length)[top], np.concatenate(([0], np.cumsum(n)[:-1])))
    pairs = (n * n - (total**2).sum(axis=1))[n > 1] / (n * (n - 1))[n > 1]
    return float(pairs.mean())

"""Runs and judgements as dictionaries, which ir_measures, pytrec_eval and ranx read."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import Queries, check_rows, ids_of, vector

LARGEST = 2.0**31  # of labels: pytrec_eval has whole numbers of 32 bits


def to_run(
    scores: ArrayLike, group: ArrayLike | None = None, *, qid: ArrayLike | None = None, item: ArrayLike | None = None
) -> dict[str, dict[str, float]]:
    """Convert scores to a run: the score of each document by query, as ir_measures, pytrec_eval and ranx read it.

    trec_eval compares scores in float32, and ranks equal ones by descending name of the document. Without ``item``
    names descend from row to row, so that equal scores rank in the order of the rows.

    Parameters
    ----------
    scores : array of shape (rows,)
        Finite numbers; higher ranks first.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row. With ``group`` queries are named "1", "2", and so on.
    item : array of shape (rows,), optional
        The name of each document, once in a query: numbers or strings. Without it, ``to_run`` and :func:`to_qrels`
        must have the same rows, because names are numbers of rows.

    Returns
    -------
    dict of dict of float
        Scores by query, then by document.

    Raises
    ------
    LTRError
        For invalid input.

    Examples
    --------
    >>> to_run([0.3, 0.1, 0.2], qid=[7, 7, 8], item=["a", "b", "a"])
    {'7': {'a': 0.3, 'b': 0.1}, '8': {'a': 0.2}}
    """
    values = vector("scores", scores)
    queries = Queries(np.zeros(len(values)), group, qid=qid)
    queries.check_order({"scores": scores, "item": item})
    return _by_query(queries, queries.check_scores(values).values.tolist(), qid, item)


def to_qrels(
    labels: ArrayLike, group: ArrayLike | None = None, *, qid: ArrayLike | None = None, item: ArrayLike | None = None
) -> dict[str, dict[str, int]]:
    """Convert labels to judgements: the label of each document by query, as ir_measures, pytrec_eval and ranx read it.

    Parameters
    ----------
    labels : array of shape (rows,)
        Whole numbers of 32 bits. A document whose label is NaN is left out: it has no judgement.
    group, qid, item
        As in :func:`to_run`.

    Returns
    -------
    dict of dict of int
        Labels by query, then by document.

    Raises
    ------
    LTRError
        For invalid input.

    Examples
    --------
    >>> to_qrels([2, 0, 1], [2, 1])
    {'1': {'3': 2, '2': 0}, '2': {'1': 1}}
    """
    values = vector("labels", labels)
    judged = ~np.isnan(values)
    queries = Queries(np.zeros(len(values)), group, qid=qid)
    queries.check_order({"labels": labels, "item": item})
    for row in np.flatnonzero(judged & ((values != np.floor(values)) | (np.abs(values) >= LARGEST))):
        raise LTRError(
            f"labels must be whole numbers of 32 bits, which these tools read, but row {row} is {values[row]}; round "
            "or scale them"
        )
    return _by_query(queries, [int(y) if known else None for y, known in zip(values, judged, strict=True)], qid, item)


def _by_query(
    queries: Queries, entries: list[Any], qid: ArrayLike | None, item: ArrayLike | None
) -> dict[str, dict[str, Any]]:
    ends = queries.ptr.tolist()
    asked = [str(q + 1) for q in range(len(queries))] if qid is None else _names(ids_of(qid)[ends[:-1]])
    if item is None:
        items = [f"{row:0{len(str(queries.rows))}}" for row in range(queries.rows, 0, -1)]
    else:
        items = _names(ids_of(item, "item"))
        check_rows("item", items, queries.rows)
    found: dict[str, dict[str, Any]] = {query: {} for query in asked}
    for query, a, b in zip(asked, ends[:-1], ends[1:], strict=True):
        for row in range(a, b):
            known = found[query].setdefault(items[row], (row, entries[row]))
            require(known[0] == row, f"item has {items[row]!r} in rows {known[0]} and {row} of query {query}; keep one")
    return {q: {i: entry for i, (_, entry) in of.items() if entry is not None} for q, of in found.items()}


def _names(ids: np.ndarray) -> list[str]:
    """Convert ids to text: 7 and 7.0 alike, as everywhere in this package."""
    found = [i.decode(errors="backslashreplace") if isinstance(i, bytes) else i for i in ids.tolist()]
    return [str(int(i)) if isinstance(i, float) and i.is_integer() else str(i) for i in found]

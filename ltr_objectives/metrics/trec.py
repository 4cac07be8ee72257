"""Runs and judgements as dictionaries, which ir_measures, pytrec_eval and ranx read."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import Queries, ids_of, vector


def to_run(
    scores: ArrayLike, group: ArrayLike | None = None, *, qid: ArrayLike | None = None, item: ArrayLike | None = None
) -> dict[str, dict[str, float]]:
    """Convert scores to a run: the score of each document by query, as ir_measures, pytrec_eval and ranx read it.

    trec_eval ranks equal scores by descending name of the document. Without ``item`` names descend from row to row, so
    that equal scores rank in the order of the rows.

    Parameters
    ----------
    scores : array of shape (rows,)
        Finite numbers; higher ranks first.
    group : array of shape (queries,), optional
        Group sizes; or pass ``qid``, one id per row. With ``group`` queries are named "1", "2", and so on.
    item : array of shape (rows,), optional
        The name of each document, once in a query: numbers or strings.

    Returns
    -------
    dict of dict of float

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
    return _by_query(queries.check_scores(values).values.tolist(), queries, qid, item)


def to_qrels(
    labels: ArrayLike, group: ArrayLike | None = None, *, qid: ArrayLike | None = None, item: ArrayLike | None = None
) -> dict[str, dict[str, int]]:
    """Convert labels to judgements: the label of each document by query, as ir_measures, pytrec_eval and ranx read it.

    Parameters
    ----------
    labels : array of shape (rows,)
        Whole numbers. A document whose label is NaN is left out: it has no judgement.
    group, qid, item
        As in :func:`to_run`.

    Returns
    -------
    dict of dict of int

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
    queries = Queries(np.where(judged, values, 0.0), group, qid=qid)
    for row in np.flatnonzero(queries.labels != np.floor(queries.labels)):
        raise LTRError(
            f"labels must be whole numbers, because these tools read integers, but row {row} is {values[row]}; round "
            "or scale them"
        )
    return _by_query([int(y) if known else None for y, known in zip(values, judged, strict=True)], queries, qid, item)


def _by_query(
    values: list[Any], queries: Queries, qid: ArrayLike | None, item: ArrayLike | None
) -> dict[str, dict[str, Any]]:
    rows, ends = queries.rows, queries.ptr.tolist()
    asked = range(1, len(ends)) if qid is None else ids_of(qid)[ends[:-1]].tolist()
    if item is None:
        names = [f"{row:0{len(str(rows))}}" for row in range(rows, 0, -1)]
    else:
        names = [str(name) for name in ids_of(item, "item").tolist()]
        require(len(names) == rows, f"item has {len(names)} entries, but there are {rows} rows")
    found = {}
    for query, a, b in zip(asked, ends[:-1], ends[1:], strict=True):
        require(len(set(names[a:b])) == b - a, f"item has a document of query {query} twice; keep one of its rows")
        of = zip(names[a:b], values[a:b], strict=True)
        found[str(query)] = {name: value for name, value in of if value is not None}
    return found

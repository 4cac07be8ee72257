"""Dask: sizes of the queries of each partition, and metrics over all partitions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ltr_objectives.adapters._callables import refuse_goals
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.queries import Queries, ids_of, sizes_of, to_numpy


def dask_group(qid: Any) -> Any:
    """Compute the query sizes for LightGBM from partitioned query ids.

    A query that was cut, with rows in several partitions, is refused.

    Parameters
    ----------
    qid : Dask array or series of shape (rows,)
        Query ids; in each partition rows of one query stand together.

    Returns
    -------
    Dask array of shape (queries,)
        With as many partitions as ``qid``.

    Examples
    --------
    >>> import dask.array as da
    >>> dask_group(da.from_array(np.array([3, 3, 1, 1, 1, 2]), chunks=(5, 1))).compute(scheduler="sync")
    array([2, 3, 1])
    """
    import dask
    import dask.array as da

    [pieces] = _columns(qid=qid)
    sizes = _refuse_cut(dask.compute(*[dask.delayed(_ids_and_sizes)(piece) for piece in pieces]))
    return da.from_array(np.concatenate(sizes), chunks=(tuple(map(len, sizes)),))


def dask_evaluate(metric: str | Metric, scores: Any, y: Any, qid: Any, weight: Any = None) -> float:
    """Compute :func:`ltr_objectives.evaluate` of Dask collections where they lie.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    scores : Dask array or series of shape (rows,)
        Higher scores rank first. The arguments below have the same partitions.
    y : Dask array or series of shape (rows,)
        Labels.
    qid : Dask array or series of shape (rows,)
        Query ids. No query may be cut.
    weight : Dask array or series of shape (rows,), optional
        Weight of each row.

    Returns
    -------
    float
        Equal to ``evaluate`` of the same rows in one process.

    Examples
    --------
    >>> import dask.array as da
    >>> rows = np.array([[0.1, 1, 7], [0.9, 0, 7], [0.5, 0, 8], [0.2, 1, 8]])  # score, label, query
    >>> dask_evaluate("mrr", *(da.from_array(column, chunks=2) for column in rows.T))
    0.5
    """
    import dask

    chosen = get_metric(metric)
    refuse_goals([chosen])
    dask_group(qid)
    columns = _columns(scores=scores, y=y, qid=qid, weight=weight)

    def mean(part: Metric) -> float:
        values = dask.compute(*[dask.delayed(_values)(part, *row) for row in zip(*columns, strict=True)])
        weights = np.concatenate([w for _, w in values])
        return part.average(*part.sums(np.concatenate([v for v, _ in values]), weights))

    return float(chosen.of_parts(mean))


def _refuse_cut(partitions: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Return the sizes in each of the partitions, of which there are ids and sizes; raise if two have a query."""
    seen: dict[Any, int] = {}
    for i, (ids, _) in enumerate(partitions):
        for query in ids.tolist():
            require(
                query not in seen,
                f"query {query} was cut: it has rows in partitions {seen.get(query)} and {i}, and would be trained as "
                "two queries; bring its rows together, as table.set_index('qid').reset_index() of a DataFrame does",
            )
            seen[query] = i
    return [sizes for _, sizes in partitions]


def _ids_and_sizes(qid: Any) -> tuple[np.ndarray, np.ndarray]:
    if len(qid) == 0:  # of a partition
        return np.empty(0), np.empty(0, np.int64)
    ids = ids_of(qid)
    sizes = sizes_of(ids)
    return ids[np.cumsum(sizes) - sizes], sizes


def _values(chosen: Metric, scores: Any, y: Any, qid: Any, weight: Any = None) -> tuple[np.ndarray, Any]:
    if len(qid) == len(scores) == 0:
        return np.empty(0), np.empty(0)
    queries = Queries(y, qid=qid, weight=weight)
    weights = chosen.weight_by_query(queries)
    values = chosen.values(queries, to_numpy(scores, "scores").reshape(-1))
    return values, np.ones(len(queries)) if weights is None else weights


def _columns(**given: Any) -> list[list[Any]]:
    """Return the partitions of each Dask collection, by the name of the argument; a weight of None has none."""
    found = {}
    for name, collection in given.items():
        if name == "weight" and collection is None:
            continue
        kind = type(collection).__name__
        require(hasattr(collection, "to_delayed"), f"{name} must be a Dask array, series or dataframe, got {kind}")
        found[name] = list(np.ravel(np.array(collection.to_delayed(), dtype=object)))
    counts = [str(len(partitions)) for partitions in found.values()]
    require(
        len(set(counts)) == 1,
        f"{', '.join(found)} have {', '.join(counts)} partitions; they must have the same: use repartition or rechunk",
    )
    return list(found.values())

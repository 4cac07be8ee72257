"""Dask: data sets cut between queries, never within one, and metrics over all partitions."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._dask_parts import (
    Table,
    cluster,
    collections,
    delayed_parts,
    spread_dask,
    spread_local,
    try_out,
    worker_addresses,
)
from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require
from ltr_objectives.queries import Queries, ids_of, sizes_of, to_numpy
from ltr_objectives.registry import get_metric, get_objective

if TYPE_CHECKING:
    from ltr_objectives.metrics.base import Metric
    from ltr_objectives.objectives.base import Objective


class DaskQueries(NamedTuple):
    """Dask collections with the same partitions, made by :func:`dask_by_query`."""

    X: Any  # Dask array or dataframe
    y: Any
    qid: Any  # 0, 1, 2, ... in order of the rows; XGBoost takes it
    group: Any  # sizes of the queries of each partition; LightGBM takes it
    weight: Any  # by row, or None


def dask_by_query(
    X: Any,
    y: Any,
    qid: Any,
    weight: Any = None,
    *,
    client: Any = None,
    objective: "str | Objective | None" = None,
    partitions: int | None = None,
    everywhere: bool = False,
) -> DaskQueries:
    """Spread a data set over Dask's workers by whole queries, for ``xgboost.dask`` and ``lightgbm.dask``.

    Partition ``i`` lies on worker ``i``, workers taken in the order of their names, so that the same data and number
    of partitions give the same pieces.

    Parameters
    ----------
    X : array, sparse matrix, pandas DataFrame, Dask array or Dask DataFrame of shape (rows, features)
    y, qid : arrays or series of shape (rows,)
        Labels and query ids, numbers or strings; Dask collections where ``X`` is one, with the same partitions. Rows of
        one query stand together; in Dask collections they may lie anywhere, and are brought together.
    weight : array or series of shape (rows,), optional
        Weight of each row. LightGBM takes it; XGBoost's Dask interface refuses weights for rankings.
    client : distributed.Client, optional
        The current one by default.
    objective : str or Objective, optional
        What will be trained. It is tried on each partition, so that labels that do not suit it are refused here: when
        one worker fails in a LightGBM training the others wait for it, two hours unless ``time_out`` says otherwise.
    partitions : int, optional
        One for each worker by default, which is what keeps results equal from run to run.
    everywhere : bool
        Give every worker all rows. An evaluation set of LightGBM needs it: there each worker evaluates only rows of
        its own, and the values of one worker are recorded.

    Returns
    -------
    DaskQueries
        ``X``, ``y``, ``qid``, ``group`` and ``weight``, ready for training and kept in the workers' memory.

    Raises
    ------
    LTRError
        For labels, ids or weights that cannot be right, before any worker trains, and for fewer queries than
        partitions.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     data = dask_by_query(np.ones((5, 3)), np.array([0, 1, 0, 1, 2]), np.array(["a", "a", "b", "b", "b"]))
    ...     data.X.chunks, data.qid.compute(), data.group.compute()
    (((2, 3), (3,)), array([0, 0, 1, 1, 1]), array([2, 3]))
    """
    for name, column in (("X", X), ("y", y), ("qid", qid)):
        require(column is not None, f"{name} is None; pass one row, label and query id per document")
    client = cluster(client)
    addresses = worker_addresses(client)
    count = len(addresses) if partitions is None else partitions
    check_integer("partitions", count)
    places = [addresses[i % len(addresses)] for i in range(count)]
    table = Table(X, y, qid, weight)
    spread = spread_dask if hasattr(X, "dask") else spread_local
    parts = spread(client, table, places[:1] if everywhere else places)
    if objective is not None:
        chosen = get_objective(objective)
        client.gather([client.submit(try_out, chosen, part, pure=False) for part in parts])
    return DaskQueries(*collections(client, parts * count if everywhere else parts, places))


def dask_group(qid: Any) -> Any:
    """Group sizes, as LightGBM takes them, of query ids that you partitioned yourself; refuses a query that was cut.

    Parameters
    ----------
    qid : Dask array or series of shape (rows,)
        Query ids; in each partition rows of one query stand together.

    Returns
    -------
    Dask array of shape (queries,)
        With as many partitions as ``qid``.

    Raises
    ------
    LTRError
        If a query lies in several partitions, or in several places of one.

    Examples
    --------
    >>> import dask.array as da
    >>> dask_group(da.from_array(np.array([3, 3, 1, 1, 1, 2]), chunks=(5, 1))).compute(scheduler="sync")
    array([2, 3, 1])
    """
    import dask
    import dask.array as da

    pieces = dask.compute(*[dask.delayed(_ids_and_sizes)(piece) for piece in delayed_parts(qid)])
    seen: dict[Any, int] = {}
    for i, (ids, _) in enumerate(pieces):
        for query in ids.tolist():
            require(
                query not in seen,
                f"query {query} was cut: it has rows in partitions {seen.get(query)} and {i}, and would be trained as "
                "two queries; dask_by_query(X, y, qid) brings its rows together",
            )
            seen[query] = i
    return da.concatenate([da.from_array(sizes, chunks=-1) for _, sizes in pieces])


def dask_evaluate(metric: "str | Metric", scores: Any, y: Any, qid: Any, weight: Any = None) -> float:
    """:func:`ltr_objectives.evaluate` of Dask collections, computed where they lie.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    scores, y, qid, weight : Dask arrays or series of shape (rows,)
        With the same partitions; ``weight`` is optional. No query may be cut, as :func:`dask_by_query` sees to.

    Returns
    -------
    float
        Equal to ``evaluate`` of the same rows in one process.

    Raises
    ------
    LTRError
        For a query that was cut, and for what ``evaluate`` refuses.

    Examples
    --------
    >>> import dask.array as da
    >>> rows = np.array([[0.1, 1, 7], [0.9, 0, 7], [0.5, 0, 8], [0.2, 1, 8]])  # score, label, query
    >>> dask_evaluate("mrr", *(da.from_array(column, chunks=2) for column in rows.T))
    0.5
    """
    import dask

    chosen = get_metric(metric)
    dask_group(qid)
    columns = [delayed_parts(c) for c in (scores, y, qid)] + ([] if weight is None else [delayed_parts(weight)])
    values = dask.compute(*[dask.delayed(_values)(chosen, *row) for row in zip(*columns, strict=True)])
    weights = None if weight is None else np.concatenate([w for _, w in values])
    return chosen.average(*chosen.sums(np.concatenate([v for v, _ in values]), weights))


def _ids_and_sizes(qid: Any) -> tuple[np.ndarray, np.ndarray]:
    ids = ids_of(qid)
    sizes = sizes_of(ids)
    return ids[np.cumsum(sizes) - sizes], sizes


def _values(chosen: "Metric", scores: Any, y: Any, qid: Any, weight: Any = None) -> tuple[np.ndarray, Any]:
    queries = Queries(y, qid=qid, weight=weight)
    return chosen.values(queries, to_numpy(scores, "scores").reshape(-1)), queries.weight_by_query

"""Dask: data sets spread over workers by whole queries, and metrics over all partitions."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require
from ltr_objectives.metrics.base import Metric, get_metric
from ltr_objectives.queries import Queries, ids_of, refuse_masked, refuse_merged, sizes_of, to_numpy
from ltr_objectives.workbench.data import cut


class DaskQueries(NamedTuple):
    """Dask collections with the same partitions, made by :func:`dask_by_query`."""

    X: Any  # Dask array or dataframe
    y: Any
    qid: Any  # 0, 1, 2, ... in order of the rows; XGBoost takes it
    group: Any  # sizes of the queries of each partition; LightGBM takes it
    weight: Any = None  # by row


def dask_by_query(
    X: Any,
    y: Any,
    qid: Any,
    weight: Any = None,
    *,
    client: Any = None,
    partitions: int | None = None,
    everywhere: bool = False,
) -> DaskQueries:
    """Spread a data set over Dask's workers by whole queries, for ``xgboost.dask`` and ``lightgbm.dask``.

    The workers get partitions in turn, in the order of their names: the same data and number of partitions give the
    same pieces. Labels, ids and weights that cannot be right are refused before any worker trains.

    Parameters
    ----------
    X : array, sparse matrix, pandas DataFrame, Dask array or Dask DataFrame of shape (rows, features)
        Features. Rows of one query stand together; in a Dask collection they are in one partition.
    y : array or series of shape (rows,)
        Labels; a Dask collection if ``X`` is one, with the same partitions.
    qid : array or series of shape (rows,)
        Query ids, numbers or strings; a Dask collection if ``X`` is one, with the same partitions.
    weight : array or series of shape (rows,), optional
        Weight of each row. LightGBM takes it; XGBoost's Dask interface refuses weights for rankings.
    client : distributed.Client, optional
        The current one by default.
    partitions : int, optional
        One for each worker by default, which keeps results equal from run to run. Consecutive partitions of a Dask
        collection, of which there are at least as many, are joined.
    everywhere : bool
        Give every worker all rows. An evaluation set of LightGBM needs this: each worker evaluates only its own rows,
        and LightGBM records the values of one worker.

    Returns
    -------
    DaskQueries
        ``X``, ``y``, ``qid``, ``group`` and ``weight``, ready for training and kept in the workers' memory.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as client:
    ...     data = dask_by_query(np.ones((5, 3)), np.array([0, 1, 0, 1, 2]), np.array(["a", "a", "b", "b", "b"]))
    ...     data.X.chunks, data.qid.compute(), data.group.compute()
    (((2, 3), (3,)), array([0, 0, 1, 1, 1]), array([2, 3]))
    """
    import distributed

    client = distributed.default_client() if client is None else client
    addresses = _worker_addresses(client)
    count = len(addresses) if partitions is None else check_integer("partitions", partitions)
    places = [addresses[i % len(addresses)] for i in range(count)]
    spread = _spread_dask if hasattr(X, "dask") else _spread_local
    parts = spread(client, (X, y, qid, weight), places[:1] if everywhere else places)
    return _collections(client, parts * count if everywhere else parts, places)


def dask_group(qid: Any) -> Any:
    """Group sizes, as LightGBM takes them, of query ids that you partitioned yourself.

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
    """:func:`ltr_objectives.evaluate` of Dask collections, computed where they lie.

    Parameters
    ----------
    metric : str or Metric
        Such as ``"ndcg@10"``.
    scores : Dask array or series of shape (rows,)
        Higher scores rank first. The arguments below have the same partitions.
    y : Dask array or series of shape (rows,)
        Labels.
    qid : Dask array or series of shape (rows,)
        Query ids. No query may be cut; :func:`dask_by_query` cuts none.
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
    dask_group(qid)
    columns = _columns(scores=scores, y=y, qid=qid, weight=weight)
    values = dask.compute(*[dask.delayed(_values)(chosen, *row) for row in zip(*columns, strict=True)])
    weights = None if weight is None else np.concatenate([w for _, w in values])
    return chosen.average(*chosen.sums(np.concatenate([v for v, _ in values]), weights))


def _refuse_cut(partitions: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """The sizes in each of the partitions, of which there are ids and sizes; raises if two have a query."""
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
    return chosen.values(queries, to_numpy(scores, "scores").reshape(-1)), queries.weight_by_query


def _worker_addresses(client: Any) -> list[str]:
    """Addresses of the workers, by name: 0, 1, 2, ... in a LocalCluster."""
    names = {address: str(name) for address, name in client.run(lambda dask_worker: dask_worker.name).items()}
    require(names, "the Dask cluster has no workers yet; call client.wait_for_workers(n)")
    return sorted(names, key=lambda address: (len(names[address]), names[address], address))


def _columns(**given: Any) -> list[list[Any]]:
    """The partitions of each Dask array or dataframe, by the name of the argument; a weight of None has none."""
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


def _spread_local(client: Any, rows: tuple[Any, ...], places: list[str]) -> list[Any]:
    """Futures of one partition, a `DaskQueries` of arrays, for each place, in the order of the rows."""
    whole = _checked(*rows)
    table = whole.X.iloc if hasattr(whole.X, "iloc") else whole.X
    futures = []
    for (first, last), place in zip(_ranges("queries", whole.group, len(places)), places, strict=True):
        mine = np.flatnonzero((whole.qid >= first) & (whole.qid < last))
        weight = None if whole.weight is None else whole.weight[mine]
        part = DaskQueries(table[mine], whole.y[mine], whole.qid[mine], whole.group[first:last], weight)
        key = _key(part)
        futures.append(client.scatter({key: part}, workers=[place])[key])
    return futures


def _spread_dask(client: Any, rows: tuple[Any, ...], places: list[str]) -> list[Any]:
    """As :func:`_spread_local`, of collections with whole queries in each partition; consecutive ones are joined."""
    import dask

    columns = _columns(**dict(zip(("X", "y", "qid", "weight"), rows, strict=True)))
    pieces = client.compute([dask.delayed(tuple)(list(piece)) for piece in zip(*columns, strict=True)])
    found = client.gather(client.map(lambda piece: _ids_and_sizes(piece[2]), pieces, pure=False))
    kept = [(piece, sizes) for piece, sizes in zip(pieces, _refuse_cut(found), strict=True) if len(sizes)]
    parts = client.map(lambda piece: _checked(*piece), [piece for piece, _ in kept], pure=False)
    numbers = np.cumsum([0, *(len(sizes) for _, sizes in kept)]).tolist()
    ranges = _ranges("partitions", np.array([sizes.sum() for _, sizes in kept]), len(places))
    return [
        client.submit(_join, numbers[first], *parts[first:last], key=_key((numbers, first, last)), workers=[place])
        for (first, last), place in zip(ranges, places, strict=True)
    ]


def _collections(client: Any, parts: list[Any], places: list[str]) -> DaskQueries:
    """Persisted Dask collections of the columns of ``parts``; partition ``i`` lies at ``places[i]``.

    Collections with tasks of their own would not do: Dask may move a task from a worker with several to an idle one,
    and XGBoost uses a partition where its last task ran.
    """
    import dask
    import dask.array as da
    from dask.core import flatten
    from distributed import wait

    samples = client.gather([client.submit(_sample, part, pure=False) for part in parts])

    def persisted(column: str) -> Any:
        name, meta = f"{column}-{parts[0].key}", samples[0][column][1]
        if hasattr(meta, "iloc"):
            import dask.dataframe as dd

            empty = dask.delayed(meta, name=name)
            graph = dd.from_delayed([empty] * len(parts), meta=meta, prefix=name, verify_meta=False)
        else:
            rows = tuple(sample[column][0][0] for sample in samples)
            graph = da.Array({}, name, (rows, *((n,) for n in samples[0][column][0][1:])), meta=meta)
        futures = {
            key: client.submit(getattr, part, column, key=key, workers=[place])
            for key, part, place in zip(flatten(graph.__dask_keys__()), parts, places, strict=True)
        }
        wait(list(futures.values()))  # then the alias of a partition of a frame is its worker's only task
        rebuild, arguments = graph.__dask_postpersist__()
        return rebuild(futures, *arguments)

    return DaskQueries(**{column: persisted(column) for column in samples[0]})


_calls = itertools.count()


def _key(content: Any) -> str:
    """A key that Dask has not seen: with the key of data just released, new data would be released too.

    The next run of a program makes the same keys, because the order of LightGBM's workers follows from them.
    """
    from dask.base import tokenize

    return f"queries-{tokenize(content)}-{next(_calls)}"


def _ranges(name: str, sizes: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Ranges of queries, or what ``name`` is, for partitions with about equally many rows."""
    require(
        len(sizes) >= count, f"{len(sizes)} {name} cannot be spread over {count} partitions; set partitions= to fewer"
    )
    return list(itertools.pairwise(cut(sizes, count).tolist()))


def _checked(X: Any, y: Any, qid: Any, weight: Any = None) -> DaskQueries:
    """Rows of whole queries, which are numbered from 0, checked before any worker waits for another."""
    refuse_masked(X, "X")
    labels = to_numpy(y, "labels")
    queries = Queries(labels, qid=qid, weight=weight)
    refuse_merged(queries.labels, queries.ptr)
    require(X.shape[0] == queries.rows, f"X has {X.shape[0]} rows, but qid has {queries.rows}")
    sizes = np.diff(queries.ptr)
    return DaskQueries(X, labels, np.repeat(np.arange(len(sizes)), sizes), sizes, queries.weight_by_row)


def _join(first: int, *parts: DaskQueries) -> DaskQueries:
    """One partition of several; its queries have numbers from ``first`` on."""
    columns: list[Any] = [None if c[0] is None else _stack(c) for c in zip(*parts, strict=True)]
    X, y, _, group, weight = columns
    return DaskQueries(X, y, np.repeat(np.arange(first, first + len(group)), group), group, weight)


def _stack(tables: tuple[Any, ...]) -> Any:
    if len(tables) == 1:
        return tables[0]
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables)
    if hasattr(tables[0], "tocsr"):
        from scipy.sparse import vstack

        return vstack(tables, format="csr")
    return np.concatenate(tables)


def _sample(part: DaskQueries) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape of each column that the partition has, and an empty slice, which has its type."""
    return {name: (c.shape, c[:0]) for name, c in part._asdict().items() if c is not None}

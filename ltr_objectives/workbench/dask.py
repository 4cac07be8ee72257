"""Dask: data sets spread over workers by whole queries, and metrics over all partitions."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.checks import check_integer
from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import (
    Queries,
    first_rows,
    ids_of,
    refuse_masked,
    refuse_merged,
    sizes_of,
    to_numpy,
    vector,
)
from ltr_objectives.registry import get_metric, get_objective
from ltr_objectives.workbench.data import cut


class DaskQueries(NamedTuple):
    """Dask collections with the same partitions, made by :func:`dask_by_query`."""

    X: Any  # Dask array or dataframe
    y: Any
    qid: Any  # 0, 1, 2, ... in order of the rows; XGBoost takes it
    group: Any  # sizes of the queries of each partition; LightGBM takes it
    weight: Any = None  # by row


class Table(NamedTuple):
    """Some rows, as the user gave them."""

    X: Any
    y: Any
    qid: Any
    weight: Any = None


class Part(NamedTuple):
    """One partition, validated: queries are numbered, and stand in order."""

    X: Any
    y: np.ndarray
    qid: np.ndarray
    group: np.ndarray
    weight: np.ndarray | None


def dask_by_query(
    X: Any,
    y: Any,
    qid: Any,
    weight: Any = None,
    *,
    client: Any = None,
    objective: str | Objective | None = None,
    partitions: int | None = None,
    everywhere: bool = False,
) -> DaskQueries:
    """Spread a data set over Dask's workers by whole queries, for ``xgboost.dask`` and ``lightgbm.dask``.

    The workers get partitions in turn, in the order of their names: the same data and number of partitions give the
    same pieces. Labels, ids and weights that cannot be right are refused before any worker trains.

    Parameters
    ----------
    X : array, sparse matrix, pandas DataFrame, Dask array or Dask DataFrame of shape (rows, features)
        Features. Rows of one query stand together; in Dask collections they may lie anywhere, and are brought together.
    y : array or series of shape (rows,)
        Labels; a Dask collection if ``X`` is one, with the same partitions.
    qid : array or series of shape (rows,)
        Query ids, numbers or strings; a Dask collection if ``X`` is one, with the same partitions.
    weight : array or series of shape (rows,), optional
        Weight of each row. LightGBM takes it; XGBoost's Dask interface refuses weights for rankings.
    client : distributed.Client, optional
        The current one by default.
    objective : str or Objective, optional
        The objective that will be trained. It is tried on each partition, and labels that do not suit it are refused
        here. If one worker fails in a LightGBM training, the others wait for it: two hours, unless ``time_out`` is
        given.
    partitions : int, optional
        One for each worker by default, which keeps results equal from run to run.
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
    for name, column in (("X", X), ("y", y), ("qid", qid)):
        require(column is not None, f"{name} is None; pass one row, label and query id per document")
    client = _client(client)
    addresses = _worker_addresses(client)
    count = len(addresses) if partitions is None else check_integer("partitions", partitions)
    places = [addresses[i % len(addresses)] for i in range(count)]
    table = Table(X, y, qid, weight)
    spread = _spread_dask if hasattr(X, "dask") else _spread_local
    parts = spread(client, table, places[:1] if everywhere else places)
    if objective is not None:
        chosen = get_objective(objective)
        client.gather([client.submit(_try_out, chosen, part, pure=False) for part in parts])
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

    pieces = dask.compute(*[dask.delayed(_ids_and_sizes)(piece) for piece in _partitions("qid", qid)])
    seen: dict[Any, int] = {}
    for i, (ids, _) in enumerate(pieces):
        for query in ids.tolist():
            require(
                query not in seen,
                f"query {query} was cut: it has rows in partitions {seen.get(query)} and {i}, and would be trained as "
                "two queries; dask_by_query(X, y, qid) brings its rows together",
            )
            seen[query] = i
    sizes = [sizes for _, sizes in pieces]
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


def _client(client: Any) -> Any:
    """The client to use; the error says what to install."""
    try:
        import dask.array  # noqa: F401 - only to say early what to install
        import distributed
    except ImportError:
        raise ImportError("dask is not installed: pip install 'dask[dataframe]' distributed") from None
    return distributed.default_client() if client is None else client


def _worker_addresses(client: Any) -> list[str]:
    """Addresses of the workers, by name: 0, 1, 2, ... in a LocalCluster."""
    names = {address: str(name) for address, name in client.run(lambda dask_worker: dask_worker.name).items()}
    require(names, "the Dask cluster has no workers yet; call client.wait_for_workers(n)")
    return sorted(names, key=lambda address: (len(names[address]), names[address], address))


def _columns(**given: Any) -> list[list[Any]]:
    """The partitions of each Dask collection that is given, by the name of the argument."""
    found = {name: _partitions(name, collection) for name, collection in given.items() if collection is not None}
    counts = [str(len(partitions)) for partitions in found.values()]
    require(
        len(set(counts)) == 1,
        f"{', '.join(found)} have {', '.join(counts)} partitions; they must have the same: use repartition or rechunk",
    )
    return list(found.values())


def _partitions(name: str, collection: Any) -> list[Any]:
    """The partitions of a Dask array or dataframe, which is the argument ``name``."""
    require(
        hasattr(collection, "to_delayed"),
        f"{name} must be a Dask array, series or dataframe, got {type(collection).__name__}",
    )
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def _spread_local(client: Any, table: Table, places: list[str]) -> list[Any]:
    """Futures of one `Part` for each place, in the order of the rows."""
    queries = Queries(table.y, qid=table.qid, weight=table.weight)
    number = np.repeat(np.arange(len(queries)), np.diff(queries.ptr))
    whole = Table(table.X, to_numpy(table.y), number, queries.weight_by_row)
    require(
        hasattr(whole.X, "shape"), f"X must be an array, a sparse matrix or a DataFrame, got {type(whole.X).__name__}"
    )
    require(whole.X.shape[0] == queries.rows, f"X has {whole.X.shape[0]} rows, but qid has {queries.rows}")
    ranges = itertools.pairwise(_bounds(np.diff(queries.ptr), len(places)))
    futures = []
    for span, place in zip(ranges, places, strict=True):
        part = _join(_cut(whole, number, *span))
        key = _key(part)
        futures.append(client.scatter({key: part}, workers=[place])[key])
    return futures


def _spread_dask(client: Any, table: Table, places: list[str]) -> list[Any]:
    """As :func:`_spread_local`. Rows of a query are brought together; queries keep the order of their first rows."""
    import dask

    columns = _columns(**table._asdict())
    tables = client.compute([dask.delayed(Table)(*row) for row in zip(*columns, strict=True)])
    runs = client.gather(client.map(_runs, tables, pure=False))
    known: dict[Any, int] = {}
    number = np.array([known.setdefault(name, len(known)) for ids, _ in runs for name in ids.tolist()], np.int64)
    sizes = np.concatenate([n for _, n in runs])
    bounds = _bounds(np.bincount(number, weights=sizes).astype(np.int64), len(places))
    by_row = np.split(np.repeat(number, sizes), np.cumsum([n.sum() for _, n in runs])[:-1])
    rows = [client.scatter(n, hash=False) for n in by_row]
    futures = []
    for span, place in zip(itertools.pairwise(bounds), places, strict=True):
        pieces = [client.submit(_cut, t, n, *span, pure=False) for t, n in zip(tables, rows, strict=True)]
        futures.append(client.submit(_join, *pieces, key=_key((number, span)), workers=[place]))
    return futures


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


def _bounds(sizes: np.ndarray, count: int) -> np.ndarray:
    """Queries at which the partitions begin, with about equally many rows in each."""
    require(
        len(sizes) >= count, f"{len(sizes)} queries cannot be spread over {count} partitions; set partitions= to fewer"
    )
    return cut(sizes, count)


def _runs(table: Table) -> tuple[np.ndarray, np.ndarray]:
    ids = ids_of(table.qid)
    starts = first_rows(ids)
    return ids[starts], np.diff(np.append(starts, len(ids)))


def _cut(table: Table, number: np.ndarray, first: int, last: int) -> Table:
    rows = np.flatnonzero((number >= first) & (number < last))
    weight = None if table.weight is None else to_numpy(table.weight, "weight")[rows]
    return Table(_take(table.X, rows), to_numpy(table.y, "labels")[rows], number[rows], weight)


def _join(*tables: Table) -> Part:
    """One partition out of pieces. It is checked here, where no other worker waits for this one yet."""
    columns: list[Any] = [None if c[0] is None else _stack(c) for c in zip(*tables, strict=True)]
    X, y, number, weight = columns
    if (np.diff(number) < 0).any():
        order = np.argsort(number, kind="stable")
        X, y, number = _take(X, order), y[order], number[order]
        weight = None if weight is None else weight[order]
    try:
        queries = Queries(y, qid=number, weight=weight)
        refuse_merged(vector("labels", y), queries.ptr)
    except LTRError as error:
        raise LTRError(f"in one partition, {error}") from None
    return Part(X, y, number, np.diff(queries.ptr), weight)


def _take(table: Any, rows: np.ndarray) -> Any:
    refuse_masked(table, "X")
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


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


def _try_out(objective: Objective, part: Part) -> None:
    """Compute the gradient once, for the errors that it may raise."""
    objective.compute(Queries(part.y, part.group, weight=part.weight), np.zeros(len(part.y)))


def _sample(part: Part) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shape of each column that the partition has, and an empty slice, which has its type."""
    return {name: (c.shape, c[:0]) for name, c in part._asdict().items() if c is not None}

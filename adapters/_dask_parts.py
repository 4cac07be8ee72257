"""How the rows of a data set come to Dask's workers, whole queries together."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.errors import LTRError, require
from ltr_objectives.kernels.threads import chunk_bounds
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, first_rows, ids_of, refuse_masked, to_numpy


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


def cluster(client: Any) -> Any:
    """The client to use, or what to install."""
    try:
        import dask.array  # noqa: F401 - only to say early what to install
        import distributed
    except ImportError:
        raise ImportError("dask is not installed: pip install ltr-objectives[dask]") from None
    return distributed.default_client() if client is None else client


def worker_addresses(client: Any) -> list[str]:
    """Addresses of the workers, by name: 0, 1, 2, ... in a LocalCluster."""
    names = {address: str(name) for address, name in client.run(_name).items()}
    require(names, "the Dask cluster has no workers yet; call client.wait_for_workers(n)")
    return sorted(names, key=lambda address: (len(names[address]), names[address], address))


def _name(dask_worker: Any) -> Any:
    return dask_worker.name


def delayed_parts(collection: Any) -> list[Any]:
    """The partitions of a Dask array or dataframe."""
    require(
        hasattr(collection, "to_delayed"),
        f"got a {type(collection).__name__} where a Dask array, series or dataframe must be",
    )
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    return list(np.ravel(np.array(collection.to_delayed(), dtype=object)))


def spread_local(client: Any, table: Table, places: list[str]) -> list[Any]:
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


def spread_dask(client: Any, table: Table, places: list[str]) -> list[Any]:
    """As :func:`spread_local`; a query's rows are brought together, queries stay in the order of their first rows."""
    import dask

    columns = [delayed_parts(c) for c in table if c is not None]
    require(
        len({len(c) for c in columns}) == 1,
        f"X, y, qid and weight have {', '.join(str(len(c)) for c in columns)} partitions; they must have the same",
    )
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


def collections(client: Any, parts: list[Any], places: list[str]) -> list[Any]:
    """Dask collections of the columns of ``parts``; partition ``i`` is computed, and stays, at ``places[i]``."""
    import dask.array as da

    samples = client.gather([client.submit(_sample, part, pure=False) for part in parts])

    def futures(column: str) -> list[Any]:
        return [
            client.submit(getattr, part, column, key=f"{column}-{i}-{part.key}", workers=[place])
            for i, (part, place) in enumerate(zip(parts, places, strict=True))
        ]

    def array(column: str) -> Any:
        blocks = [
            da.from_delayed(future, shape, meta=getattr(sample, column), name=f"{future.key}-array")
            for future, (shapes, sample) in zip(futures(column), samples, strict=True)
            for shape in [getattr(shapes, column)]
        ]
        return da.concatenate(blocks, allow_unknown_chunksizes=True)

    if hasattr(samples[0][1].X, "iloc"):
        import dask.dataframe as dd

        X = dd.from_delayed(futures("X"), meta=samples[0][1].X)
    else:
        X = array("X")
    rest = [None if getattr(samples[0][1], c) is None else array(c) for c in Part._fields[1:]]
    return [X, *rest]


_calls = itertools.count()


def _key(content: Any) -> str:
    """A key for Dask: never used before, or data released a moment ago would take the new ones along.

    It is the same again when the program is run again, since LightGBM's order of workers hangs on it.
    """
    from dask.base import tokenize

    return f"queries-{tokenize(content)}-{next(_calls)}"


def _bounds(sizes: np.ndarray, count: int) -> np.ndarray:
    """Queries at which the partitions begin, with about equally many rows in each."""
    require(
        len(sizes) >= count, f"{len(sizes)} queries cannot be spread over {count} partitions; set partitions= to fewer"
    )
    bounds = chunk_bounds(np.concatenate(([0], np.cumsum(sizes))), count)
    even = np.linspace(0, len(sizes), count + 1).astype(np.int64)
    return bounds if len(bounds) == count + 1 else even  # a query with most rows leaves some places without


def _runs(table: Table) -> tuple[np.ndarray, np.ndarray]:
    ids = ids_of(table.qid)
    starts = first_rows(ids)
    return ids[starts], np.diff(np.append(starts, len(ids)))


def _cut(table: Table, number: np.ndarray, first: int, last: int) -> Table:
    rows = np.flatnonzero((number >= first) & (number < last))
    weight = None if table.weight is None else to_numpy(table.weight, "weight")[rows]
    return Table(_take(table.X, rows), to_numpy(table.y, "labels")[rows], number[rows], weight)


def _join(*tables: Table) -> Part:
    """One partition out of pieces, checked while no other worker waits for this one."""
    columns: list[Any] = [None if c[0] is None else _stack(c) for c in zip(*tables, strict=True)]
    X, y, number, weight = columns
    if (np.diff(number) < 0).any():
        order = np.argsort(number, kind="stable")
        X, y, number = _take(X, order), y[order], number[order]
        weight = None if weight is None else weight[order]
    try:
        queries = Queries(y, qid=number, weight=weight)
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


def try_out(objective: Objective, part: Part) -> None:
    """Compute the gradient once, for the errors that it may raise."""
    objective.compute(Queries(part.y, part.group, weight=part.weight), np.zeros(len(part.y)))


def _sample(part: Part) -> tuple[Part, Part]:
    """Shapes and empty arrays like those of a partition."""
    shapes = Part(*(None if c is None else c.shape for c in part))  # type: ignore[arg-type]  # shapes in place of arrays
    return shapes, Part(*(None if c is None else c[:0] for c in part))  # type: ignore[arg-type]  # a generator

"""Ranking data: generated in the shape of MSLR-WEB, or read from LETOR files."""

import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_integer, check_list
from ltr_objectives.errors import LTRError, did_you_mean, require, shown, warn
from ltr_objectives.goals import check_goal
from ltr_objectives.kernels.threads import chunk_bounds
from ltr_objectives.queries import ids_of, sizes_of, vector
from ltr_objectives.workbench.letor import dense, find_parts, parse

MSLR_SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)


@dataclass(frozen=True, eq=False)
class RankingData:
    """Features and labels of documents, the rows of a query together. Unpacks as ``X, y, group, qid``.

    Attributes
    ----------
    X : float32 array of shape (rows, features)
        One row for each document. A DataFrame if the source is a table.
    y : float32 array of shape (rows,)
        Labels; higher is more relevant.
    group : int64 array of shape (queries,)
        Number of rows of each query.
    qid : int64 array of shape (rows,)
        Query id of each row.
    weight : float64 array of shape (rows,), optional
        Weights of the rows, if the source has them.
    labels : dict of float64 arrays of shape (rows,), optional
        Labels of further goals, from :func:`from_table`.
    position : float64 array of shape (rows,), optional
        Where documents were shown, from :func:`from_table`.
    propensity : float64 array of shape (rows,), optional
        How likely documents were examined, from :func:`from_table`.

    Examples
    --------
    >>> from ltr_objectives.datasets import load_example
    >>> train, _, _ = load_example()
    >>> X, y, group, qid = train
    >>> X.shape == (group.sum(), 300)
    True
    """

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    qid: np.ndarray
    weight: np.ndarray | None = None
    labels: dict[str, np.ndarray] | None = None
    position: np.ndarray | None = None
    propensity: np.ndarray | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.X, self.y, self.group, self.qid))

    def __repr__(self) -> str:
        return f"RankingData({len(self.y):,} rows, {len(self.group):,} queries, {self.X.shape[1]} features)"

    def select(self, queries: ArrayLike) -> "RankingData":
        """Select the queries at these positions, in this order."""
        chosen = np.arange(len(self.group))[np.asarray(queries)]
        starts = np.cumsum(self.group) - self.group
        rows = np.concatenate([np.arange(starts[q], starts[q] + self.group[q]) for q in chosen])

        def of_rows(values: np.ndarray | None) -> Any:
            return None if values is None else values[rows]

        return replace(
            self,
            X=self.X.take(rows, axis=0),
            y=self.y[rows],
            group=self.group[chosen],
            qid=self.qid[rows],
            weight=of_rows(self.weight),
            labels=None if self.labels is None else {goal: values[rows] for goal, values in self.labels.items()},
            position=of_rows(self.position),
            propensity=of_rows(self.propensity),
        )


def cut(sizes: np.ndarray, count: int) -> np.ndarray:
    """Return bounds of ``count`` runs of ``sizes``, with about the same sum each."""
    bounds = chunk_bounds(np.concatenate(([0], np.cumsum(sizes))), count)
    even = np.linspace(0, len(sizes), count + 1).astype(np.int64)
    return bounds if len(bounds) == count + 1 else even  # one very large size leaves some runs empty


@dataclass(frozen=True, eq=False)
class RankingFold:
    """The parts of one experiment; unpacks as ``train, vali, test``. ``vali`` is None if the source has none.

    Examples
    --------
    >>> from ltr_objectives.datasets import make_ranking_fold
    >>> train, vali, test = make_ranking_fold((3, 1, 2), mean_length=5, seed=1)
    >>> len(train.group), len(vali.group), len(test.group)
    (3, 1, 2)
    """

    train: RankingData
    vali: RankingData | None
    test: RankingData

    def __iter__(self) -> Iterator[Any]:  # Any, so that users need not check ``vali`` for None, which is rare
        return iter((self.train, self.vali, self.test))


def joined(fold: RankingFold) -> RankingData:
    """Return all queries of a fold, with new ids if some stand for several queries."""
    X, y, group, qid = (np.concatenate(columns) for columns in zip(*fold, strict=True))
    unique = len(np.unique(qid)) == len(group)
    return RankingData(X, y, group, qid if unique else np.repeat(np.arange(1, len(group) + 1), group))


def make_ranking(
    queries: int = 1000,
    seed: int = 0,
    *,
    features: int = 136,
    mean_length: float = 120.0,
    shares: Sequence[float] = MSLR_SHARES,
    noise: float = 1.1,
    agreement: float = 1.0,
) -> RankingData:
    """Generate data in the shape of MSLR-WEB: features in correlated fields, few very relevant documents.

    Relevance is noise plus a sum of linear functions, thresholds and products of two fifths of the features. It also
    depends on features of the query. The same arguments give the same bytes.

    Parameters
    ----------
    queries : int
        Number of queries. Their lengths are lognormal, at least 1.
    seed : int
        Seed of the relevance function and the rows.
    features : int
        Number of features, at least 10. Every tenth describes the query and is constant within it.
    mean_length : float
        Mean number of rows of a query, at least 1.
    shares : sequence of float
        Share of the rows with label 0, 1, ...; adds up to 1.
    noise : float
        Standard deviation of the noise in the relevance of each document, at least 0. The part of the relevance that
        the features of the documents explain has standard deviation 1.
    agreement : float
        From 0 to 1. With 1 all labels are thresholds of one function of the features, so training for a metric that
        reads grades is best, whichever metric is evaluated. Below 1 a second function also orders the labels above 0.

    Examples
    --------
    >>> make_ranking(queries=3, mean_length=5, seed=1)
    RankingData(17 rows, 3 queries, 136 features)
    >>> X, y, group, qid = make_ranking(queries=3, mean_length=5, seed=1)
    """
    require(min(shares) >= 0 and abs(sum(shares) - 1) < 1e-6, f"shares={shares!r} must be parts that add up to 1")
    features = check_integer("features", features, 10)
    rng = np.random.default_rng(seed)
    spread = 0.6
    lengths = rng.lognormal(np.log(mean_length) - spread**2 / 2, spread, queries)
    group = np.maximum(np.rint(lengths), 1).astype(np.int64)
    X = _correlated_features(rng, group, features)
    relevance = _relevance(rng, X, group, noise)
    thresholds = np.quantile(relevance, np.minimum(np.cumsum(shares)[:-1], 1.0))
    y = np.searchsorted(thresholds, relevance, side="left").astype(np.float32)
    if agreement < 1:
        other = _relevance(rng, X, group, noise)
        relevant = y > 0
        grade = agreement * relevance / relevance.std() + np.sqrt(1 - agreement**2) * other / other.std()
        y[relevant] = np.sort(y[relevant])[np.argsort(np.argsort(grade[relevant]))]
    _as_counts_and_ratios(X)
    return RankingData(X, y, group, np.repeat(np.arange(1, queries + 1), group))


def _correlated_features(rng: np.random.Generator, group: np.ndarray, features: int) -> np.ndarray:
    """Draw standard normal columns. Each run of five is correlated, as one statistic of MSLR's five fields is."""
    rows = int(group.sum())
    X = rng.standard_normal((rows, features), np.float32)
    common = rng.standard_normal((rows, -(-features // 5)), np.float32)
    for j in range(features):
        X[:, j] = 0.8 * X[:, j] + 0.6 * common[:, j // 5]
    X[:, 9::10] = np.repeat(rng.standard_normal((len(group), features // 10), np.float32), group, axis=0)
    return X


def _relevance(rng: np.random.Generator, X: np.ndarray, group: np.ndarray, noise: float) -> np.ndarray:
    """Compute a function of two fifths of the columns, plus noise; most of it differs between rows of a query."""
    features = X.shape[1]
    of_query = rng.permutation(np.arange(9, features, 10))
    of_document = rng.permutation(np.delete(np.arange(features), np.arange(9, features, 10)))
    useful = X[:, of_document[: max(6, features * 2 // 5)]].T.copy()
    kind = X[:, of_query[0]] > 0
    weights = rng.exponential(1.0, len(useful)) * rng.choice([-1.0, 1.0, 1.0], len(useful))
    relevance = np.zeros(len(X), np.float32)
    for i, (weight, z) in enumerate(zip(weights.astype(np.float32), useful, strict=True)):
        other = useful[(i + 1) % len(useful)]
        both = (z > 0.3) & (other > 0.3)
        shapes = (z, 1.5 * (z > 1.0), z * other, 2.0 * both, np.where(kind, z, 0.0), np.minimum(z, 0.5))
        relevance += weight * shapes[i % len(shapes)]
    relevance /= relevance.std()
    of_all_rows = 0.6 * X[:, of_query[-1]] + np.repeat(0.6 * rng.standard_normal(len(group)), group)
    return relevance + of_all_rows + noise * rng.standard_normal(len(X))


def _as_counts_and_ratios(X: np.ndarray) -> None:
    """Turn a fifth of the columns into counts and another fifth into ratios, in place."""
    X[:, 1::5] = np.floor(np.exp(X[:, 1::5] + 2.0))
    X[:, 2::5] = np.clip(0.5 + 0.25 * X[:, 2::5], 0.0, 1.0)


def make_ranking_fold(queries: tuple[int, int, int] = (600, 200, 200), seed: int = 0, **options: Any) -> RankingFold:
    """Generate training, validation and test data with one relevance function; ``options`` as in :func:`make_ranking`.

    Examples
    --------
    >>> fold = make_ranking_fold((3, 1, 1), mean_length=5)
    >>> len(fold.train.group), len(fold.vali.group), len(fold.test.group)
    (3, 1, 1)
    """
    data = make_ranking(sum(queries), seed, **options)
    train, vali, test = np.split(np.arange(sum(queries)), np.cumsum(queries)[:2])
    return RankingFold(data.select(train), data.select(vali), data.select(test))


def together(ids: np.ndarray) -> np.ndarray:
    """Return the rows in an order that has the rows of each query together, queries and their rows as they come."""
    import pandas as pd  # whose tables have led here

    return np.argsort(pd.factorize(ids)[0], kind="stable")


def from_table(
    table: Any, *, label: str, qid: str, weight: str | None = None, labels: Sequence[str] = (),
    position: str | None = None, propensity: str | None = None,
) -> RankingData:  # fmt: skip
    """Bring the rows of each query of a table together, and separate what is no feature.

    Parameters
    ----------
    table : DataFrame or Table
        Of pandas, polars or pyarrow, with rows in any order.
    label : str
        The column of labels.
    qid : str
        The column of query ids: numbers or text.
    weight, position, propensity : str, optional
        The columns of weights, of positions where documents were shown, and of the propensities of clicks.
    labels : list of str
        The columns of labels of further goals, such as ``["revenue"]``.

    Returns
    -------
    RankingData
        ``X`` is a DataFrame of pandas with all other columns, and with the index of the table, by which scores find
        their rows again. Queries are in the order in which the table names them first, rows of a query in the order of
        the table. ``labels``, ``position`` and the others are what ``fit`` takes under these names.

    Raises
    ------
    LTRError
        For columns that do not exist or are named twice, labels, weights and the like that are not numbers, and rows
        without a query id.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"shop": ["b", "a", "b"], "price": [3.0, 2.0, 1.0], "clicked": [0, 1, 1]})
    >>> data = from_table(table, label="clicked", qid="shop")
    >>> data.X.index.tolist(), data.y, data.qid.tolist()
    ([0, 2, 1], array([0., 1., 1.]), ['b', 'b', 'a'])
    """
    frame = table.to_pandas() if hasattr(table, "to_pandas") else table
    is_frame = hasattr(frame, "iloc") and hasattr(frame, "columns")
    require(is_frame, f"table must be a table of pandas, polars or pyarrow, got {type(table).__name__}")
    require(len(frame) > 0, "table has no rows")
    one = {"label": label, "qid": qid, "weight": weight, "position": position, "propensity": propensity}
    goals = check_list("labels", labels, "columns")
    roles = [(role, name) for role, name in [*one.items(), *(("labels", g) for g in goals)] if name is not None]
    for role, name in roles:
        if not isinstance(name, Hashable) or name not in frame.columns:
            known = [*map(str, frame.columns)]
            joined = f"; join several, in pandas by table.groupby({name!r}).ngroup()" if role == "qid" else ""
            remedy = joined if isinstance(name, list) else did_you_mean(name, known)
            given = shown(name) if isinstance(name, Hashable | list) else f"<{type(name).__name__}>"
            raise LTRError(f"{role}={given} is not a column of the table: {known}{remedy}")
        others = [f"{other}={name!r}" for other, named in roles if named == name]
        require(len(others) == 1, f"{' and '.join(others)} name one column; give each a column of its own")
    if not frame.index.is_unique:
        warn("the index of the table has entries twice, by which scores cannot find their rows; pass "
             "table.reset_index(drop=True)")  # fmt: skip
    ids = ids_of(frame[qid].to_numpy())
    rows = together(ids)
    frame, ids = frame.iloc[rows], ids[rows]
    of = {role: vector(role, frame[name]) for role, name in one.items() if role != "qid" and name is not None}
    of_goals = {goal: vector(f"labels[{goal!r}]", frame[goal]) for goal in goals if check_goal(goal)}
    X = frame.drop(columns=[name for _, name in roles])
    return RankingData(X, of.pop("label"), sizes_of(ids), ids, labels=of_goals or None, **of)


def load_letor(path: str | os.PathLike[str]) -> RankingData | RankingFold:
    """Read LETOR text, ``label qid:1 1:0.5 2:0 ... # comment``, plain, ``.gz``, ``.bz2`` or ``.xz``.

    Parameters
    ----------
    path : path
        A file, a pipe, or the folder of one fold. The folder has ``train.txt``, ``test.txt`` and perhaps ``vali.txt``
        (or ``valid.txt``), as in MSLR-WEB10K/30K and Istella. If it has several data sets, add the start of the
        file names, such as ``yahoo/set1`` for ``set1.train.txt``.

    Returns
    -------
    RankingData or RankingFold
        RankingData for a file or a pipe, RankingFold for a fold. All its parts have the same number of features. A
        single file has as many as the largest number in it, which another file may exceed: read the folder of the
        fold, or append columns of zeros, ``np.pad(X, ((0, 0), (0, more)))``.

    Raises
    ------
    LTRError
        For text of another form, and for a folder without the files of a fold.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "part.txt").write_text("2 qid:1 1:0.5 2:3 # a\\n0 qid:1 1:0.1 # b\\n")
    ...     load_letor(Path(folder, "part.txt"))
    RankingData(2 rows, 1 queries, 2 features)
    """
    where = Path(path).expanduser()
    if where.exists() and not where.is_dir():
        return load_parts({"file": where})["file"]
    data = load_parts(find_parts(where))
    return RankingFold(data["train"], data.get("vali"), data["test"])


def load_parts(files: dict[str, Path]) -> dict[str, RankingData]:
    """Read LETOR files by name as :func:`load_letor` does, with the same number of features in all."""
    parsed = {part: parse(file) for part, file in files.items()}
    width = max(X.shape[1] for X, *_ in parsed.values())
    return {part: RankingData(dense(X, width, files[part]), y, n, q) for part, (X, y, n, q) in parsed.items()}

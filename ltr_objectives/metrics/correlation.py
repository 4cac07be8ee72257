r"""Rank correlation of scores and labels: Spearman's, linear in the ranks, and Kendall's, a sum over the labels."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_choice
from ltr_objectives.errors import require
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import LINEAR
from ltr_objectives.kernels.values import LEVEL
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries

MOST_LABELS = 32  # each takes an array


@dataclass(frozen=True)
class Correlation(Metric):
    r"""Base of both. They divide by :math:`\sqrt{(n^p - n) (n^p - \sum t^p)}` for runs of :math:`t` equal labels.

    Only the order of the labels counts, so they may be negative.
    """

    normalizer: str = "all"

    cutoff: ClassVar[str] = "none"
    conventions: ClassVar[dict[str, dict[str, Any]]] = {"scipy": {"normalizer": "untied", "empty": "skip"}}
    power: ClassVar[int]
    factor: ClassVar[float]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("normalizer", self.normalizer, ("all", "untied"))
        untied = self.normalizer == "untied"
        require(
            not untied or self.ties == "average", f"ties={self.ties!r} with normalizer='untied'; choose one of both"
        )

    def check_labels(self, labels: np.ndarray) -> None:
        """Accept all labels."""

    def gain(self, labels: np.ndarray) -> np.ndarray:
        """The labels; ``_layers`` replaces them by what depends on the other labels of the query."""
        return labels

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return len(ranks) + 1.0 - ranks

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        sizes = np.diff(queries.ptr).astype(np.float64)
        square = (sizes**self.power - sizes) * self._spread(queries, queries.labels)
        return np.divide(self.factor, np.sqrt(square), out=np.zeros(len(queries)), where=square > 0)

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> np.ndarray:
        values = super().values(queries, scores, n_threads=n_threads)
        if self.normalizer == "all":
            return values
        sizes = np.diff(queries.ptr).astype(np.float64)
        spread = self._spread(queries, queries.check_scores(scores).values)
        ratio = np.divide(sizes**self.power - sizes, spread, out=np.ones(len(queries)), where=spread > 0)
        values = np.where(self.layers(queries)[0].scale > 0, values * np.sqrt(ratio), values)
        return np.where(spread > 0, values, np.nan if self.empty == "skip" else float(self.empty))

    def _spread(self, queries: Queries, numbers: np.ndarray) -> np.ndarray:
        """``n^p`` of each query less ``t^p`` of each run of t equal numbers; 0 if all are equal."""
        _, starts = in_runs(queries, numbers)
        lengths = np.diff(starts, append=queries.rows).astype(np.float64)
        runs = np.add.reduceat(lengths**self.power, np.searchsorted(starts, queries.ptr[:-1]))
        spread: np.ndarray = np.diff(queries.ptr).astype(np.float64) ** self.power - runs
        return spread


def in_runs(queries: Queries, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of each query in descending order of ``numbers``, and where in them each run of equal ones starts."""
    query = np.repeat(np.arange(len(queries)), np.diff(queries.ptr))
    rows = np.lexsort((-numbers, query))
    found = numbers[rows]
    return rows, np.flatnonzero(np.append(True, (found[1:] != found[:-1]) | (query[1:] != query[:-1])))


def levels(queries: Queries) -> tuple[np.ndarray, np.ndarray]:
    """By row how many different labels of its query are smaller; by query the number of different labels."""
    rows, starts = in_runs(queries, queries.labels)
    runs = np.searchsorted(starts, queries.ptr)  # that start before each query
    level = np.empty(queries.rows)
    level[rows] = -np.repeat(np.arange(len(starts)), np.diff(starts, append=queries.rows))
    level += np.repeat(runs[1:] - 1, np.diff(queries.ptr))
    return level, np.diff(runs)


@dataclass(frozen=True)
class Spearman(Correlation, text="spearman"):
    r"""Spearman's rank correlation of scores and labels in each query.

    .. math:: \frac{12 \sum_d \left(\frac{n + 1}{2} - d\right) r_d}{\sqrt{(n^3 - n) (n^3 - \sum_t t^3)}}

    Spearman, "The proof and measurement of association between two things", 1904; ties as in Kendall, "The treatment of
    ties in ranking problems", Biometrika 1945. The label at rank :math:`d` has the mean rank :math:`r_d` among the
    :math:`n` labels in ascending order, which has runs of :math:`t` equal labels. Without tied scores this is
    ``scipy.stats.spearmanr``.

    Parameters
    ----------
    empty : float or "skip"
        The value of a query whose labels are all equal. With "skip" the mean leaves it out.
    normalizer : "all" or "untied"
        "all" is the formula above, and with tied scores its expected value over their orders. "untied" also takes
        :math:`n^3 - \sum t^3` of the scores instead of :math:`n^3 - n`, as SciPy does; a query whose scores are all
        equal is then empty too. Both have the same gradients.

    Examples
    --------
    >>> float(Spearman().per_query([3.0, 2.0, 1.0], [1, 2, 0], group=[3])[0])
    0.5
    """

    kind: ClassVar[int] = LINEAR
    power: ClassVar[int] = 3
    factor: ClassVar[float] = 12.0

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        rows, starts = in_runs(queries, queries.labels)
        lengths = np.diff(starts, append=queries.rows)
        middle = np.repeat(starts + (lengths + 1) / 2, lengths)  # mean rank of the run, from the first row of all
        gain = np.empty(queries.rows)
        gain[rows] = np.repeat((queries.ptr[:-1] + queries.ptr[1:] + 1) / 2, np.diff(queries.ptr)) - middle
        return (self._terms(queries, gain),)

    def reference(self, labels: np.ndarray) -> float:
        if len(set(labels)) < 2:
            return float(self.empty)
        ranks = [np.sum(labels < y) + (np.sum(labels == y) + 1) / 2 for y in labels]
        return float(np.corrcoef(ranks, -np.arange(len(labels)))[0, 1])


@dataclass(frozen=True)
class Kendall(Correlation, text="kendall"):
    r"""Kendall's rank correlation of scores and labels in each query, tau-b.

    .. math:: \frac{C - D}{\frac{1}{2} \sqrt{(n^2 - n) (n^2 - \sum_t t^2)}}

    Kendall, "The treatment of ties in ranking problems", Biometrika 1945. Of the pairs with different labels :math:`C`
    are in the right order and :math:`D` in the wrong one; the labels of the :math:`n` documents have runs of :math:`t`
    equal ones. Without tied scores this is ``scipy.stats.kendalltau``. No objective trains for it. A query may have up
    to 32 different labels. Time and memory are proportional to their number.

    Parameters
    ----------
    empty
        As in :class:`Spearman`.
    normalizer : "all" or "untied"
        As in :class:`Spearman`, with squares instead of cubes.

    Examples
    --------
    >>> round(float(Kendall().per_query([3.0, 2.0, 1.0], [1, 2, 0], group=[3])[0]), 4)
    0.3333
    """

    kind: ClassVar[int] = LEVEL
    power: ClassVar[int] = 2
    factor: ClassVar[float] = 2.0

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        first = self._terms(queries, queries.labels)
        level, found = levels(queries)
        most = int(found.max())
        require(
            most <= MOST_LABELS,
            f"kendall takes up to {MOST_LABELS} different labels in a query, but one has {most}; take spearman, or put "
            "the labels into classes",
        )
        return tuple(
            first._replace(
                gain=np.sign(level - at),
                scale=np.where(found > at, first.scale, 0.0),
                offset=np.zeros(len(queries)) if at else first.offset,
            )
            for at in range(most)
        )

    def reference(self, labels: np.ndarray) -> float:
        n = len(labels)
        signs = [np.sign(labels[d] - labels[e]) for d in range(n) for e in range(d + 1, n)]
        untied = np.count_nonzero(signs)
        return float(sum(signs) / np.sqrt(len(signs) * untied)) if untied else float(self.empty)

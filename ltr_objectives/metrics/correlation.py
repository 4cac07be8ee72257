r"""Spearman's rank correlation of scores and labels, linear in the ranks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import LINEAR
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


def sorted_with_ties(queries: Queries, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of each query in descending order of ``numbers``, and the start of each run of equal ones."""
    query = queries.query_by_row
    rows = np.lexsort((-numbers, query))
    found = numbers[rows]
    return rows, np.flatnonzero(np.append(True, (found[1:] != found[:-1]) | (query[1:] != query[:-1])))


@dataclass(frozen=True)
class Spearman(Metric, text="spearman"):
    r"""Spearman's rank correlation of scores and labels in each query.

    .. math:: \frac{12 \sum_d \left(\frac{n + 1}{2} - d\right) r_d}{\sqrt{(n^3 - n) (n^3 - \sum_t t^3)}}

    Spearman, "The proof and measurement of association between two things", 1904; ties as in Kendall, "The treatment of
    ties in ranking problems", Biometrika 1945. The label at rank :math:`d` has the mean rank :math:`r_d` among the
    :math:`n` labels in ascending order, which has runs of :math:`t` equal labels. Only the order of the labels counts,
    so they may be negative. Without tied scores this is ``scipy.stats.spearmanr``, with tied scores its expected value
    over their orders.

    Parameters
    ----------
    empty : float or "skip"
        The value of a query whose labels are all equal. With "skip" the mean leaves it out.

    Examples
    --------
    >>> float(Spearman().per_query([3.0, 2.0, 1.0], [1, 2, 0], group=[3])[0])
    0.5
    """

    kind: ClassVar[int] = LINEAR
    cutoff: ClassVar[str] = "none"

    def check_labels(self, labels: np.ndarray) -> None:
        """Accept all labels."""

    def gain(self, labels: np.ndarray) -> np.ndarray:
        """Return the labels; ``_layers`` replaces them by what depends on the other labels of the query."""
        return labels

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return len(ranks) + 1.0 - ranks

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        _, starts = sorted_with_ties(queries, queries.labels)
        lengths = np.diff(starts, append=queries.rows).astype(np.float64)
        cubes = np.diff(queries.ptr).astype(np.float64) ** 3
        untied = cubes - np.add.reduceat(lengths**3, np.searchsorted(starts, queries.ptr[:-1]))
        square = (cubes - np.diff(queries.ptr)) * untied
        return np.divide(12.0, np.sqrt(square), out=np.zeros(len(queries)), where=square > 0)

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        rows, starts = sorted_with_ties(queries, queries.labels)
        lengths = np.diff(starts, append=queries.rows)
        middle = np.repeat(starts + (lengths + 1) / 2, lengths)  # mean rank of the run, from the first row of all
        gain = np.empty(queries.rows)
        gain[rows] = np.repeat((queries.ptr[:-1] + queries.ptr[1:] + 1) / 2, np.diff(queries.ptr)) - middle
        return (self._terms(queries, gain),)

    def reference(self, labels: np.ndarray) -> float:
        if len(set(labels)) < 2:
            return self._of_empty
        ranks = [np.sum(labels < y) + (np.sum(labels == y) + 1) / 2 for y in labels]
        return float(np.corrcoef(ranks, -np.arange(len(labels)))[0, 1])

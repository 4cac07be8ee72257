r"""Preferences: pairwise logistic loss over pairs of documents that are given as data, instead of labels."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_integer, check_positive
from ltr_objectives.errors import require
from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.pairs import LOGISTIC, slope_and_curve
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import derivatives, sigmoid, softplus
from ltr_objectives.queries import Queries, to_numpy, vector


class ByQuery(NamedTuple):
    """The pairs in the order of their queries: rows of the training data, and the first pair of each query."""

    hi: np.ndarray
    lo: np.ndarray
    weight: np.ndarray
    ptr: np.ndarray  # one entry more than queries


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Objective):
    r"""Pairwise logistic loss over pairs of documents that you give. Labels are not read.

    .. math:: \sum_{(hi, lo)} w_{hi,lo} \log \left(1 + e^{-\sigma (s_{hi} - s_{lo})}\right)

    This is the loss of RankNet (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005) and of CatBoost's
    PairLogit. A pair that is given twice counts twice. Time is proportional to the number of pairs and rows.

    Pairs are numbers of rows, so an object belongs to one data set, whose number of rows it checks. Folds, bags,
    batches and workers number their rows anew; such data are refused. Labels beside pairs are learned by
    ``Mixture([Preferences(pairs, rows=len(y)), "yetiloss:ndcg"])``.

    Parameters
    ----------
    pairs : integer array of shape (pairs, 2)
        The rows of the preferred and of the other document of each pair, counted from 0 in the training data; both of
        one query.
    rows : int
        Number of rows of the training data.
    pairs_weight : array of shape (pairs,), optional
        At least 0; 1 by default. The weight of a query or row multiplies gradient and Hessian as always.
    sigma : float
        Scale of the differences of scores, above 0.

    Examples
    --------
    >>> preferences = Preferences([[1, 0], [1, 2]], rows=3)
    >>> preferences.gradient_hessian([0.0, 0.0, 0.0], labels=[0, 0, 0], group=[3])
    (array([ 0.5, -1. ,  0.5]), array([0.25, 0.5 , 0.25]))
    """

    pairs: ArrayLike
    rows: int
    pairs_weight: ArrayLike | None = None
    sigma: float = 1.0

    name: ClassVar[str] = "preferences"
    native: ClassVar[dict[str, str]] = {"catboost": "PairLogit"}
    hessian_kind = "exact"

    def __post_init__(self) -> None:
        check_positive("sigma", self.sigma)
        rows, pairs = check_integer("rows", self.rows), _read_pairs(self.pairs)
        wrong = (pairs < 0) | (pairs >= rows)
        at = int(wrong.any(axis=1).argmax())
        require(
            not wrong.any(),
            f"pairs[{at}] is {pairs[at].tolist()}, but rows of the data are numbered from 0 to {rows - 1}",
        )
        same = pairs[:, 0] == pairs[:, 1]
        require(
            not same.any(),
            f"pairs[{same.argmax()}] is {pairs[same.argmax()].tolist()}, one row twice; a pair compares two documents",
        )
        for name, value in {"rows": rows, "pairs": pairs, "pairs_weight": self._weights(len(pairs))}.items():
            object.__setattr__(self, name, value)

    def _weights(self, count: int) -> np.ndarray:
        if self.pairs_weight is None:
            return np.ones(count)
        weight = np.array(vector("pairs_weight", self.pairs_weight))
        require(len(weight) == count, f"pairs_weight has {len(weight)} entries for {count} pairs; give one each")
        good = np.isfinite(weight) & (weight >= 0)
        at = int(good.argmin())
        require(
            good.all(),
            f"pairs_weight must be finite and not negative, but entry {at} is {weight[at]:g}; swap the rows of a pair "
            "to reverse it",
        )
        require(weight.any(), "pairs_weight is zero everywhere; give some pair a weight above 0")
        return weight

    def __repr__(self) -> str:
        return f"Preferences({len(self._arrays[0])} pairs of {self.rows} rows, sigma={self.sigma})"

    @property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        arrays: Any = (self.pairs, self.pairs_weight)
        return arrays

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (*map(crc32, self._arrays), self.rows, self.sigma)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preferences) or type(other) is not type(self) or self._key != other._key:
            return False
        return all(map(np.array_equal, self._arrays, other._arrays))

    def _worth(self, queries: Queries) -> np.ndarray:
        """The weight of the pairs that a document wins less that of the pairs that it loses."""
        pairs, weight = self._arrays
        won, lost = (np.bincount(rows, weight, self.rows) for rows in pairs.T)
        worth: np.ndarray = won - lost
        return worth

    def _check_rows(self, rows: int) -> None:
        require(
            rows == self.rows,
            f"pairs are rows of {self.rows}, but the data has {rows}: folds, bags, batches and workers number rows "
            "anew; make Preferences for each from its own pairs",
        )

    def by_query(self, queries: Queries) -> ByQuery:
        """The pairs in the order of their queries; raises if the rows are not those of ``queries``."""
        self._check_rows(queries.rows)
        pairs, weight = self._arrays
        of = np.repeat(np.arange(len(queries)), np.diff(queries.ptr))[pairs]
        apart = of[:, 0] != of[:, 1]
        at = int(apart.argmax())
        require(
            not apart.any(),
            f"pairs[{at}] is {pairs[at].tolist()}, rows of different queries; a pair compares documents of one query",
        )
        order = np.argsort(of[:, 0], kind="stable")
        ptr = np.searchsorted(of[order, 0], np.arange(len(queries) + 1))
        return ByQuery(pairs[order, 0], pairs[order, 1], weight[order], ptr)

    def fill(self, call: Call) -> None:
        pairs = call.queries.once(("preferences", self), lambda: self.by_query(call.queries))
        call.run(_fill, pairs, float(self.sigma), linear=True)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        self._check_rows(len(scores))
        pairs, weight = self._arrays
        return np.sum(weight * softplus(self.sigma * (scores[pairs[:, 1]] - scores[pairs[:, 0]])))

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pairs, weight = self._arrays
        margin = self.sigma * (scores[pairs[:, 0]] - scores[pairs[:, 1]])
        curve = self.sigma**2 * weight * sigmoid(margin) * sigmoid(-margin)
        curvature = sum(np.bincount(rows, curve, len(scores)) for rows in pairs.T)
        return derivatives(self, scores, labels, np.asarray(curvature))


def _read_pairs(pairs: ArrayLike) -> np.ndarray:
    """A copy of the pairs as int64."""
    given = to_numpy(pairs, "pairs")
    require(given.size, "pairs is empty; give at least one pair of rows, such as [[1, 0]]")
    require(
        given.ndim == 2 and given.shape[1] == 2,
        f"pairs must have shape (pairs, 2), a preferred row and another one in each line, got shape {given.shape}",
    )
    require(given.dtype.kind in "iu", f"pairs must be whole numbers of rows, got {given.dtype}")
    return np.array(given, np.int64, order="C")


@kernel
def _fill(first, last, ptr, s, pairs, sigma, out):
    for q in range(first, last):
        if out.skip[q]:
            continue
        for p in range(pairs.ptr[q], pairs.ptr[q + 1]):
            hi, lo = pairs.hi[p], pairs.lo[p]
            slope, curve = slope_and_curve(LOGISTIC, sigma * (s[hi] - s[lo]))
            slope, curve = sigma * pairs.weight[p] * slope, sigma * sigma * pairs.weight[p] * curve
            out.grad[hi] -= slope
            out.grad[lo] += slope
            out.hess[hi] += curve
            out.hess[lo] += curve

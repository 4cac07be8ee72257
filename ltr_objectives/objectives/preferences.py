"""Preferences: pairwise logistic loss over pairs of documents that are given as data, instead of labels."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, check_integer
from ltr_objectives.errors import require
from ltr_objectives.kernels.preferences import Inputs, given_pairs
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import softplus
from ltr_objectives.queries import Queries, to_numpy, vector


@dataclass(frozen=True)
class Preferences(Objective):
    r"""Pairwise logistic loss over pairs of documents that you give. Labels are not read.

    .. math:: \sum_{(hi, lo)} w_{hi,lo} \log \left(1 + e^{-\sigma (s_{hi} - s_{lo})}\right)

    This is the loss of RankNet (Burges et al., "Learning to Rank using Gradient Descent", ICML 2005) and of CatBoost's
    PairLogit. A pair that is given twice counts twice. Time is proportional to the number of pairs and rows. To learn
    from labels too, write ``Mixture([Preferences(pairs, rows=len(y)), "yetiloss:ndcg"])``.

    Pairs are numbers of rows, so an object belongs to one data set. Data with another number of
    rows, such as a fold or a bag, are refused: their rows have other numbers.

    Parameters
    ----------
    pairs : integer array of shape (pairs, 2)
        The rows of the preferred and of the other document of each pair, both of one query, counted from 0.
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

    pairs: Any = field(repr=False, compare=False)
    rows: int
    pairs_weight: Any = field(default=None, repr=False, compare=False)
    sigma: float = 1.0
    digest: str = field(init=False, repr=False)  # of pairs and weights, by which objectives are compared

    name: ClassVar[str] = "preferences"
    checks: ClassVar[dict[str, Check]] = {"rows": check_integer}
    facts = Facts(hessian_kind="exact", reads_labels=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = _pairs(self.pairs, self.rows)
        weight = np.ones(len(pairs)) if self.pairs_weight is None else _weights(self.pairs_weight, len(pairs))
        digest = "".join(sha256(array).hexdigest() for array in (pairs, weight))
        for name, value in {"pairs": pairs, "pairs_weight": weight, "digest": digest}.items():
            object.__setattr__(self, name, value)

    def relevance(self, queries: Queries) -> np.ndarray:
        won, lost = (np.bincount(rows, self.pairs_weight, self.rows) for rows in self.pairs.T)
        return won - lost

    def _by_query(self, queries: Queries) -> Inputs:
        """Return the pairs in the order of their queries; raise if the rows are not those of ``queries``."""
        require(
            queries.rows == self.rows,
            f"pairs are of rows={self.rows}, but the data has {queries.rows}: folds, bags, batches and workers number "
            "rows anew; make Preferences for each",
        )
        of = queries.query_by_row[self.pairs]
        several = "rows of different queries; a pair is of one query. If you sorted rows by an array order, write "
        _refuse("pairs", self.pairs, of[:, 0] != of[:, 1], f"{several}pairs = np.argsort(order)[pairs]")
        order = np.argsort(of[:, 0], kind="stable")
        ptr = np.searchsorted(of[order, 0], np.arange(len(queries) + 1))
        documents = (self.pairs - queries.ptr[of])[order]
        return Inputs(documents, self.pairs_weight[order], ptr, float(self.sigma))

    def fill(self, call: Call) -> None:
        call.run(given_pairs, call.queries.cached(("preferences", self), lambda: self._by_query(call.queries)))

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        hi, lo = self.pairs.T
        return np.sum(self.pairs_weight * softplus(self.sigma * (scores[lo] - scores[hi])))


def _refuse(name: str, values: np.ndarray, wrong: Any, reason: str) -> None:
    """Raise for the first entry that is ``wrong``."""
    at = int(wrong.argmax())
    require(not wrong.any(), f"{name}[{at}] is {values[at].tolist()}, {reason}")


def _pairs(pairs: Any, rows: int) -> np.ndarray:
    """Return a copy of the pairs as int64."""
    given = to_numpy(pairs, "pairs")
    form = given.ndim == 2 and given.shape[1] == 2 and given.size
    require(form, f"pairs must have shape (pairs, 2), the preferred row first, got shape {given.shape}")
    require(given.dtype.kind in "iu", f"pairs must be whole numbers of rows, got {given.dtype}")
    _refuse("pairs", given, ((given < 0) | (given >= rows)).any(axis=1), f"but rows are numbered from 0 to {rows - 1}")
    _refuse("pairs", given, given[:, 0] == given[:, 1], "one row twice; a pair compares two documents")
    return np.array(given, np.int64, order="C")


def _weights(weight: Any, count: int) -> np.ndarray:
    given = np.array(vector("pairs_weight", weight))
    require(len(given) == count, f"pairs_weight has {len(given)} entries for {count} pairs; give one each")
    wrong = ~(np.isfinite(given) & (given >= 0))
    _refuse("pairs_weight", given, wrong, "but must be finite and not negative; to reverse a pair, swap its rows")
    require(given.any(), "pairs_weight is zero everywhere; give some pair a weight above 0")
    return given

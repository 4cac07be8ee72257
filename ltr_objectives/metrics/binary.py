r"""The base of metrics of 0/1 relevance; and those linear in it: precision, recall, rank-biased precision, AUC."""

import abc
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_fraction, check_number, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.swaps import LINEAR
from ltr_objectives.kernels.values import RELEVANT
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.options import QueryWeights
from ltr_objectives.queries import Queries

ShortLists = Literal["pad", "shrink"]


@dataclass(frozen=True)
class Binary(Metric):
    """Base of the metrics of relevant documents, which are those with labels above ``threshold``."""

    threshold: float = 0.0

    checks: ClassVar[dict[str, Check]] = {"threshold": check_number}

    def gain(self, labels: np.ndarray) -> np.ndarray:
        return gains.relevant(labels, self.threshold)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return np.ones(len(ranks))

    def reference(self, labels: np.ndarray) -> float:
        found = labels > self.threshold
        return float(self._reference(found)) if found.any() else self._of_empty

    @abc.abstractmethod
    def _reference(self, found: np.ndarray) -> Any:
        """Return the textbook value of a list with a relevant document; ``found`` is True at the ranks of these."""


@dataclass(frozen=True)
class Precision(Binary, text="precision"):
    r"""Share of relevant documents among the first :math:`k`.

    Parameters
    ----------
    k : int
        The cutoff, which is required.
    threshold : float
        A document is relevant if its label is above this.
    short_lists : "pad" or "shrink"
        "pad" divides by :math:`k`, also if the list is shorter, as trec_eval does. "shrink" divides by the smaller
        of :math:`k` and the length of the list.

    Examples
    --------
    >>> float(Precision(k=2).per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    0.5
    """

    short_lists: ShortLists = "pad"

    checks: ClassVar[dict[str, Check]] = {"short_lists": one_of(*get_args(ShortLists))}
    cutoff: ClassVar[str] = "required"
    kind: ClassVar[int] = LINEAR
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "xgboost": {"ties": "input", "short_lists": "shrink"},
        "catboost": {"ties": "worst", "threshold": 0.5, "short_lists": "shrink", "query_weights": "ignore"},
        "trec_eval": {"ties": "input"},
    }

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        k = self.k or queries.longest
        depth = np.minimum(k, np.diff(queries.ptr)) if self.short_lists == "shrink" else k
        return super().scale(queries, gain, discount) / depth

    def _reference(self, found: np.ndarray) -> Any:
        k = self.k or len(found)
        return found[:k].sum() / (min(k, len(found)) if self.short_lists == "shrink" else k)


@dataclass(frozen=True)
class Recall(Binary, text="recall"):
    r"""Share of the relevant documents that are among the first :math:`k`.

    Parameters
    ----------
    k, threshold
        As in :class:`Precision`.

    Examples
    --------
    >>> float(Recall(k=1).per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    0.5
    """

    cutoff: ClassVar[str] = "required"
    kind: ClassVar[int] = LINEAR
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "catboost": {"ties": "worst", "threshold": 0.5, "empty": 1.0, "query_weights": "ignore"},
        "trec_eval": {"ties": "input"},
    }

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        return gains.reciprocal(np.add.reduceat(gain, queries.ptr[:-1]))

    def _reference(self, found: np.ndarray) -> Any:
        return found[: self.k].sum() / found.sum()


@dataclass(frozen=True)
class RPrecision(Recall, text="rprec"):
    r"""Share of relevant documents among the first :math:`R`, where the query has :math:`R` relevant documents.

    It is the recall at :math:`R`, and the ``Rprec`` of trec_eval. No objective trains for it, and :func:`objective_for`
    names that for :class:`MAP`.

    Parameters
    ----------
    threshold : float
        A document is relevant if its label is above this.

    Examples
    --------
    >>> float(RPrecision().per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    0.5
    """

    cutoff: ClassVar[str] = "query"
    kind: ClassVar[int] = RELEVANT
    conventions: ClassVar[dict[str, dict[str, Any]]] = {"trec_eval": {"ties": "input"}}

    def _reference(self, found: np.ndarray) -> Any:
        return found[: found.sum()].mean()


@dataclass(frozen=True)
class AUC(Binary, text="auc"):
    r"""Share of (relevant, irrelevant) pairs of a query in the right order; a tied pair counts half by default.

    XGBoost's ``auc`` for ranking also counts pairs of equal labels, so there is not an "xgboost" convention.

    Parameters
    ----------
    empty : float or "skip"
        The value of a query with only relevant or only irrelevant documents. With "skip" the mean leaves it out.
    threshold : float
        A document is relevant if its label is above this.

    Examples
    --------
    >>> float(AUC().per_query([3.0, 2.0, 1.0], [1, 0, 1], group=[3])[0])
    0.5
    """

    cutoff: ClassVar[str] = "none"
    kind: ClassVar[int] = LINEAR
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "sklearn": {"ties": "average", "empty": "skip"},
    }

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return len(ranks) + 1.0 - ranks

    def scale(self, queries: Queries, gain: np.ndarray, discount: np.ndarray) -> np.ndarray:
        found = np.add.reduceat(gain, queries.ptr[:-1])
        return gains.reciprocal(found * (np.diff(queries.ptr) - found))

    def offset(self, queries: Queries, gain: np.ndarray, scale: np.ndarray) -> np.ndarray:
        found = np.add.reduceat(gain, queries.ptr[:-1])
        beyond = queries.longest + 1 - np.diff(queries.ptr)
        return -(found * beyond + found * (found - 1) / 2) * scale

    def _reference(self, found: np.ndarray) -> Any:
        pairs = [(i, j) for i in np.flatnonzero(found) for j in np.flatnonzero(~found)]
        return sum(i < j for i, j in pairs) / len(pairs) if pairs else self._of_empty


@dataclass(frozen=True)
class GAUC(AUC, text="gauc"):
    r"""AUC by user, the query, in the mean weighted by impressions, which are its rows.

    Zhou et al., "Deep Interest Network for Click-Through Rate Prediction", KDD 2018, section 6.2. Users with only
    clicks or without clicks are left out. Rows count with their weights: for a mean weighted by clicks give each row
    the share of clicks of its user as its weight.

    Parameters
    ----------
    threshold : float
        A document is relevant if its label is above this.

    Examples
    --------
    >>> from ltr_objectives import evaluate
    >>> evaluate(["auc", "gauc"], [3.0, 2.0, 1.0, 2.0, 1.0], [1, 0, 0, 0, 1], group=[3, 2])
    {'auc': 0.5, 'gauc': 0.6}
    """

    empty: float | str = "skip"
    query_weights: QueryWeights = "rows"

    conventions: ClassVar[dict[str, dict[str, Any]]] = {}


@dataclass(frozen=True)
class RBP(Binary, text="rbp"):
    r"""Rank-biased precision, :math:`(1 - p) \sum_d p^{d-1} r_d`, of a user who reads on with probability :math:`p`.

    Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness", TOIS 2008. :math:`r_d` is 1
    if the document at rank :math:`d` is relevant, else 0.

    Parameters
    ----------
    threshold : float
        A document is relevant if its label is above this.
    patience : float
        :math:`p`, between 0 and 1.

    Examples
    --------
    >>> float(RBP(patience=0.5).per_query([3.0, 2.0, 1.0], [1, 0, 2], group=[3])[0])
    0.625
    """

    patience: float = 0.8

    checks: ClassVar[dict[str, Check]] = {"patience": check_fraction}
    kind: ClassVar[int] = LINEAR

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.patience < 1, "patience=1 must be below 1: the user would never stop; pass 0.8, for example")

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return (1.0 - self.patience) * np.power(self.patience, ranks - 1.0)

    def _reference(self, found: np.ndarray) -> Any:
        return sum((1.0 - self.patience) * self.patience**d for d in np.flatnonzero(found[: self.k]))

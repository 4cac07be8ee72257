r"""Metrics of a user who reads down the list and stops when satisfied: ``M = sum_d w_d g_d prod_{c<d} (1 - g_c)``."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_fraction, check_positive, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.swaps import CASCADE
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.binary import Binary

Grades = Literal["exp", "linear", "identity"]


@dataclass(frozen=True)
class MRR(Binary, text="mrr"):
    r"""Reciprocal rank of the first relevant document, 0 if that is beyond the cutoff.

    Parameters
    ----------
    threshold : float
        A document is relevant if its label is above this.

    Examples
    --------
    >>> round(float(MRR().per_query([3.0, 2.0, 1.0], [0, 0, 2], group=[3])[0]), 4)
    0.3333
    """

    kind: ClassVar[int] = CASCADE
    conventions: ClassVar[dict[str, dict[str, Any]]] = {
        "catboost": {"ties": "worst", "threshold": 0.5},
        "trec_eval": {"ties": "input"},
    }

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return 1.0 / ranks

    def _reference(self, found: np.ndarray) -> Any:
        return 1.0 / (found.argmax() + 1) if found[: self.k].any() else 0.0


@dataclass(frozen=True)
class Hit(Binary, text="hit"):
    r"""1 if a relevant document is among the first :math:`k`, else 0; also called success or hit rate.

    As trec_eval's ``success``.

    Parameters
    ----------
    k, threshold
        As in :class:`Precision`.

    Examples
    --------
    >>> float(Hit(k=2).per_query([3.0, 2.0, 1.0], [0, 1, 2], group=[3])[0])
    1.0
    """

    cutoff: ClassVar[str] = "required"
    kind: ClassVar[int] = CASCADE
    conventions: ClassVar[dict[str, dict[str, Any]]] = {"trec_eval": {"ties": "input"}}

    def _reference(self, found: np.ndarray) -> Any:
        return found[: self.k].any()


@dataclass(frozen=True)
class ERR(Metric, text="err"):
    r"""Expected reciprocal rank, :math:`\sum_{d \le k} \frac{R_d}{d} \prod_{c<d} (1 - R_c)`.

    Chapelle et al., "Expected reciprocal rank for graded relevance", CIKM 2009.

    Parameters
    ----------
    grades : "exp", "linear" or "identity"
        The chance :math:`R` that a document of label :math:`y` satisfies the user: :math:`(2^y - 1) / 2^{y_{max}}`,
        :math:`y / y_{max}`, or the label itself.
    max_label : float
        :math:`y_{max}`, the largest possible label; use the same for all data sets that are compared.

    Examples
    --------
    >>> float(ERR(grades="linear").per_query([2.0, 1.0], [2, 4], group=[2])[0])
    0.75
    """

    grades: Grades = "exp"
    max_label: float = 4.0

    checks: ClassVar[dict[str, Check]] = {"grades": one_of(*get_args(Grades)), "max_label": check_positive}
    kind: ClassVar[int] = CASCADE
    conventions: ClassVar[dict[str, dict[str, Any]]] = {"catboost": {"ties": "worst", "grades": "identity"}}
    _beyond_limit: ClassVar[str] = (
        "set grades='exp' and max_label to the largest possible label; with grades='identity' labels are probabilities"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.grades != "exp" or self.max_label <= gains.LARGEST_EXPONENT,
            f"max_label={self.max_label!r} must be at most {gains.LARGEST_EXPONENT:g} with grades='exp'",
        )

    @property
    def label_limit(self) -> float | None:
        return 1.0 if self.grades == "identity" else self.max_label

    def gain(self, labels: np.ndarray) -> np.ndarray:
        if self.grades == "identity":
            return labels
        if self.grades == "linear":
            return labels / self.max_label
        return (np.exp2(labels) - 1.0) / np.exp2(self.max_label)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return 1.0 / ranks

    def reference(self, labels: np.ndarray) -> float:
        if not (labels > 0).any():
            return self._of_empty
        total, open_ = 0.0, 1.0
        for i, satisfied in enumerate(self.gain(labels)[: self.k]):
            total += float(self.discount(np.array([i + 1]))[0]) * open_ * satisfied
            open_ *= 1.0 - satisfied
        return float(total)


@dataclass(frozen=True)
class PFound(ERR, text="pfound"):
    r"""Chance that the user finds an answer, :math:`\sum_{d \le k} p^{d-1} R_d \prod_{c<d} (1 - R_c)`.

    As in CatBoost's documentation of PFound. :math:`p` is the chance that the user reads on.

    Parameters
    ----------
    max_label
        As in :class:`ERR`.
    grades : "exp", "linear" or "identity"
        As in :class:`ERR`; by default the labels are the probabilities.
    decay : float
        :math:`p`, above 0 and at most 1.

    Examples
    --------
    >>> float(PFound().per_query([2.0, 1.0], [0.5, 1.0], group=[2])[0])
    0.925
    """

    grades: Grades = "identity"
    decay: float = 0.85

    checks: ClassVar[dict[str, Check]] = {"decay": check_fraction}

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return np.power(self.decay, ranks - 1.0)

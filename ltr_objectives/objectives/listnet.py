r"""ListNet: cross-entropy between a distribution made of the labels and the softmax of the scores."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, require
from ltr_objectives.kernels.softmax import label_softmax, listnet
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import STEP_HESSIANS, Objective
from ltr_objectives.objectives.reference import complex_step, log_sum_exp, shorten_steps, softmax
from ltr_objectives.queries import Queries

TARGETS = ("softmax", "labels")


@dataclass(frozen=True)
class ListNet(Objective):
    r"""ListNet (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007).

    .. math:: -\sum_i P_i \log \rho_i, \quad \rho = \operatorname{softmax}(s)

    with gradient :math:`\rho - P` and second derivative :math:`\rho (1 - \rho)`. The absolute gradients of a query add
    up to at most 2, its Hessians too: about 1/n a document, so keep ``min_child_weight`` small.

    Parameters
    ----------
    target : "softmax" or "labels"
        :math:`P` is the softmax of the labels, as in the paper and in allRank; or the labels, not negative, over their
        sum: labels taken for probabilities (Sapronov, "Solving the Ranking Problem Using Continuous Optimization
        Methods", slides, which leave the division to the reader), as in rax's softmax loss. Then queries with nothing
        relevant teach nothing, where rax takes a uniform distribution for them, which pulls their scores together.
    hessian : "bounded" or "exact"
        The second derivative raised to the absolute gradient, so that no Newton step exceeds 1; or as it is. Where a
        relevant document has little of the softmax, steps are of the order of n without the bound; in XGBoost
        and LightGBM it trained better.

    Examples
    --------
    >>> grad, hess = ListNet("labels").gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([0.5, 0.5]))
    """

    target: str = "softmax"
    hessian: str = "bounded"

    name: ClassVar[str] = "listnet"

    def __post_init__(self) -> None:
        choice("target", self.target, TARGETS)
        choice("hessian", self.hessian, tuple(STEP_HESSIANS))

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return cls(), cls("labels"), cls(hessian="exact")

    @property
    def hessian_kind(self) -> str:
        return STEP_HESSIANS[self.hessian]

    @property
    def longest_step(self) -> float | None:
        return 1.0 if self.hessian == "bounded" else None

    @property
    def treats_ties_alike(self) -> bool:
        return True

    def hessian_limit(self, n: int) -> float | None:
        return 2.0 if self.hessian == "bounded" else 1.0

    def _target(self, queries: Queries) -> np.ndarray:
        y = queries.labels
        out = np.zeros(queries.rows)
        if self.target == "softmax":
            run(label_softmax, queries.ptr, (queries.ptr, y, out))
            return out
        require((y >= 0).all(), "target='labels' needs labels of at least 0; shift them, or use target='softmax'")
        sizes = np.diff(queries.ptr)
        top = np.repeat(np.maximum.reduceat(y, queries.ptr[:-1]), sizes)
        np.divide(y, top, out=out, where=top > 0)
        total = np.repeat(np.add.reduceat(out, queries.ptr[:-1]), sizes)
        return np.divide(out, total, out=out, where=total > 0)

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
    ) -> None:
        target = queries.once(("listnet", self.target), lambda: self._target(queries))
        run(listnet, queries.ptr, (queries.ptr, scores, target, self.hessian == "bounded", grad, hess), n_threads)

    def _reference_target(self, labels: np.ndarray) -> np.ndarray:
        if self.target == "softmax":
            return softmax(labels)
        return labels / labels.sum() if labels.any() else labels

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return np.sum(self._reference_target(labels) * (log_sum_exp(scores) - scores))

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rho = softmax(scores) * self._reference_target(labels).any()
        grad = complex_step(lambda s: self.reference_loss(s, labels), scores)
        return grad, shorten_steps(self.hessian, grad, rho * (1.0 - rho))

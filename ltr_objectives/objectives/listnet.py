"""ListNet: cross-entropy between a distribution from the labels and the softmax of the scores."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.listnet import cross_entropy, label_softmax
from ltr_objectives.kernels.threads import run
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import log_sum_exp
from ltr_objectives.queries import Queries

Target = Literal["softmax", "labels", "unnormalized"]
Hessian = Literal["bounded", "exact"]


@dataclass(frozen=True)
class ListNet(Objective, text="listnet"):
    r"""ListNet (Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007).

    .. math:: -\sum_i P_i \log \rho_i, \quad \rho = \operatorname{softmax}(s)

    with gradient :math:`T \rho - P` and second derivative :math:`T \rho (1 - \rho)`, with :math:`T` the sum of
    :math:`P`, 1 by default. The absolute gradients of a query add up to at most :math:`2 T`, and so do its Hessians.
    Hessians are about T/n a document, so keep ``min_child_weight`` small.

    Parameters
    ----------
    target : "softmax", "labels" or "unnormalized"
        "softmax": :math:`P` is the softmax of the labels, as in the paper and in allRank. "labels": :math:`P` is the
        labels over their sum. "unnormalized": :math:`P` is the labels, as in rax's softmax loss (Sapronov, "Solving the
        Ranking Problem Using Continuous Optimization Methods", slides), so that a query counts in proportion to their
        sum. The last two take no negative labels, and queries without a relevant document have zero gradient.
    hessian : "bounded" or "exact"
        "exact" is the second derivative. "bounded" is at least the absolute gradient, so that no Newton step exceeds
        1: it trained better in XGBoost and LightGBM. Without the bound, steps are of the order of n if the softmax
        of a relevant document is small.

    Examples
    --------
    >>> grad, hess = ListNet("labels").gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([0.5, 0.5]))
    >>> grad, hess = ListNet("unnormalized", "exact").gradient_hessian([0.0, 0.0], [3, 1], group=[2])
    >>> grad, hess
    (array([-1.,  1.]), array([1., 1.]))
    """

    target: Target = "softmax"
    hessian: Hessian = "bounded"

    checks: ClassVar[dict[str, Check]] = {
        "target": one_of(*get_args(Target)), "hessian": one_of(*get_args(Hessian))
    }  # fmt: skip

    @property
    def facts(self) -> Facts:
        return Facts(hessian_kind="bound" if self.hessian == "bounded" else "exact")

    def _target(self, queries: Queries, n_threads: int | None) -> np.ndarray:
        y = queries.labels
        out = y.copy()
        if self.target == "softmax":
            run(label_softmax, queries.ptr, (queries.ptr, y, out), n_threads)
            return out
        enough = f"target={self.target!r} needs labels of at least 0; shift them, or use target='softmax'"
        require((y >= 0).all(), enough)
        if self.target == "labels":
            start, sizes = queries.ptr[:-1], np.diff(queries.ptr)
            top = np.repeat(np.maximum.reduceat(y, start), sizes)
            np.divide(y, top, out=out, where=top > 0)
            of_query = np.repeat(np.add.reduceat(out, start), sizes)
            np.divide(out, of_query, out=out, where=of_query > 0)
        return out

    def fill(self, call: Call) -> None:
        target = call.queries.cached(("target", self), lambda: self._target(call.queries, call.n_threads))
        call.run(cross_entropy, target)

    def _reference_target(self, labels: np.ndarray) -> np.ndarray:
        if self.target == "softmax":
            return np.exp(labels - log_sum_exp(labels))
        return labels / labels.sum() if self.target == "labels" and labels.any() else labels

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        return np.sum(self._reference_target(labels) * (log_sum_exp(scores) - scores))

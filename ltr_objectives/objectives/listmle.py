"""ListMLE: the likelihood that a Plackett-Luce model ranks by label."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.kernels.listmle import Inputs, likelihood
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import log_sum_exp

Hessian = Literal["bounded", "exact"]


@dataclass(frozen=True)
class ListMLE(Objective, text="listmle"):
    r"""ListMLE (Xia et al., "Listwise Approach to Learning to Rank: Theory and Algorithm", ICML 2008).

    .. math:: \sum_d \left(\log S_d - s_{y(d)}\right), \quad S_d = \sum_{e \ge d} e^{s_{y(e)}}

    with :math:`y(d)` the document at rank d by descending label. It is the negative log-probability of that ranking in
    a Plackett-Luce model. Gradients lie between -1 and the length n of the list; for tied scores the largest is about
    log n. Queries whose labels are all equal have zero gradient.

    Of documents of equal label each counts by the average share of it that is still open: at rank l = 0, 1, ... of a
    tie of m documents, :math:`S` is the mass of the lower labels plus 1 - l/m times that of the tie. That is Efron's
    treatment of ties in Cox's model ("The Efficiency of Cox's Likelihood Function for Censored Data", JASA 1977). It
    approximates the mean over all orders, which does not have a short form.

    Parameters
    ----------
    hessian : "bounded" or "exact"
        As in :class:`ListNet`.

    Examples
    --------
    >>> grad, hess = ListMLE().gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.5,  0.5]), array([0.5, 0.5]))
    """

    hessian: Hessian = "bounded"

    checks: ClassVar[dict[str, Check]] = {"hessian": one_of(*get_args(Hessian))}

    @property
    def facts(self) -> Facts:
        return Facts(hessian_kind="bound" if self.hessian == "bounded" else "exact")

    def fill(self, call: Call) -> None:
        call.run(likelihood, Inputs(call.queries.labels, call.queries.by_label))

    @staticmethod
    def _open_shares(labels: np.ndarray) -> list[np.ndarray]:
        """Return for each rank the share of each document that is open."""
        shares = []
        for label in sorted(set(labels), reverse=True):
            m = int((labels == label).sum())
            lower = (labels < label).astype(float)
            shares += [lower + (labels == label) * (1.0 - placed / m) for placed in range(m)]
        return shares if len(set(labels)) > 1 else []

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        shares = self._open_shares(labels)
        logs = [log_sum_exp(scores[share > 0] + np.log(share[share > 0])) for share in shares]
        return sum(logs) - np.sum(scores) if shares else 0.0

r"""ListMLE: the likelihood that a Plackett-Luce model ranks by label.

At rank d by label the documents from d on are open. Their mass :math:`S_d`, the sum of :math:`e^s`, is kept as a
multiple of its largest term, whose logarithm is the unit. It is summed from the last rank to the first, so that nothing
is subtracted and nothing overflows. Sums over the ranks above are taken from the first rank to the last, in the unit of
the current :math:`S`, so that each step multiplies them by at most 1. A list takes :math:`O(n)`.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from ltr_objectives.checks import Check, one_of
from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.sorting import all_equal
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import log_sum_exp


class Labelled(NamedTuple):
    """Labels by row, and the documents of each query in their order."""

    labels: np.ndarray
    by_label: np.ndarray


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
        call.run(_likelihood, Labelled(call.queries.labels, call.queries.by_label))

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


@kernel
def _masses(s, end, unit, S):
    """Fill unit and open mass of each rank; ``end[d]`` is where the tie of rank d ends."""
    n = len(s)
    b = n
    top, below = -np.inf, 0.0
    while b > 0:
        a = b - 1
        while a > 0 and end[a - 1] == b:
            a -= 1
        new = top
        for i in range(a, b):
            new = max(new, s[i])
        below *= math.exp(top - new)
        tied = 0.0
        for i in range(a, b):
            tied += math.exp(s[i] - new)
        for i in range(a, b):
            unit[i] = new
            S[i] = below + tied * (b - i) / (b - a)
        top, below, b = new, below + tied, a


@kernel
def _derivatives(s, end, unit, S, order, grad, hess):
    """Write gradient and Hessian of documents in the order of labels.

    At rank i ``above`` is the sum of S_i / S_d over the ranks d <= i. In ``own`` a rank of the tie counts by the share
    of the tie that is open there. The others are sums of squares.
    """
    n = len(s)
    above, above2, a = 0.0, 0.0, 0
    while a < n:
        b = end[a]
        own, own2 = above, above2
        for i in range(a, b):
            if i > 0:
                shrink = math.exp(unit[i] - unit[i - 1]) * S[i] / S[i - 1]
                above, above2 = above * shrink, above2 * shrink * shrink
                own, own2 = own * shrink, own2 * shrink * shrink
            share = (b - i) / (b - a)
            above, above2 = above + 1.0, above2 + 1.0
            own, own2 = own + share, own2 + share * share
        for i in range(a, b):
            e = math.exp(s[i] - unit[b - 1]) / S[b - 1]
            grad[order[i]] = e * own - 1.0
            hess[order[i]] = max(e * own - e * e * own2, 0.0)
        a = b


class Scratch(NamedTuple):
    """By rank in the order of labels."""

    end: np.ndarray  # where the tie of the rank ends
    s: np.ndarray
    unit: np.ndarray
    S: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(np.empty(longest, np.int64), np.empty(longest), np.empty(longest), np.empty(longest))


@inlined_kernel
def _listmle(one: OneList, data: Labelled, r: Scratch) -> None:
    """Write minus the log-likelihood's derivatives; a list of equal labels has none."""
    n, y, order = len(one.s), data.labels[one.first : one.last], data.by_label[one.first : one.last]
    if all_equal(y):
        return
    for i in range(n - 1, -1, -1):
        r.s[i] = one.s[order[i]]
        r.end[i] = r.end[i + 1] if i + 1 < n and y[order[i]] == y[order[i + 1]] else i + 1
    _masses(r.s[:n], r.end, r.unit, r.S)
    _derivatives(r.s[:n], r.end, r.unit, r.S, order, one.grad, one.hess)


_likelihood = each_list(_scratch, _listmle)

r"""Hessians in units of documents, so that regularisation means the same for every objective."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.objectives.wrapper import Wrapper
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class UnitHessian(Wrapper):
    r"""An objective times one constant, so that its Hessians are as large as those of squared error.

    For each data set the constant is the mean weight of the rows over the mean Hessian, at independent standard normal
    scores. So there the mean Hessian is 1 without weights. Negative Hessians count by their size, and a share of the
    queries, as of ``Subsample``, as all of them. The constant cancels in a Newton step :math:`g / h`. It does
    not cancel where a library adds a number to sums of Hessians, or compares the sums with a number. As for squared
    error, ``reg_lambda=50`` then counts as much as 50 documents, and ``min_child_weight=1`` as one. Hessians of
    objectives otherwise differ by factors of thousands: a document has about .1 in ``YetiLoss("ndcg@10")``, 20 in
    ``RankNet()``, and 1/n in ``XENDCG()``, with n documents in the list.

    In a training by several workers each worker computes the constant from its own rows.

    Parameters
    ----------
    objective : str or Objective
        The objective to wrap.

    Examples
    --------
    >>> from ltr_objectives import RankNet
    >>> labels, group = [0, 1, 0, 2], [2, 2]
    >>> plain, unit = (o.gradient_hessian([0.0] * 4, labels, group) for o in (RankNet(), UnitHessian("ranknet")))
    >>> bool(np.allclose(plain[0] / plain[1], unit[0] / unit[1]))
    True
    """

    objective: str | Objective

    name: ClassVar[str] = "unithessian"

    def factor(self, call: Call) -> float:
        mean = typical(self.wrapped, call.queries, call.n_threads).hessian
        return 1.0 / mean if mean > SMALLEST else 1.0

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = self.wrapped.reference(scores, labels)
        factor = self.factor(Call(Queries(labels, [len(labels)]), scores, grad, hess))
        return factor * grad, factor * hess

r"""Gradient and Hessian in units of documents, so that regularisation means the same for every objective."""

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
    r"""An objective whose gradient and Hessian are multiplied by one constant, so that the mean Hessian is 1.

    The constant belongs to the data set: it is the mean weight of the rows over the mean Hessian at independent
    standard normal scores. It cancels in :math:`g / h`. It does not cancel where a library adds a number to sums of
    Hessians, or compares them with one: ``reg_lambda=50`` then counts as much as 50 documents, and
    ``min_child_weight=1`` as one, as for squared error. Without it the Hessian of a document differs between
    objectives by factors of thousands: about .1 for ``YetiLoss("ndcg@10")``, 20 for ``RankNet()``, 1/n for
    ``XENDCG()``.

    In a training by several workers each has a constant of its own, from its own rows.

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

    def change(self, call: Call) -> None:
        mean = typical(self.wrapped, call.queries, call.n_threads).hessian
        if mean > SMALLEST:
            call.grad[:] /= mean
            call.hess[:] /= mean

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        call = Call(Queries(labels, [len(labels)]), scores, *self.wrapped.reference(scores, labels))
        self.change(call)
        return call.grad, call.hess

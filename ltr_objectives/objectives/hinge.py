r"""Hinge: a margin between documents of different labels, weighted by the exact change of a metric."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives.kernels.pairs import HINGE
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.pairwise import PairLoss, PairwiseObjective


@dataclass(frozen=True)
class Hinge(PairwiseObjective, text="hinge"):
    r"""Pairwise hinge (Herbrich, Graepel and Obermayer, 1999), weighted by the change of any metric.

    .. math:: \sum_{y_{hi} > y_{lo}} \delta \max(0,\; 1 - \sigma (s_{hi} - s_{lo}))

    with :math:`\delta` the exact absolute change of the metric when the two are swapped. Ranks count as constants. The
    second derivative is zero; instead each pair within the margin adds :math:`\sigma^2 \delta` to the Hessian of both
    documents, so that no Newton step exceeds :math:`1 / \sigma`.

    Parameters
    ----------
    metric : str or Metric
        The metric whose change weighs the pairs.
    sigma : float
        One over the margin, above 0.
    truncation, partners, seed
        As in :class:`LambdaMART`.

    Examples
    --------
    >>> grad, hess = Hinge("mrr").gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad, hess
    (array([ 0.5, -0.5]), array([0.5, 0.5]))
    """

    metric: str | Metric = "ndcg"
    sigma: float = 1.0
    truncation: int | None = None
    partners: int | None = None
    seed: int = 0

    loss: ClassVar[PairLoss] = PairLoss(
        HINGE, lambda x: np.where(x.real < 1, 1 - x, 0), lambda x: 1.0 * (x < 1), lambda x: 1.0 * (x < 1), "bound"
    )

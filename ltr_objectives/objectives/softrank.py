"""SoftRank: expected NDCG of documents with normally distributed scores, in quadratic time."""

import functools
import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from ltr_objectives.kernels.softrank import Inputs, expected_ndcg
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import GainObjective
from ltr_objectives.objectives.reference import reference_gains, reference_head
from ltr_objectives.queries import Queries


@functools.lru_cache
def discount_exponentials(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return factors c and z with ``sum_m c_m z_m^(d - 1)`` = 1 / log2(1 + d) for d = 1, ..., ranks, within 1e-12.

    1 / log(1 + d) is a mixture of exp(-x d) over x > 0, so a few, spread evenly in log x, suffice. The last z is 1.
    """
    least, most = 0.1 / ranks, 20.0
    rates = np.append(np.geomspace(least, most, math.ceil(3.3 * math.log(most / least))), 0.0)
    d = np.unique(np.rint(np.concatenate((np.arange(1, min(ranks, 200) + 1), np.geomspace(1, ranks, 400)))))
    factors = np.linalg.lstsq(np.exp(-np.outer(d - 1.0, rates)), 1.0 / np.log2(1.0 + d), rcond=1e-16)[0]
    return factors, np.exp(-rates)


@dataclass(frozen=True)
class SoftRank(GainObjective, text="softrank"):
    r"""SoftRank (Taylor et al., "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008), or SoftNDCG.

    .. math:: -\frac{1}{N} \sum_i G(y_i)\, \mathbb{E} \frac{1}{\log_2(1 + r_i)}, \quad
        r_i = 1 + \sum_{j \ne i} B_{ij}, \quad P(B_{ij} = 1) = \Phi\Big(\frac{s_j - s_i}{\sqrt 2 \sigma}\Big)

    with the ideal DCG N and independent :math:`B`, as in the paper: each score has a normal distribution, and the
    dependence between pairs with a document in common is left out. A query takes O(n^2) instead of the paper's O(n^3),
    because the discount is written as a sum of exponentials. A cutoff is not such a sum, so the whole list counts.

    The gradient is exact. The Hessian is an estimate: the sum of the absolute gradients of a document's pairs, divided
    by ``step`` times :math:`\sigma`. Queries whose labels are all equal have zero gradient.

    Parameters
    ----------
    sigma : float
        Standard deviation of each score.
    step : float
        Newton steps are at most this times :math:`\sigma`; 10 trained much better than 1 in LightGBM.
    gain, max_documents
        As in :class:`NeuralNDCG`.

    Examples
    --------
    >>> grad, hess = SoftRank().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.104113, -0.104113]), array([0.010411, 0.010411]))
    """

    sigma: float = 1.0
    _: KW_ONLY
    max_documents: int = 1000
    step: float = 10.0

    def pairs_visited(self, queries: Queries) -> float:
        n = min(queries.longest, self.max_documents)
        return float(n) * min(n, int(np.count_nonzero(queries.in_longest(queries.labels))))

    def fill(self, call: Call) -> None:
        terms = NDCG(gain_type=self.gain).terms(call.queries)
        factors, z = discount_exponentials(self.max_documents)
        soft = Inputs(
            terms=terms, labels=call.queries.labels, sigma=float(self.sigma), step=float(self.step),
            c=factors[:-1].copy(), miss=1.0 - z[:-1], most=self.max_documents,
        )  # fmt: skip
        call.run(expected_ndcg, soft)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        chosen = reference_head(scores, labels, self.max_documents)
        s = scores[chosen]
        beats = np.vectorize(math.erfc)((s[:, None] - s) / (2.0 * self.sigma)) / 2.0
        np.fill_diagonal(beats, 0.0)
        factors, z = discount_exponentials(self.max_documents)
        discount = [np.prod(1.0 - np.outer(1.0 - z, p), axis=1) @ factors for p in beats]
        return -np.sum(reference_gains(self.gain, labels)[chosen] * discount)

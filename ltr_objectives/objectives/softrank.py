r"""SoftRank: expected NDCG of documents with normally distributed scores."""

import functools
import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import positive, whole
from ltr_objectives.kernels.softrank import softrank
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.reference import reference_head
from ltr_objectives.queries import Queries


@functools.lru_cache
def discount_exponentials(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors c and z with ``sum_m c_m z_m^(d - 1)`` = 1 / log2(1 + d) for d = 1, ..., ranks, within 1e-12.

    1 / log(1 + d) is a mixture of exp(-x d) over x > 0, so that a few, spread evenly in log x, come close: 41 for 1,000
    ranks. The last z is 1.
    """
    least, most = 0.1 / ranks, 20.0
    rates = np.append(np.geomspace(least, most, math.ceil(3.3 * math.log(most / least))), 0.0)
    d = np.unique(np.rint(np.concatenate((np.arange(1, min(ranks, 200) + 1), np.geomspace(1, ranks, 400)))))
    factors = np.linalg.lstsq(np.exp(-np.outer(d - 1.0, rates)), 1.0 / np.log2(1.0 + d), rcond=1e-16)[0]
    return factors, np.exp(-rates)


@dataclass(frozen=True)
class SoftRank(Objective):
    r"""SoftRank (Taylor et al., "SoftRank: Optimizing Non-Smooth Rank Metrics", WSDM 2008), or SoftNDCG.

    .. math:: -\frac{1}{N} \sum_i G(y_i)\, \mathbb{E} \frac{1}{\log_2(1 + r_i)}, \quad
        r_i = 1 + \sum_{j \ne i} B_{ij}, \quad P(B_{ij} = 1) = \Phi\Big(\frac{s_j - s_i}{\sqrt 2 \sigma}\Big)

    with the ideal N and independent :math:`B`, as in the paper: each score has a normal distribution, and the
    dependence between pairs with a document in common is left out. In O(n^2) a query where the paper takes O(n^3): the
    discount is written as a sum of exponentials, 41 for 1,000 ranks, exact to 1e-12, see
    :mod:`ltr_objectives.kernels.softrank`. A cutoff is no such sum; the whole list counts.

    The gradient is exact. The Hessian, an estimate, is the sum of the absolute gradients of a document's pairs over
    ``step`` times :math:`\sigma`. Queries whose labels are all equal teach nothing.

    Parameters
    ----------
    sigma : float
        Deviation of each score.
    step : float
        Newton steps are at most this times :math:`\sigma`; 10 trained much better than 1 in LightGBM.
    gain : "exp", "linear" or table
        :math:`2^y - 1`, :math:`y`, or the gain of each label 0, 1, 2, ...
    max_documents : int
        Longer lists are cut to this many documents: half of them the first of the present ranking, half the most
        relevant of the others. The rest gets no gradient.

    Examples
    --------
    >>> grad, hess = SoftRank().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.104113, -0.104113]), array([0.010411, 0.010411]))
    """

    sigma: float = 1.0
    _: KW_ONLY
    gain: str | tuple[float, ...] = "exp"
    max_documents: int = 1000
    step: float = 10.0

    name: ClassVar[str] = "softrank"

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        positive("step", self.step)
        whole("max_documents", self.max_documents, 2)
        object.__setattr__(self, "gain", gains.parse_gain(self.gain, "gain"))

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return cls(), cls(0.1, gain="linear", step=1), cls(3.0, gain=(0.0, 0.5, 2.0, 2.0, 9.0), max_documents=6)

    @property
    def label_limit(self) -> float | None:
        return gains.gain_limit(self.gain)

    @property
    def longest_step(self) -> float | None:
        return self.step * self.sigma

    @property
    def treats_ties_alike(self) -> bool:
        return True

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
        terms = NDCG(gain_type=self.gain).terms(queries)
        factors, z = discount_exponentials(int(self.max_documents))
        run(
            softrank,
            queries.ptr,
            (queries.ptr, scores, queries.labels, terms.gain, terms.scale, float(self.sigma), factors[:-1].copy(),
             1.0 - z[:-1], int(self.max_documents), grad, hess),
            n_threads,
            stoppable=True,
        )  # fmt: skip
        with np.errstate(over="ignore"):  # seen by whoever asked, as any infinity
            hess /= self.step

    fewer_pairs = "choose a smaller max_documents"

    def pairs_visited(self, queries: Queries) -> np.ndarray:
        return np.minimum(np.diff(queries.ptr), self.max_documents).astype(np.float64) ** 2

    def part_of_pairs(self, queries: Queries, ranks: int) -> tuple[Objective, Queries]:
        return replace(self, max_documents=math.isqrt(ranks * queries.longest)), queries

    def _list(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Documents that count, their gains over the ideal, and the chances that a column's beats a row's."""
        chosen = reference_head(scores, labels, self.max_documents)
        gain = np.asarray(gains.apply_gain(self.gain, labels), float)
        ideal = float(np.sum(np.sort(gain)[::-1] / np.log2(np.arange(2, len(gain) + 2))))
        gain = gain[chosen] / ideal if len(set(gain)) > 1 else np.zeros(len(chosen))
        s = scores[chosen]
        return chosen, gain, np.vectorize(math.erfc)((s[:, None] - s) / (2.0 * self.sigma)) / 2.0

    @staticmethod
    def _rank_distribution(chances: np.ndarray) -> np.ndarray:
        """Of the number of independent 0/1 variables that are 1."""
        out = np.ones(1)
        for p in chances:
            out = np.append(out * (1.0 - p), 0.0) + np.append(0.0, out * p)
        return out

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        chosen, gain, chance = self._list(scores, labels)
        n = len(chosen)
        discount = 1.0 / np.log2(np.arange(2, n + 2))
        return -sum(gain[i] * (self._rank_distribution(np.delete(chance[i], i)) @ discount) for i in range(n))

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chosen, gain, chance = self._list(scores, labels)
        grad, hess = np.zeros(len(scores)), np.zeros(len(scores))
        n = len(chosen)
        lost = 1.0 / np.log2(np.arange(2, n + 1)) - 1.0 / np.log2(np.arange(3, n + 2))  # by one rank more
        for i in range(n):
            for j in range(n):
                u = (scores[chosen[i]] - scores[chosen[j]]) / (2.0 * self.sigma)
                if i == j or gain[i] == 0.0 or abs(u) > 30.0:  # the density below is 0
                    continue
                density = math.exp(-(u**2)) / (2.0 * self.sigma * math.sqrt(math.pi))
                t = gain[i] * density * float(self._rank_distribution(np.delete(chance[i], (i, j))) @ lost)
                grad[chosen[j]] += t
                grad[chosen[i]] -= t
                hess[chosen[[i, j]]] += t / (self.sigma * self.step)
        return grad, hess

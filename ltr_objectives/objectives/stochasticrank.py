"""StochasticRank: the gradient of a metric's expected value under Gaussian noise, for any metric."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_not_negative, check_positive, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.rng import GAUSSIAN_NOISE
from ltr_objectives.kernels.stochasticrank import Inputs, conditional_gradients
from ltr_objectives.kernels.swaps import CASCADE
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.pairwise import share_of_ranks
from ltr_objectives.queries import Queries

Hessian = Literal["ones", "bounded", "absolute", "clipped", "exact"]


@dataclass(frozen=True)
class StochasticRank(Objective, text="stochasticrank"):
    r"""StochasticRank (Ustimenko and Prokhorenkova, ICML 2020) for any metric.

    The loss of a query is :math:`-\mathbb{E}\, M(s - \mu \sigma y + \sigma \varepsilon)`, the metric :math:`M` smoothed
    by standard normal noise. Its gradient is estimated by coordinate conditional sampling, derived in
    :mod:`ltr_objectives.kernels.stochasticrank`:

    .. math:: -\sum_j \Delta_{ij}\, \varphi_\tau(x_j - m_i), \quad \tau = \sigma \sqrt{n / (n - 1)}

    with noisy scores :math:`x`, the mean :math:`m_i` of :math:`x_i` given the others, and the exact change
    :math:`\Delta_{ij}` of the metric when :math:`i` passes :math:`j`. The estimate is unbiased, before the scale-free
    step, for every :math:`\sigma`.

    Parameters
    ----------
    metric : str or Metric
        The metric to optimise.
    sigma : float
        Standard deviation of the noise, in units of the scores.
    mu : float
        Lowers each score by :math:`\mu \sigma y`, so that tied scores count as ordered badly, not at random.
    samples : int
        Noise vectors per iteration, from 1 to 1,000,000. CatBoost calls it num_estimations.
    sfa : float
        Scale-free step: subtract from each query's gradient :math:`g` its mean, and then ``sfa`` times the part of
        :math:`g` along the centred scores :math:`c`: :math:`g - sfa\, c \langle c, g \rangle / (\|c\| + \nu)^2`. So
        trees do not fit the scale of the scores, on which a ranking does not depend. 0 leaves the gradient as it is. In
        lists of two documents only the mean is subtracted. CatBoost calls it lambda, with the same default of 1.
    nu : float
        :math:`\nu` above, which keeps the step small while scores are small.
    hessian : "ones", "bounded", "absolute", "clipped" or "exact"
        "ones" is 1 for each row, as in CatBoost. "bounded" is
        :math:`\sum_j |\Delta_{ij}| \varphi_\tau(x_j - m_i) / \tau`. With ``sfa=0`` it bounds the Newton step of a row
        by :math:`\tau`. With a scale-free step there is no bound, because that step also changes the gradients of rows
        whose sum is nearly 0. "exact" is the curvature of the loss,
        :math:`-\sum_j \Delta_{ij} \varphi_\tau(x_j - m_i) (x_j - m_i) / \tau^2`. It is negative for many rows, which
        boosting libraries do not expect. "absolute" is its absolute value, "clipped" its positive part.
    seed : int
        Seed of the noise.

    Examples
    --------
    >>> grad, hess = StochasticRank("mrr").gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.141047, -0.141047]), array([1., 1.]))
    """

    metric: str | Metric = "ndcg@10"
    _: KW_ONLY
    sigma: float = 1.0
    mu: float = 0.0
    samples: int = 1
    sfa: float = 1.0
    nu: float = 0.01
    hessian: Hessian = "ones"
    seed: int = 0

    checks: ClassVar[dict[str, Check]] = {
        "sfa": check_not_negative,
        "nu": check_positive,
        "hessian": one_of(*get_args(Hessian)),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.mu * self.sigma < np.inf, f"mu={self.mu!r} times sigma={self.sigma!r} must be finite; lower one")

    @property
    def facts(self) -> Facts:
        return Facts(
            random=True,
            balanced=self.sfa > 0,  # else each document has samples of its own
            label_limit=get_metric(self.metric).label_limit,
        )

    @property
    def policy(self) -> str:
        return "exact" if self.hessian == "bounded" else self.hessian  # the kernel writes the bounding sum

    def _layers(self, queries: Queries) -> tuple[Terms, ...]:
        return get_metric(self.metric).layers(queries)

    def relevance(self, queries: Queries) -> np.ndarray:
        return np.sum([terms.gain for terms in self._layers(queries)], axis=0)

    def pairs_visited(self, queries: Queries) -> float:
        n, metric = queries.longest, get_metric(self.metric)
        share = share_of_ranks(queries.in_longest(self.relevance(queries))) if metric.kind == CASCADE else 1.0
        return float(n) * min(n, metric.k or n) * self.samples * share

    def fill(self, call: Call) -> None:
        rng = call.rng(self.seed, self.samples, GAUSSIAN_NOISE)
        smooth = Inputs(
            layers=self._layers(call.queries), labels=call.queries.labels, rng=rng, sigma=float(self.sigma),
            mu=float(self.mu), sfa=float(self.sfa), nu=float(self.nu), bounded=self.hessian == "bounded",
        )  # fmt: skip
        call.run(conditional_gradients, smooth)

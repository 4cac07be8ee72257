r"""StochasticRank: the gradient of a metric's expected value under Gaussian noise, for any metric."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

import numpy as np

from ltr_objectives.errors import choice, draws, not_negative, positive, require, seed
from ltr_objectives.kernels.conditional import conditional_gradients
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.pairwise import metric_examples
from ltr_objectives.queries import Queries
from ltr_objectives.registry import get_metric

HESSIANS = ("ones", "bounded", "absolute", "clipped", "exact")


@dataclass(frozen=True)
class StochasticRank(Objective):
    r"""StochasticRank (Ustimenko and Prokhorenkova, ICML 2020) for any metric.

    The loss of a query is :math:`-\mathbb{E}\, M(s - \mu \sigma y + \sigma \varepsilon)`, the metric :math:`M` smoothed
    by standard normal noise. Its gradient is estimated for each document with all noise but that of the other
    documents' differences integrated out (coordinate conditional sampling):

    .. math:: -\sum_j \Delta_{ij}\, \varphi_\tau(x_j - m_i), \quad \tau = \sigma \sqrt{n / (n - 1)}

    with noisy scores :math:`x`, the mean :math:`m_i` of :math:`x_i` given the others, and the exact change
    :math:`\Delta_{ij}` of the metric when :math:`i` passes :math:`j`; derivation in
    :mod:`ltr_objectives.kernels.conditional`. Unbiased for every :math:`\sigma`, before the scale-free step.

    Parameters
    ----------
    metric : str or Metric
        What to optimise.
    sigma : float
        Deviation of the noise, in units of the scores.
    mu : float
        Lowers relevant documents by :math:`\mu \sigma y`, so that tied scores count as badly ordered, not as random.
    samples : int
        Noise vectors per iteration, from 1 to 1,000,000. CatBoost calls it num_estimations.
    sfa : float
        Scale-free step: the mean is taken from each query's gradient, and this times its part along the centred scores
        :math:`c`, so that trees do not spend themselves on the scale of the scores, on which no metric depends:
        :math:`g - sfa\, c \langle c, g \rangle / (\|c\| + \nu)^2`. 0 leaves the gradient as it is. CatBoost calls it
        lambda; its default is 1 too. Lists of two documents only lose the mean.
    nu : float
        Above: keeps the step small while scores are.
    hessian : "ones", "bounded", "absolute", "clipped" or "exact"
        1 for each row, as CatBoost; :math:`\sum_j |\Delta_{ij}| \varphi_\tau(x_j - m_i) / \tau`, so that the Newton
        step of a row is at most :math:`\tau` with ``sfa=0`` (the scale-free step also moves rows that have next to no
        such sum); or the curvature of the loss,
        :math:`-\sum_j \Delta_{ij} \varphi_\tau(x_j - m_i) (x_j - m_i) / \tau^2`: its absolute value, its positive part,
        or as it is. The last is negative for many rows, which boosting libraries do not expect.
    noise : "gaussian" or None
        With None the other documents stay where their scores put them, and only a document's own noise counts:
        no randomness, but a biased gradient, except for lists of two.
    seed : int
        Of the noise.

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
    hessian: str = "ones"
    noise: str | None = "gaussian"
    seed: int = 0

    name: ClassVar[str] = "stochasticrank"

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        not_negative("mu", self.mu)
        require(self.mu * self.sigma < np.inf, "mu times sigma must be finite")
        draws("samples", self.samples)
        not_negative("sfa", self.sfa)
        positive("nu", self.nu)
        choice("hessian", self.hessian, HESSIANS)
        choice("noise", self.noise, ("gaussian", None))
        seed(self.seed)
        object.__setattr__(self, "metric", get_metric(self.metric))

    @property
    def random(self) -> bool:
        return self.noise is not None

    def without_noise(self) -> Objective:
        return replace(self, noise=None)

    @property
    def negative_hessian(self) -> bool:
        return self.hessian == "exact"

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return (
            *metric_examples(lambda metric: cls(metric, noise=None, sfa=0.0, hessian="absolute")),
            cls(),
            cls("ndcg@5", sfa=1.0, hessian="ones"),
            cls("map", sigma=0.3, mu=0.5, samples=3, hessian="bounded"),
            cls("err@5", sfa=0.5, nu=1.0, hessian="clipped", seed=2**64 - 1),
            cls("mrr", sigma=2.0, mu=0.2, sfa=0.7, hessian="clipped", noise=None),
            cls("ndcg", sigma=0.1, hessian="bounded", noise=None),
        )

    @property
    def label_limit(self) -> float | None:
        return get_metric(self.metric).label_limit

    def worth(self, queries: Queries) -> np.ndarray:
        return get_metric(self.metric).terms(queries).gain

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
        kind, gain, discount, scale, _, _ = get_metric(self.metric).terms(queries)
        run(
            conditional_gradients,
            queries.ptr,
            (queries.ptr, scores, queries.labels, kind, gain, discount, scale, float(self.sigma), float(self.mu),
             int(self.samples) if self.noise else 1, NOISES[self.noise], float(self.sfa), float(self.nu),
             self.hessian == "bounded", np.uint64(self.seed), np.uint64(iteration), grad, hess),
            n_threads,
            stoppable=True,
        )  # fmt: skip
        if self.hessian == "ones":
            hess[:] = 1.0
        elif self.hessian == "absolute":
            np.abs(hess, out=hess)
        elif self.hessian == "clipped":
            np.maximum(hess, 0.0, out=hess)

    fewer_pairs = "choose a metric with a cutoff, such as ndcg@10"

    def pairs_visited(self, queries: Queries) -> np.ndarray:
        n = np.diff(queries.ptr).astype(np.float64)
        reach = get_metric(self.metric).terms(queries).reach(queries.ptr) + 1
        return n * np.minimum(n, reach) * (self.samples if self.noise else 1)

    def part_of_pairs(self, queries: Queries, ranks: int) -> tuple[Objective, Queries]:
        metric = get_metric(self.metric)
        # without a cutoff, as AUC: a pair costs as much in any linear metric
        part = get_metric(f"precision@{ranks}") if metric.cutoff == "none" else replace(metric, k=ranks)
        return replace(self, metric=part, samples=1), queries

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(scores)
        slope, bend, size = conditional_reference(
            get_metric(self.metric), scores - self.mu * self.sigma * labels, labels, self.sigma
        )
        if self.sfa > 0 and n > 0:
            slope = slope - slope.mean()
            c = scores - scores.mean()
            if n > 2:
                slope = slope - self.sfa * c * (c @ slope) / (np.linalg.norm(c) + self.nu) ** 2
        hess = {"ones": np.ones(n), "bounded": size, "absolute": np.abs(bend), "clipped": np.maximum(-bend, 0)}
        return -slope, hess.get(self.hessian, -bend)


def conditional_reference(
    metric: Metric, z: np.ndarray, labels: np.ndarray, sigma: float, eps: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The estimates of one query by definition, slot by slot: first and second derivative, and the bounding sum."""
    n = len(z)
    eps = np.zeros(n) if eps is None else eps
    slope, bend, size = np.zeros(n), np.zeros(n), np.zeros(n)
    if n < 2:
        return slope, bend, size
    tau = sigma * np.sqrt(n / (n - 1))
    x = z + sigma * eps
    for i in range(n):
        others = np.array([j for j in np.argsort(-x, kind="stable") if j != i])
        value = np.array([metric.reference(np.insert(labels[others], q, labels[i])) for q in range(n)])
        u = (x[others] - z[i] - sigma * eps[others].mean()) / tau
        density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi) / tau
        edges = np.concatenate(([0.0], density, [0.0]))
        slope[i] = value @ (edges[1:] - edges[:-1])
        edges[1:-1] *= u / tau
        bend[i] = value @ (edges[1:] - edges[:-1])
        size[i] = np.abs(value[:-1] - value[1:]) @ density / tau
    return slope, bend, size

r"""XE-NDCG: cross-entropy between the softmax of the scores and randomly lowered gains."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.errors import choice, seed
from ltr_objectives.kernels.softmax import xendcg
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import STEP_HESSIANS, Objective
from ltr_objectives.objectives.reference import log_sum_exp, shorten_steps, softmax
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class XENDCG(Objective):
    r"""XE-NDCG (Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW 2021), as LightGBM's rank_xendcg.

    .. math:: -\sum_i \frac{\varphi_i}{\sum_j \varphi_j} \log \rho_i, \quad
        \varphi_i = 2^{y_i} - u_i, \quad \rho = \operatorname{softmax}(s)

    with :math:`u_i` uniform between 0 and 1, drawn anew for each iteration. The gradient has up to three terms,

    .. math::
        t^{(1)}_i = \rho_i - \varphi_i / \textstyle\sum_j \varphi_j, \quad
        t^{(k+1)}_i = \rho_i \sum_{j \ne i} \frac{t^{(k)}_j}{1 - \rho_j}

    of which the first is the derivative; the others bring the step closer to that of the full Hessian matrix, whose
    diagonal is :math:`\rho (1 - \rho)`. Hessians are about 1/n a document, so keep ``min_child_weight`` small. Queries
    whose labels are all equal teach nothing.

    Parameters
    ----------
    terms : 1, 2 or 3
        Terms of the gradient; LightGBM has 3.
    hessian : "bounded" or "exact"
        The second derivative raised to the absolute gradient, so that no Newton step exceeds 1; or as it is, as in
        LightGBM. Where a relevant document has little of the softmax, steps are of the order of n without the bound;
        in XGBoost and LightGBM it trained better.
    noise : "uniform" or None
        With None every :math:`u` is 1/2.
    seed : int
        Of the noise. LightGBM draws other numbers.

    Examples
    --------
    >>> grad, hess = XENDCG(noise=None).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.25,  0.25]), array([0.25, 0.25]))
    """

    terms: int = 3
    hessian: str = "bounded"
    noise: str | None = "uniform"
    seed: int = 0

    name: ClassVar[str] = "xendcg"

    def __post_init__(self) -> None:
        choice("terms", self.terms, (1, 2, 3))
        choice("hessian", self.hessian, tuple(STEP_HESSIANS))
        choice("noise", self.noise, ("uniform", None))
        seed(self.seed)

    @classmethod
    def examples(cls) -> tuple[Objective, ...]:
        return cls(), cls(noise=None), cls(2, noise=None), cls(1, "exact", None), cls(1, seed=2**64 - 1)

    @property
    def random(self) -> bool:
        return self.noise is not None

    def without_noise(self) -> Objective:
        return replace(self, noise=None)

    @property
    def hessian_kind(self) -> str:
        return STEP_HESSIANS[self.hessian] if self.terms == 1 else "estimate"

    @property
    def longest_step(self) -> float | None:
        return 1.0 if self.hessian == "bounded" else None

    @property
    def label_limit(self) -> float | None:
        return gains.gain_limit("exp")

    @property
    def treats_ties_alike(self) -> bool:
        return not self.random

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
        given: np.ndarray | None = None,
    ) -> None:
        """As in every objective; ``given`` is for tests: the u of each row."""
        power, largest = queries.once("xendcg", lambda: self._power(queries))
        run(
            xendcg,
            queries.ptr,
            (queries.ptr, scores, power, largest, np.empty(0) if given is None else given, self.random,
             int(self.terms), self.hessian == "bounded", np.uint64(self.seed), np.uint64(iteration), grad, hess),
            n_threads,
        )  # fmt: skip

    def _power(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        DCG().check_labels(queries.labels)
        power = np.exp2(queries.labels)
        start = queries.ptr[:-1]
        largest = np.maximum.reduceat(power, start)
        differ = np.maximum.reduceat(queries.labels, start) > np.minimum.reduceat(queries.labels, start)
        return power / np.repeat(largest, np.diff(queries.ptr)), np.where(differ, largest, 0.0)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if self.terms > 1:
            return None
        if len(set(labels)) < 2:
            return 0.0
        phi = np.exp2(labels) - 0.5
        return np.sum(phi / phi.sum() * (log_sum_exp(scores) - scores))

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(scores)
        if len(set(labels)) < 2:
            return np.zeros(n), np.zeros(n)
        rho, phi = softmax(scores), np.exp2(labels) - 0.5
        others = ~np.eye(n, dtype=bool)
        miss = np.array([rho[others[i]].sum() for i in range(n)])
        shares = np.zeros((n, n))
        for i in range(n):
            shares[i, others[i]] = softmax(scores[others[i]])
        part = grad = rho - phi / phi.sum()
        for _ in range(1, self.terms):
            part = part @ shares
            grad = grad + part
        return grad, shorten_steps(self.hessian, grad, rho * miss)

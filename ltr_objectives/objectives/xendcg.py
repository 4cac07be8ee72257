"""XE-NDCG: cross-entropy between the softmax of the scores and randomly lowered gains."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from ltr_objectives.checks import Check, check_choice, check_integer, one_of
from ltr_objectives.kernels.xendcg import Inputs, lowered_cross_entropy
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import log_sum_exp
from ltr_objectives.queries import Queries

Hessian = Literal["bounded", "exact"]


@dataclass(frozen=True)
class XENDCG(Objective, text="xendcg"):
    r"""XE-NDCG (Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank", WWW 2021), as LightGBM's rank_xendcg.

    .. math:: -\sum_i \frac{\varphi_i}{\sum_j \varphi_j} \log \rho_i, \quad
        \varphi_i = 2^{y_i} - u_i, \quad \rho = \operatorname{softmax}(s)

    with :math:`u_i` uniform between 0 and 1, drawn anew for each iteration. The gradient has one term or three,

    .. math::
        t^{(1)}_i = \rho_i - \varphi_i / \textstyle\sum_j \varphi_j, \quad
        t^{(k+1)}_i = \rho_i \sum_{j \ne i} \frac{t^{(k)}_j}{1 - \rho_j}

    The first is the derivative. The others bring the step closer to that of the full Hessian matrix, whose diagonal is
    :math:`\rho (1 - \rho)`. Hessians are about 1/n a document, so keep ``min_child_weight`` small. Queries whose labels
    are all equal have zero gradient.

    Parameters
    ----------
    terms : 1 or 3
        Number of terms of the gradient; LightGBM has 3.
    hessian : "bounded" or "exact"
        As in :class:`ListNet`; LightGBM has "exact".
    noise : "uniform" or None
        With None every :math:`u` is 1/2.
    seed : int
        Seed of the noise. LightGBM draws other numbers.

    Examples
    --------
    >>> grad, hess = XENDCG(noise=None).gradient_hessian([0.0, 0.0], [1, 0], group=[2])
    >>> grad, hess
    (array([-0.25,  0.25]), array([0.25, 0.25]))
    """

    terms: int = 3
    hessian: Hessian = "bounded"
    noise: Literal["uniform"] | None = "uniform"
    seed: int = 0

    checks: ClassVar[dict[str, Check]] = {
        "terms": lambda name, terms: check_choice(name, check_integer(name, terms), (1, 3)),
        "hessian": one_of(*get_args(Hessian)),
        "noise": one_of("uniform", None),
    }

    @property
    def facts(self) -> Facts:
        kind = "bound" if self.hessian == "bounded" else "exact"
        return Facts(
            random=self.noise is not None,
            hessian_kind="estimate" if self.terms > 1 else kind,
            label_limit=gains.gain_limit("exp"),
        )

    def fill(self, call: Call) -> None:
        power, largest = call.queries.cached(("power", self), lambda: self._power(call.queries))
        call.run(
            lowered_cross_entropy,
            Inputs(power=power, largest=largest, random=self.facts.random, terms=self.terms, rng=call.rng(self.seed)),
        )

    def _power(self, queries: Queries) -> tuple[np.ndarray, np.ndarray]:
        DCG().layers(queries)  # raises for labels without a gain
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

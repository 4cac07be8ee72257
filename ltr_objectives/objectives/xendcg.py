r"""XE-NDCG: cross-entropy between the softmax of the scores and randomly lowered gains.

For :math:`b`, the document of the largest :math:`\rho`, :math:`1 - \rho_b` may be 0. So its term is taken out of the
sum over the others: :math:`\rho_i t_b / (1 - \rho_b) = \sigma_i t_b`, with :math:`\sigma` the softmax of all
documents but :math:`b`.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from ltr_objectives.checks import Check, check_choice, check_integer, one_of
from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel
from ltr_objectives.kernels.lists import OneList, each_list
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.rng import stream, uniform
from ltr_objectives.kernels.softmax import softmax, softmax_without
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.linear import DCG
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import log_sum_exp
from ltr_objectives.queries import Queries


class Lowered(NamedTuple):
    """The gains of a data set, and how they are lowered."""

    power: np.ndarray  # 2^y of each row over the largest of its query
    largest: np.ndarray  # by query; 0 if the gradient is zero
    random: bool  # else u is 1/2
    terms: int
    rng: Rng


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
        call.run(_kernel, Lowered(power, largest, self.facts.random, self.terms, call.rng(self.seed)))

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


@inlined
def _lowered(y, key, random, unit, part):
    """Write phi over the largest gain, with u = 1/2 unless ``random``; return the sum."""
    apart()
    result = 0.0
    for i in range(len(part)):
        u = uniform(key, np.uint64(i)) if random else 0.5
        part[i] = y[i] - u * unit
        result += part[i]
    return result


@inlined
def _first_term(rho, scale, inverse, part, g, h):
    """Write the first term and the Hessian, and the term over 1 - rho into ``part``; return the sum of those."""
    apart()
    result = 0.0
    for i in range(len(g)):
        g[i] = rho[i] - part[i] * scale
        h[i] = rho[i] * (1.0 - rho[i])
        part[i] = g[i] * inverse[i]
        result += part[i]
    return result


@inlined
def _next_term(rho, others, share, first, inverse, part, g):
    """Add the next term to ``g``; the rest is as in ``_first_term``."""
    apart()
    result = 0.0
    for i in range(len(g)):
        term = rho[i] * (others - part[i]) + share[i] * first
        g[i] += term
        part[i] = term * inverse[i]
        result += part[i]
    return result


class Scratch(NamedTuple):
    """By document."""

    rho: np.ndarray
    part: np.ndarray
    share: np.ndarray
    inverse: np.ndarray


@allocating
def _scratch(longest, data):
    """Return scratch for lists of up to ``longest`` documents."""
    return Scratch(np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest))


@inlined_kernel
def _xendcg(one: OneList, lowered: Lowered, r: Scratch) -> None:
    """Write the first term or all three, and the diagonal of the Hessian."""
    x, g, h, n, largest = one.s, one.grad, one.hess, len(one.s), lowered.largest[one.q]
    if largest == 0.0:
        return
    rho, part, share, inverse = r.rho[:n], r.part[:n], r.share[:n], r.inverse[:n]
    # the softmax, and the lowered gains
    best, rest = softmax(x, rho)
    key = stream(lowered.rng.seed, lowered.rng.iteration, np.uint64(one.q))
    sum_ = _lowered(lowered.power[one.first : one.last], key, lowered.random, 1.0 / largest, part)
    # the first term; the largest share is left out of the sums, because 1 - rho may vanish there
    for i in range(n):
        inverse[i] = 1.0 / (1.0 - rho[i])
    inverse[best] = 0.0
    others = _first_term(rho, 1.0 / sum_, inverse, part, g, h)
    h[best] = rho[best] * rest
    # the other terms
    if lowered.terms > 1:
        softmax_without(x, rho, rest, best, share)
    term = g[best]
    for _ in range(1, lowered.terms):
        best_term = rho[best] * others  # part and share are 0 there
        others = _next_term(rho, others, share, term, inverse, part, g)
        term = best_term


_kernel = each_list(_scratch, _xendcg)

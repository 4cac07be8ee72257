"""Wrappers, which change the queries, the size or the gradient of an objective."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, check_fraction, check_not_negative, check_positive
from ltr_objectives.kernels.rng import GAUSSIAN_NOISE, add_noise, uniforms
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.composite import Composite, Member, on_all_queries
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.objectives.typical import typical_size
from ltr_objectives.queries import Queries

AROUND = np.uint64(0xA4047D)  # separates the draws of wrappers from those of queries


class Wrapper(Composite):
    """An objective around the one in its field ``objective``, which a subclass adds.

    A subclass overrides some of :meth:`before`, :meth:`factor` and :meth:`after`, and the facts that these change.
    """

    objective: Objective

    checks: ClassVar[dict[str, Check]] = {"objective": lambda name, objective: get_objective(objective)}
    _not_read: ClassVar[dict[str, str]] = dict.fromkeys(
        ("fill", "row_weight"), "override before, factor or after instead"
    )

    def before(self, call: Call) -> Call:
        """Return the call for the wrapped objective, with other queries to skip."""
        return call

    def factor(self, call: Call) -> float:
        """Return the factor of the wrapped objective's gradient and Hessian, after its policy and weights."""
        return 1.0

    def after(self, call: Call) -> None:
        """Change ``call.grad`` and ``call.hess``, the gradient and Hessian of the wrapped objective."""

    @property
    def facts(self) -> Facts:
        return self.objective.facts

    @property
    def members(self) -> tuple[Member, ...]:
        return (Member(self.objective),)

    def with_members(self, *objectives: Objective) -> Objective:
        return replace(self, objective=objectives[0])  # type: ignore[call-arg]  # a field of subclasses

    def _check_clicks(self, queries: Queries) -> None:
        self.objective._check_clicks(queries)

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        return self.objective.row_weight(queries)

    def fill(self, call: Call) -> None:
        self.objective.fill(call)

    def _result(self, call: Call, factor: float = 1.0) -> Arrays:
        inner_call = self.before(call)
        if "seed" in self.parameters():  # so that what is inside draws apart; 0 counts for nothing
            inner_call = inner_call._replace(path=(*call.path, 1))
        factor *= self.factor(call)
        if type(self).after is Wrapper.after:  # nothing to change, so the arrays need no copy
            return self.objective._result(inner_call, factor)
        call.grad[:], call.hess[:] = self.objective._result(inner_call._replace(dtype=np.float64, into=None))
        self.after(call)
        return call._finish("exact", None, factor)  # the wrapped objective has applied policy and weights


def innermost(objective: Objective) -> Objective:
    """Return the objective that learns from the labels, without those around it."""
    while isinstance(objective, Wrapper):
        objective = objective.objective
    return objective


@dataclass(frozen=True)
class UnitHessian(Wrapper):
    r"""An objective times one constant, so that its Hessians are as large as those of squared error.

    For each data set the constant is the mean weight of a row divided by the mean absolute Hessian, at the scores that
    :class:`Mixture` takes. Around :class:`Subsample` the mean is over all queries. The constant cancels in a Newton
    step :math:`g / h`, but not in ``reg_lambda`` or ``min_child_weight``. As for squared error, ``reg_lambda=50`` then
    counts as much as 50 documents, and ``min_child_weight=1`` as one. Hessians of objectives otherwise differ by
    factors of thousands: a document has about 0.05 in ``YetiLoss("ndcg@10")``, 20 in ``RankNet()``, and 1/n in
    ``XENDCG()``, with n documents in the list.

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

    objective: Any

    name: ClassVar[str] = "unithessian"

    def factor(self, call: Call) -> float:
        return 1.0 / typical_size(self.objective, call.queries, call.n_threads).hessian


@dataclass(frozen=True)
class Subsample(Wrapper):
    r"""An objective on a random share of the queries, drawn anew in each iteration, as LightGBM's ``bagging_by_query``.

    .. math:: (g', h') = \frac{B_q}{p} (g, h), \quad B_q \sim \mathrm{Bernoulli}(p)

    for query :math:`q`. So gradients and Hessians keep their means, and Newton steps their size. At least one query is
    drawn: of :math:`n` queries the mean is :math:`1 + (1 - p)^n / (n p)` times as large, which matters only if
    :math:`n p` is small.

    Queries that are not drawn have zero gradient and are not computed. So a gradient takes the share :math:`p` of the
    time, and a little for each row; trees take the same time.

    Parameters
    ----------
    objective : str or Objective
        The objective to wrap.
    queries : float
        The share :math:`p`, above 0 and at most 1.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> half = Subsample("ranknet", queries=0.5)
    >>> half.gradient_hessian([0.0] * 6, [0, 1, 1, 0, 0, 1], group=[2, 2, 2])[0]
    array([ 1., -1.,  0.,  0.,  0.,  0.])
    """

    objective: Any
    queries: float = 0.5
    seed: int = 0

    name: ClassVar[str] = "subsample"
    checks: ClassVar[dict[str, Check]] = {"queries": check_fraction}

    @property
    def facts(self) -> Facts:
        facts = super().facts
        return facts._replace(random=self.queries < 1 or facts.random)

    def without_noise(self) -> Objective | None:
        return self.objective.without_noise()

    def on_all_queries(self) -> Objective:
        return on_all_queries(self.objective)

    def before(self, call: Call) -> Call:
        chance = np.empty(len(call.queries))
        uniforms(call.key(self.seed, AROUND), chance)
        return call._replace(skip=call.skip | (chance > max(self.queries, chance.min())))  # at least one is drawn

    def factor(self, call: Call) -> float:
        return 1.0 / float(self.queries)


@dataclass(frozen=True)
class Langevin(Wrapper):
    r"""Stochastic gradient Langevin boosting (Ustimenko and Prokhorenkova, ICML 2021) with XGBoost and LightGBM.

    .. math:: g_i' = g_i + \gamma h_i s_i + \sqrt{2 T / \eta}\; \xi_i, \quad h_i' = h_i

    with the objective's gradient :math:`g` and Hessian :math:`h`, scores :math:`s`, and independent standard normal
    :math:`\xi`. If :math:`h = 1` and trees fit every row, boosting with learning rate :math:`\eta` is the Langevin step
    :math:`s \leftarrow (1 - \eta \gamma) s - \eta g + \sqrt{2 T \eta}\, \xi`, which escapes from local minima.

    In CatBoost prefer its own Langevin boosting, which works with every objective of this package: ``langevin=True``,
    ``diffusion_temperature`` = 1 / T, ``model_shrink_rate`` = :math:`\gamma` and ``leaf_estimation_method="Gradient"``,
    because CatBoost does not add noise to Newton's leaf values. CatBoost draws separate noise for leaf values and for
    the structure of the tree, and shrinks the whole model. This wrapper does neither: the next tree subtracts only what
    it can express of :math:`\gamma s`, and :math:`s` includes the base score or baseline. Weights multiply :math:`g`
    and :math:`h`, and with :math:`h` the shrinkage, but not the noise.

    Parameters
    ----------
    objective : str or Objective
        The objective to wrap.
    temperature : float
        :math:`T`; 0 turns the noise off. :math:`\sqrt{2 T / \eta}` should be well below the size of the gradients.
    learning_rate : float
        :math:`\eta`, as given to the library.
    shrink : float
        :math:`\gamma`; 0 turns the shrinkage off.
    seed : int
        Seed of this noise.

    Examples
    --------
    >>> grad, hess = Langevin("lambdamart", temperature=0.0, shrink=0.5).gradient_hessian([1.0, 1.0], [0, 0], group=[2])
    >>> grad, hess
    (array([0., 0.]), array([0., 0.]))
    >>> Langevin("queryrmse", temperature=0.0, shrink=0.5).gradient_hessian([1.0, 1.0], [0, 0], group=[2])[0]
    array([0.5, 0.5])
    """

    objective: Any
    temperature: float = 1e-7
    learning_rate: float = 0.1
    shrink: float = 0.0
    seed: int = 0

    name: ClassVar[str] = "langevin"
    checks: ClassVar[dict[str, Check]] = {
        "temperature": check_not_negative, "learning_rate": check_positive, "shrink": check_not_negative
    }  # fmt: skip

    @property
    def facts(self) -> Facts:
        facts = super().facts
        facts = facts._replace(
            random=self.temperature > 0 or facts.random,
            balanced=facts.balanced and self.temperature == 0 and self.shrink == 0,
        )
        return facts if self.shrink == 0 else facts._replace(shift_invariant=False, hessian_kind="estimate")

    def without_noise(self) -> Objective | None:
        quiet: Any = super().without_noise()
        return None if quiet is None else replace(quiet, temperature=0.0)

    def after(self, call: Call) -> None:
        if self.shrink > 0:
            call.grad[:] += float(self.shrink) * call.hess * call.scores
        if self.temperature > 0:
            scale = math.sqrt(2.0 * float(self.temperature) / float(self.learning_rate))
            key = call.key(self.seed, AROUND)
            add_noise(call.grad, GAUSSIAN_NOISE, scale, key, np.uint64(0), call.grad)

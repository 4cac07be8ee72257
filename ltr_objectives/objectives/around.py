"""Objectives around another one, whose queries, size or gradient they change."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from ltr_objectives.checks import check_fraction, check_not_negative, check_positive, check_seed
from ltr_objectives.kernels.rng import NOISES, add_noise, uniforms
from ltr_objectives.objectives.base import Facts, Objective, get_objective
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.typical import SMALLEST, typical
from ltr_objectives.queries import Queries


class Wrapper(Objective):
    """An objective around the one in its field ``objective``, which a subclass adds.

    A subclass overrides some of :meth:`before`, :meth:`factor` and :meth:`after`, and the facts that these change.
    """

    _not_read: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("fill", "row_weight"), "override before, factor or after instead"),
        **dict.fromkeys(Facts._fields, "override facts instead"),
        "left_out": "override before instead",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", get_objective(vars(self)["objective"]))

    def before(self, call: Call) -> np.ndarray | None:
        """The queries to skip, a bool array of shape (queries,); None for none."""
        return call.skip

    def factor(self, call: Call) -> float:
        """The factor of the wrapped objective's gradient and Hessian, after its policy and weights."""
        return 1.0

    def after(self, call: Call) -> None:
        """Change gradient and Hessian of the wrapped objective, which ``call.grad`` and ``call.hess`` hold."""

    @property
    def wrapped(self) -> Objective:
        """The objective that is wrapped."""
        objective: Objective = vars(self)["objective"]
        return objective

    @property
    def inner(self) -> Objective:
        return self.wrapped.inner

    @property
    def facts(self) -> Facts:
        return self.wrapped.facts

    @property
    def metric(self) -> Any:
        """The metric that the wrapped objective optimises, None if it has none."""
        return getattr(self.wrapped, "metric", None)

    @property
    def _inside(self) -> tuple[Objective, ...]:
        return (self.wrapped,)

    def without_noise(self) -> Objective | None:
        quiet = self.wrapped.without_noise()
        return None if quiet is None else self._around(quiet)

    def _whole(self) -> Objective:
        return self._around(self.wrapped._whole())

    def _around(self, wrapped: Objective, **changed: Any) -> Objective:
        changed["objective"] = wrapped
        return replace(self, **changed)

    def _worth(self, queries: Queries) -> np.ndarray:
        return self.wrapped._worth(queries)

    def _start(self, queries: Queries) -> float:
        return self.wrapped._start(queries)

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        return self.wrapped.row_weight(queries)

    def fill(self, call: Call) -> None:
        self.wrapped.fill(call)

    def _result(self, call: Call, dtype: type[np.floating[Any]] = np.float64, factor: float = 1.0) -> Arrays:
        outer, call = call, call._replace(skip=self.before(call))
        factor *= self.factor(call)
        if type(self).after is Wrapper.after:
            return self.wrapped._result(call, dtype, factor)
        call.grad[:], call.hess[:] = self.wrapped._result(call)
        self.after(call)
        return outer._finished("exact", None, dtype, factor)  # the wrapped objective has applied policy and weights


def key_of(objective: Objective, call: Call, name: str, seed: int) -> np.uint64:
    """The key of an objective's own random numbers. No query has it, and no other objective of the same tree."""
    return call._key(seed, ~np.uint64(crc32(name.encode()) << 8 | _depth(objective)))


def _depth(objective: Objective) -> int:
    """The number of objectives with such a key that are nested in this one."""
    return max((_depth(part) + _has_key(part) for part in objective._inside), default=0)


def _has_key(objective: Objective) -> bool:
    own = vars(objective)
    return bool(objective._inside) and "seed" in own and own.get("draw", "") is not None  # a Mixture may not draw


@dataclass(frozen=True)
class UnitHessian(Wrapper):
    r"""An objective times one constant, so that its Hessians are as large as those of squared error.

    For each data set the constant is the mean weight of the rows over the mean Hessian, at independent standard normal
    scores. So there the mean Hessian is 1 without weights. Negative Hessians count by their size, and a share of the
    queries, as of :class:`Subsample`, as all of them. The constant cancels in a Newton step :math:`g / h`. It does not
    cancel if a library adds a number to sums of Hessians, or compares the sums with a number. As for squared error,
    ``reg_lambda=50`` then counts as much as 50 documents, and ``min_child_weight=1`` as one. Hessians of objectives
    otherwise differ by factors of thousands: a document has about 0.1 in ``YetiLoss("ndcg@10")``, 20 in ``RankNet()``,
    and 1/n in ``XENDCG()``, with n documents in the list.

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

    objective: str | Objective

    name: ClassVar[str] = "unithessian"

    def factor(self, call: Call) -> float:
        mean = typical(self.wrapped, call.queries, call.n_threads).hessian
        return 1.0 / mean if mean > SMALLEST else 1.0


@dataclass(frozen=True)
class Subsample(Wrapper):
    r"""An objective on a random share of the queries, drawn anew in each iteration, as LightGBM's ``bagging_by_query``.

    .. math:: (g, h) = \frac{B_q}{p} (g, h), \quad B_q \sim \mathrm{Bernoulli}(p)

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

    objective: str | Objective
    queries: float = 0.5
    seed: int = 0

    name: ClassVar[str] = "subsample"

    def __post_init__(self) -> None:
        check_fraction("queries", self.queries)
        check_seed(self.seed)
        super().__post_init__()

    @property
    def facts(self) -> Facts:
        facts = self.wrapped.facts
        return facts._replace(random=self.queries < 1 or facts.random)

    def without_noise(self) -> Objective | None:
        return self.wrapped.without_noise()

    def _whole(self) -> Objective:
        return self.wrapped._whole()

    def before(self, call: Call) -> np.ndarray:
        chance = np.empty(len(call.queries))
        uniforms(key_of(self, call, self.name, self.seed), chance)
        not_drawn: np.ndarray = chance > max(self.queries, chance.min())
        return not_drawn if call.skip is None else not_drawn | call.skip

    def factor(self, call: Call) -> float:
        return 1.0 / float(self.queries)


@dataclass(frozen=True)
class Langevin(Wrapper):
    r"""Stochastic gradient Langevin boosting (Ustimenko and Prokhorenkova, ICML 2021) with XGBoost and LightGBM.

    .. math:: g_i' = g_i + \gamma h_i s_i + \sqrt{2 T / \eta}\; \xi_i, \quad h_i' = h_i

    with the objective's gradient :math:`g` and Hessian :math:`h`, scores :math:`s`, and independent standard normal
    :math:`\xi`. Let :math:`h = 1`, and let trees fit every row. Then boosting with learning rate :math:`\eta` is the
    Langevin step :math:`s \leftarrow (1 - \eta \gamma) s - \eta g + \sqrt{2 T \eta}\, \xi`, which escapes from local
    minima.

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

    objective: str | Objective
    temperature: float = 1e-7
    learning_rate: float = 0.1
    shrink: float = 0.0
    seed: int = 0

    name: ClassVar[str] = "langevin"

    def __post_init__(self) -> None:
        check_not_negative("temperature", self.temperature)
        check_positive("learning_rate", self.learning_rate)
        check_not_negative("shrink", self.shrink)
        check_seed(self.seed)
        super().__post_init__()

    @property
    def facts(self) -> Facts:
        facts = self.wrapped.facts._replace(random=self.temperature > 0 or self.wrapped.random)
        return facts if self.shrink == 0 else facts._replace(shift_invariant=False, hessian_kind="estimate")

    def without_noise(self) -> Objective | None:
        quiet = self.wrapped.without_noise()
        return None if quiet is None else self._around(quiet, temperature=0.0)

    def after(self, call: Call) -> None:
        if self.shrink > 0:
            call.grad[:] += float(self.shrink) * call.hess * call.scores
        if self.temperature > 0:
            scale = float(np.sqrt(2.0 * float(self.temperature) / float(self.learning_rate)))
            key = key_of(self, call, self.name, self.seed)
            add_noise(call.grad.copy(), NOISES["gaussian"], scale, key, np.uint64(0), call.grad)

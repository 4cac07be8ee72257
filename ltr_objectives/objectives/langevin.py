r"""Langevin noise and shrinkage around any objective, for libraries without them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import check_not_negative, check_positive, check_seed
from ltr_objectives.kernels.rng import NOISES, add_noise
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.wrapper import Wrapper


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
    since CatBoost does not add noise to Newton's leaf values. CatBoost draws separate noise for leaf values and for the
    structure of the tree, and shrinks the whole model. This wrapper does neither: the next tree subtracts only what it
    can express of :math:`\gamma s`, and :math:`s` includes the base score or baseline. Weights multiply :math:`g` and
    :math:`h`, and with :math:`h` the shrinkage, but not the noise.

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
    def random(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.temperature > 0 or self.wrapped.random

    @property
    def shift_invariant(self) -> bool:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.shift_invariant and self.shrink == 0

    @property
    def hessian_kind(self) -> str:  # type: ignore[override]  # a class variable elsewhere
        return self.wrapped.hessian_kind if self.shrink == 0 else "estimate"

    def without_noise(self) -> Objective | None:
        quiet = super().without_noise()
        return None if quiet is None else replace(quiet, temperature=0.0)  # type: ignore[call-arg]  # a Langevin

    def left_out(self, call: Call) -> np.ndarray | None:
        return call.skip  # queries that the wrapped objective leaves out get noise, too

    def fill(self, call: Call) -> None:
        call.grad[:], call.hess[:] = self.wrapped.compute(
            call.queries, call.scores, iteration=call.iteration, n_threads=call.n_threads, skip=call.skip
        )
        if self.shrink > 0:
            call.grad[:] += self.shrink * call.hess * call.scores
        if self.temperature > 0:
            scale = float(np.sqrt(2.0 * float(self.temperature) / float(self.learning_rate)))
            add_noise(call.grad.copy(), NOISES["gaussian"], scale, self.key(call), np.uint64(0), call.grad)

    def _finished(
        self, call: Call, dtype: type[np.floating[Any]], factor: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        return call.finished("exact", None, dtype, factor)  # the wrapped objective has applied policy and weights

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grad, hess = self.wrapped.reference(scores, labels)
        return grad + self.shrink * hess * scores, hess

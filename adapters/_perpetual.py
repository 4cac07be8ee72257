"""Perpetual: the functions of a custom objective, made for one training set."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._callables import ObjectiveCallable
from ltr_objectives.adapters._frames import calls_of
from ltr_objectives.adapters._goals import ByGoal
from ltr_objectives.adapters._libraries import Library
from ltr_objectives.errors import require
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_objective, options_in_text

PERPETUAL = Library(name="perpetual", model="PerpetualBooster", n_threads="num_threads")
LEAST_HESSIAN = 1e-8  # as Perpetual adds it to the Hessian of a leaf

# by booster in training: scores, gradient and Hessian before the tree that is grown
_steps: weakref.WeakKeyDictionary[Any, tuple[np.ndarray, ...]] = weakref.WeakKeyDictionary()


class PerpetualObjective(ObjectiveCallable):
    """The functions that Perpetual calls; made by :func:`perpetual_objective`."""

    library = PERPETUAL

    def __init__(self, objective: Objective, group: ArrayLike, **options: Any) -> None:
        super().__init__(objective, **options)
        self.group = group

    def gradient(self, y: Any, scores: Any, weight: Any, group: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian."""
        booster = calls_of(PERPETUAL).booster
        queries = self.queries(y, self.group if group is None else group, weight)
        grad, hess = self.gradients(queries, scores, {"num_threads": booster.num_threads}, training=booster)
        _steps[booster] = np.array(scores), grad.astype(np.float64), np.maximum(hess, LEAST_HESSIAN, dtype=np.float64)
        return grad, hess

    def loss(self, y: Any, scores: Any, weight: Any, group: Any) -> np.ndarray:
        """The quadratic whose minimum is the Newton step, by row."""
        before, grad, hess = _steps[calls_of(PERPETUAL).booster]
        require(len(scores) == len(before), "prune needs the loss of single rows, which rankings do not have")
        values: np.ndarray = (grad + hess * (scores - before)) ** 2 / (2 * hess)
        return values.astype(np.float32)

    def initial_value(self, y: Any, weight: Any, group: Any) -> float:
        """The score at the start, 0."""
        return 0.0


@options_in_text
def perpetual_objective(
    objective: str | Objective,
    y: ArrayLike,
    group: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    position: ArrayLike | None = None,
    labels: ByGoal | None = None,
    n_threads: int | None = None,
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    r"""An objective for ``PerpetualBooster(objective=...)`` and ``PerpetualRanker``.

    Perpetual chooses the step of each tree by a loss of each row. Rankings do not have one, so it gets the quadratic
    whose minimum is the Newton step, :math:`(g_i + h_i \Delta_i)^2 / (2 h_i)`, where :math:`\Delta_i` is the change of
    the score by the tree. For squared errors this is the loss itself.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    y : array of shape (rows,)
        Labels of the training set. They are checked here, because Perpetual 2.3 ends the process if an objective raises
        an error.
    group : array of shape (queries,)
        Its group sizes.
    weight : array of shape (queries,) or (rows,), optional
        Used instead of ``sample_weight`` of ``fit``.
    propensity, position : array of shape (rows,), optional
        For labels that are clicks, as in :func:`xgboost_objective`.
    labels : mapping of goals to arrays of shape (rows,), optional
        For an objective that reads several labels, see :func:`xgboost_objective`.
    n_threads : int, optional
        Threads of the gradient computation; by default ``num_threads`` of the training, at most all processors.

    Returns
    -------
    tuple of three callables
        Loss, gradient and initial value, which is 0. ``fit`` needs no ``group``. ``prune`` is not possible: it calls
        the loss for one row at a time.

    Raises
    ------
    LTRError
        If the objective cannot learn from the data.

    Examples
    --------
    >>> import numpy as np
    >>> from perpetual import PerpetualBooster
    >>> rng = np.random.default_rng(0)
    >>> X, y, group = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), [20, 20, 20]
    >>> PerpetualBooster(objective=perpetual_objective("yetiloss:map", y, group)).fit(X, y).predict(X).shape
    (60,)
    """
    options = {"weight": weight, "propensity": propensity, "position": position, "labels": labels}
    made = PerpetualObjective(get_objective(objective), group, n_threads=n_threads, **options)
    queries = made.queries(y, group, None)
    made.gradients(queries, np.zeros(queries.rows))
    return made.loss, made.gradient, made.initial_value

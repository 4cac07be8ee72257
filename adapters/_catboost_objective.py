"""CatBoost: the object behind ``loss_function``."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._catboost_fit import NOT_A_FIT, Fit, Rows, fit_under_way, given_weight, mark, rows_of
from ltr_objectives.adapters._catboost_passes import Passes
from ltr_objectives.adapters._common import gradients, import_library
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries, vector


class CatBoostObjective:
    """What CatBoost takes as ``loss_function``; made by :func:`catboost_objective`.

    It holds configuration only. ``fit`` copies it, and the copy follows that one training; so one object serves any
    number of trainings, also at the same time.
    """

    no_jit = True  # CatBoost would try to compile the method, and warn

    def __init__(
        self,
        objective: Objective,
        rows: Rows,
        start: np.ndarray | None,
        group_weight: ArrayLike | None,
        n_threads: int | None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        newton_splits: bool = True,
    ) -> None:
        self.objective = objective
        self.n_threads = n_threads
        self.newton_splits = newton_splits
        self._rows = rows
        self._start = start
        self._group_weight = None if group_weight is None else vector("group_weight", group_weight).astype(np.float32)
        require(
            self._group_weight is None or rows.weight is None,
            "the pool has weights by row; CatBoost takes either those or group_weight",
        )
        weight = rows.weight if self._group_weight is None else self._group_weight
        self._clicks = propensity, position
        self._queries = Queries(rows.labels, rows.group, weight=weight, propensity=propensity, position=position)
        self._passes: Passes | None = None
        self._marks = newton_splits and given_weight(self._group_weight) is None

    def prepare(self, pool: Any) -> "CatBoostObjective":
        """Have CatBoost keep weights for the pool if the splits need them: before ``fit``, when others may use it."""
        if self._marks:
            mark(pool)
        return self

    def __repr__(self) -> str:
        return f"catboost_objective({self.objective!r}, {self._queries!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self.objective,
            self._rows,
            self._start,
            self._group_weight,
            self.n_threads,
            *self._clicks,
            self.newton_splits,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "CatBoostObjective":
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        fit = fit_under_way()
        twin._passes = None if fit is None else self._follow(fit)
        return twin

    def calc_ders_range(self, approxes: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """First and second derivatives of one block of rows, shape (block, 2), in CatBoost's signs."""
        if self._passes is None:
            raise LTRError(NOT_A_FIT)
        derivatives: np.ndarray = self._passes.answer(approxes, targets, weights)
        return derivatives

    def _follow(self, fit: Fit) -> Passes:
        found = rows_of(fit.pool, "fit's first argument")
        self._rows.check_same(found, "the pool given to catboost_objective", "fit's pool")
        fit.require_cpu()
        fit.require_pool_order()
        fit.require_plain_leaves()
        fit.require_no_class_weights()
        self.prepare(fit.pool)
        weight = self._queries.weight_by_row
        mvs = fit.params.get("bootstrap_type") in (None, "MVS")
        return Passes(
            self._rows.labels,
            None if weight is None else weight.astype(np.float32),
            self._scores_at_start(fit),
            self._derivatives(mvs, fit.n_threads(self.n_threads)),
            self.newton_splits,
        )

    def _scores_at_start(self, fit: Fit) -> np.ndarray:
        if self._start is not None:
            return self._start
        if fit.init_model is not None:
            return predictions(fit.init_model, fit.pool)
        baseline = self._rows.baseline
        return np.zeros(len(self._rows.labels)) if baseline is None else baseline.astype(np.float64)

    def _derivatives(self, mvs: bool, n_threads: int | None) -> Callable[[np.ndarray], np.ndarray]:
        def derivatives(scores: np.ndarray) -> np.ndarray:
            grad, hess = gradients(self.objective, self._queries, scores, n_threads)
            if mvs and not grad.any():
                warn(NOTHING_TO_SAMPLE)
            return np.stack((-grad, -hess), axis=1)

        return derivatives


NOTHING_TO_SAMPLE = (
    "every gradient is zero: there is nothing left to learn. CatBoost's default bootstrap fails on this with 'Too few "
    "sampling units'; set bootstrap_type='Bernoulli' or 'No', or train fewer trees"
)


def predictions(model: Any, pool: Any) -> np.ndarray:
    """The scores that training continues from; ``model`` may be a file."""
    if isinstance(model, (str, os.PathLike)):
        model = import_library("catboost").CatBoost().load_model(os.fspath(model))
    return np.asarray(model.predict(pool, prediction_type="RawFormulaVal"), np.float64)

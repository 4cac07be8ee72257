"""User-defined metrics and objectives: errors name what is missing or wrong."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from ltr_objectives import LTRError, Metric, Objective, evaluate, registry
from ltr_objectives.kernels.swaps import AVERAGE, LINEAR

LABELS, GROUP = np.array([0.0, 1.0, 0.0, 2.0, 1.0]), [3, 2]
SCORES = -np.arange(5.0)


class Nameless(Objective):
    def fill(self, call):
        call.grad[:] = 1.0

    def reference(self, scores, labels):
        return np.ones(len(scores)), np.zeros(len(scores))


class Half(Nameless):
    name: ClassVar[str] = "half"

    def fill(self, call):
        call.hess[:] = 1.0
        with np.errstate(invalid="ignore"):
            (call.grad if call.iteration else call.hess)[:] /= np.where(np.arange(len(call.grad)) == 3, np.nan, 1)


@dataclass(frozen=True)
class Rising(Metric):
    table: tuple[float, ...] = (1.0, 0.5, 0.5)

    def gain(self, labels):
        return labels

    def discount(self, ranks):
        return np.array(self.table)

    def reference(self, labels):
        return float(labels @ self.discount(0)[: len(labels)])


class Named(Rising):
    name: ClassVar[str] = "named"


class Complete(Named):
    kind: ClassVar[int] = LINEAR


def test_a_name_and_a_family_are_asked_for():
    with pytest.raises(LTRError, match="Nameless has no name; add one, such as name: ClassVar"):
        Nameless()
    with pytest.raises(LTRError, match="Rising has no name; add one, such as name: ClassVar"):
        Rising()
    with pytest.raises(LTRError, match=r"named has no kind; add kind: ClassVar.* LINEAR, or another family"):
        evaluate(Named(), SCORES, LABELS, GROUP)


@pytest.mark.parametrize("iteration", [0, 1])
def test_gradients_that_are_nan_are_located(iteration):
    with pytest.raises(LTRError, match="gradient or Hessian of row 3 is NaN: the objective divides 0 by 0 there, or"):
        Half().gradient_hessian(SCORES, LABELS, GROUP, iteration=iteration)


def test_discounts_do_not_increase():
    assert evaluate(Complete(), SCORES, LABELS, GROUP) == pytest.approx((0.5 + 2.5) / 2)
    for wrong in ((0.5, 1.0, 0.5), (1.0, 0.5, -0.1), (1.0, np.nan, 0.5), (1.0, 0.5)):
        with pytest.raises(LTRError, match="named: discount must give each rank a number that is not negative"):
            evaluate(Complete(table=wrong), SCORES, LABELS, GROUP)


@pytest.mark.parametrize("name", registry.objectives())
def test_catboost_without_adapter_says_what_the_other_libraries_say(name):
    catboost = pytest.importorskip("catboost")
    objective = registry.get_objective(name)
    parameters = {"eval_metric": "NDCG", "iterations": 1, "verbose": 0, "allow_writing_files": False}
    pool = catboost.Pool(SCORES[:, None], LABELS, group_id=np.repeat([0, 1], GROUP))
    said = f"{type(objective).__name__} cannot be given to a library itself; wrap it with xgboost"
    with pytest.raises(catboost.CatBoostError, match=said):
        catboost.CatBoost({"loss_function": objective, **parameters}).fit(pool)


def test_gains_of_average_precision_are_0_or_1():
    class Graded(Rising):
        name: ClassVar[str] = "graded"
        kind: ClassVar[int] = AVERAGE

        def discount(self, ranks):
            return 1.0 / ranks

    with pytest.raises(LTRError, match="graded: the gains of an average-precision metric must be 0 or 1"):
        evaluate(Graded(), SCORES, LABELS, GROUP)
    assert evaluate(Graded(), SCORES, np.minimum(LABELS, 1), GROUP) > 0

"""check_metric and check_objective find what is wrong in classes of the user, and take what is right."""

import itertools

import numba
import numpy as np
import pytest
from oracles.references import reference
from own_classes import Centred, Half, Noisy, Right

from ltr_objectives import (
    LTRError,
    Mixture,
    Objective,
    Subsample,
    UnitHessian,
    check_metric,
    check_objective,
)
from ltr_objectives.objectives.base import Facts


def falling(gain):
    return {"gain": lambda self, labels: gain(labels), "reference": lambda self, y: Right.reference(self, gain(y))}


WRONG = {
    "another gain of one label": ({"gain": lambda self, y: y + (y == 4)}, "reference"),
    "a gain that falls": (falling(lambda y: np.where(y == 3, 1.5, y)), "gain falls"),
    "gains of larger labels": (falling(lambda y: 1.0 * (y > 9)), "pass labels="),
    "a discount that rises late": ({"discount": lambda self, d: 1 / d + (d > 20)}, "discount"),
    "a reference that ends": ({"reference": lambda self, y: Right.reference(self, y[:30])}, "reference"),
    "a scale of other queries": (
        {"scale": lambda self, queries, gain, discount: np.full(len(queries), 1 / max(gain.max(), 1)),
         "reference": lambda self, y: Right.reference(self, y) / max(y.max(), 1)},
        "beside other lists",
    ),
    "a maximum that is exceeded": ({"maximum": 4.0}, "maximum"),
    "no cutoff in reference": ({"reference": lambda self, y: sum(y / (np.arange(len(y)) + 1))}, "right@1: .* refer"),
    "NaN": ({"reference": lambda self, y: np.nan}, "reference"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_check_metric_finds_methods_that_disagree(wrong):
    methods, told = WRONG[wrong]
    with pytest.raises(LTRError, match=told):
        check_metric(type("Wrong", (Right,), methods)())


def test_check_metric_takes_an_object():
    check_metric(Right(k=3, ties="worst", empty="skip", goal="revenue"), labels=[0, 0.5, 7])


def other_fill(change):
    def fill(self, call):
        Centred.fill(self, call)
        change(call)

    return {"fill": fill}


def wrong_where(condition):
    """Return a Hessian that is wrong in the queries whose scores and labels fulfil a condition."""

    def change(call):
        for a, b in itertools.pairwise(call.queries.ptr):
            call.hess[a:b] += condition(call.scores[a:b], call.queries.labels[a:b])

    return other_fill(change)


def twice_where(condition):
    """Return a gradient of twice the size in the queries whose scores and labels fulfil a condition."""

    def change(call):
        for a, b in itertools.pairwise(call.queries.ptr):
            call.grad[a:b] *= 1 + condition(call.scores[a:b], call.queries.labels[a:b])

    return other_fill(change)


def wrong_in_both(change, hess=1.0):
    """Return the same change of each query's gradient in ``fill`` and in ``reference``, and no loss."""

    def of_call(call):
        call.grad[:] = np.concatenate([change(grad) for grad in np.split(call.grad, call.queries.ptr[1:-1])])
        call.hess[:] = hess

    def reference(self, scores, labels):
        return change(Centred.reference(self, scores, labels)[0]), np.full(len(labels), hess)

    return {**other_fill(of_call), "reference": reference, **NO_LOSS}


def fill_at_random(self, call):
    call.grad[:] = np.random.default_rng(call.iteration).random(len(call.grad)) - call.queries.labels
    call.hess[:] = 1.0


NO_LOSS, NO_REFERENCE = ({name: lambda self, s, y: None} for name in ("reference_loss", "reference"))
NEGATIVE = wrong_in_both(lambda grad: grad, hess=-1.0)
STATE = np.random.default_rng(0)
WRONG_OBJECTIVES = {
    "another reference": (
        Centred, {"reference": lambda self, s, y: (Centred.reference(self, s, y)[0], s + 2)}, "Hessian .* reference"
    ),
    "nothing to compare with": (Centred, NO_LOSS | NO_REFERENCE, "write reference or reference_loss"),
    "a loss of another scale": (
        Centred,
        {**NO_REFERENCE, "reference_loss": lambda self, s, y: 2 * Centred.reference_loss(self, s, y)},
        "slope of reference_loss",
    ),
    "a list as parameter": (Centred, {"__hash__": None}, "unhashable"),
    "a Hessian twice the second derivative": (
        Centred,
        {**other_fill(lambda call: call.hess.__imul__(2)), **NO_REFERENCE, "facts": Facts(hessian_kind="exact")},
        "curvature of reference_loss",
    ),
    "a Hessian below its bound": (
        Centred,
        {**other_fill(lambda call: call.hess.__imul__(0.4)), **NO_REFERENCE, "facts": Facts(hessian_kind="bound")},
        "curvature of reference_loss",
    ),
    "longer lists": (Centred, wrong_where(lambda s, y: len(s) > 60), "reference"),
    "longer lists by the loss": (
        Centred, {**twice_where(lambda s, y: len(s) > 60), **NO_REFERENCE}, "slope of reference_loss"
    ),
    "larger labels": (Centred, wrong_where(lambda s, y: max(y) > 8), "reference"),
    "fractions": (Centred, wrong_where(lambda s, y: (y % 1).any()), "reference"),
    "a parallel kernel": (
        Centred,
        other_fill(lambda call: call.run(numba.njit(parallel=True)(lambda first, last, ptr, s, out: None))),
        "has parallel=True, .* leave it out",
    ),
    "a negative Hessian": (Centred, NEGATIVE, "Hessian is negative"),
    "a wrong sign": (Centred, wrong_in_both(lambda grad: -grad), "change its sign"),
    "not invariant": (
        Centred,
        {**other_fill(lambda call: call.grad.__iadd__(call.scores)), "facts": Facts(balanced=False), **NO_LOSS,
         "reference": lambda self, s, y: (Centred.reference(self, s, y)[0] + s, np.ones(len(s)))},
        "shift_invariant=False",
    ),
    "long lists": (Centred, wrong_where(lambda s, y: len(s) > 20), "reference"),
    "single documents": (Centred, wrong_where(lambda s, y: len(s) == 1), "reference"),
    "tied scores": (Centred, wrong_where(lambda s, y: len(set(s)) < len(s)), "reference"),
    "close scores": (Centred, wrong_where(lambda s, y: 0 < np.ptp(s) < 0.1), "reference"),
    "scores far apart": (Centred, wrong_where(lambda s, y: np.ptp(s) > 1000), "reference"),
    "equal labels": (Centred, wrong_where(lambda s, y: len(y) > 1 and np.ptp(y) == 0), "reference"),
    "the largest label": (Centred, wrong_where(lambda s, y: max(y) == 4), "reference"),
    "number of lists": (Centred, other_fill(lambda call: call.hess.__imul__(len(call.queries))), "beside other lists"),
    "threads": (Centred, other_fill(lambda call: call.hess.__imul__(call.n_threads or 1)), "threads"),
    "iteration": (Centred, other_fill(lambda call: call.hess.__iadd__(call.iteration)), "depends on the iteration"),
    "iteration without noise": (
        Noisy, other_fill(lambda call: call.hess.__iadd__(call.iteration)), "depends on the iteration"
    ),
    "random without noise": (Centred, {"facts": Facts(random=True)}, "same in all iterations"),
    "random without expected values": (
        Half, {"facts": Facts(random=True), "fill": fill_at_random}, "write reference, with expected values"
    ),
    "other expected values": (
        Half,
        {"facts": Facts(random=True), "fill": fill_at_random, "reference": lambda self, s, y: (0 * s, 1 + 0 * s)},
        "have the means",
    ),
    "draws with state": (Noisy, {"draw": lambda self, call: STATE.normal(size=len(call.scores))}, "calls"),
    "noise without scale": (
        Noisy, {"draw": lambda self, call: Centred.draw(self, call) / self.noise_scale}, "without noise"
    ),
    "sums": (Centred, wrong_in_both(lambda grad: np.where(grad > 0, 2 * grad, grad)), "balanced"),
    "order of rows": (
        Centred, wrong_in_both(lambda grad: np.append(grad[:1] + 1, grad[1:]) - 1 / len(grad)), "another order"
    ),
    "zero gradients": (Centred, wrong_in_both(lambda grad: 0 * grad), "0 in all lists"),
    "zero Hessians": (Centred, wrong_in_both(lambda grad: grad, hess=0.0), "0 in all lists"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_OBJECTIVES)
def test_check_objective_finds_what_disagrees(wrong):
    base, methods, told = WRONG_OBJECTIVES[wrong]
    with pytest.raises((LTRError, TypeError), match=told):
        check_objective(type("Wrong", (base,), methods)())


def test_check_objective_takes_an_object(monkeypatch):
    monkeypatch.setattr(Objective, "reference", reference)  # of the wrappers
    exact = type("Exact", (Centred,), {**NEGATIVE, "hessian": "exact"})()
    for allowed in (exact, Subsample(exact), UnitHessian(exact), Centred(), Noisy()):
        check_objective(allowed)
    check_objective(type("Alone", (Noisy,), NO_REFERENCE)(), labels=[0, 0.5, 7])
    with pytest.raises(LTRError, match="revenue"):
        check_objective(Mixture([Centred(), "listnet[revenue]"]))


def test_check_objective_takes_the_length_and_labels_that_an_objective_has():
    check_objective(type("Long", (Centred,), wrong_where(lambda s, y: len(s) > 60))(), longest=60)
    check_objective(type("Low", (Centred,), {"facts": Facts(label_limit=8), **wrong_where(lambda s, y: max(y) > 8)})())
    exact = type("Exact", (Centred,), {"facts": Facts(hessian_kind="bound"), **NO_REFERENCE})()
    check_objective(exact)  # the mean of each query lowers the second derivative

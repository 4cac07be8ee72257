"""Metrics and objectives of the user: what is wrong in a class is found and named."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
import pytest
from oracles.references import reference

from ltr_objectives import (
    NDCG,
    XENDCG,
    LambdaMART,
    Langevin,
    ListNet,
    LTRError,
    Metric,
    Mixture,
    Objective,
    PLRank,
    Queries,
    RankNet,
    Subsample,
    UnitHessian,
    YetiRank,
    check_metric,
    check_objective,
    evaluate,
    get_metric,
)
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR
from ltr_objectives.objectives.base import Facts

LABELS, GROUP = np.array([0.0, 1.0, 0.0, 2.0, 1.0]), [3, 2]
SCORES = -np.arange(5.0)


class Half(Objective):
    name: ClassVar[str] = "half"

    def fill(self, call):
        call.grad[:] = call.hess[:] = 1.0
        (call.grad if call.iteration else call.hess)[3] = np.nan


class Right(Metric):
    """The sum of labels over the rank."""

    name: ClassVar[str] = "right"
    kind: ClassVar[int] = LINEAR
    maximum: ClassVar[float | None] = None

    def gain(self, labels):
        return labels

    def discount(self, ranks):
        return 1.0 / ranks

    def reference(self, labels):
        return sum(y / d for d, y in enumerate(labels[: self.k], 1))


def test_a_default_that_would_be_ignored_is_refused():
    """The generated ``__init__`` knows the fields alone."""
    for base, name, changed in (
        (Right, "ties", {"ties": "worst", "__annotations__": {"ties": str}}),
        (Langevin, "shrink", {"shrink": 0.1}),
    ):
        forgotten = type("Forgotten", (base,), changed)
        told = f"sets {name}, a parameter, which would be ignored"
        for wrong in (forgotten, type("Below", (forgotten,), {})):
            with pytest.raises(LTRError, match=told):
                wrong()
    assert dataclass(frozen=True)(type("Mine", (NDCG,), {"k": 10, "__annotations__": {"k": int}}))().k == 10


def test_facts_of_members_are_those_of_the_whole():
    facts = Facts(True, "bound", shift_invariant=False, takes_clicks=True, label_limit=2.0)
    declared = type("Declared", (Half,), {"facts": facts})()
    for whole in (UnitHessian(declared), Subsample(UnitHessian(declared)), Mixture([declared, declared])):
        assert whole.facts == facts


@pytest.mark.parametrize("base", [Objective, Metric, Subsample, UnitHessian, Langevin, Mixture])
def test_methods_that_would_be_ignored_are_refused(base):
    not_read = [name for cls in base.__mro__ for name in vars(cls).get("_not_read", ())]
    assert not_read
    for name in not_read:
        with pytest.raises(LTRError, match=rf"Mine.{name} would be ignored"):
            type("Mine", (base,), {name: lambda self, *_: None})
    plain = type("Mine", (base,), {"of_its_own": lambda self: None, "__module__": __name__})
    dataclass(frozen=True, slots=True)(plain)  # makes a second class, with its own __init__


@pytest.mark.parametrize(
    ("base", "changed"),
    [
        (PLRank, {"theta": lambda self, longest: PLRank.theta(self, longest) ** 2}),
        (
            RankNet,
            {"_terms": lambda self, queries: RankNet._terms(self, queries)._replace(scale=np.full(len(queries), 2.0))},
        ),
        (YetiRank, {"_factor": 3.0}),
        (ListNet, {"_target": lambda self, queries: 2.0 * ListNet._target(self, queries)}),
        (XENDCG, {"_power": lambda self, queries: tuple(2.0 * x for x in XENDCG._power(self, queries))}),
    ],
)
def test_a_subclass_does_not_take_what_was_computed_for_its_base(base, changed):
    queries, mine = Queries(LABELS, GROUP), type("Mine", (base,), changed)()
    before = base().compute(queries, SCORES)
    found = mine.compute(queries, SCORES)
    np.testing.assert_array_equal(found, mine.compute(Queries(LABELS, GROUP), SCORES))
    assert not np.array_equal(found, before)


def test_gradients_that_are_nan_are_located():
    for iteration in (0, 1):
        with pytest.raises(LTRError, match="row 3 is NaN"):
            Half().gradient_hessian(SCORES, LABELS, GROUP, iteration=iteration)


def test_a_name_in_text_is_given_once_and_only_to_a_class_that_is_not_refused():
    for wrong in ({"terms": lambda self: None}, {}):
        with pytest.raises(LTRError, match=r"would be ignored|text='ndcg' is the name of NDCG"):
            type("Other", (NDCG,), wrong, text="ndcg")
        assert type(get_metric("ndcg@3")) is NDCG


def returns(name, value):
    return {name: lambda self, given: value}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *((returns(name, 1.0), f"{name} must return one number") for name in ("gain", "discount")),
        *((returns(name, [1.0, 0.5]), f"{name} must return one number") for name in ("gain", "discount")),
        (returns("discount", [np.nan, 0.5, 0.5]), "discount must be finite"),
        (returns("discount", [0.5, 1.0, 0.5]), "discount must be finite and not negative"),
        (returns("discount", [1.0, 0.5, -0.1]), "discount must be finite and not negative"),
        ({"gain": lambda self, y: np.where(y > 1, np.inf, y)}, "gain of label 2 is inf"),
        ({"gain": lambda self, y: y - 1}, "gain of label 0 is -1"),
        ({"kind": AVERAGE}, "finite and 0 or 1"),
        ({"kind": CASCADE}, "probability"),
    ],
)
def test_gains_and_discounts_that_cannot_be_are_refused(wrong, words):
    assert evaluate(Right(), SCORES, LABELS, GROUP) == pytest.approx((0.5 + 2.5) / 2)
    with pytest.raises(LTRError, match=words):
        evaluate(type("Wrong", (Right,), wrong)(), SCORES, LABELS, GROUP)


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


@dataclass(frozen=True)
class Centred(Objective):
    """Squared error without the mean of each query."""

    noise: str | None = None
    noise_scale: float = 1.0

    name: ClassVar[str] = "centred"

    @property
    def facts(self):
        return Facts(random=self.noise is not None)

    def draw(self, call):
        return np.random.default_rng(call.iteration).normal(size=len(call.scores))

    def fill(self, call):
        error = call.scores - call.queries.labels
        if self.noise:
            error = error + self.noise_scale * self.draw(call)
        sizes = np.diff(call.queries.ptr)
        call.grad[:] = error - np.repeat(np.add.reduceat(error, call.queries.ptr[:-1]) / sizes, sizes)
        call.hess[:] = 1.0

    def reference(self, scores, labels):
        error = scores - labels
        return error - error.mean(), np.ones(len(labels))

    def reference_loss(self, scores, labels):
        error = scores - labels
        return np.sum((error - error.mean()) ** 2) / 2


@dataclass(frozen=True)
class Noisy(Centred):
    noise: str | None = "gaussian"


def other_fill(change):
    def fill(self, call):
        Centred.fill(self, call)
        change(call)

    return {"fill": fill}


def wrong_where(condition):
    """A Hessian that is wrong in the queries whose scores and labels fulfil a condition."""

    def change(call):
        for a, b in itertools.pairwise(call.queries.ptr):
            call.hess[a:b] += condition(call.scores[a:b], call.queries.labels[a:b])

    return other_fill(change)


def twice_where(condition):
    """A gradient of twice the size in the queries whose scores and labels fulfil a condition."""

    def change(call):
        for a, b in itertools.pairwise(call.queries.ptr):
            call.grad[a:b] *= 1 + condition(call.scores[a:b], call.queries.labels[a:b])

    return other_fill(change)


def wrong_in_both(change, hess=1.0):
    """The same change of each query's gradient in ``fill`` and in ``reference``, and no loss."""

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


def test_arrays_of_a_call_are_changed_in_place():
    class Doubled(Centred):
        def fill(self, call):
            super().fill(call)
            call.grad *= 2

    class Replaced(Centred):
        def fill(self, call):
            call.grad = 2 * call.scores

    expected, _ = Centred().gradient_hessian(SCORES, LABELS, GROUP)
    np.testing.assert_array_equal(Doubled().gradient_hessian(SCORES, LABELS, GROUP)[0], 2 * expected)
    with pytest.raises(LTRError, match=r"call\.grad\[:\] = "):
        Replaced().gradient_hessian(SCORES, LABELS, GROUP)


@pytest.mark.parametrize("base", [Metric, Objective])
def test_a_class_without_a_name_is_refused(base):
    for name in ("gain", "discount", "reference", "fill"):
        base = type("Nameless", (base,), {name: lambda self, *_: None})
    with pytest.raises(LTRError, match="Nameless has no name"):
        base()


def test_a_metric_without_a_family_is_refused():
    given = {name: vars(Right)[name] for name in ("name", "gain", "discount", "reference")}
    with pytest.raises(LTRError, match="has no kind"):
        type("Wrong", (Metric,), given)()


def test_the_text_of_an_objective_with_a_metric_of_one_s_own_is_short():
    assert str(LambdaMART(Right(3), truncation=5)) == "lambdamart:right@3;truncation=5"
    assert "Mixture(" in str(Mixture(["listnet", "rmse"], normalize=False))  # its text would be another sum


def test_fill_returns_nothing():
    wrong = type("Wrong", (Half,), {"fill": lambda self, call: (call.grad, call.hess)})()
    for objective in (wrong, UnitHessian(wrong), Mixture([wrong, "listnet"])):
        with pytest.raises(LTRError, match="return nothing"):
            objective.gradient_hessian(SCORES, LABELS, GROUP)

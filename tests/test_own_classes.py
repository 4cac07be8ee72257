"""Metrics and objectives of the user: what is wrong in a class is found and named."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from own_classes import GROUP, LABELS, SCORES, Centred, Half, Right

from ltr_objectives import (
    NDCG,
    XENDCG,
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
    evaluate,
    get_metric,
)
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE
from ltr_objectives.objectives.base import Facts


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
        with pytest.raises(LTRError, match=rf"Mine\.{name} "):
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
        (ListNet, {"_target": lambda self, *given: 2.0 * ListNet._target(self, *given)}),
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
        with pytest.raises(LTRError, match="row 3"):
            Half().gradient_hessian(SCORES, LABELS, GROUP, iteration=iteration)


def test_a_name_in_text_is_given_once_and_only_to_a_class_that_is_not_refused():
    for wrong in ({"terms": lambda self: None}, {}):
        with pytest.raises(LTRError, match=r"would be ignored|text='ndcg' is the name of NDCG"):
            type("Other", (NDCG,), wrong, text="ndcg")
        assert type(get_metric("ndcg@3")) is NDCG


@pytest.mark.parametrize("text", ["dcg2", "Mine", "my_dcg", "mine ", "mine\n"])
def test_a_name_that_texts_cannot_read_is_refused(text):
    for base in (NDCG, ListNet):
        with pytest.raises(LTRError, match=rf"text={re.escape(repr(text))} cannot be read"):
            type("Mine", (base,), {}, text=text)
        assert text not in base.named


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


def test_fill_returns_nothing():
    wrong = type("Wrong", (Half,), {"fill": lambda self, call: (call.grad, call.hess)})()
    for objective in (wrong, UnitHessian(wrong), Mixture([wrong, "listnet"])):
        with pytest.raises(LTRError, match="return nothing"):
            objective.gradient_hessian(SCORES, LABELS, GROUP)

"""The contract of every objective: reference, ugly lists, bytes, text, invariances, the derivative of its loss."""

import dataclasses
import itertools
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from catalog import EXAMPLES, KINDS, LEARNED, OBJECTIVES, SOME
from conftest import LISTS as LISTS_OF
from conftest import OBJECTIVES as SOME_OBJECTIVES
from limits import balances_roughly, hessian_limit, longest_step, may_be_negative, treats_ties_alike
from oracles.references import reference

from ltr_objectives import (
    Langevin,
    LTRError,
    Metric,
    Mixture,
    Objective,
    Queries,
    Subsample,
    UnitHessian,
    check_objective,
    evaluate,
    get_objective,
    registry,
)
from ltr_objectives.objectives.composite import leaves, seeded
from ltr_objectives.testing import random_labels

GOLDEN = json.loads(Path(__file__).with_name("golden.json").read_text())


def each_of(objectives):
    return pytest.mark.parametrize("objective", objectives, ids=lambda objective: objective.name)


def queries_for(objective, rng, count=60, longest=40):
    group = rng.integers(1, longest, count)
    labels = random_labels(objective.label_limit, rng, int(group.sum()))
    few = np.repeat(np.arange(count) % 4 == 3, group)  # where a hit is not certain
    labels[few & (rng.random(len(few)) < 0.9)] = 0.0
    return rng.normal(size=int(group.sum())), labels, group


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in ("gradients", "metrics") for text in GOLDEN[kind]])
def test_numbers_are_those_of_the_golden_file(kind, text):
    data = GOLDEN["scores"], GOLDEN["labels"], GOLDEN["group"]
    found = evaluate(text, *data, per_query=True) if kind == "metrics" else get_objective(text).gradient_hessian(*data)
    np.testing.assert_allclose(found, np.array(GOLDEN[kind][text], float), rtol=1e-10, atol=1e-13)


def test_gradient_and_hessian_equal_the_reference(every_objective, monkeypatch):
    monkeypatch.setattr(Objective, "reference", reference)
    check_objective(every_objective, longest=30)


def test_objectives_of_a_metric_equal_the_reference_for_every_metric():
    scores, labels = np.array([0.3, 0.1, 0.5, -0.2, 0.0]), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    # some refuse sums, and others compile kernels for them
    metrics = [metric for name in LEARNED for metric in LEARNED[name] if name != "gap"]
    for objective in OBJECTIVES.values():
        learns = "metric" in objective.parameters() and objective.without_noise() is not None
        for metric in metrics if learns else ():
            quiet = dataclasses.replace(objective, metric=metric).without_noise()
            found, expected = quiet.gradient_hessian(scores, labels, [5]), reference(quiet, scores, labels)
            np.testing.assert_allclose(found, expected, 1e-9, 1e-12, err_msg=str(quiet))


UGLY = {
    "one document": ([0.5], [1], [1]),
    "several lists of one": ([0.5, -1.0, 2.0], [1, 0, 1], [1, 1, 1]),
    "two alike": ([0.5, 0.5], [0, 0], [2]),
    "three alike": ([1.0, 1.0, 1.0], [1, 1, 1], [3]),
    "equal labels": ([0.5, 1.0, -1.0], [1, 1, 1], [3]),
    "nothing relevant": ([0.5, 1.0, -1.0], [0, 0, 0], [3]),
    "all tied": ([0.0, 0.0, 0.0, 0.0], [0, 1, 0, 1], [4]),
    "huge": ([1e30, -1e30, 1e30, -1e30], [0, 1, 1, 0], [4]),
    "largest": ([1.7e308, -1.7e308, 0.0, 1.0], [0, 1, 1, 0], [4]),
    "largest on one side": ([1.7e308, 1.7e308, 1.6e308, 1.0], [0, 1, 1, 0], [4]),
    "smallest labels": ([0.0, 1.0], [0, 5e-324], [2]),
    "tiny": ([5e-324, -5e-324, 0.0, -0.0], [0, 1, 1, 0], [4]),
    "wide and close": ([1e4, 1e4 + 1e-9, -1e4, 0.0], [0, 1, 1, 0], [4]),
}
NOTHING_TO_LEARN = "one document", "two alike", "three alike"
MAY_FAIL = "largest on one side", "smallest labels"  # the sum of scores is infinite; a gain table takes no fractions


def test_ugly_lists_give_finite_gradients(every_objective):
    for name, (scores, labels, group) in UGLY.items():
        try:
            found = np.array(every_objective.gradient_hessian(scores, labels, group))
        except LTRError:
            assert name in MAY_FAIL
            continue
        assert (found.shape, found.dtype) == ((2, len(scores)), np.float64), name
        assert np.isfinite(found).all(), name
        assert may_be_negative(every_objective) or (found[1] >= 0).all(), name
        assert not found[0].any() or name not in NOTHING_TO_LEARN or not every_objective.facts.shift_invariant, name


def test_same_bytes_for_any_threads_any_use_and_after_pickling(every_objective, rng):
    scores, labels, group = queries_for(every_objective, rng)
    expected = [x.tobytes() for x in every_objective.gradient_hessian(scores, labels, group, n_threads=1)]
    copy = pickle.loads(pickle.dumps(every_objective))
    assert copy == every_objective
    assert hash(copy) == hash(every_objective)
    queries = Queries(labels, group)
    every_objective.compute(queries, -scores, iteration=3)
    for used in (every_objective, copy):
        for n_threads in (2, None):
            assert [x.tobytes() for x in used.compute(queries, scores, n_threads=n_threads)] == expected


def test_str_is_the_text_of_an_objective(every_objective):
    text = str(every_objective)
    if every_objective.name == "mixture" and text == repr(every_objective):
        assert not every_objective.normalize
    else:
        assert get_objective(text) == every_objective


@pytest.mark.parametrize("cls", [*Objective.named.values(), *Metric.named.values(), Subsample, Langevin])
def test_whole_numbers_become_ints(cls):
    required = {"objective": "ranknet"} if issubclass(cls, Subsample | Langevin) else {}
    required |= {"k": 5} if getattr(cls, "cutoff", "") == "required" else {}
    names = [f.name for f in dataclasses.fields(cls) if int in (f.type, *get_args(f.type))]
    for name in names if getattr(cls, "cutoff", "") not in ("none", "query") else ():
        made = cls(**{**required, name: np.float32(3.0)})
        assert type(getattr(made, name)) is int
        if isinstance(made, Objective):
            made.reference_loss(np.array([0.3, 0.1, -0.2]), np.array([1.0, 0.0, 1.0]))


# exp underflows near 88 to 104 in float32 and 708 to 746 in float64; sigma halves or doubles that
GAPS = np.concatenate([np.arange(1, 120, 1.5), np.arange(340, 376, 1.0), np.arange(696, 752, 0.25), np.logspace(3, 30)])


def test_gradients_are_finite_and_add_up_to_zero_across_wide_gaps(any_objective, rng):
    lists = len(GAPS)
    for dtype, n in ((np.float64, 2), (np.float64, 7), (np.float32, 3)):
        above = rng.permuted(np.tile(np.arange(n), (lists, 1)), axis=1) < rng.integers(1, n, (lists, 1))
        scores = above * GAPS[:, None] + rng.choice([0.0, 0.3], (lists, 1)) * rng.normal(size=(lists, n))
        queries = Queries(random_labels(any_objective.label_limit, rng, lists * n), [n] * lists)
        grad, hess = any_objective.compute(queries, scores.ravel().astype(dtype), dtype=dtype)
        assert np.isfinite([grad, hess]).all()
        total = np.abs(grad.reshape(lists, n).sum(axis=1, dtype=np.float64))
        zero = total <= 16 * n * np.finfo(dtype).eps * np.abs(grad).max()
        if any_objective.facts.shift_invariant and not balances_roughly(any_objective):
            assert zero.all(), GAPS[~zero]


@pytest.mark.parametrize("name", SOME)
def test_a_list_of_20000_documents(name, rng):
    objective = SOME[name][-1]
    for repeats in {"permutations", "samples"}.intersection(objective.parameters()):
        objective = dataclasses.replace(objective, **{repeats: 1})
    many = random_labels(objective.label_limit, rng, 20_000)
    few = many * (rng.random(20_000) < 0.01)
    learnt = False
    for scores, labels in ((rng.normal(size=20_000), many), (np.zeros(20_000), few)):
        grad, hess = objective.gradient_hessian(scores, labels, [20_000])
        learnt |= grad.any()
        assert np.isfinite([grad, hess]).all()
        assert may_be_negative(objective) or (hess >= 0).all()
    assert learnt


NOISY = [objective for objective in SOME_OBJECTIVES if objective.facts.random]


@each_of([objective for objective in NOISY if "seed" in objective.parameters()])  # a mixture has those of its parts
def test_the_seed_selects_the_noise(objective, rng):
    scores, labels, group = queries_for(objective, rng)
    other = dataclasses.replace(objective, seed=12345)
    grad, reseeded = (o.gradient_hessian(scores, labels, group)[0] for o in (objective, other))
    assert not np.array_equal(grad, reseeded)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "seed" in Objective.named[name].parameters()])
def test_a_copy_remembers_whether_its_seed_was_written(name):
    made = EXAMPLES[name][0]
    other = {key: value for key, value in OBJECTIVES[name].settings().items() if key != "seed"}
    for free in (made, replace(made), replace(made, **other), pickle.loads(pickle.dumps(made))):
        assert seeded(free, 7) == replace(free, seed=7)
        for fixed in (replace(free, seed=3), replace(replace(free, seed=3), **other)):
            assert seeded(fixed, 7) == fixed
            assert seeded(Mixture([fixed, free]), 7) == Mixture([fixed, replace(free, seed=7)])


def test_wrong_values_are_refused_by_name_and_labels_above_the_limit(each_objective):
    for name in each_objective.parameters():
        for wrong in (object(), "misspelt"):
            with pytest.raises(LTRError, match=name):
                dataclasses.replace(each_objective, **{name: wrong})
    if each_objective.label_limit is not None:
        with pytest.raises(LTRError, match="labels"):
            each_objective.gradient_hessian([0.0, 1.0], [0, each_objective.label_limit + 1], [2])


# changes that leave gradients alone


N, LISTS = 6, 40


def some_lists(objective, rng, tied=False):
    """Draw scores, of three values or different in a query, labels, and another order of rows within each query."""
    scores = [rng.integers(-1, 2, N) if tied else rng.permutation(N) for _ in range(LISTS)]
    rows = np.concatenate([N * i + rng.permutation(N) for i in range(LISTS)])
    return np.concatenate(scores) / 4, random_labels(objective.label_limit, rng, N * LISTS), rows


def gradients(objective, scores, labels, weight=None):
    return np.array(objective.gradient_hessian(scores, labels, [N] * LISTS, weight, iteration=4))


def alike(before, after):
    return np.allclose(before, after, rtol=1e-9, atol=1e-12)


def test_a_constant_for_each_query_changes_gradients_unless_the_facts_say_otherwise(any_objective, rng):
    scores, labels, _ = some_lists(any_objective, rng)
    moved = scores + np.repeat(rng.integers(-64, 65, LISTS) / 4, N)  # no sum is rounded, so the noise is the same
    found = (gradients(any_objective, s, labels) for s in (scores, moved))
    assert alike(*found) == any_objective.facts.shift_invariant


def test_the_order_of_tied_rows_matters_in_the_objectives_of_the_catalog(rng):
    for name in registry.objective_names():
        objective = get_objective(name).without_noise()
        if objective is not None:
            scores, labels, rows = some_lists(objective, rng, tied=True)
            before, after = gradients(objective, scores, labels), gradients(objective, scores[rows], labels[rows])
            assert alike(before[:, rows], after) == treats_ties_alike(objective), name


@each_of(NOISY)
def test_rows_in_another_order_have_the_same_expected_gradient(objective, rng):
    """Tied scores too, unless a part without noise ranks these in the order of the rows."""
    parts = list(leaves(objective))
    every_tie = all(treats_ties_alike(p) or (p.facts.random and not getattr(p, "partners", None)) for p in parts)
    count = 800
    for n, tied in itertools.product((2, 5), (False, True) if every_tie else (False,)):
        scores = np.zeros(n) if tied else rng.permutation(n) / 2
        labels, rows = random_labels(objective.label_limit, rng, n), rng.permutation(n)
        labels[:2] = labels.max(), labels.min()
        draws = []
        for iteration, order in enumerate((np.arange(n), rows)):
            queries = Queries(np.tile(labels[order], count), [n] * count)
            grad, _ = objective.compute(queries, np.tile(scores[order], count), iteration=iteration)
            draws.append(grad.reshape(count, n))
        before, after = draws[0][:, rows], draws[1]
        error = np.sqrt((before.var(axis=0) + after.var(axis=0)) / count)
        assert (np.abs(before.mean(axis=0) - after.mean(axis=0)) <= 5 * error + 1e-9).all()


@each_of([quiet for name in KINDS if (quiet := EXAMPLES[name][-1].without_noise())])  # noise follows the rows
def test_wrappers_do_not_see_the_order_of_the_rows(objective, rng):
    quiet = objective
    scores, labels, rows = some_lists(quiet, rng)
    weight = rng.uniform(0.5, 2.0, LISTS)
    for wrapped in (UnitHessian(quiet), UnitHessian(Subsample(Mixture([quiet, "ordinal"], [1, 0.3]), 0.3, seed=2))):
        before, after = (gradients(wrapped, scores[r], labels[r], weight) for r in (np.arange(len(rows)), rows))
        assert before.any()
        assert alike(before[:, rows], after)


# derivatives of the reference losses


WITH_LOSS = [
    o for o in LISTS_OF["quiet_objective"] if o.reference_loss(np.array([0.0, 1.0]), np.array([1.0, 0.0])) is not None
]


def lists_of(objective, rng):
    """Draw lists whose scores are too far apart for a step to swap two documents, at gaps from 1e-3 to 1e4."""
    for gap in (1e-3, 0.3, 1e4):
        for n in (2, 5):
            labels = random_labels(objective.label_limit, rng, n)
            yield gap * (rng.permutation(n) + rng.uniform(-0.2, 0.2, n)), labels, min(gap / 10, 2e-3)


def slope(function, scores, i, step):
    """Return the derivative by score ``i``, by central differences of order 6."""
    moved = scores + step * np.arange(-3, 4)[:, None] * np.eye(len(scores))[i]
    return np.array([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60]) @ [function(s) for s in moved] / step


@each_of(WITH_LOSS)
def test_the_gradient_is_the_derivative_of_the_reference_loss(objective, rng):
    for scores, labels, longest in lists_of(objective, rng):
        grad, _ = objective.gradient_hessian(scores, labels, [len(scores)])

        def loss(s, labels=labels):
            return float(np.real(objective.reference_loss(s, labels)))

        size = max(1.0, abs(loss(scores)), np.abs(scores).max())
        for i in range(len(scores)):
            # steep losses need short steps, where rounding costs more digits
            errors = [
                abs(grad[i] - slope(loss, scores, i, step)) - 1e-14 * size / step
                for step in (longest, longest / 10, longest / 100)
            ]
            assert min(errors) <= 1e-6 * np.abs(grad).max()


@each_of([objective for objective in WITH_LOSS if objective.facts.hessian_kind != "estimate"])
def test_the_hessian_is_what_it_is_declared_to_be(objective, rng):
    kind = objective.facts.hessian_kind
    assert kind in ("exact", "bound")
    for scores, labels, step in lists_of(objective, rng):
        group = [len(scores)]
        grad, hess = objective.gradient_hessian(scores, labels, group)
        step /= max(1.0, getattr(objective, "alpha", 1.0))
        for i in range(len(scores)):

            def gradient(s, labels=labels, group=group, i=i):
                return objective.gradient_hessian(s, labels, group)[0][i]

            expected = slope(gradient, scores, i, step)
            allowed = 1e-6 * np.abs(hess).max() + 1e-15 * max(1.0, abs(grad[i])) / step
            assert hess[i] >= expected - allowed
            assert kind == "bound" or hess[i] <= expected + allowed


@each_of([o for o in SOME_OBJECTIVES if longest_step(o) is not None or hessian_limit(o, 30) is not None])
def test_steps_and_sums_of_hessians_stay_below_their_limits(objective, rng):
    n, lists = 30, 40
    some = random_labels(objective.label_limit, rng, n * lists)
    first = np.tile(np.arange(n) == 0, lists) * some.max()  # relevant documents are first
    for labels in (some, first):
        for spread in (0.0, 0.01, 1.0, 30.0):
            scores = spread * rng.normal(size=n * lists)
            grad, hess = objective.gradient_hessian(scores, labels, [n] * lists)
            if longest_step(objective) is not None:
                assert (np.abs(grad) <= longest_step(objective) * hess * (1 + 1e-9) + 1e-15).all()
            if hessian_limit(objective, n) is not None:
                assert hess.reshape(lists, n).sum(axis=1).max() <= hessian_limit(objective, n) * (1 + 1e-9)

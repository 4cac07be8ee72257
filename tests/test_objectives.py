"""The contract of every objective in the registry: reference, ugly lists, threads, seeds, weights, errors."""

import contextlib
import dataclasses
import pickle

import numpy as np
import pytest
from catalog import LEARNED, OBJECTIVES, SOME, balances_roughly, may_be_negative
from oracles.references import reference

from ltr_objectives import LTRError, Objective, Queries, check_objective, get_objective, registry
from ltr_objectives.testing import random_labels


def queries_for(objective, rng, count=60, longest=40):
    group = rng.integers(1, longest, count)
    labels = random_labels(objective.label_limit, rng, int(group.sum()))
    few = np.repeat(np.arange(count) % 4 == 3, group)  # queries with few relevant documents, where a hit is not certain
    labels[few & (rng.random(len(few)) < 0.9)] = 0.0
    return rng.normal(size=int(group.sum())), labels, group


def test_gradient_and_hessian_equal_the_reference(every_objective, monkeypatch):
    monkeypatch.setattr(Objective, "reference", reference)
    check_objective(every_objective)


def test_objectives_of_a_metric_equal_the_reference_for_every_metric():
    scores, labels = np.array([0.3, 0.1, 0.5, -0.2, 0.0]), np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    # some refuse sums, and others compile kernels for them
    metrics = [metric for name in LEARNED for metric in LEARNED[name] if name != "gap"]
    for name in registry.objectives():
        objective = OBJECTIVES[name]
        for metric in metrics if "metric" in objective.parameters() else ():
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
        with contextlib.suppress(LTRError) if name in MAY_FAIL else contextlib.nullcontext():
            grad = hess = np.zeros(len(scores))
            grad, hess = every_objective.gradient_hessian(scores, labels, group)
        assert grad.shape == hess.shape == (len(scores),), name
        assert grad.dtype == hess.dtype == np.float64, name
        assert np.isfinite(grad).all(), name
        assert np.isfinite(hess).all(), name
        assert may_be_negative(every_objective) or (hess >= 0).all(), name
        assert not grad.any() or name not in NOTHING_TO_LEARN or not every_objective.facts.shift_invariant, name


def test_same_bytes_for_any_threads_any_use_and_after_pickling(every_objective, rng):
    scores, labels, group = queries_for(every_objective, rng)
    expected = [x.tobytes() for x in every_objective.gradient_hessian(scores, labels, group, n_threads=1)]
    copy = pickle.loads(pickle.dumps(every_objective))
    assert copy == every_objective
    assert hash(copy) == hash(every_objective)
    queries = Queries(labels, group)
    every_objective.compute(queries, -scores, iteration=3)
    for used in (every_objective, copy):
        for threads in (2, None):
            assert [x.tobytes() for x in used.compute(queries, scores, n_threads=threads)] == expected


# exp underflows near 88 to 104 in float32 and 708 to 746 in float64; sigma halves or doubles that
GAPS = np.concatenate([np.arange(1, 120, 1.5), np.arange(340, 376, 1.0), np.arange(696, 752, 0.25), np.logspace(3, 30)])


def test_gradients_are_finite_and_add_up_to_zero_across_wide_gaps(any_objective, rng):
    lists = len(GAPS)
    for dtype, n in ((np.float64, 2), (np.float64, 7), (np.float32, 3)):
        above = rng.permuted(np.tile(np.arange(n), (lists, 1)), axis=1) < rng.integers(1, n, (lists, 1))
        scores = above * GAPS[:, None] + rng.choice([0.0, 0.3], (lists, 1)) * rng.normal(size=(lists, n))
        queries = Queries(random_labels(any_objective.label_limit, rng, lists * n), [n] * lists)
        grad, hess = any_objective.compute(queries, scores.ravel().astype(dtype), dtype=dtype)
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
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
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
        assert may_be_negative(objective) or (hess >= 0).all()
    assert learnt


def test_iteration_and_seed_select_the_noise(any_objective, rng):
    scores, labels, group = queries_for(any_objective, rng)

    def gradient(objective, iteration):
        return objective.gradient_hessian(scores, labels, group, iteration=iteration)[0].tobytes()

    again, other = gradient(any_objective, 0), gradient(any_objective, 1)
    assert gradient(any_objective, 0) == again
    assert (other != again) == any_objective.facts.random
    if "seed" in any_objective.parameters() and getattr(any_objective, "draw", "seed") is not None:
        reseeded = dataclasses.replace(any_objective, seed=12345)
        assert (gradient(reseeded, 0) != again) == any_objective.facts.random


@pytest.mark.parametrize("name", ["lambdamart", "yetiloss", "listnet"])
def test_layout_and_dtype_of_the_input_do_not_matter(name, rng):
    objective = get_objective(name)
    scores, labels, group = queries_for(objective, rng)
    scores, labels = scores.astype(np.float32), labels.astype(np.float32)
    expected = objective.gradient_hessian(scores.astype(np.float64), labels.astype(np.float64), group)
    strided = np.repeat(scores, 3)[::3]
    frozen = labels.copy()
    frozen.flags.writeable = False
    before = scores.copy()
    variants = [
        (scores, labels, {"group": group}),
        (strided, frozen, {"group": group.astype(np.int32)}),
        (scores.tolist(), labels.tolist(), {"group": group.tolist()}),
        (scores, labels, {"qid": np.repeat(np.arange(len(group)), group)}),
    ]
    for s, y, how in variants:
        for ours, theirs in zip(objective.gradient_hessian(s, y, **how), expected, strict=True):
            assert np.array_equal(ours, theirs)
    assert np.array_equal(scores, before)


def test_queries_do_not_touch_each_other(any_objective, rng):
    any_objective = any_objective.without_noise() or pytest.skip("nothing but noise")
    scores, labels, group = queries_for(any_objective, rng, 5)
    together = any_objective.gradient_hessian(scores, labels, group)
    ends = np.cumsum(group)
    for a, b in zip(ends - group, ends, strict=True):
        for x, alone in zip(together, any_objective.gradient_hessian(scores[a:b], labels[a:b], [b - a]), strict=True):
            np.testing.assert_allclose(x[a:b], alone, rtol=1e-12, atol=1e-15)


def test_scores_that_cannot_be_right_are_refused():
    for scores, message in (([np.nan, 0.0], "row 0 is nan"), ([0.0, np.inf], "row 1 is inf"), ([0.0], "1 entries")):
        with pytest.raises(LTRError, match=message):
            get_objective("lambdamart").gradient_hessian(scores, [0, 1], [2])


def test_objectives_are_frozen_print_their_parameters_and_refuse_labels_beyond_their_limit(any_objective):
    for name in any_objective.parameters():
        assert name in repr(any_objective)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(any_objective, name, 1)
    assert type(any_objective)(**any_objective.settings()) == any_objective
    if any_objective.label_limit is not None:
        with pytest.raises(LTRError, match="takes labels up to"):
            any_objective.gradient_hessian([0.0, 1.0], [0, any_objective.label_limit + 1], [2])


@pytest.mark.parametrize("name", registry.objectives())
def test_misspelt_parameters_and_wrong_values_are_refused(name):
    cls = Objective.named[name]
    with pytest.raises(TypeError, match="unexpected keyword"):
        cls(sigmma=1)
    wrong = {
        "sigma": (0, "above 0"), "truncation": (0, "at least 1"), "neighbors": (0, "at least 1"),
        "seed": (-1, "at least 0"),
        "permutations": (0, "at least 1"), "noise_scale": (-1, "above 0"), "samples": (0, "at least 1"),
        "mu": (-1, "at least 0"), "sfa": (-1, "at least 0"), "nu": (0, "above 0"), "decay": (2, "above 0"),
        "metric": ("ndgc", "unknown metric"),
    }  # fmt: skip
    for parameter in cls.parameters():
        value, message = wrong.get(parameter, ("misspelt", f"{parameter}='misspelt'"))
        with pytest.raises(LTRError, match=message):
            cls(**{parameter: value})
        with pytest.raises(LTRError, match=parameter):
            cls(**{parameter: object()})


def test_strings_name_objectives():
    for name in registry.objectives():
        cls = Objective.named[name]
        assert get_objective(name) == cls()
        if "metric" in cls.parameters():
            assert get_objective(f"{name}:map@5") == cls(metric="map@5")
        else:
            with pytest.raises(LTRError, match=f"{name} does not take a metric"):
                get_objective(f"{name}:map")
    with pytest.raises(LTRError, match="unknown objective 'lambdamrt'; there are"):
        get_objective("lambdamrt")
    with pytest.raises(LTRError, match="must be a string such as"):
        get_objective(3)

"""Changes that leave gradients alone: another order of rows or queries, a constant added to the scores of a query."""

import itertools

import numpy as np
import pytest
from catalog import EXAMPLES, draws_rows_alike, treats_ties_alike
from trainings import LIBRARIES, fit, small_data

from ltr_objectives import Mixture, Queries, Subsample, UnitHessian, get_objective, registry
from ltr_objectives.testing import random_labels

N, LISTS = 6, 40
WRAPPERS = (
    UnitHessian,
    lambda o: Subsample(o, queries=0.5),
    lambda o: Mixture([o, "listnet"], [1.0, 0.3]),
    lambda o: UnitHessian(Subsample(Mixture([o, "ordinal"]), queries=0.3, seed=2)),
)
NOISY = [objective for examples in EXAMPLES.values() for objective in examples if objective.facts.random]


def shuffled(rng, lists=LISTS, n=N):
    """Rows in another order within each query."""
    return np.concatenate([n * i + rng.permutation(n) for i in range(lists)])


def some_lists(objective, rng, tied=False):
    """Scores and labels; tied scores have three values, others differ within a query."""
    scores = [rng.integers(-1, 2, N) if tied else rng.permutation(N) for _ in range(LISTS)]
    return np.concatenate(scores) / 4, random_labels(objective.label_limit, rng, N * LISTS)


def same(objective, scores, labels, rows):
    """Return True if rows in another order have the same gradient and Hessian, within rounding."""
    before, after = gradients(objective, scores, labels), gradients(objective, scores[rows], labels[rows])
    return alike(before[:, rows], after)


def gradients(objective, scores, labels, weight=None):
    return np.array(objective.gradient_hessian(scores, labels, [N] * LISTS, weight, iteration=4))


def alike(before, after):
    """Return True if both gradients and both Hessians are equal within rounding."""
    return all(np.allclose(x, y, rtol=1e-9, atol=1e-12) for x, y in zip(before, after, strict=True))


def test_neither_order_nor_a_constant_changes_gradients(any_objective, rng):
    """Without noise the order of queries, and that of rows if their scores differ or ties are alike.

    With noise a constant for each query, where the objective says so; sums with the scores are not rounded.
    """
    quiet = any_objective.without_noise()
    for tied in (False, True):
        scores, labels = some_lists(any_objective, rng, tied)
        before = gradients(any_objective, scores, labels)
        after = gradients(any_objective, scores + np.repeat(rng.integers(-64, 65, LISTS) / 4, N), labels)
        assert alike(before, after) or not any_objective.facts.shift_invariant
        assert np.allclose(before[0], after[0], rtol=1e-6) == any_objective.facts.shift_invariant
        if quiet is None:
            continue
        rows = np.arange(N * LISTS) if tied and not treats_ties_alike(quiet) else shuffled(rng)
        rows = rng.permutation(rows.reshape(LISTS, N)).ravel()
        before = before if quiet is any_objective else gradients(quiet, scores, labels)
        assert alike(before[:, rows], gradients(quiet, scores[rows], labels[rows]))


def test_the_order_of_tied_rows_matters_in_the_objectives_of_the_catalog():
    for name in registry.objectives():
        objective, rng = get_objective(name).without_noise(), np.random.default_rng(0)
        if objective is not None:
            unchanged = same(objective, *some_lists(objective, rng, tied=True), shuffled(rng))
            assert unchanged == treats_ties_alike(objective), name


@pytest.mark.parametrize("objective", NOISY, ids=lambda objective: objective.name)
def test_rows_in_another_order_have_the_same_distribution_of_gradients(objective, rng):
    """Tied scores too, unless a part without noise ranks these in the order of the rows."""
    stats = pytest.importorskip("scipy.stats")
    parts = [member.objective for member in objective.members] or [objective]
    every_tie = all(treats_ties_alike(p) or (p.facts.random and not getattr(p, "partners", None)) for p in parts)
    count = 800
    for n, tied in itertools.product((2, 5), (False, True) if every_tie else (False,)):
        scores = np.zeros(n) if tied else rng.permutation(n) / 2
        labels, rows = random_labels(objective.label_limit, rng, n), rng.permutation(n)
        labels[:2] = labels.max(), labels.min()

        def draws(order, iteration, scores=scores, labels=labels, n=n):
            queries = Queries(np.tile(labels[order], count), [n] * count)
            found = objective.compute(queries, np.tile(scores[order], count), iteration=iteration)
            return np.array(found).reshape(2, count, n)

        before, after = draws(np.arange(n), 0)[:, :, rows], draws(rows, 1)
        if not draws_rows_alike(objective):
            before, after = before[:1], after[:1]
        error = np.sqrt((before.var(axis=1) + after.var(axis=1)) / count)
        assert (np.abs(before.mean(axis=1) - after.mean(axis=1)) <= 5 * error + 1e-9).all()
        if not draws_rows_alike(objective):
            continue
        for x, y in zip(before, after, strict=True):
            largest = np.abs(x).max() or 1.0
            x, y = np.round(x / largest, 9), np.round(y / largest, 9)  # equal values differ in their last digits
            assert min(stats.ks_2samp(x[:, i], y[:, i], method="asymp").pvalue for i in range(n)) > 1e-6


@pytest.mark.parametrize("name", registry.objectives())
def test_wrappers_do_not_see_the_order_of_the_rows(name, rng):
    quiet = EXAMPLES[name][-1].without_noise() or pytest.skip("nothing but noise")  # which follows the rows
    scores, labels = some_lists(quiet, rng)
    rows, weight = shuffled(rng), rng.uniform(0.5, 2.0, LISTS)
    for wrapper in WRAPPERS:
        before, after = (
            gradients(wrapper(quiet), scores, labels, weight),
            gradients(wrapper(quiet), scores[rows], labels[rows], weight),
        )
        assert np.abs(before).sum() > 0
        assert alike(before[:, rows], after)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("objective", "start"), [("ranknet", False), ("queryrmse", False), ("lambdamart", True), ("hinge:map", True)]
)
@pytest.mark.parametrize("what", ["rows", "queries"])
def test_a_library_trains_the_same_model(library, objective, start, what, rng):
    """Scores are tied, as before the first tree, only if ties are alike; else they differ at the start."""
    pytest.importorskip(library)
    size, count = 12, 30
    X, y, _ = small_data(count, size)
    first = rng.normal(size=len(y)) if start else None
    whole = (size * rng.permutation(count)[:, None] + np.arange(size)).ravel()
    rows = shuffled(rng, count, size) if what == "rows" else whole
    params = {"base_score": 0.0} if library == "xgboost" else {}
    if library == "catboost":
        params = {
            "random_strength": 0,
            "bootstrap_type": "No",
            "leaf_estimation_method": "Newton",
            "learning_rate": 0.3,
        }
    before, after = (
        fit(
            library, objective, X[order], y[order], [size] * count, params=params, start=first[order] if start else None
        )(X)
        for order in (np.arange(len(y)), rows)
    )
    assert np.ptp(before) > 0.1
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)

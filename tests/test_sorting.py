"""The order of a list is NumPy's stable order of descending scores, whichever algorithm its length selects."""

import itertools

import numpy as np
import pytest

from ltr_objectives.kernels.sorting import RUN, SHORT, descending_order, head_order, sorter

LENGTHS = [1, 2, 8, RUN, 32, 33, 120, SHORT, SHORT + 1, 500, 1500]
LISTS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(-2, 3, n).astype(float),
    "all equal": lambda rng, n: np.full(n, -0.5),
    "zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1.0], n),
    "last digits alone differ": lambda rng, n: 1e3 + rng.integers(-20, 20, n) * 2e-13,
    "huge and tiny": lambda rng, n: rng.choice([1e30, -1e30, 1e308, 5e-324, -5e-324, 0.0, 1e-200], n),
    "descending": lambda rng, n: -np.arange(n, dtype=float),
    "ascending": lambda rng, n: np.arange(n, dtype=float),
}


@pytest.mark.parametrize("n", LENGTHS)
def test_order(n, rng):
    for kind, some in LISTS.items():
        s = some(rng, n)
        sort, order = sorter(n + 3), np.empty(n + 3, np.int64)  # buffers may be longer than the list
        descending_order(s, order, sort)
        expected = np.argsort(-s, kind="stable")
        assert np.array_equal(order[:n], expected), kind
        assert np.array_equal(sort.key[:n], s[expected]), kind


def test_strided_scores(rng):
    s = rng.normal(size=(150, 7))
    order = np.empty(150, np.int64)
    descending_order(s[:, 6], order, sorter(150))
    assert np.array_equal(order, np.argsort(-s[:, 6], kind="stable"))


@pytest.mark.parametrize("n", LENGTHS)
def test_head(n, rng):
    for kind, top in itertools.product(LISTS, (1, 7, 30, 33, 100)):
        s = LISTS[kind](rng, n)
        sort, order = sorter(n + 3), np.empty(n + 3, np.int64)
        expected = np.argsort(-s, kind="stable")
        last = s[expected[min(top, n) - 1]]
        for others in (False, True):
            count = head_order(s, min(top, n), others, order, sort)
            assert count >= (s >= last).sum(), (kind, top)
            assert np.array_equal(order[:count], expected[:count]), (kind, top)
            assert np.array_equal(sort.key[:count], s[expected[:count]]), (kind, top)
        if count < n:
            assert count == (s >= last).sum(), (kind, top)
            assert np.array_equal(order[count:n], np.flatnonzero(s < last)), (kind, top)

"""Queries: what is accepted, what is refused, and the messages."""

import copy
import pickle

import numpy as np
import pytest

from ltr_objectives import LTRError, Queries
from ltr_objectives.metrics.gains import best_sums


def test_group_and_qid_mean_the_same():
    a, b = Queries([0, 1, 2], [1, 2]), Queries([0, 1, 2], qid=["x", "y", "y"])
    assert np.array_equal(a.ptr, b.ptr)
    assert len(a) == 2
    assert a.rows == 3
    assert a.longest == 2


def test_weights_are_told_by_their_length():
    by_query, by_row = Queries([0, 1, 2], [1, 2], weight=[3, 5]), Queries([0, 1, 2], [1, 2], weight=[3, 4, 6])
    assert by_query.weight_by_row.tolist() == [3, 5, 5]
    assert by_row.weight_by_row.tolist() == [3, 4, 6]
    assert by_row.weight_by_query.tolist() == [3, 5]


def test_labels_are_a_copy_that_nobody_changes():
    labels = np.array([0.0, 1.0])
    queries = Queries(labels, [2])
    labels[0] = 9
    assert queries.labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        queries.labels[0] = 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1, 2], [1, 1]), "group adds up to 2 rows, but labels has 3"),
        (([0, 1], [1.5, 0.5]), "sizes of at least one document, but query 0 has 1.5"),
        (([0, 1], [2, 0]), "query 1 has 0"),
        (([0, 1], [3, -1]), "query 1 has -1"),
        (([0, np.nan], [2]), "labels must be finite, but row 1 is nan"),
        (([0, np.inf], [2]), "labels must be finite, but row 1 is inf"),
        (([], [1]), "labels is empty"),
        (([[0, 1]], [2]), "labels must be one-dimensional"),
        ((["a", "b"], [2]), "labels must be numbers"),
        (([0, 1],), "pass group= "),
        (([0, 1, 2], [7, 7, 8]), "for one id per row use qid="),
    ],
)
def test_wrong_groups_and_labels(arguments, message):
    with pytest.raises(LTRError, match=message):
        Queries(*arguments)


def test_wrong_qid():
    with pytest.raises(LTRError, match="qid is not sorted: query 1 occurs in several places; sort the rows"):
        Queries([0, 1, 2], qid=[1, 2, 1])
    with pytest.raises(LTRError, match="qid has 2 rows, but labels has 3"):
        Queries([0, 1, 2], qid=[1, 2])
    with pytest.raises(LTRError, match="qid must be finite"):
        Queries([0, 1], qid=[1.0, np.nan])
    with pytest.raises(LTRError, match="not both"):
        Queries([0, 1], [2], qid=[1, 1])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 3, 4], "weight has 4 entries; pass one per query \\(2\\) or one per row \\(3\\)"),
        ([1, -1], "not be negative"),
        ([0, 0], "zero everywhere"),
        ([1, np.nan], "weight must be finite"),
    ],
)
def test_wrong_weights(weight, message):
    with pytest.raises(LTRError, match=message):
        Queries([0, 1, 2], [1, 2], weight=weight)


def test_values_that_are_no_arrays_are_refused():
    for ragged in ({"group": [[1], 2]}, {"qid": [1, 1, [2]]}, {"weight": [1.0, [2.0], 1.0]}):
        with pytest.raises(LTRError, match=r"array|numbers"):
            Queries([0, 1, 0], **({"group": [2, 1]} if "weight" in ragged else {}), **ragged)


def test_best_sums_are_those_of_the_best_order(rng):
    group = rng.integers(1, 9, 50)
    queries = Queries(rng.integers(0, 4, group.sum()), group)
    discount = 1 / np.log2(np.arange(2, queries.longest + 2))
    for values in (queries.labels, 3 - queries.labels, rng.normal(size=queries.rows)):
        lists = np.split(values, queries.ptr[1:-1])
        expected = [np.sort(x)[::-1] @ discount[: len(x)] for x in lists]
        np.testing.assert_allclose(best_sums(queries, values, discount), expected, rtol=1e-12)


def test_labels_are_read_only_so_that_kernels_are_compiled_for_one_type_of_them():
    queries = Queries({"a": [1, 0, 2], "b": [0, 1, 0]}, [3])
    for found in (queries, pickle.loads(pickle.dumps(queries)), copy.deepcopy(queries)):
        for each in (found, found.of("a"), found.of("b"), found.with_labels(np.ones(3))):
            assert not each.labels.flags.writeable

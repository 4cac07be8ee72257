"""Queries: what is accepted, what is refused, and the messages."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from catalog import METRICS, OBJECTIVES

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


def test_arrays_of_another_data_set_are_refused():
    """Kernels do not compare lengths, so they would read beyond the array."""
    queries, other = Queries([0, 1, 0, 2], [2, 2]), Queries([0, 1], [2])
    scores = other.check_scores([1.0, 2.0])
    for objective in OBJECTIVES.values():
        with pytest.raises(LTRError, match="scores has 2 entries"):
            objective.compute(queries, scores)
        with pytest.raises(LTRError, match="skip has 1 entries"):
            objective.compute(queries, np.zeros(4), skip=np.zeros(1, bool))
    for metric in itertools.chain(*METRICS.values()):
        for values in (metric.values, metric.mean):
            with pytest.raises(LTRError, match="scores has 2 entries"):
                values(queries, scores)
    with pytest.raises(LTRError, match="labels has 2 entries"):
        queries.with_labels(other.labels)


def test_wrong_sizes():
    """Beside the rows of refusals.toml."""
    with pytest.raises(LTRError, match="sizes of at least one document, but query 1 is -1"):
        Queries([0, 1], [3, -1])
    with pytest.raises(LTRError, match="labels must be finite, but row 1 is inf"):
        Queries([0, np.inf], [2])
    with pytest.raises(LTRError, match="qid has 2 rows, but there are 3"):
        Queries([0, 1, 2], qid=[1, 2])


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


def test_other_labels_are_a_copy():
    labels = np.array([0.0, 1.0])
    other = Queries([1, 0], [2]).with_labels(labels)
    labels[0] = 9
    assert other.labels.tolist() == [0, 1]

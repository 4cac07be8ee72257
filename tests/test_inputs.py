"""Queries and the contents of arrays: what counts as the same numbers or ids, and what is refused."""

import copy
import datetime
import decimal
import itertools
import pickle
import uuid

import numpy as np
import pytest
from catalog import METRICS, OBJECTIVES
from rankers import LIBRARIES, fold, ranker
from trainings import small_data, trained

from ltr_objectives import LTRError, Queries, evaluate, get_objective
from ltr_objectives.metrics.gains import best_sums
from ltr_objectives.queries import sizes_of


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
    labels = np.array([0.0, 1.0])
    other = queries.with_labels(labels)
    labels[0] = 9
    assert other.labels.tolist() == [0, 1]


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


@pytest.mark.parametrize("name", ["yetiloss", "listnet"])
def test_layout_and_dtype_of_the_input_do_not_matter(name, rng):
    objective, group = get_objective(name), rng.integers(1, 40, 60)
    scores, labels = rng.normal(size=group.sum()).astype(np.float32), rng.integers(0, 4, group.sum()).astype(np.float32)
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
        assert np.array_equal(objective.gradient_hessian(s, y, **how), expected)
    assert np.array_equal(scores, before)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("objective", "tied"), [("ranknet", True), ("lambdamart", False)])
def test_rows_and_queries_in_another_order_train_the_same_model(library, objective, tied, rng):
    """Scores are tied, as before the first tree, only if the objective treats ties alike; else they differ."""
    pytest.importorskip(library)
    (X, y, _), start = small_data(30, 12), None if tied else rng.normal(size=360)
    params = {"base_score": 0.0} if library == "xgboost" else {}
    if library == "catboost":
        params = {
            "random_strength": 0,
            "bootstrap_type": "No",
            "leaf_estimation_method": "Newton",
            "learning_rate": 0.3,
        }
    orders = (
        np.arange(360),
        (12 * rng.permutation(30)[:, None] + rng.permuted(np.tile(np.arange(12), (30, 1)), axis=1)).ravel(),
    )
    before, after = (
        trained(
            library, "callable", objective, X[i], y[i], [12] * 30, params=params, start=None if tied else start[i]
        ).predict(X)
        for i in orders
    )  # fmt: skip
    assert np.ptp(before) > 0.1
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)


# contents of arrays


GOOD = [1.0, 2.0, 1.0]


def imported(package, make):
    return lambda: make(pytest.importorskip(package))


ENTRIES = {
    "labels": lambda x: Queries(x, [3]),
    "group": lambda x: Queries([0, 1, 0, 1], x),
    "weight": lambda x: Queries(GOOD, [3], weight=x),
    "propensity": lambda x: Queries(GOOD, [3], propensity=x),
    "position": lambda x: Queries(GOOD, [3], position=x),
    "scores": lambda x: evaluate("ndcg", x, GOOD, [3]),
    "labels of evaluate": lambda x: evaluate("ndcg", GOOD, x, [3]),
}
REFUSED = {
    "masked": lambda: np.ma.masked_array(GOOD, mask=[False, True, False]),
    "all masked": lambda: np.ma.masked_array(GOOD, mask=True),
    "None": lambda: [1.0, None, 1.0],
    "pandas.NA": imported("pandas", lambda pd: pd.array([1, None, 1], dtype="Int64")),
    "pandas.NA among objects": imported("pandas", lambda pd: [1, pd.NA, 1]),
    "truth values with NA": imported("pandas", lambda pd: pd.array([True, None, True], dtype="boolean")),
    "pyarrow null": imported("pyarrow", lambda pa: pa.array([1, None, 1])),
    "polars null": imported("polars", lambda pl: pl.Series([1, None, 1])),
    "dates": lambda: np.array(["1970-01-02", "1970-01-03", "1970-01-02"], "datetime64[D]"),
    "dates as objects": lambda: [datetime.datetime(2020, 1, 1)] * 3,
    "pandas dates": imported("pandas", lambda pd: pd.Series(pd.to_datetime(["2020", "2021", "2020"]))),
    "spans": lambda: np.array([1, 2, 1], "timedelta64[s]"),
    "complex": lambda: [1 + 0j, 2, 1],
    "complex among objects": lambda: np.array([1 + 0j, 2, 1], object),
    "text": lambda: ["1", "2", "1"],
    "bytes": lambda: [b"1", b"2", b"1"],
    "beyond float64": lambda: [1, 10**400, 1],
    "records": lambda: np.ones(3, "f8,f8"),
    "a set": lambda: {1, 2},
    "a generator": lambda: (x for x in GOOD),
    "a number": lambda: 3,
    "a word": lambda: "abc",
}
ACCEPTED = {
    "a mask that hides nothing": lambda: np.ma.masked_array(GOOD, mask=False),
    "decimals": lambda: [decimal.Decimal(1), decimal.Decimal(2), decimal.Decimal(1)],
    "objects": lambda: np.array([1, 2.0, np.int8(1)], object),
    "nullable": imported("pandas", lambda pd: pd.array([1, 2, 1], dtype="Int64")),
    "pyarrow": imported("pyarrow", lambda pa: pa.array([1, 2, 1])),
    "polars": imported("polars", lambda pl: pl.Series([1, 2, 1])),
    "big-endian": lambda: np.array(GOOD, ">f4"),
}


@pytest.mark.parametrize("values", REFUSED)
def test_values_that_are_no_numbers_are_refused_by_name(values):
    for entry, call in ENTRIES.items():
        with pytest.raises(LTRError, match=rf"^{entry.split()[0]} (must be|has a masked value;)"):
            call(REFUSED[values]())


@pytest.mark.parametrize("values", ACCEPTED)
def test_numbers_in_other_clothes_are_the_same_numbers(values):
    x = ACCEPTED[values]()
    assert Queries(x, [3]).labels.tolist() == GOOD
    assert Queries(GOOD, [3], weight=x).weight_by_row.tolist() == GOOD
    assert Queries([0, 1, 0, 1], x).ptr.tolist() == [0, 1, 3, 4]
    assert evaluate("ndcg", x, GOOD, [3]) == 1


IDS = {
    "beyond 64 bits": [2**64] * 2 + [2**64 + 1] * 2 + [5],
    "tuple": (2**62, 2**62, 1, 1, 2),
    "whole numbers and fractions": [1, 1, 2.5, 2.5, 3],
    "uint64": np.array([2**63, 2**63, 2**63 + 1, 2**63 + 1, 5], np.uint64),
    "text": ["b", "b", "a", "a", "c"],
    "bytes": [b"b", b"b", b"a", b"a", b"c"],
    "dates": np.array(["2020", "2020", "2021", "2021", "2022"], "datetime64[D]"),
    "unique ids": [uuid.UUID(int=i) for i in (2, 2, 1, 1, 3)],
    "text and numbers": [1, 1, "1", "1", 2],
    "text and bytes": ["a", "a", b"a", b"a", "b"],
    "masked nowhere": np.ma.masked_array([1, 1, 2, 2, 3]),
}


@pytest.mark.parametrize("ids", IDS)
def test_ids_keep_their_value(ids):
    for given in (IDS[ids], np.array(list(IDS[ids]), object)):
        assert sizes_of(given).tolist() == [2, 2, 1]
        assert len(Queries([0, 1, 0, 1, 0], qid=given)) == 3


NO_IDS = {
    "masked": (lambda: np.ma.masked_array([1, 1, 2], mask=[0, 1, 0]), "masked value;"),
    "None": (lambda: ["a", None, None], "no id in row 1"),
    "None alone": (lambda: [None, None, None], "no id in row 0"),
    "NaN among text": (lambda: ["a", "a", float("nan")], "no id in row 2"),
    "NaT": (lambda: np.array(["2020", "NaT", "NaT"], "datetime64[D]"), "no id in row 1"),
    "pandas category": (imported("pandas", lambda pd: pd.Categorical(["a", None, "b"])), "no id in row 1"),
    "pyarrow null": (imported("pyarrow", lambda pa: pa.array(["a", None, None])), "no id in row 1"),
    "pyarrow null number": (imported("pyarrow", lambda pa: pa.array([1, None, None])), "row 1"),
    "polars null": (imported("polars", lambda pl: pl.Series(["a", None, None])), "no id in row 1"),
    "far apart": (lambda: [2**63, 2**63 + 1, 5], "cannot tell ids of 9007199254740992 and more apart"),
    "short floats": (lambda: np.array([2**24, 2**24 + 1], np.float32), "cannot tell ids of 16777216 and more apart"),
    "empty": (list, "is empty"),
}


@pytest.mark.parametrize("ids", NO_IDS)
def test_missing_and_doubtful_ids_are_refused(ids):
    make, message = NO_IDS[ids]
    given = make()
    with pytest.raises(LTRError, match=f"^qid .*{message}"):
        Queries(np.zeros(max(len(given), 1)), qid=given)


@pytest.mark.parametrize("library", LIBRARIES)
def test_features_that_are_hidden_or_dates_are_refused(library):
    pytest.importorskip(library)
    train, _, _ = fold()
    y, qid = train.y, train.qid
    assert ranker(library).fit(np.ma.masked_array(train.X), y, qid=qid).n_features_in_ == train.X.shape[1]
    with pytest.raises(LTRError, match="X has a masked value"):
        ranker(library).fit(np.ma.masked_greater(train.X, train.X[0].min()), y, qid=qid)
    with pytest.raises(LTRError, match="X holds dates"):
        ranker(library).fit(train.X.astype("datetime64[s]"), y, qid=qid)
    with pytest.raises(LTRError, match="labels has a masked value"):
        ranker(library).fit(train.X, np.ma.masked_equal(y, y[0]), qid=qid)

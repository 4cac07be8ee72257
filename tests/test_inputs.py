"""Queries and the contents of arrays: what counts as the same numbers or ids, and what is refused."""

import copy
import datetime
import decimal
import itertools
import pickle
import types
import uuid

import numpy as np
import pytest
from catalog import METRICS, OBJECTIVES
from rankers import LIBRARIES, fold, ranker
from trainings import small_data, trained

from ltr_objectives import LTRError, Queries, evaluate, get_metric, get_objective
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from ltr_objectives.metrics.gains import best_sums
from ltr_objectives.queries import sizes_of, to_numpy


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


class OnDevice:
    """Like CuPy's arrays: CUDA's interface, a length, and ``get()`` as the only way to NumPy, once for each array."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim
        self.copies = 0

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (1, False), "version": 3}

    def __array__(self, *_args, **_options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        raise TypeError("one element at a time would take forever")

    def get(self):
        self.copies += 1
        return self._values.copy()


@pytest.fixture
def arrays():
    rng = np.random.default_rng(4)
    group = rng.integers(1, 12, 30)
    rows = group.sum()
    return rng.normal(size=rows).astype(np.float32), rng.integers(0, 4, rows), group, rng.uniform(0.5, 2, rows)


def same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        assert type(a) is np.ndarray
        assert np.array_equal(a, b)


def test_gradients_of_arrays_on_a_device(arrays):
    scores, labels, group, weight = arrays
    objective = get_objective("yetiloss:map")
    qid = np.repeat(np.arange(len(group)), group)
    expected = objective.gradient_hessian(scores, labels, group, weight)
    same(objective.gradient_hessian(*map(OnDevice, (scores, labels, group, weight))), expected)
    there = objective.gradient_hessian(OnDevice(scores), labels, weight=OnDevice(weight), qid=OnDevice(qid))
    same(there, expected)


def test_metrics_of_arrays_on_a_device(arrays):
    scores, labels, group, weight = arrays
    metric = get_metric("ndcg@10")
    there = [OnDevice(x) for x in (scores, labels, group, weight)]
    assert evaluate(metric, *there) == evaluate(metric, scores, labels, group, weight)
    same([metric.per_query(*there[:3])], [metric.per_query(scores, labels, group)])
    for changes in (metric.swap_changes, metric.move_changes):
        same([changes(OnDevice(labels[:6]))], [changes(labels[:6])])


def test_arrays_on_a_device_in_xgboost(arrays):
    """Since version 3.4 labels, weights and queries of a DMatrix may be arrays of CuPy."""
    xgb = pytest.importorskip("xgboost")
    scores, labels, group, _ = arrays
    here = xgb.DMatrix(np.zeros((len(labels), 1)), labels, group=group, weight=np.linspace(1, 2, len(group)))
    there = types.SimpleNamespace(num_row=here.num_row)
    for name in ("get_uint_info", "get_label", "get_weight"):
        setattr(there, name, lambda *given, name=name: OnDevice(getattr(here, name)(*given)))
    for shape in ((-1,), (-1, 1)):  # XGBoost may pass either
        given = OnDevice(scores.reshape(shape))
        same(xgboost_objective("yetiloss:map")(given, there), xgboost_objective("yetiloss:map")(scores, here))
        assert given.copies == 1
        assert xgboost_metric("map", "mrr")(given, there) == xgboost_metric("map", "mrr")(scores, here)


def test_arrays_on_a_device_in_lightgbm(arrays):
    lgb = pytest.importorskip("lightgbm")
    scores, labels, group, weight = arrays
    d = lgb.Dataset(np.zeros((len(labels), 1)), labels, group=group, weight=weight).construct()
    for make, name in ((lightgbm_objective, "yetiloss:map"), (lightgbm_metric, "map")):
        for given in ((labels, scores, weight, group), (scores, d)):
            plain, there = make(name)(*given), make(name)(*(x if x is d else OnDevice(x) for x in given))
            assert np.array_equal(np.array(plain, object), np.array(there, object))


def test_other_libraries_arrays():
    for name in ("to_numpy", "copy_to_host", "cpu"):  # cuDF, numba, PyTorch
        other = type("Other", (OnDevice,), {name: OnDevice.get, "get": property()})
        assert np.array_equal(to_numpy(other([1.0, 2.0])), [1, 2])
    closed = type("Closed", (), {"__cuda_array_interface__": {}})
    with pytest.raises(LTRError, match="labels must be one-dimensional, got Closed"):
        Queries(closed(), [1])


def test_bad_values_on_a_device_are_refused(arrays):
    scores, labels, group, _ = arrays
    with pytest.raises(LTRError, match="scores must be finite"):
        get_objective("lambdamart").gradient_hessian(OnDevice(np.full_like(scores, np.nan)), labels, group)
    with pytest.raises(LTRError, match="labels must be finite, but row 0"):
        get_metric("map").per_query(scores, OnDevice(np.full(len(labels), np.inf)), group)

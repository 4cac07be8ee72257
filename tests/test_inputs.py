"""Queries and the contents of arrays: what counts as the same numbers or ids, and what is refused."""

import copy
import datetime
import decimal
import itertools
import pickle
import types

import numpy as np
import pandas as pd
import pytest
from catalog import METRICS, OBJECTIVES

from ltr_objectives import (
    LTRError,
    LTRWarning,
    Queries,
    compare_scores,
    evaluate,
    evaluate_exposure,
    get_metric,
    get_objective,
    report,
)
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective


def test_weights_are_told_by_their_length():
    by_query, by_row = Queries([0, 1, 2], [1, 2], weight=[3, 5]), Queries([0, 1, 2], [1, 2], weight=[3, 4, 6])
    assert by_query.weight_by_row.tolist() == [3, 5, 5]
    assert by_row.weight_by_row.tolist() == [3, 4, 6]
    assert by_row.weight_by_query.tolist() == [3, 5]


def test_labels_are_a_read_only_copy():
    """Kernels would be compiled for writeable labels too."""
    labels = np.array([0.0, 1.0])
    queries = Queries({"a": labels, "b": [1, 0]}, [2])
    other = queries.with_labels(labels)
    labels[0] = 9
    for found in (queries, other, pickle.loads(pickle.dumps(queries)), copy.deepcopy(queries)):
        assert found.labels.tolist() == [0, 1]
        assert not any(each.labels.flags.writeable for each in (found, found.for_goal("a"), found.for_goal("b")))


def test_arrays_of_another_data_set_are_refused():
    """Kernels do not compare lengths, so they would read beyond the array."""
    queries, other = Queries([0, 1, 0, 2], [2, 2]), Queries([0, 1], [2])
    scores = other.check_scores([1.0, 2.0])
    for objective in OBJECTIVES.values():
        with pytest.raises(LTRError, match="scores"):
            objective.compute(queries, scores)
        with pytest.raises(LTRError, match="skip"):
            objective.compute(queries, np.zeros(4), skip=np.zeros(1, bool))
    for metric in itertools.chain(*METRICS.values()):
        for values in (metric.values, metric.mean):
            with pytest.raises(LTRError, match="scores"):
                values(queries, scores)
    with pytest.raises(LTRError, match="labels"):
        queries.with_labels(other.labels)


def test_layout_and_dtype_of_the_input_do_not_matter(rng):
    objective, group = get_objective("yetiloss"), rng.integers(1, 40, 60)
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


# contents of arrays


GOOD = [1.0, 2.0, 1.0]


def imported(package, make):
    return lambda: make(pytest.importorskip(package))


ENTRIES = {
    "labels": lambda x: Queries(x, [3]),
    "group": lambda x: Queries([0, 1, 0, 1], x),
    "weight": lambda x: Queries(GOOD, [3], weight=x),
    "propensity": lambda x: Queries(GOOD, [3], propensity=x),
    "scores": lambda x: evaluate("ndcg", x, GOOD, [3]),
    "labels of evaluate": lambda x: evaluate("ndcg", GOOD, x, [3]),
}
REFUSED = {
    "masked": lambda: np.ma.masked_array(GOOD, mask=[False, True, False]),
    "None": lambda: [1.0, None, 1.0],
    "pandas.NA": imported("pandas", lambda pd: pd.array([1, None, 1], dtype="Int64")),
    "pandas.NA among objects": imported("pandas", lambda pd: [1, pd.NA, 1]),
    "pyarrow null": imported("pyarrow", lambda pa: pa.array([1, None, 1])),
    "polars null": imported("polars", lambda pl: pl.Series([1, None, 1])),
    "dates": lambda: np.array(["1970-01-02", "1970-01-03", "1970-01-02"], "datetime64[D]"),
    "dates as objects": lambda: [datetime.datetime(2020, 1, 1)] * 3,
    "spans": lambda: np.array([1, 2, 1], "timedelta64[s]"),
    "complex among objects": lambda: np.array([1 + 0j, 2, 1], object),
    "text": lambda: ["1", "2", "1"],
    "beyond float64": lambda: [1, 10**400, 1],
    "a set": lambda: {1, 2},
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
        with pytest.raises(LTRError, match=rf"^{entry.split()[0]} "):
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
    "whole numbers and fractions": [1, 1, 2.5, 2.5, 3],
    "uint64": np.array([2**63, 2**63, 2**63 + 1, 2**63 + 1, 5], np.uint64),
    "dates": np.array(["2020", "2020", "2021", "2021", "2022"], "datetime64[D]"),
    "text and numbers": [1, 1, "1", "1", 2],
    "text and bytes": ["a", "a", b"a", b"a", "b"],
    "masked nowhere": np.ma.masked_array([1, 1, 2, 2, 3]),
}


@pytest.mark.parametrize("ids", IDS)
def test_ids_keep_their_value(ids):
    for given in (IDS[ids], np.array(list(IDS[ids]), object)):
        assert Queries([0, 1, 0, 1, 0], qid=given).ptr.tolist() == [0, 2, 4, 5]


NO_IDS = {
    "masked": (lambda: np.ma.masked_array([1, 1, 2], mask=[0, 1, 0]), "masked value;"),
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


class OnDevice:
    """Like CuPy's arrays: CUDA's interface, a length, and ``get()`` as the only way to NumPy."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (1, False), "version": 3}

    def __array__(self, *_args, **_options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __len__(self):
        return len(self._values)

    def get(self):
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


def test_arrays_on_a_device(arrays):
    scores, labels, group, weight = arrays
    objective, metric = get_objective("yetiloss:map"), get_metric("ndcg@10")
    qid = np.repeat(np.arange(len(group)), group)
    expected = objective.gradient_hessian(scores, labels, group, weight)
    there = [OnDevice(x) for x in arrays]
    same(objective.gradient_hessian(*there), expected)
    same(objective.gradient_hessian(*there[:2], weight=there[3], qid=OnDevice(qid)), expected)
    assert evaluate(metric, *there) == evaluate(metric, *arrays)


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
        assert Queries(other([1.0, 2.0]), [2]).labels.tolist() == [1, 2]


OF_ROWS = {
    "evaluate": lambda s, y, qid, **k: evaluate(["ndcg", "map"], s, y, qid=qid, **k),
    "drop": lambda s, y, qid, **k: evaluate("ndcg", s, y, qid=qid, unjudged="drop", **k),
    "compare_scores": lambda s, y, qid, **k: compare_scores("ndcg", s, np.zeros(len(s)), y, qid=qid, **k),
    "per_query": lambda s, y, qid: get_metric("ndcg").per_query(s, y, qid=qid),
    "gradient_hessian": lambda s, y, qid, **k: get_objective("lambdamart").gradient_hessian(s, y, qid=qid, **k),
    "report": lambda s, y, qid, **k: report("lambdamart", s, y, qid=qid, **k),
}


@pytest.mark.parametrize("entry", OF_ROWS)
def test_series_in_another_order_are_warned_of_by_name(entry):
    """Entries count by position, so that values would be of other rows."""
    call = OF_ROWS[entry]
    ids = np.repeat(np.random.default_rng(0).permutation(30), 4)
    given = {"s": np.arange(120.0), "y": np.arange(120) % 2, "qid": ids}
    names = {"s": "scores(_a)?", "y": "labels", "qid": "qid"}
    if entry != "per_query":
        given["weight"] = np.ones(120)
        by_query = pd.Series(np.arange(1.0, 31.0))
        with pytest.warns(LTRWarning, match=r"^weight .*qid"):
            call(**given | {"weight": by_query})
        call(**given | {"weight": by_query.loc[pd.unique(ids)]})
    call(**{name: pd.Series(values) for name, values in given.items()})
    for name in given.keys() - {"y"}:
        turned = {name: pd.Series(given[name])[::-1]}
        with pytest.warns(LTRWarning, match=f"^(labels|{names.get(name, name)}) "):
            call(**given | {"y": pd.Series(given["y"])} | turned)
        call(**given | turned)  # one alone says nothing


def test_the_orders_of_goals_of_two_models_and_of_users():
    y, qid = np.arange(120) % 2, np.repeat(np.arange(30)[::-1], 4)
    with pytest.warns(LTRWarning, match=r"^labels\['b'\] .*labels\['a'\]"):
        evaluate("ndcg[b]", y, {"a": pd.Series(y), "b": pd.Series(y)[::-1]}, qid=qid)
    with pytest.warns(LTRWarning, match=r"^scores_b .*scores_a"):
        compare_scores("ndcg", pd.Series(y), pd.Series(-y)[::-1], y, qid=qid)
    with pytest.warns(LTRWarning, match="^user "):
        compare_scores("ndcg", y, -y, y, qid=qid, user=pd.Series(np.arange(30)))


def test_users_and_owners_may_be_numbers_and_text():
    y = np.arange(8) % 2
    found = compare_scores("ndcg", y, -y, y, [2] * 4, user=[1, "a", 1, "b"])
    assert found == compare_scores("ndcg", y, -y, y, [2] * 4, user=["1", "a", "1", "b"])
    exposures = evaluate_exposure(y, y, [2] * 4, patience=0.5, owner=[1, "a"] * 4)
    assert exposures == evaluate_exposure(y, y, [2] * 4, patience=0.5, owner=["1", "a"] * 4)

"""Arrays on a GPU are accepted wherever arrays are, and copied to the host once, by their own method."""

import types

import numpy as np
import pytest

from ltr_objectives import LTRError, Queries, evaluate, get_metric, get_objective
from ltr_objectives.adapters import lightgbm_metric, lightgbm_objective, xgboost_metric, xgboost_objective
from ltr_objectives.queries import to_numpy


class OnDevice:
    """Like CuPy's arrays: CUDA's interface, a length, and ``get()`` as the only way to NumPy."""

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
def data():
    rng = np.random.default_rng(4)
    group = rng.integers(1, 12, 30)
    rows = group.sum()
    return rng.normal(size=rows).astype(np.float32), rng.integers(0, 4, rows), group, rng.uniform(0.5, 2, rows)


def same(ours, expected):
    for a, b in zip(ours, expected, strict=True):
        assert type(a) is np.ndarray
        assert np.array_equal(a, b)


def test_gradient_hessian(data):
    scores, labels, group, weight = data
    objective = get_objective("yetiloss:map")
    qid = np.repeat(np.arange(len(group)), group)
    expected = objective.gradient_hessian(scores, labels, group, weight)
    same(objective.gradient_hessian(*map(OnDevice, (scores, labels, group, weight))), expected)
    there = objective.gradient_hessian(OnDevice(scores), labels, weight=OnDevice(weight), qid=OnDevice(qid))
    same(there, expected)


def test_metrics(data):
    scores, labels, group, weight = data
    metric = get_metric("ndcg@10")
    there = [OnDevice(x) for x in (scores, labels, group, weight)]
    assert evaluate(metric, *there) == evaluate(metric, scores, labels, group, weight)
    same([metric.per_query(*there[:3])], [metric.per_query(scores, labels, group)])
    for changes in (metric.swap_changes, metric.move_changes):
        same([changes(OnDevice(labels[:6]))], [changes(labels[:6])])


def test_xgboost_s_adapters(data):
    """Since version 3.4 labels, weights and queries of a DMatrix may be arrays of CuPy."""
    xgb = pytest.importorskip("xgboost")
    scores, labels, group, _ = data
    here = xgb.DMatrix(np.zeros((len(labels), 1)), labels, group=group, weight=np.linspace(1, 2, len(group)))
    there = types.SimpleNamespace(num_row=here.num_row)
    for name in ("get_uint_info", "get_label", "get_weight"):
        setattr(there, name, lambda *given, name=name: OnDevice(getattr(here, name)(*given)))
    for shape in ((-1,), (-1, 1)):  # XGBoost may pass either
        given = OnDevice(scores.reshape(shape))
        same(xgboost_objective("yetiloss:map")(given, there), xgboost_objective("yetiloss:map")(scores, here))
        assert given.copies == 1
        assert xgboost_metric("map", "mrr")(given, there) == xgboost_metric("map", "mrr")(scores, here)


def test_lightgbm_s_adapters(data):
    lgb = pytest.importorskip("lightgbm")
    scores, labels, group, weight = data
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


def test_bad_values_on_a_device_are_refused(data):
    scores, labels, group, _ = data
    with pytest.raises(LTRError, match="scores must be finite"):
        get_objective("lambdamart").gradient_hessian(OnDevice(np.full_like(scores, np.nan)), labels, group)
    with pytest.raises(LTRError, match="labels must be finite, but row 0"):
        get_metric("map").per_query(scores, OnDevice(np.full(len(labels), np.inf)), group)

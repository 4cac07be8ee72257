"""A preset trains like its native objective: predictions agree, or leaf values where pairs are redrawn."""

import numpy as np
import pytest
from catalog import PARITIES
from packaging.version import Version

from ltr_objectives.adapters import lightgbm_objective, xgboost_objective

ROUNDS = 25


def training_data(parity):
    # LightGBM reads its sigmoid from a table, so gradients differ by about 1e-6 of their size, and either of two
    # splits with nearly equal gain may win: seen in 3 of 8 seeds with 31 leaves, once in 16 trainings with 8.
    rng = np.random.default_rng(3)
    group = rng.integers(1, 60, 300)
    n = int(group.sum())
    X = rng.normal(size=(n, 10)).astype(np.float32)
    labels = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n), [0, 1, 2, 3]).astype(float)
    return X, (labels > 0).astype(float) if parity.binary else labels, group, rng.uniform(0.2, 3, len(group))


def train_lightgbm(parity, native, weighted):
    lgb = pytest.importorskip("lightgbm")
    X, labels, group, weight = training_data(parity)
    loss = parity.params if native else {"objective": lightgbm_objective(parity.ours)}
    params = {"num_leaves": 8, "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 0, **loss}
    data = lgb.Dataset(X, labels, group=group, weight=np.repeat(weight, group) if weighted else None)
    return lgb.train(params, data, ROUNDS).predict(X)


def train_xgboost(parity, native, weighted):
    xgb = pytest.importorskip("xgboost")
    X, labels, group, weight = training_data(parity)
    data = xgb.DMatrix(X, labels)
    data.set_group(group)
    params = {"max_depth": 4, "nthread": 1, "base_score": 0, "disable_default_eval_metric": 1, **parity.params}
    if weighted:
        data.set_weight(weight)
    if not native:
        del params["objective"]
    return xgb.train(params, data, ROUNDS, obj=None if native else xgboost_objective(parity.ours)).predict(data)


def leaf_values(parity, weighted, attempt):
    """Native values of a tree in which each document has its own leaf, and ours; None if the tree is too small."""
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(attempt)
    group = np.array([5, 1, 8, 6, 4, 7, 3, 2, 6, 5, 4, 3, 5, 5])
    n = 64
    X = ((np.arange(n)[:, None] >> np.arange(6)) & 1).astype(float)
    labels = rng.choice([0, 0.25, 0.5, 0.75], n) if parity.probability else rng.integers(0, 5, n).astype(float)
    start = np.float32(rng.normal(size=n)).astype(float)
    weight = np.float32(rng.uniform(0.2, 3, len(group))) if weighted else None
    qid = np.repeat(np.arange(len(group)), group)
    pool = catboost.Pool(
        X, labels, group_id=qid, baseline=start, group_weight=None if weight is None else np.repeat(weight, group)
    )
    model = catboost.CatBoost({
        **parity.params, "iterations": 1, "depth": 6, "learning_rate": 1, "l2_leaf_reg": 1.0, "random_strength": 0,
        "bootstrap_type": "No", "verbose": 0, "allow_writing_files": False, "thread_count": 1,
    }).fit(pool)  # fmt: skip
    if len(np.unique(model.calc_leaf_indexes(catboost.Pool(X)))) < n:
        return None
    grad, hess = parity.ours.gradient_hessian(start, labels, group, weight)
    scaled = 1.0 if weight is None else np.repeat(weight, group).mean()  # CatBoost's L2 grows with the mean weight
    native = model.predict(X)
    ours = -grad / (hess + scaled)
    return native - native.mean(), ours - ours.mean()  # its ranking losses centre the leaves


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "parity", PARITIES, ids=[f"{p.library}-{'-'.join(map(str, p.params.values()))}" for p in PARITIES]
)
def test_the_preset_trains_like_the_native_objective(parity, weighted):
    library = pytest.importorskip(parity.library)
    if Version(library.__version__) < Version(parity.since):
        pytest.skip(f"{parity.library} has it since {parity.since}")
    if parity.library == "catboost":
        if not parity.per_leaf:
            pytest.skip("compared through the CatBoost adapter, in test_catboost_adapter.py")
        found = [v for v in (leaf_values(parity, weighted, attempt) for attempt in range(8)) if v is not None]
        assert found
        for native, ours in found:
            np.testing.assert_allclose(ours, native, rtol=0, atol=parity.tolerance)
        return
    train = {"lightgbm": train_lightgbm, "xgboost": train_xgboost}[parity.library]
    native, ours = train(parity, True, weighted), train(parity, False, weighted)
    spread = native.max() - native.min()
    assert spread > 0.1
    assert np.abs(native - ours).max() < parity.tolerance * spread

"""The contract of every training: (library, its own function or our estimator, path through the adapter)."""

import multiprocessing
import pickle
import subprocess
import sys
from types import SimpleNamespace

import examples
import numpy as np
import pytest
from catalog import OBJECTIVES, ONE_OF_EACH, PARITIES, PATHS, Parity
from catboost import CatBoost, Pool
from packaging.version import Version
from pandas import DataFrame
from rankers import LIBRARIES, SUFFIX, ranker
from recording import Recording
from trainings import NEWTON, WAYS, data_of, objectives, release, trained
from xgboost import DMatrix

from ltr_objectives import NDCG, Metric, Objective, StochasticRank, adapters, evaluate

libraries = pytest.mark.parametrize("library", LIBRARIES)
ways = pytest.mark.parametrize("way", WAYS)
paths = pytest.mark.parametrize("path", PATHS)


# models


@libraries
@ways
@pytest.mark.parametrize("objective", [*PATHS, *release(objectives())])
def test_it_learns(library, way, objective):
    data, given = data_of(objective)
    X, y, group = data_of("any")[0]
    model = trained(library, way, PATHS.get(objective, objective), *data, 10, **given)
    assert evaluate("ndcg@10", model.predict(X), y, group) > evaluate("ndcg@10", np.zeros(len(y)), y, group) + 0.1


@libraries
@pytest.mark.parametrize("metric", ["map", "mrr", "dcg@5", *release(["ndcg@5", "err", "recall@3", "auc"])])
def test_early_stopping_keeps_the_best_round(library, metric):
    valid, rate = data_of("any", seed=8)[0], {"learning_rate": 1.0}
    data = data_of("any")[0]
    model = trained(
        library, "callable", PATHS["own Hessian"], *data, 60, valid=valid, metric=metric, stop=5, params=rate
    )
    [(name, values)] = model.log.items()  # XGBoost minimises what does not have a name that it knows
    values = [1 - v for v in values] if name.startswith("1-") else np.abs(values)
    assert len(values) < 60
    assert model.rounds - 1 == np.argmax(values)
    assert evaluate(metric, model.predict(valid[0]), *valid[1:]) == pytest.approx(max(values), abs=2e-6)


@libraries
@ways
@paths
def test_three_rounds_and_three_more_are_six(library, way, path):
    (X, y, group), given = data_of(path)
    whole = trained(library, way, PATHS[path], X, y, group, 6, **given).predict(X)
    first = trained(library, way, PATHS[path], X, y, group, 3, **given)
    restarted = first._replace(model=pickle.loads(pickle.dumps(first.model)))
    assert np.ptp(whole) > 1e-3
    for before in (first, restarted):
        both = trained(library, way, PATHS[path], X, y, group, 3, before=before, **given).predict(X)
        np.testing.assert_array_equal(both, whole)


@libraries
@ways
@paths
def test_threads_change_no_byte(library, way, path):
    (X, y, group), given = data_of(path)
    one, two = (trained(library, way, PATHS[path], X, y, group, 4, threads=n, **given).predict(X) for n in (1, 2))
    assert np.array_equal(one, two)


# presets


def parity_data(parity):
    # LightGBM reads its sigmoid from a table, so gradients differ by about 1e-6 of their size, and either of two
    # splits with nearly equal gain may win: seen in 3 of 8 seeds with 31 leaves, once in 16 trainings with 8.
    rng = np.random.default_rng(3)
    group = rng.integers(1, 60, 300)
    X = rng.normal(size=(group.sum(), 10)).astype(np.float32)
    labels = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X)), [0, 1, 2, 3]).astype(float)
    return (X, (labels > 0).astype(float) if parity.binary else labels, group), rng.uniform(0.2, 3, len(group))


def leaf_values(parity, weighted, attempt):
    """Native values of a tree in which each document has its own leaf, and ours; None if the tree is too small."""
    rng = np.random.default_rng(attempt)
    group = np.array([5, 1, 8, 6, 4, 7, 3, 2, 6, 5, 4, 3, 5, 5])
    n = 64
    X = ((np.arange(n)[:, None] >> np.arange(6)) & 1).astype(float)
    labels = rng.choice([0, 0.25, 0.5, 0.75], n) if parity.probability else rng.integers(0, 5, n).astype(float)
    start = np.float32(rng.normal(size=n)).astype(float)
    weight = np.float32(rng.uniform(0.2, 3, len(group))) if weighted else None
    by_row = None if weight is None else np.repeat(weight, group)
    pool = Pool(X, labels, group_id=np.repeat(np.arange(len(group)), group), baseline=start, group_weight=by_row)
    model = CatBoost({
        **parity.params, "iterations": 1, "depth": 6, "learning_rate": 1, "l2_leaf_reg": 1.0, "random_strength": 0,
        "bootstrap_type": "No", "verbose": 0, "allow_writing_files": False, "thread_count": 1,
    }).fit(pool)  # fmt: skip
    if len(np.unique(model.calc_leaf_indexes(Pool(X)))) < n:
        return None
    grad, hess = parity.ours.gradient_hessian(start, labels, group, weight)
    scaled = 1.0 if by_row is None else by_row.mean()  # CatBoost's L2 grows with the mean weight
    native, ours = model.predict(X), -grad / (hess + scaled)
    return native - native.mean(), ours - ours.mean()  # its ranking losses centre the leaves


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("parity", PARITIES, ids=[f"{p.library}-{list(p.params.values())}" for p in PARITIES])
def test_the_preset_trains_like_the_native_objective(parity, weighted):
    if Version(__import__(parity.library).__version__) < Version(parity.since):
        pytest.skip(f"{parity.library} has it since {parity.since}")
    if parity.per_leaf:
        found = [v for v in (leaf_values(parity, weighted, attempt) for attempt in range(8)) if v is not None]
        assert found
        for native, ours in found:
            np.testing.assert_allclose(ours, native, rtol=0, atol=parity.tolerance)
        return
    data, weight = parity_data(parity)
    params = {"xgboost": {"max_depth": 4, "base_score": 0, "min_child_weight": 1},
              "lightgbm": {"num_leaves": 8, "min_sum_hessian_in_leaf": 1e-3, "seed": 0},
              "catboost": {**NEWTON, "leaf_estimation_method": "Gradient"}}[parity.library]  # fmt: skip
    how = {"params": params, "weight": weight if weighted else None}
    splits = {"newton_splits": False} if parity.library == "catboost" else {}
    native = trained(parity.library, "native", parity.params, *data, 25, **how).predict(data[0])
    ours = trained(parity.library, "callable", parity.ours, *data, 25, **how, **splits).predict(data[0])
    assert np.ptp(native) > 0.1
    assert np.abs(native - ours).max() < parity.tolerance * np.ptp(native)


@pytest.mark.parametrize(("library", "native", "ours", "params"), [
    ("lightgbm", "lambdarank", "lambdamart:preset=lightgbm", {"subsample": 0.6, "subsample_freq": 1}),
    ("lightgbm", "lambdarank", "lambdamart:preset=lightgbm", {"extra_trees": True, "feature_fraction_bynode": 0.6}),
    ("xgboost", "rank:ndcg", "lambdamart:preset=xgboost", {"subsample": 0.6, "colsample_bytree": 0.6}),
    ("xgboost", "rank:ndcg", "lambdamart:preset=xgboost", {"booster": "dart", "rate_drop": 0.3}),
])  # fmt: skip
def test_a_preset_draws_the_samples_of_the_native_objective(library, native, ours, params):
    (X, y, group), _ = data_of("any")
    expected, found = (ranker(library, o, **params).fit(X, y, group=group).predict(X) for o in (native, ours))
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.ptp(expected))


# a function of CatBoost that refuses a training with an object


def test_the_page_s_change_of_a_metric_is_that_of_catboost():
    (X, y, group), _ = data_of("any", queries=30)
    table = DataFrame(X).add_prefix("f").assign(colour="red")
    part = SimpleNamespace(y=y, group=group, qid=np.repeat(np.arange(len(group)), group))
    code = examples.block("docs/from_catboost.md", "ShapValues").replace('"map"', '"ndcg"')
    pool = Pool(table, y, group_id=part.qid, cat_features=["colour"])
    params = {"loss_function": "YetiRank:mode=NDCG", "iterations": 5, "verbose": 0, "allow_writing_files": False}
    model = CatBoost({**params, "thread_count": 1}).fit(pool)
    names = {"Pool": Pool, "table": lambda _: table, "test": part, "ranker": model}
    examples.run(code.replace("test.group)", "test.group, convention='catboost')"), names)
    expected = model.get_feature_importance(pool, type="LossFunctionChange")
    np.testing.assert_allclose(names["change"], expected, atol=1e-12)
    assert expected.max() > 0.01


@pytest.mark.parametrize(("metric", "gain"), [("NDCG", "linear"), ("NDCG;type=Exp", "exp")])
def test_stochasticrank_has_the_mean_of_catboost_s(metric, gain):
    ours = StochasticRank(NDCG(gain_type=gain), samples=1000)
    loss = {"loss_function": f"StochasticRank:metric={metric};num_estimations=1000"}
    values = (leaf_values(Parity("catboost", loss, ours, 0.005), False, attempt) for attempt in range(8))
    np.testing.assert_allclose(*next(v for v in values if v is not None), rtol=0, atol=0.005)


# other processes


(X, LABELS, GROUP), _ = data_of("any", queries=25)
LABELS = (LABELS > 0).astype(np.float32)
QID, SCORES = np.repeat(np.arange(25), GROUP), X[:, 0]


def compute(obj):
    """The bytes of all that one of our objects computes."""
    if isinstance(obj, Objective):
        found = obj.gradient_hessian(SCORES, LABELS, GROUP, iteration=7)
    elif isinstance(obj, Metric):
        found = obj.per_query(SCORES, LABELS, GROUP)
    elif obj.library.name == "catboost":
        pool = Pool(X, LABELS, group_id=QID)
        loss = {"loss_function": obj} if hasattr(obj, "calc_ders_range") else {"eval_metric": obj}
        quiet = {"iterations": 3, "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        model = CatBoost({"loss_function": "RMSE", "eval_metric": "NDCG", **quiet, **NEWTON, **loss}).fit(pool)
        found = model.predict(pool), repr(model.get_evals_result())
    else:
        found = (
            obj(LABELS, SCORES, None, GROUP)
            if obj.library.name == "lightgbm"
            else obj(SCORES, DMatrix(X, LABELS, qid=QID))
        )
    return [each.tobytes() if isinstance(each, np.ndarray) else repr(each) for each in found]


def test_objects_compute_the_same_bytes_in_another_process():
    pool, revenue = Pool(X, LABELS, group_id=QID), {"revenue": 1 - LABELS}
    objects = [
        adapters.xgboost_objective(PATHS["random"]), adapters.xgboost_metric("map", "mrr"),
        adapters.lightgbm_objective(PATHS["goals"], labels=revenue), adapters.lightgbm_metric("map", "mrr"),
        adapters.catboost_objective(PATHS["random"], pool), adapters.catboost_metric("map", pool),
        adapters.catboost_objective(PATHS["goals"], pool, labels=revenue), *OBJECTIVES.values(), *ONE_OF_EACH,
    ]  # fmt: skip
    expected = [compute(each) for each in objects]  # before they are pickled; their caches must stay here
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for each, here, there in zip(objects, expected, pool.map(compute, objects), strict=True):
            assert here == there, each


WITHOUT_US = """
import pickle, sys
sys.modules["ltr_objectives"] = None  # whoever imports it fails
import numpy as np
library, *files = sys.argv[1:]
module = __import__(library)
X, booster = pickle.load(open("pickled", "rb"))
rows = module.DMatrix(X) if library == "xgboost" else X
models = [module.CatBoost().load_model(f) if library == "catboost" else module.Booster(model_file=f) for f in files]
np.save("found.npy", [model.predict(rows) for model in (booster, *models)])
"""


@libraries
def test_models_without_this_package(library, tmp_path):
    data, stop = (X, LABELS, GROUP), {"valid": (X[::-1], LABELS, GROUP), "metric": "map", "stop": 1}
    ours = trained(library, "callable", PATHS["random"], *data)
    estimator = trained(library, "estimator", PATHS["random"], *data, 30, **stop)
    assert estimator.rounds < 30
    files = [f"{name}{SUFFIX[library]}" for name in ("ours", "estimator")]
    for name, each in zip(files, (ours, estimator), strict=True):
        each.model.save_model(str(tmp_path / name))
    (tmp_path / "pickled").write_bytes(pickle.dumps((X, estimator.model.booster_)))
    subprocess.run([sys.executable, "-c", WITHOUT_US, library, *files], check=True, cwd=tmp_path)
    expected = [each.predict(X) for each in (estimator, ours, estimator)]
    assert np.ptp(expected, axis=1).all()
    assert np.array_equal(np.load(tmp_path / "found.npy"), expected)


@libraries
def test_ctrl_c_is_a_keyboard_interrupt(library, monkeypatch):
    """Even if CatBoost turns it into its own error."""
    calls, fill = [], Recording.fill

    def interrupted(self, call):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        fill(self, call)

    monkeypatch.setattr(Recording, "fill", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker(library, Recording(), n_estimators=50).fit(X, LABELS, group=GROUP)
    assert len(calls) == 5

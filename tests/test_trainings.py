"""The contract of every training: (library, its own function or our estimator, path through the adapter)."""

import importlib
import itertools
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from catalog import EXAMPLES, METRICS, PARITIES, PATHS
from catboost import CatBoost, Pool
from generated import ranking
from packaging.version import Version
from rankers import LIBRARIES, NATIVE, fold, ranker
from recording import Recording
from trainings import EVERY_OBJECTIVE, NEWTON, WAYS, data_of, exact, release, trained

from ltr_objectives import adapters, evaluate

libraries = pytest.mark.parametrize("library", LIBRARIES)
ways = pytest.mark.parametrize("way", WAYS)
paths = pytest.mark.parametrize("path", PATHS)


# models


@libraries
@ways
@pytest.mark.parametrize("objective", [*PATHS, *EVERY_OBJECTIVE])
def test_it_learns(library, way, objective):
    data, given = data_of(objective)
    X, y, group = data_of("any")[0]
    model = trained(library, way, PATHS.get(objective, objective), *data, 10, **given)
    assert evaluate("ndcg@10", model.predict(X), y, group) > evaluate("ndcg@10", np.zeros(len(y)), y, group) + 0.1


@libraries
@ways
@pytest.mark.parametrize("metric", ["map", "mrr", "dcg@5", *release(["ndcg@5", "err", "recall@3", "auc"])])
def test_early_stopping_keeps_the_best_round(library, way, metric):
    valid, rate = data_of("any", seed=8)[0], {"learning_rate": 1.0}
    data = data_of("any")[0]
    model = trained(library, way, PATHS["own Hessian"], *data, 60, valid=valid, metric=metric, stop=5, params=rate)
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
    how = {"params": exact(library, way), **given}
    whole = trained(library, way, PATHS[path], X, y, group, 6, **how).predict(X)
    first = trained(library, way, PATHS[path], X, y, group, 3, **how)
    restarted = first._replace(model=pickle.loads(pickle.dumps(first.model)))
    assert np.ptp(whole) > 1e-3
    both = trained(library, way, PATHS[path], X, y, group, 3, before=restarted, **how).predict(X)
    np.testing.assert_array_equal(both, whole)


@libraries
def test_samples_of_rows_go_on_in_catboost_alone(library):
    """The same holds with a native objective."""
    options = {
        "xgboost": {"subsample": 0.6, "seed": 1},
        "lightgbm": {"bagging_fraction": 0.6, "bagging_freq": 1, "seed": 1},
        "catboost": {**NEWTON, "random_strength": 5, "bootstrap_type": "Bernoulli", "subsample": 0.6},
    }[library]
    X, y, qid = ranking(5, queries=40)
    native = {"loss_function": "QueryRMSE"} if library == "catboost" else {"objective": NATIVE[library]}
    for way, objective in (("native", native), ("callable", PATHS["own Hessian"])):
        data = library, way, objective, X, y, np.bincount(qid)
        whole, first = trained(*data, 8, params=options).predict(X), trained(*data, 3, params=options)
        assert np.array_equal(trained(*data, 8, params=options).predict(X), whole)
        both = trained(*data, 5, params=options, before=first).predict(X)
        assert np.array_equal(both, whole) == (library == "catboost")


@libraries
@pytest.mark.parametrize("objective", [*PATHS, *EVERY_OBJECTIVE])
def test_a_weight_of_w_is_w_copies(library, objective):
    found = PATHS.get(objective, objective).without_noise()
    if found is None:
        pytest.skip("nothing but noise, which differs between the copies of a query")
    (X, y, group), given = data_of(objective)
    X = np.round(3 * X)
    params = {
        "xgboost": {"tree_method": "exact", "min_child_weight": 0, "base_score": 0},
        "lightgbm": {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 1e-6, "max_bin": 500, "min_data_in_bin": 1,
                     "num_leaves": 4},
        "catboost": {**NEWTON, "l2_leaf_reg": 0},
    }[library]  # fmt: skip
    weight = np.random.default_rng(5).integers(1, 4, len(group))
    queries = np.split(np.arange(len(y)), np.cumsum(group)[:-1])
    rows = np.concatenate([np.tile(query, w) for query, w in zip(queries, weight, strict=True)])
    of_copies = {
        name: {goal: of[rows] for goal, of in values.items()} if name == "labels" else values[rows]
        for name, values in given.items()
    }
    how = {"params": params, "weight": weight.astype(float), **given}
    weighted = trained(library, "callable", found, X, y, group, 4, **how).predict(X[rows])
    copies = X[rows], y[rows], np.repeat(group, weight)
    copied = trained(library, "callable", found, *copies, 4, params=params, **of_copies).predict(X[rows])
    assert np.ptp(weighted) > 0
    np.testing.assert_allclose(weighted, copied, atol=1e-4 * np.ptp(weighted))


@libraries
@ways
@paths
def test_threads_change_no_byte(library, way, path):
    (X, y, group), given = data_of(path)
    how = {"params": exact(library, way), **given}
    one, two = (trained(library, way, PATHS[path], X, y, group, 4, threads=n, **how).predict(X) for n in (1, 2))
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


# other processes


(X, LABELS, GROUP), _ = data_of("any", queries=25)
LABELS = (LABELS > 0).astype(np.float32)
QID = np.repeat(np.arange(25), GROUP)
SCORES = X[:, 0]
PICKLERS = ("pickle", "cloudpickle", "joblib")


def compute(obj):
    """The bytes of all that an object of ours computes."""
    if hasattr(obj, "gradient_hessian"):
        found = obj.gradient_hessian(SCORES, LABELS, GROUP, iteration=7)
    elif hasattr(obj, "per_query"):
        found = obj.per_query(SCORES, LABELS, GROUP)
    elif type(obj).__name__.startswith("XGBoost"):
        import xgboost as xgb

        found = obj(SCORES, xgb.DMatrix(X, LABELS, qid=QID))
    elif type(obj).__name__.startswith("LightGBM"):
        found = obj(LABELS, SCORES, None, GROUP)
    else:
        pool = Pool(X, LABELS, group_id=QID)
        loss = {"loss_function": obj} if hasattr(obj, "calc_ders_range") else {"eval_metric": obj}
        quiet = {"iterations": 3, "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        model = CatBoost({"loss_function": "RMSE", "eval_metric": "NDCG", **quiet, **NEWTON, **loss}).fit(pool)
        found = model.predict(pool), repr(model.get_evals_result())
    return [each.tobytes() if isinstance(each, np.ndarray) else repr(each) for each in found]


def callables():
    for library in ("xgboost", "lightgbm"):
        yield getattr(adapters, f"{library}_objective")(PATHS["random"])
        yield getattr(adapters, f"{library}_metric")("map", "mrr")
    pool, goals = Pool(X, LABELS, group_id=QID), {"revenue": 1 - LABELS}
    yield from (adapters.catboost_objective(PATHS["random"], pool), adapters.catboost_metric("map", pool))
    yield adapters.catboost_objective(PATHS["goals"], pool, labels=goals)
    yield adapters.lightgbm_objective(PATHS["goals"], labels=goals)


THERE = """
import importlib, pathlib, pickle, sys
sys.path.insert(0, sys.argv[1])
import test_trainings as here
for pickler in here.PICKLERS:
    path = pathlib.Path(sys.argv[2], pickler)
    with path.open("rb") as file:
        objects = importlib.import_module(pickler).load(file)
    found = [here.compute(o) for o in objects], [repr(o) for o in objects]
    path.with_suffix(".there").write_bytes(pickle.dumps(found))
"""


def test_objects_compute_the_same_bytes_in_another_process(tmp_path):
    every = [*callables(), *itertools.chain(*EXAMPLES.values(), *METRICS.values())]
    expected = [compute(obj) for obj in every]  # before they are pickled; their caches must stay here
    sent = {pickler: every if pickler == "pickle" else every[:8] for pickler in PICKLERS}
    for pickler, objects in sent.items():
        with (tmp_path / pickler).open("wb") as file:
            importlib.import_module(pickler).dump(objects, file)
    subprocess.run([sys.executable, "-c", THERE, str(Path(__file__).parent), str(tmp_path)], check=True)
    for pickler, objects in sent.items():
        computed, printed = pickle.loads((tmp_path / f"{pickler}.there").read_bytes())
        assert printed == [repr(obj) for obj in objects]
        for obj, here, there in zip(objects, expected, computed, strict=False):
            assert here == there, (pickler, obj)


def test_every_protocol_of_pickle_carries_callables():
    for obj in callables():
        expected = compute(obj)  # its cache for this data is not sent
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert compute(pickle.loads(pickle.dumps(obj, protocol))) == expected


WITHOUT_US = """
import pickle, sys
from pathlib import Path
sys.modules["ltr_objectives"] = None  # whoever imports it fails
import numpy as np
library, X, *paths = sys.argv[1:]
X = np.load(X)

def read(path):
    if path.endswith(".pickle"):
        return pickle.loads(Path(path).read_bytes())
    if library == "catboost":
        import catboost
        return catboost.CatBoost().load_model(path)
    return __import__(library).Booster(model_file=path)

for path in paths:
    try:
        model = read(path)
    except ModuleNotFoundError as error:
        Path(path + ".error").write_text(str(error))
        continue
    rows = __import__(library).DMatrix(X) if library == "xgboost" else X
    np.save(path + ".npy", model.predict(rows))
"""


@libraries
def test_models_without_this_package(library, tmp_path):
    """The library's own files, those of our estimators, and pickles, all read in one process."""
    np.save(tmp_path / "X.npy", X)
    both = [trained(library, way, PATHS["random"], X, LABELS, GROUP) for way in WAYS]
    ours, ranker = (each.model for each in both)
    free, bound = [ranker.booster_], [ranker]  # of the estimator, and what holds an object of ours
    (bound if library == "catboost" else free).append(ours)
    if library == "lightgbm":
        import lightgbm as lgb

        own = {"objective": adapters.lightgbm_objective(PATHS["random"]), "metric": "None", "verbose": -1}
        bound.append(lgb.LGBMRanker(**own, n_estimators=5).fit(X, LABELS, group=GROUP))
    paths = []
    for i, model in enumerate((*free, *bound)):
        paths.append(tmp_path / f"{i}.pickle")
        paths[-1].write_bytes(pickle.dumps(model))
        if model is free[-1] or model is bound[0]:  # trained by the library, and by our estimator
            paths.append(tmp_path / f"{i}{'.ubj' if library == 'xgboost' else '.txt'}")
            model.save_model(str(paths[-1]))
    command = [sys.executable, "-c", WITHOUT_US, library, str(tmp_path / "X.npy"), *map(str, paths)]
    subprocess.run(command, check=True)
    for path in paths:
        model = (*free, *bound)[int(path.stem)]
        if path.suffix == ".pickle" and int(path.stem) >= len(free):
            assert "ltr_objectives" in path.with_name(f"{path.name}.error").read_text()
        else:
            rows = X if library != "xgboost" or model is ranker else __import__(library).DMatrix(X)
            expected = model.predict(rows)
            assert np.ptp(expected) > 0
            assert np.array_equal(np.load(f"{path}.npy"), expected)


# interrupts


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
@libraries
def test_ctrl_c_is_a_keyboard_interrupt(library, monkeypatch):
    """Even if CatBoost turns it into its own error."""
    data, calls = fold().train, []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def fill(self, call):
        calls.append(1)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
            for _ in range(1000):
                np.sort(np.arange(100))  # so that the interrupt is raised here
        call.grad[:] = call.scores - call.queries.labels

    monkeypatch.setattr(Recording, "fill", fill)
    try:
        with pytest.raises(KeyboardInterrupt):
            ranker(library, Recording(), n_estimators=50).fit(data.X, data.y, qid=data.qid)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) < 20

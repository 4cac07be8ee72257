"""Objects sent to other processes compute the same bytes there; saved models do not need this package."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from catalog import EXAMPLES, METRICS

from ltr_objectives import adapters, registry

PICKLERS = ["pickle", "cloudpickle", "joblib"]
RNG = np.random.default_rng(3)
GROUP = RNG.integers(1, 12, 25)
QID = np.repeat(np.arange(25), GROUP)
LABELS = RNG.integers(0, 2, len(QID)).astype(np.float32)
SCORES = RNG.normal(size=len(QID)).astype(np.float32)


def compute(obj):
    """The bytes of all that an object of ours computes."""
    if hasattr(obj, "gradient_hessian"):
        return b"".join(a.tobytes() for a in obj.gradient_hessian(SCORES, LABELS, GROUP, iteration=7))
    if hasattr(obj, "per_query"):
        return obj.per_query(SCORES, LABELS, GROUP).tobytes()
    if type(obj).__name__.startswith("XGBoost"):
        import xgboost as xgb

        found = obj(SCORES, xgb.DMatrix(np.zeros((len(QID), 1)), LABELS, qid=QID))
    elif type(obj).__name__.startswith("LightGBM"):
        found = obj(LABELS, SCORES, None, GROUP)
    else:
        return catboost_model(obj)
    return b"".join(a.tobytes() for a in found) if isinstance(found, tuple) else repr(found).encode()


def pool():
    import catboost

    return catboost.Pool(SCORES[:, None], LABELS, group_id=QID)


def catboost_model(obj):
    import catboost

    ours = {"loss_function": obj} if hasattr(obj, "calc_ders_range") else {"loss_function": "RMSE", "eval_metric": obj}
    params = {"eval_metric": "NDCG", "leaf_estimation_method": "Newton", **ours}
    model = catboost.CatBoost(
        {**params, "iterations": 3, "depth": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    ).fit(pool())
    return model.predict(pool()).tobytes() + repr(model.get_evals_result()).encode()


def objects():
    """Every objective and metric, and each adapter."""
    for name in registry.objectives():
        yield from EXAMPLES[name]
    for name in registry.metrics():
        yield from METRICS[name]
    for library in ("xgboost", "lightgbm"):
        pytest.importorskip(library)
        yield getattr(adapters, f"{library}_objective")("yetiloss:map")
        yield getattr(adapters, f"{library}_metric")("map", "mrr")
    pytest.importorskip("catboost")
    yield from (adapters.catboost_objective("yetiloss:map", pool()), adapters.catboost_metric("map", pool()))


def dump(pickler, value, path):
    if pickler == "joblib":
        pytest.importorskip("joblib").dump(value, path)
    else:
        path.write_bytes(pytest.importorskip(pickler).dumps(value))


def load(pickler, path):
    return pytest.importorskip("joblib").load(path) if pickler == "joblib" else pickle.loads(path.read_bytes())


THERE = """
import pathlib, pickle, sys
sys.path.insert(0, sys.argv[1])
import test_persistence as here
for pickler, path in zip(sys.argv[2::2], sys.argv[3::2]):
    objects = here.load(pickler, pathlib.Path(path))
    computed = [here.compute(o) for o in objects]
    pathlib.Path(path + ".there").write_bytes(pickle.dumps((computed, [repr(o) for o in objects])))
"""


def test_the_same_bytes_in_another_process(tmp_path):
    used = list(objects())
    expected = [compute(obj) for obj in used]  # before they are pickled; their caches must stay here
    arguments = []
    for pickler in PICKLERS:
        dump(pickler, used, tmp_path / pickler)
        arguments += [pickler, str(tmp_path / pickler)]
    subprocess.run([sys.executable, "-c", THERE, os.path.dirname(__file__), *arguments], check=True)
    for pickler in PICKLERS:
        computed, printed = pickle.loads((tmp_path / f"{pickler}.there").read_bytes())
        assert printed == [repr(obj) for obj in used]
        for obj, here, there in zip(used, expected, computed, strict=True):
            assert here == there, (pickler, obj)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle(protocol):
    for obj in objects():
        if "adapters" in type(obj).__module__:
            expected = compute(obj)  # its cache for this data is not sent
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


def pickled(library):
    """Models that users pickle: those that need nothing of ours, then those that hold an object of ours."""
    module = pytest.importorskip(library)
    pytest.importorskip("sklearn")
    from ltr_objectives import adapters

    X = np.stack([SCORES, LABELS], axis=1)
    options = {"objective": "yetiloss:map", "n_estimators": 5, **({"verbose": -1} if library == "lightgbm" else {})}
    ranker = getattr(
        adapters, {"xgboost": "XGBRanker", "lightgbm": "LGBMRanker", "catboost": "CatBoostRanker"}[library]
    )
    ranker = ranker(**options).fit(X, LABELS, qid=QID)
    if library == "xgboost":
        d, ours = module.DMatrix(X, LABELS, qid=QID), adapters.xgboost_objective("yetiloss:map")
        return [ranker.booster_, module.train({"max_depth": 2}, d, 5, obj=ours)], [ranker]
    objective = {"objective": adapters.lightgbm_objective("yetiloss:map"), "min_child_samples": 5, "verbose": -1}
    if library == "lightgbm":
        own = module.LGBMRanker(**objective, n_estimators=5, metric="None").fit(X, LABELS, group=GROUP)
        return [ranker.booster_, module.train(objective, module.Dataset(X, LABELS, group=GROUP), 5)], [ranker, own]
    params = {
        "loss_function": adapters.catboost_objective("yetiloss:map", pool()),
        "eval_metric": "NDCG",
        "iterations": 5,
    }
    params |= {"leaf_estimation_method": "Newton", "verbose": False, "allow_writing_files": False}
    return [ranker.booster_], [ranker, module.CatBoost(params).fit(pool())]


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_models_without_this_package(library, tmp_path):
    """The library's own files, those of our estimators, and pickles, all read in one process."""
    X = np.stack([SCORES, LABELS], axis=1)
    np.save(tmp_path / "X.npy", X)
    free, bound = pickled(library)
    ending, paths, rows = ".ubj" if library == "xgboost" else ".txt", [], X
    if library == "xgboost":
        rows = pytest.importorskip("xgboost").DMatrix(X)
    for i, model in enumerate((*free, *bound)):
        paths.append(tmp_path / f"{i}.pickle")
        paths[-1].write_bytes(pickle.dumps(model))
        if model is free[-1] or model is bound[0]:  # trained by the library, and by our estimator
            paths.append(tmp_path / f"{i}{ending}")
            model.save_model(str(paths[-1]))
    command = [sys.executable, "-c", WITHOUT_US, library, str(tmp_path / "X.npy"), *map(str, paths)]
    subprocess.run(command, check=True)
    for path in paths:
        model = (*free, *bound)[int(path.stem)]
        if path.suffix == ".pickle" and int(path.stem) >= len(free):
            assert "ltr_objectives" in path.with_name(f"{path.name}.error").read_text()
            continue
        expected = model.predict(X if int(path.stem) >= len(free) else rows)
        assert np.ptp(expected) > 0
        assert np.array_equal(np.load(f"{path}.npy"), expected)

"""Scripts of a new user, one for each library: train in one process, use the model in others."""

import os
import subprocess
import sys

import pytest
from rankers import LIBRARIES, SUFFIX

pytest.importorskip("pandas")
pytest.importorskip("joblib")

TRAIN = """
import joblib, numpy as np, pandas as pd, warnings
from ltr_objectives import evaluate
from ltr_objectives.adapters import {ranker}
from ltr_objectives.datasets import make_ranking_fold

def table(data):
    frame = pd.DataFrame(data.X, columns=[f"feature_{{i}}" for i in range(data.X.shape[1])])
    return frame.assign(market=pd.Categorical(np.where(data.X[:, 0] > 0, "home", "abroad")))

train, valid, test = make_ranking_fold((80, 30, 30), seed=0, features=12, mean_length=20)
ranker = {ranker}(objective="yetiloss:map", eval_metric="map", n_estimators=200, learning_rate=0.3, {threads}=1)
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "numpy.ufunc size changed")  # CatBoost 1.2.0
ranker.fit(
    table(train), pd.Series(train.y), qid=train.qid,
    eval_set=[(table(valid), valid.y)], eval_qid=[valid.qid], early_stopping_rounds=10,
)
curve = ranker.evals_result_["validation_0"]["map"]
assert 0 < ranker.best_iteration_ < 200 and len(curve) == ranker.best_iteration_ + 10
assert curve[ranker.best_iteration_ - 1] == max(curve)
scores = ranker.predict(table(test))
constant = evaluate("map", np.zeros(len(test.y)), test.y, test.group)
assert ranker.score(table(test), test.y, qid=test.qid) == evaluate("map", scores, test.y, test.group) > constant + 0.05
ranker.save_model("model{suffix}")
joblib.dump(ranker, "ranker.joblib")
table(test).to_pickle("table.pkl")
np.save("scores.npy", scores)
"""
USE = """
import joblib, numpy as np, pandas as pd, warnings
from ltr_objectives.adapters import {ranker}

X, scores = pd.read_pickle("table.pkl"), np.load("scores.npy")
loaded = {ranker}()
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "numpy.ufunc size changed")  # CatBoost 1.2.0
loaded.load_model("model{suffix}")
assert np.array_equal(loaded.predict(X), scores)
assert np.array_equal(joblib.load("ranker.joblib").predict(X), scores)
print(loaded.best_iteration_, "rounds read")
"""


def test_train_save_and_read_in_a_fresh_process(tmp_path):
    """The scripts of the three libraries one after another in one process, and then all that read in another."""
    scripts = {TRAIN: [], USE: []}
    for library, (name, options) in LIBRARIES.items():
        pytest.importorskip(library)
        (tmp_path / library).mkdir()
        threads = next(option for option in options if option in ("n_jobs", "thread_count"))
        for script, codes in scripts.items():
            code = script.format(ranker=name, suffix=SUFFIX[library], threads=threads)
            codes.append(f"import os\nos.chdir({str(tmp_path / library)!r})\n{code}")
    for codes in scripts.values():
        done = subprocess.run(
            [sys.executable, "-c", "".join(codes)], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert done.stdout.count("rounds read") == 3
    for library in LIBRARIES:
        files = {path.name for path in (tmp_path / library).iterdir()}
        assert files == {f"model{SUFFIX[library]}", "ranker.joblib", "scores.npy", "table.pkl"}

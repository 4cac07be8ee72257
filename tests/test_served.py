"""A model that leaves: the library alone serves it, in a process without this package."""

import pickle
import subprocess
import sys

import numpy as np
import pandas
import pytest
from rankers import SUFFIX, everywhere, ranker

from ltr_objectives.adapters import bagged

QUERIES, LENGTH = 40, 15
SERVE = """
import importlib, pickle, sys
library, path, requests = pickle.load(sys.stdin.buffer)
module = importlib.import_module(library)
models = [pickle.load(open(path + ".pickle", "rb"))]
if library == "catboost":
    models.append(module.CatBoost().load_model(path))
else:
    models.append(module.Booster(model_file=path))
rows = (lambda X: module.DMatrix(X, enable_categorical=True)) if library == "xgboost" else (lambda X: X)
scores = [[model.predict(rows(X)) for X in requests] for model in models]
assert "ltr_objectives" not in sys.modules
sys.stdout.buffer.write(pickle.dumps(scores))
"""


def shop(seed=0):
    """Products with text and whole numbers as categories, whole numbers above 2^31, bools and missing values."""
    rng, n = np.random.default_rng(seed), QUERIES * LENGTH
    brand, shelf, price = rng.choice(list("abcdefgh"), n), rng.choice([3, 5, 8, 13], n), rng.normal(size=n)
    sold, new = 2**33 + 1000 * rng.integers(0, 20, n), rng.random(n) < 0.5
    relevance = np.isin(brand, ["b", "e"]) * 2.0 + (shelf == 8) + (sold > 2**33 + 9000) + new + price
    X = pandas.DataFrame({
        "price": np.where(rng.random(n) < 0.1, np.nan, price), "sold": sold, "new": new,
        "brand": pandas.Categorical(brand), "shelf": pandas.Categorical(shelf),
    })  # fmt: skip
    y = np.clip(np.round(relevance + rng.normal(0, 0.3, n)), 0, 4).astype(int)
    return X, y, np.repeat(np.arange(QUERIES), LENGTH)


X, Y, QID = shop()
Z, z, _ = shop(1)


def requests():
    """Tables of single queries, whose categories are those that occur in them, from the last to the first."""
    for query in range(6):
        rows = Z[QID == query]
        found = {c: rows[c].cat.remove_unused_categories() for c in ("brand", "shelf")}
        yield rows.assign(**{c: x.cat.reorder_categories(x.cat.categories[::-1]) for c, x in found.items()})


def by_early_stopping(library, **params):
    fitted = ranker(library, eval_metric="ndcg@10", **{"n_estimators": 60, "learning_rate": 0.5, **params})
    fitted.fit(X, Y, qid=QID, eval_set=[(Z, z)], eval_qid=[QID], early_stopping_rounds=3)
    assert fitted.best_iteration_ < 60
    return fitted


def in_bags(library):
    return bagged(ranker(library, early_stopping_rounds=2), X, Y, qid=QID, bags=2)


def continued(library):
    return by_early_stopping(library, n_estimators=30).fit(X, Y, qid=QID, init_model=by_early_stopping(library))


def kept_by_a_callback(library):
    """XGBoost's own early stopping cuts the model itself."""
    import xgboost as xgb

    stop = xgb.callback.EarlyStopping(rounds=3, save_best=True, maximize=True)
    data = {"eval_set": [(Z, z)], "eval_qid": [QID], "callbacks": [stop]}
    return ranker(library, eval_metric="ndcg@10", n_estimators=60, learning_rate=0.5).fit(X, Y, qid=QID, **data)


def stored_whole(library, tmp_path):
    """A file of XGBoost's own training, with the rounds after the best one."""
    import xgboost as xgb

    train, valid = (
        xgb.DMatrix(table, labels, qid=QID, enable_categorical=True) for table, labels in ((X, Y), (Z, z))
    )
    model = xgb.train(
        {"objective": "rank:ndcg", "learning_rate": 0.5}, train, 60, evals=[(valid, "valid")],
        early_stopping_rounds=3, verbose_eval=False,
    )  # fmt: skip
    model.save_model(tmp_path / "whole.json")
    return ranker(library).load_model(tmp_path / "whole.json")


def served(library, fitted, folder):
    """The scores of the file and of the pickled model, by the library alone."""
    path, tables = str(folder / f"model{SUFFIX[library]}"), list(requests())
    fitted.save_model(path)
    with open(path + ".pickle", "wb") as file:
        pickle.dump(fitted.booster_, file)
    asked = pickle.dumps((library, path, tables))
    done = subprocess.run([sys.executable, "-c", SERVE], input=asked, stdout=subprocess.PIPE, check=True, cwd=folder)
    return pickle.loads(done.stdout), [fitted.predict(Z)[QID == query] for query in range(len(tables))]


def same_scores(library, fitted, folder):
    found, expected = served(library, fitted, folder)
    assert np.ptp(np.concatenate(expected)) > 0.5
    for scores in found:
        for ours, theirs in zip(scores, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@everywhere
@pytest.mark.parametrize("made", [by_early_stopping, in_bags, continued])
def test_the_library_alone_serves_requests_with_few_categories(library, made, tmp_path):
    if library == "catboost" and made is in_bags:
        pytest.skip("CatBoost cannot merge statistics of the same categories")
    same_scores(library, made(library), tmp_path)


def test_xgboost_serves_models_that_were_cut(tmp_path):
    same_scores("xgboost", kept_by_a_callback("xgboost"), tmp_path)
    same_scores("xgboost", stored_whole("xgboost", tmp_path), tmp_path)

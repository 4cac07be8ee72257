"""A model that leaves: the library alone serves it, in a process without this package."""

import pickle
import subprocess
import sys

import catboost
import examples
import numpy as np
import pandas as pd
import pytest
from generated import shop
from rankers import SUFFIX, everywhere, ranker

from ltr_objectives.adapters import bagged

SERVE = """
import importlib, pickle, sys
import catboost
import examples
import numpy as np
import pandas as pd
import pytest
sys.modules["ltr_objectives"] = None  # an import is an error
library, paths, requests = pickle.load(sys.stdin.buffer)
module = importlib.import_module(library)
read = lambda path: module.CatBoost().load_model(path) if library == "catboost" else module.Booster(model_file=path)
rows = (lambda X: module.DMatrix(X, enable_categorical=True)) if library == "xgboost" else (lambda X: X)
models = [(read(path), pickle.load(open(path + ".pickle", "rb"))) for path in paths]
scores = [[np.concatenate([model.predict(rows(X)) for X in requests]) for model in each] for each in models]
sys.stdout.buffer.write(pickle.dumps(scores))
"""


X, Y, QID = shop()
Z, z, _ = shop(1)


def requests():
    """Yield tables of single queries, whose categories are those that occur in them, from the last to the first."""
    for query in range(6):  # the first rows
        rows = Z[query == QID]
        found = {c: rows[c].cat.remove_unused_categories() for c in ("brand", "shelf")}
        yield rows.assign(**{c: x.cat.reorder_categories(x.cat.categories[::-1]) for c, x in found.items()})


def by_early_stopping(library, **params):
    fitted = ranker(library, eval_metric="ndcg@10", **{"n_estimators": 60, "learning_rate": 0.5, **params})
    fitted.fit(X, Y, qid=QID, eval_set=[(Z, z)], eval_qid=[QID], early_stopping_rounds=3)
    assert fitted.best_iteration_ < 60
    return fitted


def continued(library):
    return by_early_stopping(library, n_estimators=30).fit(X, Y, qid=QID, init_model=by_early_stopping(library))


def kept_by_a_callback(library):
    """Train with XGBoost's own early stopping, which cuts the model itself."""
    import xgboost as xgb

    stop = xgb.callback.EarlyStopping(rounds=3, save_best=True, maximize=True)
    data = {"eval_set": [(Z, z)], "eval_qid": [QID], "callbacks": [stop]}
    return ranker(library, eval_metric="ndcg@10", n_estimators=60, learning_rate=0.5).fit(X, Y, qid=QID, **data)


def stored_whole(library, tmp_path):
    """Return a file of XGBoost's own training, with the rounds after the best one."""
    import xgboost as xgb

    train, valid = (xgb.DMatrix(table, labels, qid=QID, enable_categorical=True) for table, labels in ((X, Y), (Z, z)))
    model = xgb.train(
        {"objective": "rank:ndcg", "learning_rate": 0.5}, train, 60, evals=[(valid, "valid")],
        early_stopping_rounds=3, verbose_eval=False,
    )  # fmt: skip
    model.save_model(tmp_path / "whole.json")
    return ranker(library).load_model(tmp_path / "whole.json")


def served(library, fitted, folder):
    """Return the scores of the file of each ranker, and of its pickled model, by the library alone."""
    paths, tables = [str(folder / f"{i}{SUFFIX[library]}") for i in range(len(fitted))], list(requests())
    for each, path in zip(fitted, paths, strict=True):
        each.save_model(path)
        with open(path + ".pickle", "wb") as file:
            pickle.dump(each.booster_, file)
    asked = pickle.dumps((library, paths, tables))
    done = subprocess.run([sys.executable, "-c", SERVE], input=asked, stdout=subprocess.PIPE, check=True, cwd=folder)
    return pickle.loads(done.stdout)


@everywhere
def test_the_library_alone_serves_requests_with_few_categories(library, tmp_path):
    fitted = [by_early_stopping(library), continued(library)]
    if library != "catboost":  # which cannot merge statistics of the same categories
        fitted.append(bagged(ranker(library, early_stopping_rounds=2), X, Y, qid=QID, bags=2))
    if library == "xgboost":
        fitted += [kept_by_a_callback(library), stored_whole(library, tmp_path)]
    for each, found in zip(fitted, served(library, fitted, tmp_path), strict=True):
        expected = each.predict(Z)[: len(found[0])]
        assert np.ptp(expected) > 0.5
        for scores in found:
            np.testing.assert_array_equal(scores, expected)


def test_the_example_encodes_requests_as_the_training_did(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples.run(examples.script("fast_requests"), {})
    assert capsys.readouterr().out == "True\n"


@everywhere
def test_a_pair_is_explained_by_the_names_of_a_table(library):
    """Whose query ids are a column, and whose index has text."""
    fitted = by_early_stopping(library, n_estimators=10)
    code = examples.block("docs/serving.md", "def explain_pair").partition("\nfirst, second")[0]
    examples.run(code, names := {"np": np, "pd": pd})
    found = {
        "xgboost": lambda: fitted.predict(Z, pred_contribs=True),
        "lightgbm": lambda: fitted.predict(Z, pred_contrib=True),
        "catboost": lambda: fitted.get_feature_importance(
            catboost.Pool(Z, cat_features=["brand", "shelf"]), type="ShapValues"
        ),
    }[library]()
    table = Z.assign(qid=QID).set_axis([f"item {i}" for i in range(len(Z))])
    explained = names["explain_pair"](found, table, 7, 3)
    scores = fitted.predict(Z)
    assert explained["contribution"].sum() == pytest.approx(scores[7] - scores[3], rel=1e-3)
    assert explained.loc[list(Z), "value_i"].tolist() == Z.iloc[7].tolist()

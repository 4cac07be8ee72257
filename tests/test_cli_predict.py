"""``ltr-objectives predict``: the scores are the library's own, row by row, however many features the file has."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from commands import fails, library_predicts, run, run_json, write_letor
from rankers import SUFFIX

from ltr_objectives import LTRError
from ltr_objectives.adapters import LGBMRanker
from ltr_objectives.datasets import RankingData, make_ranking_fold

TRAIN, VALI, TEST = make_ranking_fold((20, 8, 8), features=10, mean_length=10)
WIDE = np.hstack([TEST.X, np.ones((len(TEST.y), 2), np.float32)])  # features beyond those of any model


@pytest.fixture(autouse=True)
def folder(workplace):
    X, y, group, qid = TEST
    files = {"train": TRAIN, "vali": VALI, "test": TEST, "unlabelled": RankingData(X, np.zeros_like(y), group, qid)}
    files |= {"narrow": RankingData(X[:, :7], y, group, qid), "wide": RankingData(WIDE, y, group, qid)}
    for name, part in files.items():
        write_letor(workplace / f"{name}.txt", part)
    return workplace


def train(library, **changed):
    pytest.importorskip(library)
    options = {"library": library, "data": ".", "out": f"model{SUFFIX[library]}", "trees": 10, "threads": 1, **changed}
    found = run_json("train", *(text for name, value in options.items() for text in (f"--{name}", value)))
    return options["out"], found


@pytest.mark.parametrize("library", list(SUFFIX))
def test_from_training_to_metrics(library):
    model, trained = train(library)
    for data in ("test.txt", "unlabelled.txt"):
        found = run_json("predict", "--model", model, "--data", data, "--out", "scores.npy")
        assert found == {
            "library": library, "model": model, "trees": trained["trees"], "rows": len(TEST.y), "queries": 8,
            "scores": "scores.npy", "notes": [],
        }  # fmt: skip
        np.testing.assert_allclose(np.load("scores.npy"), library_predicts(library, model, TEST.X), rtol=1e-12)
    printed = run("predict", "--model", model, "--data", "test.txt", "--out", "scores.txt")
    assert printed.startswith(f"{library}, {trained['trees']} trees: {len(TEST.y)} rows in 8 queries")
    assert np.array_equal(np.loadtxt("scores.txt"), np.load("scores.npy"))
    for scores in ("scores.npy", "scores.txt"):
        found = run_json("evaluate", "--metric", "ndcg@10,map,mrr", "--data", "test.txt", "--scores", scores)
        assert found["metrics"] == pytest.approx(trained["test"])


@pytest.mark.parametrize("library", list(SUFFIX))
def test_features_that_the_file_or_the_model_does_not_have(library):
    model, _ = train(library)
    zeros = TEST.X * (np.arange(10) < 7)
    for data, same, note in (
        ("narrow", zeros, "the model has 10 features, the data 7: those missing are 0"),
        ("wide", TEST.X, "the model has 10 features, the data 12: those beyond are left out"),
    ):
        given = ["predict", "--model", model, "--data", f"{data}.txt", "--out", "scores.npy"]
        if library == "lightgbm":
            assert run_json(*given)["notes"] == [note]
        assert f"note: {note}\n" in run(*given)
        np.testing.assert_allclose(np.load("scores.npy"), library_predicts(library, model, same), rtol=1e-12)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "none.txt"}, "--model none.txt does not exist"),
        ({"model": "test.txt"}, "test.txt is not a whole LightGBM model"),
        ({"model": "test.txt", "library": "xgboost"}, "xgboost: "),
        ({"model": "test.txt", "library": "catboost"}, "catboost: "),
        ({"data": "."}, "is a folder; pass one LETOR file"),
        ({"data": "broken.txt"}, "broken.txt cannot be read"),
        ({"out": "scores.csv"}, "--out scores.csv must end with .npy or .txt for scores"),
        ({"out": "../{here}/test.txt"}, "is also an input; name another"),
        ({"out": "linked.txt"}, "--out linked.txt is also an input, model.txt; name another"),
        (
            {"model": "cut.txt"},
            "cut.txt is not a whole LightGBM model; save or copy it again",
        ),
    ],
)
def test_errors_are_one_line(folder, changed, message):
    pytest.importorskip(changed.get("library", "lightgbm"))
    (folder / "broken.txt").write_text("1 1:1\n")
    (folder / "model.txt").write_text("tree\n")
    (folder / "cut.txt").write_text("tree\n")
    (folder / "linked.txt").hardlink_to("model.txt")
    before = {path: path.read_bytes() for path in folder.glob("*.txt")}
    options = {"model": "model.txt", "data": "test.txt", "out": "scores.npy", **changed}
    given = (text.format(here=folder.name) for name, value in options.items() for text in (f"--{name}", value))
    assert message in fails("predict", *given)
    assert not (folder / "scores.npy").exists()
    assert before == {path: path.read_bytes() for path in folder.glob("*.txt")}


def test_a_model_cut_short_anywhere_is_refused():
    train("lightgbm")
    whole = Path("model.txt").read_bytes()
    kept = whole.index(b"end of parameters") + len("end of parameters")  # pandas' categories follow, here none
    beyond = whole.index(b"pandas_categorical:")
    sizes = {1, *range(5, len(whole) - 1, 499), *range(kept - 3, len(whole) - 1)} - set(range(kept, beyond + 1))
    crlf = whole.replace(b"\n", b"\r\n")  # as git's autocrlf leaves it
    for cut in (*(whole[:size] for size in sizes), crlf[:6], crlf[:999], crlf):
        Path("cut.txt").write_bytes(cut)
        with pytest.raises(LTRError, match=r"cut\.txt is not a whole LightGBM model"):
            LGBMRanker().load_model("cut.txt")
    with pytest.raises(LTRError, match="load_model"):
        LGBMRanker().fit(TEST.X, TEST.y, group=TEST.group, init_model="cut.txt")


@pytest.mark.parametrize(
    "changed",
    [
        {"linear_tree": True},
        {"boosting": "dart", "monotone_constraints": [1] + [0] * 9},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"min_data_in_leaf": 10_000},
        {"categorical_feature": [1], "max_bin": 15},
    ],
)
def test_whole_models_of_every_kind_are_read(changed):
    lightgbm = pytest.importorskip("lightgbm")
    of_the_data = {name: changed.pop(name) for name in ("categorical_feature",) if name in changed}
    X = np.abs(TRAIN.X.round()) if of_the_data else TRAIN.X
    params = {"objective": "regression", "verbose": -1, "num_threads": 1, **changed}
    data = lightgbm.Dataset(X, TRAIN.y, **of_the_data)
    lightgbm.train(params, data, 3).save_model("a.txt")
    lightgbm.Booster(model_file="a.txt").save_model("b.txt")  # read and written again
    for path in ("a.txt", "b.txt"):
        found = LGBMRanker().load_model(path).predict(X)
        assert np.array_equal(found, lightgbm.Booster(model_file=path).predict(X))


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no pipes as files")
def test_data_may_come_through_a_pipe(folder):
    model, _ = train("lightgbm")
    (folder / "test.txt.gz").write_bytes(gzip.compress((folder / "test.txt").read_bytes()))
    given = f"{sys.executable} -m ltr_objectives predict --model {model} --out"
    script = f"{given} piped.txt --data <(zcat test.txt.gz)"
    run("predict", "--model", model, "--out", "plain.txt", "--data", "test.txt")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert (folder / "piped.txt").read_bytes() == (folder / "plain.txt").read_bytes()


def test_a_model_that_is_no_ranker_is_refused():
    lightgbm = pytest.importorskip("lightgbm")
    classes = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
    lightgbm.train(classes, lightgbm.Dataset(TRAIN.X, TRAIN.y % 3), 1).save_model("model.txt")
    given = ["predict", "--model", "model.txt", "--data", "test.txt", "--out", "scores.npy"]
    assert "--model model.txt has several outputs a row; a ranker has one" in fails(*given)

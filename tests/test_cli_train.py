"""``ltr-objectives train``: the file that it writes is the library's, and its predictions have the printed metrics."""

import os
import sys

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from commands import fails, library_predicts, run, run_json, write_letor
from rankers import NATIVE, SUFFIX

from ltr_objectives import evaluate
from ltr_objectives.datasets import RankingData, make_ranking_fold
from ltr_objectives.workbench.cli import options

FOLD = make_ranking_fold((40, 15, 15), features=10, mean_length=15)
OPTIONS = ["--trees", 40, "--learning-rate", 0.3, "--patience", 5, "--threads", 1]
DEPTH = {"xgboost": "max_depth=3", "lightgbm": "num_leaves=7", "catboost": "depth=3"}


@pytest.fixture(autouse=True)
def folder(workplace):
    for name, part in zip(("train", "vali", "test"), FOLD, strict=True):
        write_letor(workplace / f"{name}.txt", part)
    return workplace


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("library", list(SUFFIX))
def test_the_model_predicts_what_the_table_says(library, own, folder):
    pytest.importorskip(library)
    objective = "yetiloss:map" if own else NATIVE[library]
    model = f"model{SUFFIX[library]}"
    found = run_json(
        "train", "--library", library, "--data", folder, "--out", model, "--objective", objective,
        "--metric", "map,ndcg@5", "--convention", "lightgbm", "--param", DEPTH[library], *OPTIONS,
    )  # fmt: skip
    assert (found["library"], found["objective"], found["model"]) == (library, objective, model)
    assert 0 < found["trees"] < 40  # stopped early
    for name, part in (("vali", FOLD.vali), ("test", FOLD.test)):
        scores = library_predicts(library, model, part.X)
        expected = {m: evaluate(m, scores, part.y, part.group, convention="lightgbm") for m in ("map", "ndcg@5")}
        assert found[name] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("objective", "metrics"),
    [
        ("yetiloss:map", ["map", "ndcg@10", "mrr"]),
        ("yetiloss:ndcg@10", ["ndcg@10", "map", "mrr"]),
        ("ranknet", ["ndcg", "ndcg@10", "map", "mrr"]),
        ("lambdarank", ["ndcg@10", "map", "mrr"]),
    ],
)
def test_without_metric_the_training_stops_where_the_estimator_does(folder, objective, metrics):
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--data", folder, "--out", "model.txt", "--objective", objective, *OPTIONS]
    found = run_json("train", *given)
    assert list(found["vali"]) == metrics
    assert found == {**run_json("train", "--metric", ",".join(metrics), *given), "seconds": found["seconds"]}


def test_parts_may_be_files_of_their_own_with_fewer_features(folder):
    pytest.importorskip("lightgbm")
    X, y, group, qid = FOLD.test
    X = np.where(np.arange(10) < 8, X, 0)  # zeros at the end are not written
    write_letor(folder / "narrow.txt", RankingData(X, y, group, qid))
    found = run_json(
        "train", "--library", "lightgbm", "--train", "train.txt", "--test", "narrow.txt", "--out", "model.txt", *OPTIONS
    )
    assert "vali" not in found
    assert found["trees"] == 40  # without vali it cannot stop early
    scores = library_predicts("lightgbm", "model.txt", X)
    assert found["test"]["map"] == pytest.approx(evaluate("map", scores, y, group))


def test_output_of_the_library_is_no_part_of_the_result(folder):
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--data", folder, "--out", "m.txt", "--param", "verbose=1", *OPTIONS]
    assert "[LightGBM] [Info]" in run("train", *given)
    assert run_json("train", *given)["trees"] > 0


def test_parameters_reach_the_library(folder):
    pytest.importorskip("lightgbm")
    given = ["--param", "num_leaves=2", "--param", "boosting=dart", "--param", "deterministic=true", *OPTIONS]
    run("train", "--library", "lightgbm", "--train", "train.txt", "--out", "model.txt", *given)
    text = (folder / "model.txt").read_text()
    for setting in ("[num_leaves: 2]", "[boosting: dart]", "[deterministic: 1]", "[num_threads: 1]"):
        assert setting in text
    assert "num_leaves=3" not in text


def test_people_get_a_table(folder):
    pytest.importorskip("xgboost")
    lines = run("train", "--library", "xgboost", "--data", folder, "--out", "model.ubj", *OPTIONS).splitlines()
    words = [line.split() for line in lines]
    assert lines[0].startswith(f"train {len(FOLD.train.y)} rows in 40 queries")
    assert ["ndcg@10", "map", "mrr"] in words
    assert [row[0] for row in words if len(row) == 4] == ["vali", "test"]
    assert "kept by vali ndcg@10" in lines[-1]
    assert lines[-1].endswith("written to model.ubj")


@pytest.mark.parametrize("value", ["1" + "+1" * 20_000, "[" * 5_000, "-" * 20_000 + "1", "{[]: 1}", "1 +", "word"])
def test_a_value_that_is_no_literal_of_python_is_text(folder, value):
    assert options.python_value(value) == value
    said = fails("train", "--library", "lightgbm", "--train", folder / "train.txt", "--out", "m.txt", "--param",
                 f"nonsense={value}", *OPTIONS)  # fmt: skip
    assert "nonsense" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "model.json", "--train", "train.txt"], "--out model.json must end with .txt for lightgbm"),
        (["--out", "folder.txt", "--train", "train.txt"], "--out folder.txt cannot be written"),
        (["--out", "train.txt", "--train", "train.txt"], "--out train.txt is also an input; name another"),
        (["--out", "linked.txt", "--data", "."], "--out linked.txt is also an input, test.txt; name another"),
        (["--data", "train.txt"], "is a file; pass it as --train"),
        (["--data", "."], None),
        (["--train", "train.txt", "--data", "."], "not both"),
        ([], "pass --data with the folder of a fold, or --train"),
        (["--train", "train.txt", "--param", "num_leaves"], "'num_leaves' is not of the form NAME=VALUE"),
        (["--train", "train.txt", "--param", "n_estimators=5"], "n_estimators has an option of its own"),
        (["--train", "train.txt", "--param", "a=1", "--param", "a=2"], "--param a is given twice"),
        (["--train", "train.txt", "--param", "num_leafs=31"], "LightGBM knows no parameter 'num_leafs'; did you mean"),
        (["--train", "train.txt", "--param", "num_leaves=-1"], "lightgbm: Check failed: (num_leaves) > (1)"),
        (["--train", "train.txt", "--objective", "lambdaran"], "lightgbm: Unknown objective type name: lambdaran"),
        (["--train", "train.txt", "--metric", "foo"], "unknown metric 'foo'"),
        (["--train", "train.txt", "--objective", "yetiloss[x]"], "--objective reads the labels of 'x', but commands"),
    ],
)
def test_errors_are_one_line(folder, arguments, message):
    pytest.importorskip("lightgbm")
    (folder / "folder.txt").mkdir()
    (folder / "linked.txt").hardlink_to("test.txt")
    before = (folder / "train.txt").read_bytes()
    out = [] if "--out" in arguments else ["--out", "model.txt"]
    given = ["train", "--library", "lightgbm", *out, *arguments, "--trees", 2, "--threads", 1]
    if message is None:
        run(*given)  # without the errors it trains
    else:
        assert message in fails(*given)
        assert not os.path.exists("model.txt")
        assert (folder / "train.txt").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--library", "xgboost"], "Missing option '--out'"),
        (["trian"], "No such command 'trian'"),
    ],
)
def test_misspelt_commands_are_one_line_as_well(arguments, message):
    pytest.importorskip("xgboost")
    assert message in fails(*arguments)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "catboost", None)
    given = ["--train", "train.txt", "--out", "m.cbm"]
    assert "pip install catboost" in fails("train", "--library", "catboost", *given)

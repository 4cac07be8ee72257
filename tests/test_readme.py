"""The README's code runs as it stands; its training scripts on less data."""

import gzip
import hashlib
import os
import re
from pathlib import Path

import examples
import numpy as np
import pytest

from ltr_objectives import datasets
from ltr_objectives.workbench import movielens

README = Path(__file__).parents[1] / "README.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def readme():
    for package in ("xgboost", "lightgbm", "catboost", "sklearn"):
        pytest.importorskip(package)
    if not README.exists():
        pytest.skip("the tests run beside an unpacked wheel")


def fences(kind: str) -> list[str]:
    return [text for found, text in FENCE.findall(README.read_text()) if found == kind]


def test_the_first_example_prints_what_it_says(workplace, monkeypatch, capsys):
    """On a small archive. With ml-1m.zip in the folder LTR_MOVIELENS also the values, which depend on threads."""
    folder, real = workplace / "cache" / "movielens", os.environ.get("LTR_MOVIELENS")
    if real:
        content = Path(real, "ml-1m.zip").read_bytes()
        folder.mkdir(parents=True)
        (folder / "ml-1m.zip").write_bytes(content)
        monkeypatch.setitem(movielens.MD5, "ml-1m", hashlib.md5(content, usedforsecurity=False).hexdigest())
    else:
        examples.movielens_archive(monkeypatch, folder, "ml-1m", 200, 80)
    examples.run(examples.block("README.md", "fetch_movielens("), {})
    printed, [expected] = capsys.readouterr().out, fences("text")
    value = re.compile(r"\d\.\d{3}$", re.MULTILINE)
    assert value.sub("", printed) == value.sub("", expected)
    if real:
        found, named = ([float(each) for each in value.findall(text)] for text in (printed, expected))
        np.testing.assert_allclose(found, named, atol=0.002)


@pytest.fixture
def names(monkeypatch):
    """Names that the scripts of a user have, with labels of 0 and 1 as XGBoost's rank:map needs them."""
    import lightgbm as lgb
    import xgboost as xgb
    from catboost import CatBoost, Pool

    from ltr_objectives import adapters

    examples.less_data(monkeypatch)
    train, valid, _ = datasets.make_ranking_fold((60, 20, 20), shares=(0.8, 0.2))
    dtrain = {"x": xgb.DMatrix(train.X, train.y, group=train.group), "p": Pool(train.X, train.y, group_id=train.qid)}
    dtrain["l"] = lgb.Dataset(train.X, train.y, group=train.group, params={"verbose": -1})
    dvalid = {"x": xgb.DMatrix(valid.X, valid.y, group=valid.group), "p": Pool(valid.X, valid.y, group_id=valid.qid)}
    dvalid["l"] = lgb.Dataset(valid.X, valid.y, group=valid.group, reference=dtrain["l"])
    few_trees = lambda params: CatBoost({"iterations": 10, **params})  # noqa: E731 - the script calls it as the class
    common = {"lgb": lgb, "xgb": xgb, "CatBoost": few_trees, "ptrain": dtrain["p"], "pvalid": dvalid["p"]}
    common |= {name: getattr(adapters, name) for name in adapters.__all__} | {"train": train}
    return lambda kind: common | {"dtrain": dtrain[kind], "dvalid": dvalid[kind]}


@pytest.mark.parametrize("library", ["lightgbm", "xgboost", "catboost"])
@pytest.mark.parametrize("sign", ["-", "+"])
def test_scripts_run_before_and_after_the_switch(library, sign, names, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    [diff] = [text for text in fences("diff") if f"{library}_objective" in text]
    code = "".join(line[2:] + "\n" for line in diff.splitlines() if line.startswith(sign))
    found = names(library[0] if library != "catboost" else "p")
    examples.run(code.replace('"LightGBM"', "").replace(", 300, ", ", 10, "), found)
    assert np.ptp(found["model"].predict(found["ptrain"] if library == "catboost" else
                  found["train"].X if library == "lightgbm" else found["dtrain"])) > 0  # fmt: skip


def test_your_own_metric_trains(names):
    found = names("x")
    examples.run(examples.block("README.md", "class Attention("), found)
    ranker, metric = found["ranker"], found["Attention"]()
    assert ranker.objective_.metric == metric
    labels = np.array([0.0, 1.0, 0.0, 1.0])
    assert ranker.objective_.metric.reference(labels) == pytest.approx(0.9 + 0.7)
    assert metric.swap_changes(labels)[0, 1] == pytest.approx(0.1)


def test_the_commands_run(tmp_path, monkeypatch):
    import pandas as pd
    from commands import run, write_letor

    commands = [line.split()[1:] for line in README.read_text().splitlines() if line.startswith("ltr-objectives ")]
    assert [name for name, *_ in commands] == ["compare", "train", "predict", "evaluate"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LTR_OBJECTIVES_CACHE", str(tmp_path / "cache"))
    Path("FOLD_DIR").mkdir()
    fold = datasets.make_ranking_fold((20, 10, 10), features=10, mean_length=10)
    for name, part in (("train", fold.train), ("vali", fold.vali), ("test", fold.test)):
        write_letor(Path("FOLD_DIR", f"{name}.txt"), part)
    Path("test.txt.gz").write_bytes(gzip.compress(Path("FOLD_DIR", "test.txt").read_bytes()))
    table = pd.DataFrame(fold.train.X, columns=[f"f{i}" for i in range(10)])
    table.assign(grade=fold.train.y, query=fold.train.qid).to_parquet("ranking.parquet")
    for command in commands:
        run(*command, *(["--trees", "5", "--threads", "1"] if command[0] in ("train", "compare") else []))
    assert Path("model.txt").stat().st_size > 1000

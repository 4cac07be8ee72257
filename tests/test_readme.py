"""The README's code runs as it stands, on less data."""

import gzip
import sys
from pathlib import Path

import examples
import numpy as np
import pytest

from ltr_objectives.datasets import make_ranking_fold

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    examples.less_data(monkeypatch)


def test_there_is_code_to_run():
    assert len(examples.blocks("README.md")) >= 5


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_the_example_trains(library, capsys):
    pytest.importorskip(library)
    data = examples.block("README.md", "make_ranking_fold(")
    examples.run(data + examples.block("README.md", f"{library}_objective", "print(evaluate"), {})
    value = float(capsys.readouterr().out.strip().splitlines()[-1])
    assert 0.3 < value < 1
    assert library in sys.modules


def test_the_estimators_train(capsys):
    for library in ("xgboost", "lightgbm", "catboost", "sklearn"):
        pytest.importorskip(library)
    data = examples.block("README.md", "make_ranking_fold(")
    examples.run(data + examples.block("README.md", "ranker.fit("), {})
    lines = [line.split() for line in capsys.readouterr().out.strip().splitlines()]
    assert [name for name, _, _ in lines] == ["XGBRanker", "LGBMRanker", "CatBoostRanker"]
    assert all(0 < int(rounds) <= 300 and 0.3 < float(value) < 1 for _, rounds, value in lines)


def test_the_commands_run(tmp_path, monkeypatch):
    for package in ("typer", "pandas", "sklearn", "lightgbm"):
        pytest.importorskip(package)
    if not README.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    from commands import run, write_letor

    commands = [line.split()[1:] for line in README.read_text().splitlines() if line.startswith("ltr-objectives ")]
    assert {name for name, *_ in commands} >= {"train", "evaluate", "warmup"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LTR_OBJECTIVES_CACHE", str(tmp_path / "cache"))
    Path("FOLD_DIR").mkdir()
    fold = make_ranking_fold((20, 10, 10), features=10, mean_length=10)
    for name, part in (("train", fold.train), ("vali", fold.vali), ("test", fold.test)):
        write_letor(Path("FOLD_DIR", f"{name}.txt"), part)
    Path("test.txt.gz").write_bytes(gzip.compress(Path("FOLD_DIR", "test.txt").read_bytes()))
    np.savetxt("labels.txt", fold.test.y)
    np.save("scores.npy", fold.test.X[:, 0])
    Path("table.csv").write_text("qid\n" + "".join(f"{q}\n" for q in fold.test.qid))
    Path("run.txt").write_text("1 Q0 a 1 0.5 tag\n")
    Path("qrels.txt").write_text("1 0 a 1\n")
    for command in commands:
        run(*command, *(["--trees", "5", "--threads", "1"] if command[0] == "train" else []))

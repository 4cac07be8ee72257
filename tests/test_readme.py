"""The README's code runs as it stands, on less data and fewer trees."""

import re
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.S) if README.exists() else []


def test_there_is_code_to_run():
    if not README.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_the_example_trains(library, capsys):
    pytest.importorskip(library)
    if not README.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    [data] = [b for b in BLOCKS if "make_ranking_fold(" in b]
    [example] = [b for b in BLOCKS if f"{library}_objective" in b and "print(evaluate" in b]
    small = (data + example).replace("(200, 60, 60)", "(20, 10, 10)").replace("300", "5")
    exec(compile(small, "README.md", "exec"), {})
    value = float(capsys.readouterr().out.strip().splitlines()[-1])
    assert 0.3 < value < 1
    assert library in sys.modules


def test_the_estimators_train(capsys):
    for library in ("xgboost", "lightgbm", "catboost", "sklearn"):
        pytest.importorskip(library)
    if not README.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    [data] = [b for b in BLOCKS if "make_ranking_fold(" in b]
    [example] = [b for b in BLOCKS if "ranker.fit(" in b]
    small = (data + example).replace("(200, 60, 60)", "(20, 10, 10)").replace("300", "5")
    exec(compile(small, "README.md", "exec"), {})
    lines = [line.split() for line in capsys.readouterr().out.strip().splitlines()]
    assert [name for name, _, _ in lines] == ["XGBRanker", "LGBMRanker", "CatBoostRanker"]
    assert all(0 < int(rounds) <= 5 and 0.3 < float(value) < 1 for _, rounds, value in lines)

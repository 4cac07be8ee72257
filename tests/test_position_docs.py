"""The code in docs/position_bias.md runs, in order, as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "position_bias.md"


def test_the_examples_run(tmp_path, monkeypatch):
    for library in ("xgboost", "lightgbm", "catboost"):
        pytest.importorskip(library)
    if not PAGE.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    if not hasattr(pytest.importorskip("lightgbm").Dataset, "get_position"):
        pytest.skip("before LightGBM 4.1")
    monkeypatch.chdir(tmp_path)  # CatBoost writes a folder
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert names["model"].tree_count_ == 20
    assert names["theta"].max() == 1

"""The page on clicks on query ids that fall, as those of LETOR files may; other tests of pages do not run it so."""

import examples
import pytest


def test_the_page_on_clicks(monkeypatch, tmp_path):
    for library in ("xgboost", "lightgbm", "catboost", "pandas", "sklearn", "scipy"):
        pytest.importorskip(library)
    if not hasattr(pytest.importorskip("lightgbm").Dataset, "get_position"):
        pytest.skip("before LightGBM 4.1")
    examples.less_data(monkeypatch)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for code in examples.blocks("docs/position_bias.md"):
        examples.run(code, names)
    assert names["model"].tree_count_ == 20

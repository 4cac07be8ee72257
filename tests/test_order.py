"""The order of objectives in a study, beside the published one."""

import json

import numpy as np
import pytest

from ltr_objectives import LTRError

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
order = pytest.importorskip("benchmarks.order", reason="the tests run beside an unpacked wheel")
SHIFTS = {"yetirank": 0.0, "queryrmse": -0.01, "yetiloss:{metric}": 0.02}


def test_differences_are_those_of_the_same_queries_beside_the_published_ones(tmp_path):
    """Two seeds of one generated data set, in which objectives differ by a constant."""
    with pytest.raises(LTRError, match="no finished trainings"):
        order.differences(tmp_path, "lightgbm")
    (tmp_path / "cells").mkdir()
    rng = np.random.default_rng(0)
    for seed in (1, 2):
        base = rng.random(30)
        for label, shift in SHIFTS.items():
            record = {"fold": ["generated 5", "5", seed], "library": "lightgbm", "label": label, "objective": label,
                      "budget": {"learning_rate": 0.1}, "trees": {}, "train": {}, "vali": {"map": 0.5}, "seconds": 1.0,
                      "test": {"map": list(base + shift)}}  # fmt: skip
            (tmp_path / "cells" / f"{label.partition(':')[0]}{seed}.json").write_text(json.dumps(record))
    found = order.differences(tmp_path, "lightgbm")
    assert {key: round(value, 9) for key, (value, _) in found["generated 5"].items()} == {
        ("map", "queryrmse"): -0.01,
        ("map", "yetiloss"): 0.02,
    }
    assert all(error < 1e-9 for _, error in found["generated 5"].values())
    value, error = found["Web10K"]["map", "yetiloss"]
    assert value == pytest.approx(0.0055)
    assert np.isnan(error)
    assert all(len(row) == len(order.SETS) for by in order.PUBLISHED.values() for row in by.values())
    text = order.table(found)
    assert "| Web10K | -2.0 |" in text
    assert "-10.0 (0.0)" in text
    assert order.picture(found, tmp_path / "a.png").stat().st_size > 10_000

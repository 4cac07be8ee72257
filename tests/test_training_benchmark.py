"""The benchmark of whole trainings runs and writes what it measured."""

import json

import pytest
from trainings import LIBRARIES
from typer.testing import CliRunner

from benchmarks.__main__ import app


def test_training_writes_ratios_of_what_it_timed(tmp_path):
    sizes = ["--rows", "1500", "--trees", "2", "--rounds", "3", "--threads", "1"]
    arguments = ["training", *sizes, "--out", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "training.json").read_text())
    found = {library: sum(r["library"] == library for r in written["results"]) for library in LIBRARIES}
    assert found == {"xgboost": 2, "lightgbm": 2, "catboost": 4}
    for result in written["results"]:
        ratios = sorted(a / b for a, b in zip(result["seconds"], result["native_seconds"], strict=True))
        assert [result["least"], result["ratio"], result["most"]] == pytest.approx(ratios)

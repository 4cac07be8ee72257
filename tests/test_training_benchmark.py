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
    assert found == {"xgboost": 7, "lightgbm": 7, "catboost": 9}
    seconds = {(r["library"], r["objective"]): r["seconds"] for r in written["results"]}
    for result in written["results"]:
        for base, over in result["over"].items():
            ratios = sorted(a / b for a, b in zip(result["seconds"], seconds[result["library"], base], strict=True))
            assert over == pytest.approx(ratios)

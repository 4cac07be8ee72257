"""The benchmark of whole trainings runs and writes what it measured."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app


def test_training_writes_ratios_of_what_it_timed(tmp_path):
    arguments = [
        "training",
        "--rows",
        "1500",
        "--trees",
        "2",
        "--rounds",
        "3",
        "--threads",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "training.json").read_text())
    assert [r["library"] for r in written["results"]] == ["xgboost", "xgboost", "lightgbm", "lightgbm"]
    for result in written["results"]:
        ratios = sorted(a / b for a, b in zip(result["seconds"], result["native_seconds"], strict=True))
        assert result["ratio"] == pytest.approx(ratios[1])

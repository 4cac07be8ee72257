"""A study that goes on with other versions says how many trainings had which version."""

import json
from importlib.metadata import version

from typer.testing import CliRunner

from benchmarks import publish
from benchmarks.__main__ import app


def study(out, libraries):
    chosen = [
        "--data",
        "generated:4,3,3",
        "--libraries",
        libraries,
        "--natives",
        "none",
        "--objectives",
        "rmse,queryrmse",
    ]
    small = ["--metrics", "mrr", "--trees", "2", "--leaves", "4", "--threads", "1", "--no-plots", "--out", str(out)]
    assert CliRunner().invoke(app, ["quality", *chosen, *small]).exit_code == 0
    return json.loads((out / "study.json").read_text())["versions"]


def change(out, change_one, **of):
    for path in (out / "cells").iterdir():
        result = json.loads(path.read_text())
        if of.items() <= result.items():
            change_one(result)
            path.write_text(json.dumps(result))


def test_versions_are_those_of_the_trainings(tmp_path):
    out = tmp_path / "study"
    now = study(out, "lightgbm")
    assert now["lightgbm"] == version("lightgbm")
    assert "xgboost" not in now  # no training had it
    change(out, lambda result: result["versions"].update(lightgbm="3.3.5"), objective="rmse")
    mixed = f"3.3.5 in 1 and {version('lightgbm')} in 1 of the trainings"
    assert study(out, "lightgbm,xgboost") == now | {"lightgbm": mixed, "xgboost": version("xgboost")}
    change(out, lambda result: result.pop("versions"), library="lightgbm")  # as of a study from before the record
    last = study(out, "lightgbm,xgboost")
    assert "lightgbm" not in last
    assert last["versions"] == "not recorded in 2 of the trainings"
    line = publish.block("study", tmp_path).split("\n")[-3]
    assert line.endswith(f"xgboost {version('xgboost')}, versions not recorded in 2 of the trainings.")

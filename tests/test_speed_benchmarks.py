"""The benchmarks of speed run on small data and write what they measured."""

import json
import re
from collections import Counter

import numpy as np
import pytest
import xgboost as xgb
from oracles.references import reference
from typer.testing import CliRunner

from benchmarks import publish
from benchmarks.__main__ import app
from benchmarks.kernels import CASES
from benchmarks.plrank_numpy import plrank_numpy
from benchmarks.scaling import all_names
from benchmarks.training import Stored
from ltr_objectives import PLRank, adapters
from ltr_objectives.datasets import make_ranking
from ltr_objectives.registry import objectives


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("only", ["XGBoost", "CatBoost YetiRank:mode=MRR", "our NDCG", "in NumPy", "evaluate"])
def test_kernels(tmp_path, only):
    run("kernels", "--queries", 60, "--rounds", 3, "--iterations", 1, "--threads", 1, "--only", only, "--out", tmp_path)
    written = json.loads((tmp_path / "kernels.json").read_text())
    expected = [c for c in CASES if only.lower() in f"{c.what} {c.against}".lower()]
    assert [(r["what"], r["against"]) for r in written["results"]] == [(c.what, c.against) for c in expected]
    for result in written["results"]:
        ours, other = np.median(result["seconds"], axis=0)
        assert ours > 0
        assert result["ratio"] == pytest.approx(other / ours)
    table = publish.pipe_table(publish.kernels(written)).splitlines()
    assert len(table) == 2 + len(expected)


def test_scaling(tmp_path):
    run("scaling", "--objectives", "lambdamart:ndcg;truncation=30", "--rows", "2000,4000", "--longest", "1000,1500",
        "--only", "hinge", "--limit", 0.001, "--rounds", 1, "--threads", 2, "--out", tmp_path)  # fmt: skip
    written = json.loads((tmp_path / "scaling.json").read_text())
    small, large = written["results"]
    assert large["rows"] > small["rows"]
    assert large["linear"] == pytest.approx(large["seconds"] / large["rows"] * small["rows"] / small["seconds"])
    assert {*objectives(), "evaluate ndcg", "evaluate hit@10"} < set(all_names())
    assert [r["objective"] for r in written["long"][::2]] == ["hinge", "hinge:partners=10"]
    for few, many in zip(written["long"][::2], written["long"][1::2], strict=True):
        beyond = few["seconds"] * 1.5**2 > 0.001
        assert (many["rows"], many["bytes_a_row"] is None) == (1500, beyond)
        assert not beyond or many["seconds"] == pytest.approx(few["seconds"] * 1.5**2)
    table = publish.pipe_table(publish.long_lists(written))
    assert "more than" in table
    assert "1,500 documents, s" in table


def test_startup(tmp_path):
    run("startup", "--only", "queryrmse", "--rounds", 1, "--out", tmp_path)
    written = json.loads((tmp_path / "startup.json").read_text())
    [result] = written["results"]
    assert result["cold"] > result["warm"] > written["import"] > 0


def test_the_reference_of_plrank_is_right():
    """Against exact enumeration; 4 standard errors are about .01 at 60,000 rankings."""
    objective = PLRank(3, hessian="exact", normalize=False)
    scores, labels = np.array([0.3, -0.2, 1.0, 0.0, -1.0]), np.array([0.0, 2.0, 1.0, 3.0, 0.0])
    gain, rng = np.exp2(labels) - 1.0, np.random.default_rng(0)
    found = plrank_numpy(scores, gain, objective.theta(5), 60_000, rng)
    for ours, exact in zip(found, reference(objective, scores, labels), strict=True):
        np.testing.assert_allclose(ours, exact, atol=0.03)


def test_published_tables_are_those_of_the_results():
    if not (publish.ROOT / "README.md").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    named = set()
    for page in publish.PAGES:
        text = page.read_text()
        assert publish.published(text, publish.RESULTS) == text, f"{page}: run python -m benchmarks publish"
        named |= {name.partition("/")[0] for _, name, _ in publish.BLOCK.findall(text)}
        named |= set(re.findall(r"`benchmarks/results/(\w+)`", text))
    assert named == {path.stem for path in publish.RESULTS.iterdir()}


def test_a_block_is_replaced_and_nothing_else(tmp_path):
    result = {"objective": "rmse", "warm": 0.5, "cold": 2}
    document = {"command": "c", "versions": {"python": "3"}, "import": 0.1, "results": [result]}
    (tmp_path / "startup.json").write_text(json.dumps(document))
    found = publish.published("a\n<!-- table: startup -->\nold\n<!-- end -->\nb\n", tmp_path)
    assert "| rmse | 0.50 | 2.00 |" in found
    assert "`c`; python 3." in found
    assert "old" not in found
    assert (found[:2], found[-3:]) == ("a\n", "\nb\n")
    (tmp_path / "quality").mkdir()
    (tmp_path / "quality" / "study.json").write_text(json.dumps({"command": "q", "versions": {}}))
    (tmp_path / "quality" / "summary.md").write_text("first\n\n**Verdict**\n\n|a|\n\nall\n\n|b|\n\nwhy\n\nmore\n")
    assert publish.block("quality", tmp_path).split("\n\n")[:4] == ["\nfirst", "**Verdict**", "|a|", "all"]
    assert publish.block("quality/verdict", tmp_path).split("\n\n")[:3] == ["\n**Verdict**", "|a|", "why"]


def test_training_writes_ratios_of_what_it_timed(tmp_path):
    sizes = ["--rows", "1000", "--trees", "2", "--rounds", "3", "--threads", "1"]
    run("training", *sizes, "--out", tmp_path)
    written = json.loads((tmp_path / "training.json").read_text())
    assert Counter(r["library"] for r in written["results"]) == {"xgboost": 7, "lightgbm": 7, "catboost": 9}
    seconds = {(r["library"], r["objective"]): r["seconds"] for r in written["results"]}
    for result in written["results"]:
        for base, over in result["over"].items():
            ratios = sorted(a / b for a, b in zip(result["seconds"], seconds[result["library"], base], strict=True))
            assert over == pytest.approx(ratios)
        if "alone" in result:
            assert min(result["alone"] + result["interface"]) > 0
            floor = np.quantile(np.array(result["seconds"]) / result["alone"], (0, 0.5, 1))
            assert result["over_floor"] == pytest.approx(floor)
    assert sum("interface" in r for r in written["results"]) == 15
    assert sum("alone" in r for r in written["results"]) == 10


@pytest.mark.parametrize("how", ["interface", "alone"])
def test_stored_gradients_grow_the_same_trees(how):
    data, stored, models = make_ranking(30, seed=0), Stored(), []
    dtrain = xgb.DMatrix(data.X, data.y, qid=data.qid)
    for change in (stored.recording, getattr(stored, how)):
        obj = change(adapters.xgboost_objective("yetiloss"))
        models.append(xgb.train({"nthread": 1, "max_depth": 3}, dtrain, 5, obj=obj).save_raw("json"))
    assert models[0] == models[1]


def test_evaluation_writes_its_parts(tmp_path):
    run("evaluation", "--rows", "1000", "--trees", "2", "--rounds", "2", "--threads", "1", "--out", tmp_path)
    written = json.loads((tmp_path / "evaluation.json").read_text())
    assert [r["library"] for r in written["results"]] == ["xgboost", "lightgbm", "catboost"]
    assert all(len(r[key]) == 2 and min(r[key]) > 0 for r in written["results"] for key in ("none", "own", "ours"))


def test_the_demo_writes_its_table_and_picture(tmp_path):
    output = run("demo", "--queries", "30,15,20", "--trees", 3, "--libraries", "lightgbm", "--out", tmp_path)
    assert "best by ndcg@10: lightgbm" in output
    assert len((tmp_path / "demo.csv").read_text().splitlines()) > 4
    assert (tmp_path / "demo.png").exists()

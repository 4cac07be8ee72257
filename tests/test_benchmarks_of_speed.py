"""Benchmarks of speed write what they measured, and the demo its tables and picture."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from commands import benchmark
from oracles.references import reference

from benchmarks import clicks, publish, variance
from benchmarks.kernels import CASES
from benchmarks.money import OURS
from benchmarks.plrank_numpy import plrank_numpy
from benchmarks.training import Stored
from ltr_objectives import PLRank, adapters
from ltr_objectives.datasets import make_ranking

FULL = [pytest.param(only, marks=pytest.mark.release) for only in ("XGBoost", "CatBoost YetiRank:mode=MRR", "in NumPy")]


@pytest.mark.parametrize("only", ["our NDCG", "metric", *FULL])
def test_kernels(tmp_path, only):
    benchmark(
        "kernels", "--queries", 60, "--rounds", 3, "--iterations", 1, "--threads", 1, "--only", only, "--out", tmp_path
    )
    written = json.loads((tmp_path / "kernels.json").read_text())
    expected = [c for c in CASES if only.lower() in f"{c.what} {c.against}".lower()]
    assert [(r["what"], r["against"]) for r in written["results"]] == [(c.what, c.against) for c in expected]
    for result in written["results"]:
        ours, other = np.median(result["seconds"], axis=0)
        assert result["ratio"] == pytest.approx(other / ours)
    assert len(publish.pipe_table(publish.kernels(written)).splitlines()) == 2 + len(expected)


TIMED = {
    "scaling": ["--rows", "2000,4000", "--longest", "1000,1500", "--limit", 0.001, "--only", "hinge"],
    "one-list": ["--rows", 2000, "--seeds", "0,7", "--trees", 5],
    "training": ["--rows", 1000, "--trees", 2, "--rounds", 3, "--threads", 1],
    "evaluation": ["--rows", 1000, "--trees", 2, "--rounds", 2, "--threads", 1],
    "retrain": ["--queries", 20, "--weeks", 2],
    "latency": ["--repeats", 1],
}


@pytest.mark.release
@pytest.mark.parametrize("name", TIMED)
def test_the_others_write_what_they_timed(name, tmp_path):
    benchmark(name, *TIMED[name], "--out", tmp_path)
    [written] = tmp_path.glob("*.json")
    assert len(json.loads(written.read_text())["results"]) > 1


def test_variance_counts_the_independent_draws_that_stratified_ones_are_worth(tmp_path):
    benchmark("variance", "--documents", "6", "--lists", 1, "--copies", 500, "--out", tmp_path)
    results = json.loads((tmp_path / "variance.json").read_text())["results"]
    assert {(r["objective"], r["draws"]) for r in results} == set(
        itertools.product(variance.OBJECTIVES, variance.DRAWS)
    )
    assert all(r["as_many"] > r["draws"] for r in results)


@pytest.mark.release
@pytest.mark.filterwarnings("ignore:.* of 200 queries have zero gradient")
def test_money_compares_what_is_trained_on_the_same_sessions(tmp_path):
    benchmark("money", "--train", 200, "--test", 300, "--out", tmp_path)
    written = json.loads((tmp_path / "money.json").read_text())
    found = {tuple(list(r.values())[:5]): r["percent"] for r in written["results"]}
    assert len(found) == len(written["results"]) == 3 * (4 * (len(OURS) + 1) + 2)
    for key, percent in found.items():
        assert percent <= found[(*key[:4], "best possible")]
        assert (percent == 0) == (key[0] == "one" and key[1] == "realised" and key[4] == "ndcg of money")


def test_the_reference_of_plrank_is_right():
    """Against exact enumeration; 4 standard errors are about .01 at 60,000 rankings."""
    objective = PLRank(3, hessian="exact", normalize=False)
    scores, labels = np.array([0.3, -0.2, 1.0, 0.0, -1.0]), np.array([0.0, 2.0, 1.0, 3.0, 0.0])
    gain, rng = np.exp2(labels) - 1.0, np.random.default_rng(0)
    found = plrank_numpy(scores, gain, objective.theta(5), 60_000, rng)
    for ours, exact in zip(found, reference(objective, scores, labels), strict=True):
        np.testing.assert_allclose(ours, exact, atol=0.03)


@pytest.mark.parametrize("how", ["interface", "alone"])
def test_stored_gradients_grow_the_same_trees(how):
    data, stored, models = make_ranking(30, seed=0), Stored(), []
    dtrain = xgb.DMatrix(data.X, data.y, qid=data.qid)
    for change in (stored.recording, getattr(stored, how)):
        obj = change(adapters.xgboost_objective("yetiloss"))
        models.append(xgb.train({"nthread": 1, "max_depth": 3}, dtrain, 5, obj=obj).save_raw("json"))
    assert models[0] == models[1]


@pytest.mark.filterwarnings("ignore:no round keeps all bounds")  # of so few trees
def test_the_demo_writes_its_tables_and_picture(tmp_path):
    output = benchmark("demo", "--trees", 3, "--libraries", "lightgbm", "--out", tmp_path)
    table = pd.read_csv(tmp_path / "demo.csv")
    assert list(dict.fromkeys(table["part"])) == [
        line.rstrip() for line in output.splitlines() if line[:2] in ("1.", "2.", "3.")
    ]
    assert len(table) == 3 * 2 + 3 + 2  # two metrics of three ways; three ways with clicks; two objectives in seconds
    assert (tmp_path / "demo.png").exists()


@pytest.mark.release
def test_clicks_judge_each_correction_and_go_on_where_they_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(clicks, "SIZE", (30, 30))
    monkeypatch.setattr(clicks, "ROUNDS", (1, 30, 100))
    monkeypatch.setattr(clicks, "WORLDS", {"feature": clicks.WORLDS["feature"]._replace(queries=60)})
    for seeds in ("1", "1,2"):
        benchmark("clicks", "--seeds", seeds, "--out", tmp_path)
    written = json.loads((tmp_path / "clicks.json").read_text())
    cells = [(r["world"], r["seed"], r["library"], r["method"]) for r in written["results"]]
    assert len(cells) == len(set(cells)) == 2 * sum(map(len, clicks.METHODS.values()))
    table = publish.clicks(written)
    rivals = [(library, method) for library, of in clicks.METHODS.items() for method in of if method != "position="]
    assert [tuple(line[:2]) for line in table[1:]] == rivals
    assert len(publish.clicks_by_world(written)) == 3
    assert all(0 <= float(x) <= 100 for _, *line in publish.clicks_criteria(written)[1:] for x in line)

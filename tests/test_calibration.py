"""Scores that mean something: a pointwise part, and the benchmark of probabilities."""

import json

import numpy as np
import pytest
from rankers import LIBRARIES, ranker
from typer.testing import CliRunner

from ltr_objectives import Langevin, Mixture, Ordinal, evaluate, get_objective, registry

metrics = pytest.importorskip("sklearn.metrics")


def test_a_pointwise_part_or_shrinkage_fixes_the_constant():
    for name in registry.objectives():
        free = get_objective(name).shift_invariant
        assert Mixture([name, "ranknet"]).shift_invariant == free
        assert Mixture([name, "rmse"], [1, 0]).shift_invariant == free
        assert not Mixture([name, "rmse"]).shift_invariant
        assert not Langevin(name, shrink=0.1).shift_invariant


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_pointwise_part_tells_queries_apart_and_keeps_the_ranking(library):
    """Documents are relevant by a feature of their own and, more often, by one of their query."""
    rng = np.random.default_rng(3)
    group = np.full(300, 12)
    rows = int(group.sum())
    X = np.column_stack([rng.normal(size=rows), np.repeat(rng.normal(size=len(group)), group)])
    y = (rng.random(rows) < 1 / (1 + np.exp(-1.5 * X[:, 0] - 2.5 * X[:, 1]))).astype(float)
    half = rows // 2
    found = {}
    for name, objective in (("ranking", "yetiloss"), ("mixture", Mixture(["yetiloss", Ordinal((0.0,))]))):
        model = ranker(library, objective, n_estimators=30)
        scores = model.fit(X[:half], y[:half], group=group[:150]).predict(X[half:])
        within = evaluate("auc", scores, y[half:], group[150:])
        found[name] = metrics.roc_auc_score(y[half:] > 0, scores), within
    assert found["mixture"][0] > found["ranking"][0] + 0.1
    assert found["mixture"][1] > found["ranking"][1] - 0.02


def test_the_benchmark_measures_what_it_says(tmp_path, rng):
    calibration = pytest.importorskip("benchmarks.calibration", reason="the tests run beside an unpacked wheel")
    from benchmarks.__main__ import app

    p, relevant = np.round(rng.uniform(0.05, 0.95, 300), 1), rng.random(300) < 0.4
    assert calibration.log_losses(p, relevant).mean() == pytest.approx(metrics.log_loss(relevant, p))
    bins = np.array_split(np.argsort(p, kind="stable"), 15)
    shares = {value: relevant[p == value].mean() for value in np.unique(p)}
    expected = sum(abs(sum(p[i] - shares[p[i]] for i in rows)) for rows in bins) / 300
    assert calibration.calibration_error(p, relevant) == pytest.approx(expected)
    arguments = ["calibration", "--data", "generated:12,10,10:0", "--libraries", "lightgbm", "--trees", "3"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "calibration.json").read_text())
    assert [r["objective"] for r in written["results"]] == ["ranking", "mixture", "pointwise"]
    for result in written["results"]:
        assert sum(size for _, _, size in result["after"]["curve"]) == sum(x[2] for x in result["before"]["curve"])
        assert 0 < result["after"]["log_loss"] < -np.log(calibration.FLOOR)
    base = written["results"][0]
    for result in written["results"]:
        gap = result["after"]["log_loss"] - base["after"]["log_loss"]
        assert result["log_loss_difference"] == pytest.approx(gap, abs=1e-12)
        assert result["ndcg_difference"] == pytest.approx(result["ndcg"] - base["ndcg"], abs=1e-12)
    assert (tmp_path / "reliability.png").stat().st_size > 10_000

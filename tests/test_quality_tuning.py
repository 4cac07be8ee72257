"""A search draws from the published ranges, continues after an interruption, and passes its result to the library."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ltr_objectives import LTRError, get_objective
from ltr_objectives.objectives.around import Langevin

pytest.importorskip("optuna")

from benchmarks import cells, folds, tuning
from benchmarks.__main__ import app
from ltr_objectives.workbench.trials import Budget

FOLD = folds.Fold("generated 9,6,4", "9,6,4", 0)
ONE = {"lightgbm": "lambdarank", "xgboost": "stochasticrank:map", "catboost": "StochasticRank:metric=NDCG;top=10"}


def cell(library="lightgbm", objective="queryrmse", trials=3, **budget):
    settings = {"trees": 4, "patience": 4, "threads": 1} | budget
    return tuning.TunedCell(library, objective, objective, ("map",), Budget(**settings), trials, fold=FOLD)


@pytest.mark.parametrize("library", ONE)
@pytest.mark.parametrize("objective", ["queryrmse", "stochasticrank:map"])
def test_draws_lie_in_the_published_ranges(library, objective, monkeypatch):
    seen = []
    monkeypatch.setattr(
        tuning.TunedCell, "trial", lambda self, found: seen.append(found) or {"found": found, "value": 0.5}
    )
    cell(library, objective, trials=60).search(None)
    ranges = tuning.space(library, objective)
    assert ("l2" in ranges) == (objective == "queryrmse")
    assert ranges["learning_rate"] == (1e-3, 1.0, "log")
    for name, (low, high, scale) in ranges.items():
        drawn = np.array([found[name] for found in seen])
        assert drawn.min() >= low
        assert drawn.max() <= high
        assert len(set(drawn.tolist())) > min(2, high - low)
        if scale == "log" and high > 100 * low:
            assert 0.1 < np.mean(drawn < np.sqrt(low * high)) < 0.9  # a uniform draw has less than 0.1


def test_stochasticrank_gets_langevin_noise_of_the_library_or_ours():
    found = {"learning_rate": 0.2, "depth": 7, "shrink": 1e-4, "diffusion": 1e9, "mu": 0.5}
    at, objective, params = tuning.applied(cell("catboost", "stochasticrank:map"), found)
    assert (at.budget.learning_rate, at.budget.l2) == (0.2, 0.0)
    assert params == {"depth": 7, "langevin": True, "leaf_estimation_method": "Gradient",
                      "model_shrink_rate": 1e-4, "diffusion_temperature": 1e9}  # fmt: skip
    assert objective == get_objective("stochasticrank:map;mu=0.5")
    assert tuning.applied(cell("catboost", ONE["catboost"]), found)[1] == "StochasticRank:metric=NDCG;top=10;mu=0.5"
    at, objective, params = tuning.applied(cell("xgboost", "stochasticrank:map"), found | {"leaves": 20, "least": 0.25})
    assert (at.budget.leaves, at.budget.min_child_weight, params) == (20, 0.25, {"max_depth": 7})
    assert objective == Langevin("stochasticrank:map;mu=0.5", 1e-9, 0.2, shrink=1e-4)


@pytest.mark.parametrize(("library", "objective"), ONE.items())
def test_a_search_that_was_interrupted_ends_as_one_that_was_not(tmp_path, library, objective, monkeypatch):
    wanted = cell(library, objective, trials=4)
    whole = cells.run(wanted, tmp_path)
    trials = wanted.done(tmp_path)
    [value] = [t["value"] for t in trials if t["found"] == whole["tuned"]]
    assert value == whole["vali"]["map"] == max(t["value"] for t in trials)
    assert len({t["value"] for t in trials}) > 1
    wanted.history(tmp_path).write_text(json.dumps(trials[:2]))
    ran, trial = [], tuning.TunedCell.trial
    monkeypatch.setattr(tuning.TunedCell, "trial", lambda self, found: ran.append(found) or trial(self, found))
    again = cells.run(wanted, tmp_path)
    assert ran == [t["found"] for t in trials[2:]]
    assert {**again, "seconds": 0} == {**whole, "seconds": 0}
    ran.clear()
    more = replace(wanted, trials=5).search(tmp_path)
    assert more[:4] == wanted.done(tmp_path)[:4]
    assert ran == [more[4]["found"]]  # a longer search continues a shorter one


def test_a_trial_that_cannot_be_trained_is_passed_over(tmp_path, monkeypatch):
    def trial(self, found, count=[]):  # noqa: B006 - counts the calls
        count.append(found)
        failed = {"found": found, "value": None, "seconds": 0.0, "error": "too deep"}
        return failed if len(count) % 2 or self.trials == 2 else {"found": found, "value": len(count), "seconds": 1.0}

    monkeypatch.setattr(tuning.TunedCell, "trial", trial)
    wanted = cell(trials=4)
    assert [t["value"] for t in wanted.search(tmp_path)] == [None, 2, None, 4]
    assert cells.run(wanted, tmp_path)["tuned"] == wanted.done(tmp_path)[3]["found"]
    with pytest.raises(LTRError, match="none of 2 trials could be trained: too deep"):
        cell(trials=2, leaves=9).compute(None)


def test_a_tuned_study_writes_what_was_chosen(tmp_path):
    chosen = ["--data", "generated:12,8,6", "--libraries", "lightgbm", "--objectives", "queryrmse,yetiloss:{metric}",
              "--metrics", "map,mrr", "--tune", "2", "--trees", "4", "--threads", "1", "--no-plots"]  # fmt: skip
    found = CliRunner().invoke(app, ["quality", "--out", str(tmp_path), *chosen, "--natives", "lambdarank"])
    assert found.exit_code == 0, found.output
    table = pd.read_csv(tmp_path / "tuned.csv")
    assert list(table["metric"]) == ["map", "mrr"] * 3
    assert list(table["objective"]) == ["lambdarank"] * 2 + ["queryrmse"] * 2 + ["yetiloss:map", "yetiloss:mrr"]
    assert table["least"].between(1, 1000).all()

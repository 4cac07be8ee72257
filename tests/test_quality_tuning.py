"""A search draws from the published ranges, continues after an interruption, and passes its result to the library."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ltr_objectives import LTRError, get_objective
from ltr_objectives.objectives.langevin import Langevin

pytest.importorskip("optuna")

from benchmarks import cells, tuning
from benchmarks.__main__ import app
from benchmarks.libraries import LIBRARIES
from ltr_objectives.workbench.trials import Budget

FOLD = cells.Fold("generated 9,6,4", "9,6,4", 0)
ONE = {"lightgbm": "lambdarank", "xgboost": "stochasticrank:map", "catboost": "StochasticRank:metric=NDCG;top=10"}


def cell(library="lightgbm", objective="queryrmse", trials=3, **budget):
    settings = {"trees": 4, "patience": 4, "threads": 1} | budget
    return tuning.TunedCell(FOLD, library, objective, objective, ("map",), Budget(**settings), trials)


def test_the_ranges_are_the_published_ones():
    rate, l2 = (1e-3, 1.0, "log"), (1e-3, 100.0, "log")
    assert tuning.space("catboost", "yetiloss:map") == {"learning_rate": rate, "l2": l2, "depth": (6, 8, "")}
    assert tuning.space("lightgbm", "lambdarank") == {
        "learning_rate": rate, "l2": (0.1, 100.0, "log"), "depth": (6, 16, ""), "leaves": (16, 256, "log"),
        "least": (1, 1000, "log"),
    }  # fmt: skip
    langevin = {"shrink": (1e-5, 1e-2, "log"), "diffusion": (1e8, 1e11, "log"), "mu": (1e-2, 10.0, "log")}
    for objective in ("stochasticrank:map", "StochasticRank:metric=MRR"):
        assert tuning.space("catboost", objective) == {"learning_rate": rate, "depth": (6, 10, ""), **langevin}


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_drawn_lies_in_the_ranges(library, monkeypatch):
    seen = []
    monkeypatch.setattr(
        tuning.TunedCell, "trial", lambda self, found: seen.append(found) or {"found": found, "value": 0.5}
    )
    for objective in ("queryrmse", "stochasticrank:map"):
        wanted = cell(library, objective, trials=60)
        wanted.search(None)
        for name, (low, high, scale) in tuning.space(library, objective).items():
            drawn = np.array([found[name] for found in seen if name in found])
            assert drawn.min() >= low
            assert drawn.max() <= high
            assert len(set(drawn.tolist())) > min(2, high - low)
            if scale == "log" and high > 100 * low:
                assert 0.1 < np.mean(drawn < np.sqrt(low * high)) < 0.9  # a uniform draw has less than 0.1
        seen.clear()


def test_stochasticrank_gets_langevin_noise_of_the_library_or_ours():
    found = {"learning_rate": 0.2, "depth": 7, "shrink": 1e-4, "diffusion": 1e9, "mu": 0.5}
    params, objective = tuning.applied(cell("catboost", "stochasticrank:map"), found)
    assert params == {"learning_rate": 0.2, "depth": 7, "l2_leaf_reg": 0.0, "langevin": True,
                      "leaf_estimation_method": "Gradient",
                      "model_shrink_rate": 1e-4, "diffusion_temperature": 1e9}  # fmt: skip
    assert objective == get_objective("stochasticrank:map;mu=0.5")
    params, objective = tuning.applied(cell("catboost", ONE["catboost"]), found)
    assert objective == "StochasticRank:metric=NDCG;top=10;mu=0.5"
    params, objective = tuning.applied(cell("xgboost", "stochasticrank:map"), found | {"leaves": 20, "least": 0.25})
    assert params == {
        "learning_rate": 0.2,
        "max_depth": 7,
        "max_leaves": 20,
        "min_child_weight": 0.25,
        "reg_lambda": 0.0,
    }
    assert objective == Langevin("stochasticrank:map;mu=0.5", 1e-9, 0.2, shrink=1e-4)


@pytest.mark.parametrize(("library", "objective"), ONE.items())
def test_a_search_that_was_interrupted_ends_as_one_that_was_not(tmp_path, library, objective, monkeypatch):
    wanted = cell(library, objective, trials=4)
    whole = cells.run(wanted, tmp_path)
    trials = wanted.done(tmp_path)
    [value] = [t["value"] for t in trials if t["found"] == whole["tuned"]]
    assert value == whole["vali"]["map"]
    assert whole["vali"]["map"] == max(t["value"] for t in trials)
    assert len({t["value"] for t in trials}) > 1
    wanted.path(tmp_path).unlink()
    wanted.history(tmp_path).write_text(json.dumps(trials[:2]))
    assert wanted.trainings(tmp_path) == 3
    ran = []
    trial = tuning.TunedCell.trial
    monkeypatch.setattr(tuning.TunedCell, "trial", lambda self, found: ran.append(found) or trial(self, found))
    again = cells.run(wanted, tmp_path)
    assert ran == [t["found"] for t in trials[2:]]
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in whole.items() if k != "seconds"}
    ran.clear()
    more = replace(wanted, trials=5).search(tmp_path)
    assert more[:4] == wanted.done(tmp_path)[:4]
    assert ran == [more[4]["found"]]  # a longer search continues a shorter one


def test_parameters_matter_and_the_default_cell_is_left_as_it_was():
    library = cells.library_of(cell(), tuned=True)
    curves = []
    for params in ({}, {"num_leaves": 2}, {"min_data_in_leaf": 1}, {"lambda_l2": 100.0}, {"max_depth": 1}):
        library.params = params
        curves.append(tuple(library.run(get_objective("queryrmse"), lambda value: None).curves["map"]))
    assert len(set(curves)) >= 4
    fold = cells.Fold("generated 30,20,10", "30,20,10", 0)
    plain = cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("map", "mrr"), Budget(threads=3))
    assert plain.key == "335defde81f9b5c85b5e", "results of earlier studies would not be found again"


def test_a_trial_that_cannot_be_trained_is_passed_over(tmp_path, monkeypatch):
    def trial(self, found, count=[]):  # noqa: B006 - counts the calls
        count.append(found)
        failed = {"found": found, "value": None, "seconds": 0.0, "error": "too deep"}
        return failed if len(count) % 2 else {"found": found, "value": 0.1 * len(count), "seconds": 1.0}

    monkeypatch.setattr(tuning.TunedCell, "trial", trial)
    wanted = cell(trials=4)
    assert [t["value"] for t in wanted.search(tmp_path)] == [None, 0.2, None, 0.4]
    best = cells.run(wanted, tmp_path)
    assert best["tuned"] == wanted.done(tmp_path)[3]["found"]
    monkeypatch.setattr(
        tuning.TunedCell, "trial", lambda self, f: {"found": f, "value": None, "seconds": 0.0, "error": "too deep"}
    )
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
    assert "for 18 trainings" in found.output
    again = CliRunner().invoke(app, ["quality", "--out", str(tmp_path), *chosen, "--learning-rates", ".1,.2"])
    assert again.exit_code == 2
    assert "--tune and --draws search the learning rate" in again.output

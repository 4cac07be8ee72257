"""Public data sets are found as unpacked, with published settings; a study first says how long it takes."""

import gzip
import json
import re
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import write_letor
from typer.testing import CliRunner

from benchmarks import cells, estimate, presets
from benchmarks.__main__ import app
from benchmarks.libraries import LIBRARIES
from benchmarks.quality import plan
from benchmarks.tuning import TunedCell
from ltr_objectives import LTRError
from ltr_objectives.workbench.trials import Budget
from ltr_objectives.datasets import make_ranking_fold

LAYOUTS = {
    "web10k": ("Fold1/train.txt", "Fold1/vali.txt", "Fold1/test.txt", "Fold2/train.txt", "Fold2/test.txt"),
    "web30k": ("Fold1/train.txt.gz", "Fold1/vali.txt.gz", "Fold1/test.txt.gz"),
    "yahoo": tuple(f"set{i}.{part}.txt" for i in (1, 2) for part in ("train", "valid", "test")),
    "istella": ("full/train.txt", "full/test.txt", "sample/train.txt", "sample/vali.txt", "sample/test.txt"),
}
FOUND = {
    "web10k": [("Web10K", "Fold1")],
    "web30k": [("Web30K", "Fold1")],
    "yahoo": [("Yahoo S1", "set1"), ("Yahoo S2", "set2")],
    "istella": [("Istella", "full"), ("Istella-S", "sample")],
}


def lay_out(folder, names):
    fold = make_ranking_fold((10, 4, 5), 0, features=10, mean_length=5)
    parts = {"train": fold.train, "vali": fold.vali, "valid": fold.vali, "test": fold.test}
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".gz"):
            write_letor(folder / "plain", parts[re.search("train|valid?|vali|test", path.name)[0]])
            path.write_bytes(gzip.compress((folder / "plain").read_bytes()))
        else:
            write_letor(path, parts[re.search("train|valid|vali|test", path.name)[0]])
    return fold


@pytest.mark.parametrize("preset", presets.PRESETS)
def test_the_standard_layouts_are_found_and_read(preset, tmp_path):
    fold = lay_out(tmp_path, LAYOUTS[preset])
    found = presets.preset_folds(preset, str(tmp_path), [0])
    assert [(f.data, Path(f.source).name) for f in found] == FOUND[preset]
    for each in found:
        read = each.load()
        assert read.test.y.tolist() == fold.test.y.tolist()
        assert len(read.train.group) + len(read.vali.group) == (10 if "full" in each.source else 14)
        assert read.train.X.shape[1] == read.test.X.shape[1] == 10


def test_of_several_sets_those_count_that_are_there_and_a_fold_may_be_named(tmp_path):
    lay_out(tmp_path, [name for name in LAYOUTS["yahoo"] if "set1" in name])
    assert [f.data for f in presets.preset_folds("yahoo", str(tmp_path), [0, 1])] == ["Yahoo S1"] * 2
    lay_out(tmp_path, LAYOUTS["web10k"])
    [fold] = presets.preset_folds("web10k", str(tmp_path / "Fold2"), [0])
    assert fold == cells.Fold("Web10K", str(tmp_path / "Fold2"), 0)
    lay_out(tmp_path / "i", LAYOUTS["istella"])
    assert presets.preset_folds("istella", str(tmp_path / "i" / "sample"), [0])[0].data == "Istella-S"
    assert cells.folds_of(str(tmp_path / "set1"), [0])[0].load().vali is not None  # also without a preset


def test_what_was_looked_for_is_said(tmp_path):
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(LTRError, match=r"--preset web10k looks for train, vali and test files as .*/Fold1, or in .*"):
        presets.preset_folds("web10k", str(tmp_path), [0])
    lay_out(tmp_path, ["set1.train.txt"])
    with pytest.raises(LTRError, match=r"set1 or .*set2, .*: .*has no test file, only set1.train.txt; .*set2 does not"):
        presets.preset_folds("yahoo", str(tmp_path), [0])
    with pytest.raises(LTRError, match="nowhere is not a folder; --preset istella looks for its files there"):
        presets.preset_folds("istella", "nowhere", [0])


def test_a_preset_stands_in_for_the_defaults_and_options_go_before_it(tmp_path):
    lay_out(tmp_path / "data", LAYOUTS["web10k"])
    cut = ["--libraries", "lightgbm", "--metrics", "map,err", "--tune", "0", "--trees", "3", "--leaves", "4"]
    chosen = ["--preset", "web10k", "--data", str(tmp_path / "data"), "--threads", "1", "--no-plots", *cut]
    found = CliRunner().invoke(app, ["quality", *chosen, "--out", str(tmp_path / "out")])
    assert found.exit_code == 0, found.output
    # the constant, lambdarank, queryrmse and yetirank, and the other three for each metric
    assert "10 trainings, 0 of them done before" in found.output
    assert re.search(r"about \d minutes? for 9 trainings, 1 at a time; less where they stop early", found.output)
    results = [json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").iterdir()]
    assert {r["budget"]["patience"] for r in results} == {1000}
    assert {r["budget"]["trees"] for r in results} == {0, 3}
    again = CliRunner().invoke(app, ["quality", *chosen, "--out", str(tmp_path / "out")])
    assert "about" not in again.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "web"], "preset='web' is not known; choose one of 'web10k', 'web30k', 'yahoo', 'istella'"),
        (["--preset", "yahoo"], "--preset yahoo needs --data"),
        (["--preset", "yahoo", "--data", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_mistakes(arguments, message, tmp_path):
    found = CliRunner().invoke(app, ["quality", *arguments, "--out", str(tmp_path / "out")])
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())


def test_native_objectives_are_asked_for_the_metric_in_the_librarys_own_words():
    fold = cells.Fold("generated 5,5,5", "5,5,5", 0)
    names = presets.OPTIONS["natives"].split(",")
    planned = plan([fold], list(LIBRARIES), ["queryrmse"], names, ["ndcg@10", "map"], [Budget()], 1)
    natives = [c.objective for c in planned if c.library and LIBRARIES[c.library].knows(c.objective)]
    assert natives == [
        *["rank:ndcg"] * 2, *["rank:map"] * 2, *["lambdarank"] * 2, *["QueryRMSE"] * 2,
        "LambdaMart:metric=NDCG;top=10", "LambdaMart:metric=MAP", "StochasticRank:metric=NDCG;top=10",
        *["YetiRank"] * 2, "YetiRank:mode=NDCG;top=10", "YetiRank:mode=MAP",
    ]  # fmt: skip


class Now:
    """A pool that answers at once, as if a training took two seconds, and a quarter of a second for each tree."""

    asked = 0

    def submit(self, what, cell):
        assert what is estimate.probe
        self.asked += 1
        done = Future()
        done.set_result((2.0, 0.25))
        return done


def test_the_estimate_comes_from_a_few_trees_or_from_what_was_trained(tmp_path):
    fold = cells.Fold("generated 5,5,5", "5,5,5", 0)
    cell = cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("map",), Budget(trees=472))
    many = [replace(cell, label=f"{i}") for i in range(6)]
    pool = Now()
    # 6 (2 + 472 / 4) s = 12 min on one processor
    assert estimate.announce(many, many, tmp_path, 1, pool) == (
        "about 12 minutes for 6 trainings, 1 at a time; less where they stop early"
    )
    assert pool.asked == 1
    tuned = [TunedCell(fold, "xgboost", "yetirank", "yetirank", ("map",), Budget(trees=472), 100)]
    assert estimate.announce(tuned, tuned, tmp_path, 2, pool).startswith("about 1 h 41 min for 101 trainings, 2 at")
    cells.write_whole(many[0].path(tmp_path), {"seconds": 600.0})
    cells.write_whole(many[1].path(tmp_path), {"seconds": 1800.0})
    pool.asked = 0
    assert estimate.announce(many[2:], many, tmp_path, 2, pool) == "about 40 minutes for 4 trainings, 2 at a time"
    assert pool.asked == 0
    other = replace(many[0], fold=fold._replace(seed=1))  # the same objective took 600 s
    assert estimate.announce([other], [*many[:2], other], tmp_path, 1, pool).startswith("about 10 minutes for 1 ")
    assert estimate.announce([], many, tmp_path, 1, pool) == ""


def test_a_probe_tells_trees_from_the_rest(monkeypatch):
    compiles = [100.0]  # seconds, in the first training only
    library = SimpleNamespace(budget=Budget())
    library.run = lambda objective, report: SimpleNamespace(
        seconds=3.0 + 0.5 * library.budget.trees + (compiles.pop() if compiles else 0.0)
    )
    monkeypatch.setattr(estimate, "library_of", lambda cell: library)
    cell = cells.Cell(cells.Fold("generated", "9,6,4", 0), "xgboost", "queryrmse", "queryrmse", ("map",), Budget())
    assert estimate.probe(cell) == (3.0, 0.5)

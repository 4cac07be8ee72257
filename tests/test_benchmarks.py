"""Studies train each cell once and report what was found."""

import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import benchmark, write_letor
from trainings import release
from typer.testing import CliRunner

from benchmarks import cells, folds, quality, summary
from benchmarks.__main__ import app
from benchmarks.plan import plan
from ltr_objectives import LTRError, evaluate, get_metric
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.workbench.trials import Budget, Trial, train

SMALL = ["--trees", "4", "--leaves", "6", "--threads", "1", "--metrics", "ndcg@5,mrr"]
GENERATED = folds.Fold("generated 6,4,4", "6,4,4", 0)
TWO_TREES = [Budget(2)]


def study(out, *arguments):
    return CliRunner().invoke(app, ["quality", "--out", str(out), *map(str, arguments), *SMALL])


def write_fold(folder, *names, seed=0):
    """Return files of a fold by their names, such as ``train.txt`` or ``set1.valid.txt``."""
    fold = make_ranking_fold((10, 4, 5), seed, features=10, mean_length=6)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("train.txt", "vali.txt", "test.txt"):
        write_letor(folder / name, getattr(fold, re.search("train|vali|test", name)[0]))
    return fold


def planned(*arguments, libraries=("lightgbm",), objectives=("rmse",), natives=("none",), metrics=("map",),
            budgets=TWO_TREES):  # fmt: skip
    return plan([GENERATED], libraries, objectives, list(natives), metrics, budgets, *arguments)


def test_a_study_goes_on_where_it_was_and_reports_what_it_found(tmp_path):
    write_fold(tmp_path / "set" / "Fold1")
    out = tmp_path / "out"
    chosen = ["--data", tmp_path / "set", "--data", "generated:6,4,5", "--libraries", "lightgbm",
              "--objectives", "lambdamart,yetiloss:{metric}", "--natives", "lambdarank"]  # fmt: skip
    first = study(out, *chosen)
    assert first.exit_code == 0, first.output
    # 2 folds; constant, and at defaults and at our settings the native, lambdamart, and yetiloss for each metric
    assert f"{2 * (1 + 2 * 4)} trainings, 0 of them done before" in first.output
    assert "10 trainings, 10 of them done before" in study(out, *chosen, "--no-shared").output
    assert "18 trainings, 18 of them done before" in study(out, *chosen).output
    table = pd.read_csv(out / "summary.csv")
    assert table.groupby("data")["queries"].max().to_dict() == {"set": 5, "generated 6,4,5": 5, summary.POOLED: 10}
    assert list(dict.fromkeys(table["objective"])) == ["constant", "lambdarank", "lambdamart", "yetiloss:{metric}"]
    queries = pd.read_parquet(out / "queries.parquet")
    means = queries.groupby(["data", "library", "objective", "metric"])["value"].mean()
    for _, row in table.fillna({"library": ""}).iterrows():
        assert means[row["data"], row["library"], row["objective"], row["metric"]] == pytest.approx(row["mean"])
    found = json.loads((out / "study.json").read_text())["versions"]
    assert (found["lightgbm"], "xgboost" in found) == (version("lightgbm"), False)  # no training had it
    benchmark("report", "--study", out, "--against", "lambdamart", "--out", tmp_path / "gaps")
    of = queries[queries["data"] != summary.POOLED].groupby(["metric", "objective"])["value"].mean()
    for _, row in pd.read_csv(tmp_path / "gaps" / "against.csv").iterrows():
        key = row["metric"]
        assert row["difference"] == pytest.approx(of[key, row["objective"]] - of[key, "lambdamart"])


def test_a_cell_is_kept_and_the_constant_model_knows_nothing(tmp_path):
    cell = cells.Cell("lightgbm", "yetirank", "yetirank", ("mrr", "ndcg@3"), Budget(6, leaves=4), fold=GENERATED)
    found = cells.run(cell, tmp_path)
    assert json.loads(cell.path(tmp_path).read_text()) == json.loads(json.dumps(found))
    assert [len(found["test"][metric]) for metric in cell.metrics] == [4, 4]
    test = GENERATED.load().test
    constant = cells.run(cells.Cell("", cells.CONSTANT, cells.CONSTANT, ("map",), Budget(), fold=GENERATED), None)
    assert np.mean(constant["test"]["map"]) == pytest.approx(evaluate("map", 0 * test.y, test.y, test.group))


def test_the_file_of_a_cell_depends_on_its_settings_but_not_on_threads_or_place():
    at, budget = folds.Fold("set", "/one/set/Fold1", 0), Budget(threads=1)
    cell = cells.Cell("xgboost", "yetirank", "yetirank", ("map",), budget, fold=at)
    same = replace(cell, fold=at._replace(source="/two/set/Fold1"), budget=replace(budget, threads=2))
    assert cell.key == same.key
    others = [
        replace(cell, **changed)
        for changed in (
            {"fold": at._replace(seed=1)}, {"fold": at._replace(source="/one/set/Fold2")}, {"library": "lightgbm"},
            {"objective": "yetiloss"}, {"metrics": ("mrr",)}, {"budget": replace(budget, learning_rate=0.2)},
            {"budget": replace(budget, params=(("subsample", 0.5),))}, {"smooth": ("map",)},
        )
    ]  # fmt: skip
    assert len({c.key for c in (cell, *others)}) == 9
    of_a_published_study = cells.Cell(
        "lightgbm", "yetiloss:map", "yetiloss:{metric}", ("map",),
        Budget(200, 0.1, 15, 20, min_child_weight=7.0, documents=55.0, seed=1, params=(("max_bin", 63),)), at,
        ("map", "mrr"),
    )  # fmt: skip
    assert of_a_published_study.key == "1b295f8d6aa8b933c5db"


def test_every_combination_is_planned_once():
    tried = ["lightgbm:bagging_freq=1", "lightgbm:bagging_fraction=.5,1", "xgboost:booster=gbtree"]
    found = planned(tried, libraries=("lightgbm", "xgboost"))
    assert [(c.library, c.budget.params) for c in found[1:]] == [
        ("lightgbm", (("bagging_fraction", 0.5), ("bagging_freq", 1))),
        ("lightgbm", (("bagging_fraction", 1), ("bagging_freq", 1))),
        ("xgboost", (("booster", "gbtree"),)),
    ]
    assert planned(objectives=("rmse", "rmse"), metrics=("map", "MAP")) == planned()
    budgets = [Budget(**settings) for settings in quality.drawn(3)]
    assert quality.drawn(50)[:3] == quality.drawn(3)
    assert [c.budget for c in planned(natives=["lambdarank"], budgets=budgets)[1:]] == [*budgets, *budgets]


def test_natives_are_given_to_the_library_that_knows_them_in_its_own_words():
    natives = ["rank:pairwise", "StochasticRank:metric={metric}", "YetiRank:mode={metric}"]
    metrics = "ndcg@10", "map", "precision@5"
    found = planned(libraries=("xgboost", "catboost"), objectives=("yetirank",), natives=natives, metrics=metrics)[1:]
    assert list(dict.fromkeys((c.library, c.objective, c.metrics) for c in found)) == [
        ("xgboost", "rank:pairwise", metrics),
        ("xgboost", "yetirank", metrics),
        ("catboost", "StochasticRank:metric=NDCG;top=10", ("ndcg@10",)),  # it has neither MAP nor precision
        ("catboost", "YetiRank:mode=NDCG;top=10", ("ndcg@10",)),
        ("catboost", "YetiRank:mode=MAP", ("map",)),
        ("catboost", "yetirank", metrics),
    ]


def test_the_usual_natives_are_those_of_every_metric_beside_others():
    found = planned(libraries=("xgboost", "catboost"), objectives=(), natives=["usual", "PairLogit"],
                    metrics=["mrr", "map"])[1:]  # fmt: skip
    assert list(dict.fromkeys((c.library, c.objective) for c in found)) == [
        *(("xgboost", name) for name in ("rank:ndcg", "rank:pairwise", "rank:map")),
        *(("catboost", name) for name in ("YetiRank", "QueryRMSE", "YetiRank:mode=MRR", "YetiRank:mode=MAP")),
        ("catboost", "PairLogit"),
    ]


def test_folds_of_generated_data_and_of_folders_which_may_lack_vali(tmp_path):
    [binary], [graded] = (folds.folds_of(f"{kind}:30,5,5", [3]) for kind in ("generated-binary", "generated"))
    assert (set(binary.load().train.y), graded.load().train.y.max()) == ({0, 1}, 4)
    assert folds.folds_of("generated:4,3,3:7", [1, 2]) == [folds.Fold("generated 4,3,3", "4,3,3", 7)]
    fold = write_fold(tmp_path / "generated" / "Fold1", "train.txt", "test.txt")
    [found] = folds.folds_of(str(tmp_path / "generated"), [0])
    assert [len(part.group) for part in found.load()] == [8, 2, 5]
    assert np.array_equal(found.load().test.y, fold.test.y)
    write_fold(tmp_path, *(f"set{i}.{part}.txt" for i in (1, 2) for part in ("train", "valid", "test")))
    [found] = folds.folds_of(str(tmp_path / "set1"), [0])
    assert (found.data, Path(found.source).name) == (f"{tmp_path.name} set1", "set1")
    same = [folds.Fold("set", str(tmp_path / where / "set"), 0) for where in "ab"]
    with pytest.raises(LTRError, match="same names"):
        plan(same, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], [Budget()])


in_each = pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])


@in_each
def test_with_several_metrics_each_stops_where_it_would_have_alone(library):
    metrics, fold = ("mrr", "ndcg@5", "recall@3"), folds.Fold("generated 20,8,8", "20,8,8", 1)
    cell = cells.Cell(library, "lambdamart", "lambdamart", metrics, Budget(15, 0.3, 4, 3), fold)
    together = cell.compute()
    for metric in metrics:
        alone = replace(cell, metrics=(metric,)).compute()
        for field in ("trees", "vali", "test"):
            assert together[field][metric] == alone[field][metric]
    assert len(set(together["trees"].values())) > 1


@in_each
def test_a_smoothed_metric_is_the_mean_over_noisy_scores(library):
    cell = cells.Cell(library, "lambdamart", "lambdamart", ("mrr", "map"), Budget(2), GENERATED, ("mrr",))
    fold, found = GENERATED.load(), cell.compute()
    ranker, _ = train(Trial(library, "lambdamart", cell.budget), fold.train, fold.vali, [get_metric("map")])
    scores = np.asarray(ranker.predict(fold.vali.X, **({"iteration_range": (0, 2)} if library == "xgboost" else {})))
    noise = np.random.default_rng(0).standard_normal((cells.DRAWS, len(scores))) * cells.NOISE * scores.std()
    noisy = [evaluate("mrr", scores + each, fold.vali.y, fold.vali.group) for each in noise]
    assert found["curves"]["mrr"][1] == pytest.approx(np.mean(noisy), abs=1e-3)  # near ties, in float32
    assert found["curves"]["map"][1] == pytest.approx(evaluate("map", scores, fold.vali.y, fold.vali.group), abs=1e-5)

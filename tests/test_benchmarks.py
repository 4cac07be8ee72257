"""Studies train each cell once and report what was found."""

import itertools
import json
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import write_letor
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from benchmarks import cells, folds, lead, publish, quality, report, summary
from benchmarks.__main__ import app
from ltr_objectives import LTRError, evaluate, get_metric
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.workbench.trials import Budget, Trial, train

SMALL = ["--trees", "4", "--leaves", "6", "--threads", "1", "--metrics", "ndcg@5,mrr"]
GENERATED = folds.Fold("generated 6,4,4", "6,4,4", 0)
TWO_TREES = [Budget(2)]
SETS = "MQ2008", "OHSUMED", "generated-calibrated 5,5,100"


def run(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def study(out, *arguments):
    return CliRunner().invoke(app, ["quality", "--out", str(out), *map(str, arguments), *SMALL])


def write_fold(folder, *names, seed=0):
    """Files of a fold by their names, such as ``train.txt`` or ``set1.valid.txt``."""
    fold = make_ranking_fold((10, 4, 5), seed, features=10, mean_length=6)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or ("train.txt", "vali.txt", "test.txt"):
        write_letor(folder / name, getattr(fold, re.search("train|vali|test", name)[0]))
    return fold


def planned(*arguments, libraries=("lightgbm",), objectives=("rmse",), natives=("none",), metrics=("map",),
            budgets=TWO_TREES):  # fmt: skip
    return quality.plan([GENERATED], libraries, objectives, list(natives), metrics, budgets, *arguments)


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
    assert "| lightgbm | lambdarank (native) |" in (out / "summary.md").read_text()
    found = json.loads((out / "study.json").read_text())["versions"]
    assert (found["lightgbm"], "xgboost" in found) == (version("lightgbm"), False)  # no training had it
    run("report", "--study", out, "--against", "lambdamart", "--out", tmp_path / "gaps")
    of = queries[queries["data"] != summary.POOLED].groupby(["metric", "objective"])["value"].mean()
    for _, row in pd.read_csv(tmp_path / "gaps" / "against.csv").iterrows():
        key = row["metric"]
        assert row["difference"] == pytest.approx(of[key, row["objective"]] - of[key, "lambdamart"])
    records = [json.loads(path.read_text()) for path in (out / "cells").glob("*.json")]
    again = [{**r, "fold": [*r["fold"][:2], 1]} for r in records if r["label"] != "lambdamart"]
    report.write([*records, *again], out, Console())
    assert "Left out, because a fold has no result: lightgbm lambdamart." in (out / "summary.md").read_text()


def test_a_study_has_own_classes(own_names, tmp_path):
    """The last --metrics counts, and the workers import them too."""
    asked = ["--data", "generated:6,4,5", "--libraries", "lightgbm", "--natives", "none", "--no-defaults"]
    done = CliRunner().invoke(app, ["quality", "--out", str(tmp_path), *SMALL, *asked, "--metrics", "mine@5,ndcg@5",
                                    "--objectives", "error,rmse", "--import", own_names])  # fmt: skip
    assert done.exit_code == 0, done.output
    means = pd.read_csv(tmp_path / "summary.csv").set_index(["objective", "metric"])["mean"]
    assert len({means[o, m] for o in ("error", "rmse") for m in ("mine@5", "ndcg@5")}) == 1


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
    found = planned(libraries=("xgboost", "catboost"), objectives=("yetirank",), natives=natives,
                    metrics=("ndcg@10", "map"))[1:]  # fmt: skip
    assert list(dict.fromkeys((c.library, c.objective, c.metrics) for c in found)) == [
        ("xgboost", "rank:pairwise", ("ndcg@10", "map")),
        ("xgboost", "yetirank", ("ndcg@10", "map")),
        ("catboost", "StochasticRank:metric=NDCG;top=10", ("ndcg@10",)),  # it has no MAP
        ("catboost", "YetiRank:mode=NDCG;top=10", ("ndcg@10",)),
        ("catboost", "YetiRank:mode=MAP", ("map",)),
        ("catboost", "yetirank", ("ndcg@10", "map")),
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [("data", "nowhere"), ("data", "generated:5"), ("natives", "lambdarnak"), ("libraries", "sklearn"),
     ("smooth", "map"), ("param", "subsample=1"), ("param", "sklearn:depth=3")],
)  # fmt: skip
def test_mistakes_end_a_study_before_it_begins(tmp_path, option, value):
    found = study(tmp_path / "out", f"--{option}", value)
    assert found.exit_code == 2
    assert option in found.output
    assert not (tmp_path / "out").exists()


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
        quality.plan(same, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], [Budget()])


in_each = pytest.mark.parametrize(
    "library", ["lightgbm", *(pytest.param(name, marks=pytest.mark.release) for name in ("xgboost", "catboost"))]
)


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


def record(label, values, *, fold="Fold1", seed=0, rate=0.1, vali=0.5, data="set"):
    return {"fold": [data, fold, seed], "library": "lightgbm", "label": label, "seconds": 1.0, "trees": {"map": 3},
            "vali": {"map": vali}, "budget": {"learning_rate": rate},
            "test": {"map": values}}  # fmt: skip


def test_the_budget_is_chosen_on_vali_in_each_fold_and_seeds_on_the_same_rows_are_averaged():
    frame = summary.chosen([
        record("a", [0.1], rate=0.1, vali=0.5), record("a", [0.2], rate=0.3, vali=0.6),
        record("a", [0.3], rate=0.1, vali=0.7, fold="Fold2"), record("a", [0.4], rate=0.3, vali=0.6, fold="Fold2"),
    ])  # fmt: skip
    assert frame["learning_rate"].tolist() == [0.3, 0.1]
    assert summary.by_query(frame)["set", "lightgbm", "a", "map"].tolist() == [0.2, 0.3]
    frame = summary.chosen([record("a", [0.1, 0.2]), record("a", [0.3, 0.6], seed=1)])
    np.testing.assert_allclose(summary.by_query(frame)["set", "lightgbm", "a", "map"], [0.2, 0.4])
    frame = summary.chosen([record("a", [0.1, 0.2], data="generated"), record("a", [0.3], seed=1, data="generated")])
    np.testing.assert_allclose(summary.by_query(frame)["generated", "lightgbm", "a", "map"], [0.1, 0.2, 0.3])


def test_incomplete_sets_are_left_out_and_pooling_takes_objectives_of_all_sets():
    values = summary.by_query(summary.chosen([
        record("a", [0.1]), record("a", [0.2], fold="Fold2"), record("b", [0.3]),
        record("a", [0.5], data="other"), record("b", [0.6], data="other"),
    ]))  # fmt: skip
    assert ("set", "lightgbm", "b", "map") not in values
    assert values[summary.POOLED, "lightgbm", "a", "map"].tolist() == [0.1, 0.2, 0.5]
    assert (summary.POOLED, "lightgbm", "b", "map") not in values


def named_values(metrics=("map", "auc")):
    rng, found = np.random.default_rng(0), {}
    shifts = {"lambdarank": 0.0, "rank_xendcg": 0.1, lead.ON_VALI: 0.05, "yetiloss:ndcg": 0.15,
              "yetiloss:{metric}": 0.2, "queryrmse": -0.1}  # fmt: skip
    for data, n in zip(SETS, (50, 30, 100), strict=True):
        base = rng.random(n)
        for label, shift in shifts.items():
            for metric in metrics:
                found[data, "lightgbm", label, metric] = base + shift + 0.05 * rng.standard_normal(n)
        found[data, "xgboost", "rank:ndcg", "map"] = base
    return found


def pooled(values, *labels, sets=SETS):
    return [np.concatenate([values[data, "lightgbm", label, "map"] for data in sets]) for label in labels]


def test_objectives_by_our_names_are_compared_with_the_native_ones_on_each_kind_of_data(tmp_path):
    values = named_values()
    with_threshold = {"yetiloss:{metric}": "yetiloss:ndcg+yetiloss:{metric}"}
    mixed = {key if key[0] == "MQ2008" else (*key[:2], with_threshold.get(key[2], key[2]), "map(threshold=2)"): v
             for key, v in values.items() if key[0] in SETS[:2] and key[3] == "map"}  # fmt: skip
    assert lead.lead(mixed)["queries"].tolist() == [80]  # metrics that differ in the threshold are pooled
    table = lead.lead(values).set_index(["data", "metric"])
    row = table.loc["real data", "map"]
    ours, chosen = pooled(values, "yetiloss:ndcg", lead.ON_VALI, sets=SETS[:2])
    assert row[["ours", "queries"]].tolist() == ["yetiloss:ndcg", 80]
    assert (row["difference"], row["se"]) == pytest.approx(((ours - chosen).mean(), stats.sem(ours - chosen)))
    first, second = (ours - chosen)[:50], (ours - chosen)[50:]
    assert row["by_set"] == pytest.approx((first.mean() + second.mean()) / 2)
    assert row["by_set_se"] == pytest.approx(np.hypot(stats.sem(first), stats.sem(second)) / 2)
    assert table.loc[(summary.POOLED, "map"), "queries"] == 180
    assert table.loc[("generated data", "auc"), "ours"] == "yetiloss:auc"
    kinds = dict(zip(SETS, ("search", "medicine"), strict=False))
    at_defaults = ("settings=defaults", "settings=defaults"), ("settings=defaults", "")
    for name in kinds:
        (tmp_path / name).mkdir()
        part = {key: v for key, v in values.items() if key[0] == name}
        report.long_table(part).to_parquet(tmp_path / name / "queries.parquet")
        (tmp_path / name / "study.json").write_text(json.dumps({"command": f"of {name}", "versions": {name: "1"}}))
        settings = [(*key, text) for key in part for text in (*at_defaults[key[2] == lead.ON_VALI], "", "leaves=7")]
        columns = "data", "library", "label", "metric", "params"
        pd.DataFrame(settings, columns=columns).to_csv(tmp_path / name / "chosen.csv")
    run("report", "--out", tmp_path, *(f"--study={kind}={tmp_path / name}" for name, kind in kinds.items()))
    assert (tmp_path / "lead.png").exists()
    written = json.loads((tmp_path / "study.json").read_text())
    assert written["versions"].items() >= {(name, "1") for name in kinds}
    assert written["studies"] == {name: f"of {name}" for name in kinds}
    real = {key: v for key, v in values.items() if key[0] in kinds}
    read = pd.read_csv(tmp_path / "lead.csv")
    assert read["data"].tolist() == ["search", "medicine", summary.POOLED] * 2
    defaults = {key: np.array([True, key[2] != lead.ON_VALI, False, False]) for key in real}
    pd.testing.assert_frame_equal(read, lead.lead(real, kinds, defaults), check_dtype=False)
    assert (set(read["native_at_defaults"]), set(read["ours_at_defaults"])) == ({0.25}, {0.5})
    assert "| 25% / 50% |" in (tmp_path / "summary.md").read_text()
    p = [stats.ttest_1samp(sets_gap, 0).pvalue for sets_gap in gaps(real)]
    assert read["p"][read["data"] == summary.POOLED].tolist() == pytest.approx([2 * min(p), max(*p, 2 * min(p))])


def gaps(values):
    for metric, ours in (("map", "yetiloss:ndcg"), ("auc", "yetiloss:{metric}")):
        found = [[values[data, "lightgbm", label, metric] for data in SETS[:2]] for label in (ours, lead.ON_VALI)]
        yield np.concatenate(found[0]) - np.concatenate(found[1])


def test_seeds_have_a_standard_error_of_their_own():
    lines = []
    for fold, seed in itertools.product((0, 1), repeat=2):
        ours = np.array(([0.5, 0.7], [0.6 - 0.1 * fold] * 2)[seed])
        native = np.array(([0.4, 0.4], [0.1, 0.1])[seed])
        lines += [("set", fold, seed, "lightgbm", label, "map", 0.5, values)
                  for label, values in (("yetiloss:ndcg", ours), ("lambdarank", native))]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["data", "fold", "seed", "library", "label", "metric", "vali", "values"])
    [row] = lead.over_seeds(frame).to_dict("records")
    by_seed = np.array([[0.2, 0.5], [0.2, 0.4]])  # mean gaps, by fold
    assert row["over_seeds"] == pytest.approx(np.sqrt((by_seed.var(axis=1, ddof=1) / 2).sum()) / 2)
    assert row["over_queries"] == pytest.approx(stats.sem([0.3, 0.4, 0.25, 0.35]))
    assert lead.over_seeds(frame[frame["seed"] == 0]).empty
    assert lead.over_seeds(frame.drop(index=0)).empty  # a training failed
    both = pd.concat([frame, frame[frame["label"] == "yetiloss:ndcg"].assign(label="yetiloss:{metric}")])
    [same] = lead.over_seeds(both.assign(metric="ndcg")).to_dict("records")  # for which our names give either
    assert same == row | {"metric": "ndcg"}


def test_objectives_chosen_on_vali_are_compared_on_both_sides_and_each_of_ours_over_the_libraries():
    real = {key: v for key, v in named_values(("map",)).items() if key[1] == "lightgbm" and key[0] in SETS[:2]}
    [chosen], [ours] = (pooled(real, label, sets=SETS[:2]) for label in (lead.ON_VALI, "queryrmse"))
    for data in SETS[:2]:
        real[data, "lightgbm", lead.OURS_ON_VALI, "map"] = real[data, "lightgbm", "queryrmse", "map"]
    assert lead.lead(real).loc[0, "on_vali"] == pytest.approx((ours - chosen).mean())
    for (data, _, label, metric), v in list(real.items()):
        real[data, "xgboost", label, metric] = v + 0.3 * (label == "queryrmse")
    found = lead.by_objective(real, {"MQ2008": "search"}).set_index(["objective", "data"])
    row = found.loc["queryrmse", summary.POOLED]
    assert row["difference"] == pytest.approx((ours - chosen).mean() + 0.15)
    assert (row["queries"], row["se"]) == (80, pytest.approx(stats.sem(ours - chosen)))
    assert found.loc[("queryrmse", "search"), "queries"] == 50
    assert "queryrmse" in lead.objectives_markdown(found.reset_index())


def test_the_native_objective_of_a_fold_is_that_with_the_best_vali_value():
    lines = [("one", "a", 0, "lightgbm", label, "map", vali) for label, vali in
             (("lambdarank", 0.3), ("rank_xendcg", 0.4), ("yetiloss", 0.5))]  # fmt: skip
    lines += [("one", "b", 0, "lightgbm", label, "map", vali) for label, vali in
              (("lambdarank", 0.3), ("rank_xendcg", 0.2))]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["data", "fold", "seed", "library", "label", "metric", "vali"])
    found = lead.on_vali(frame)
    assert found["vali"].tolist() == [0.4, 0.5, 0.3]
    assert found["label"].tolist() == [lead.ON_VALI, lead.OURS_ON_VALI, lead.ON_VALI]


def test_published_tables_are_those_of_the_results_and_a_block_alone_is_replaced():
    for page in publish.PAGES if (publish.ROOT / "README.md").exists() else ():
        text = page.read_text()
        assert publish.published(text, publish.RESULTS) == text, f"{page}: run python -m benchmarks publish"
    found = publish.published("a\n<!-- table: kernels -->\nold\n<!-- end -->\nb\n", publish.RESULTS)
    assert ("old" in found, found[:2], found[-3:]) == (False, "a\n", "\nb\n")

"""A study trains each cell once, keeps it, and writes what it found with the versions it had."""

import gzip
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
from ltr_objectives.libraries import LIBRARIES as FACTS
from ltr_objectives.libraries import is_native
from ltr_objectives.workbench.trials import Budget, Trial, train

SMALL = ["--no-plots", "--trees", "4", "--leaves", "6", "--threads", "1", "--metrics", "ndcg@5,mrr"]
GENERATED = folds.Fold("generated 6,4,4", "6,4,4", 0)
LARGER = folds.Fold("generated 20,8,8", "20,8,8", 1)


def study(out, *arguments, small=SMALL):
    return CliRunner().invoke(app, ["quality", "--out", str(out), *map(str, arguments), *small])


def write_fold(folder, *names, seed=0):
    """Files of a fold by their names, such as ``train.txt`` or ``set1.valid.txt.gz``."""
    fold = make_ranking_fold((10, 4, 5), seed, features=10, mean_length=6)
    for name in names or ("train.txt", "vali.txt", "test.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = getattr(fold, re.search("train|vali|test", name)[0])
        write_letor(path, part)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
    return fold


def planned(*arguments, libraries=("lightgbm",), objectives=("rmse",), natives=("none",), metrics=("map",), **more):
    return quality.plan([GENERATED], libraries, objectives, list(natives), metrics, [Budget(2)], *arguments, **more)


def test_a_study_goes_on_where_it_was_and_tells_what_it_found(tmp_path):
    for i in (1, 2):
        write_fold(tmp_path / "set" / f"Fold{i}", seed=i)
    chosen = ["--data", tmp_path / "set", "--data", "generated:6,4,5", "--libraries", "lightgbm,xgboost",
              "--objectives", "lambdamart,yetiloss:{metric}", "--natives", "lambdarank,rank:ndcg",
              "--learning-rates", ".1,.5"]  # fmt: skip
    first = study(tmp_path / "out", *chosen)
    assert first.exit_code == 0, first.output
    # 3 folds; constant, and in each library at 2 rates the native twice, lambdamart, and yetiloss for each metric
    assert f"{3 * (1 + 2 * 2 * 5)} trainings, 0 of them done before" in first.output
    files = sorted((tmp_path / "out" / "cells").iterdir())
    files[7].unlink()
    assert "63 trainings, 62 of them done before" in study(tmp_path / "out", *chosen).output
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert table.groupby("data")["queries"].max().to_dict() == {"set": 10, "generated 6,4,5": 5, "all data sets": 15}
    objectives = ["constant", "lambdarank", "lambdamart", "yetiloss:{metric}", "rank:ndcg"]
    assert list(dict.fromkeys(table["objective"])) == objectives
    queries = pd.read_parquet(tmp_path / "out" / "queries.parquet")
    means = queries.groupby(["data", "library", "objective", "metric"])["value"].mean()
    for _, row in table.fillna({"library": ""}).iterrows():
        assert means[row["data"], row["library"], row["objective"], row["metric"]] == pytest.approx(row["mean"])
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "| xgboost | yetiloss:{metric} |" in text
    assert "| lightgbm | lambdarank (native) |" in text
    assert (tmp_path / "out" / "chosen.csv").exists()


def test_a_training_that_fails_is_named_and_the_rest_goes_on(tmp_path):
    natives = ["--natives", "StochasticRank:metric=XX", "--libraries", "catboost", "--objectives", "queryrmse"]
    found = study(tmp_path / "out", "--data", "generated:4,3,3", *natives)
    assert found.exit_code == 1
    assert "failed: catboost: " in " ".join(found.output.split())
    assert "2 trainings failed" in found.output  # at both settings
    assert "queryrmse" in (tmp_path / "out" / "summary.md").read_text()


def test_versions_are_those_of_the_trainings_and_a_lost_fold_is_named(tmp_path):
    out = tmp_path / "study"
    chosen = ["--data", "generated:4,3,3", "--natives", "none", "--objectives", "rmse,queryrmse", "--libraries"]

    def versions(libraries):
        assert study(out, *chosen, libraries).exit_code == 0
        return json.loads((out / "study.json").read_text())["versions"]

    now = versions("lightgbm")
    assert now["lightgbm"] == version("lightgbm")
    assert "xgboost" not in now  # no training had it
    for path in (out / "cells").iterdir():
        record = json.loads(path.read_text())
        if record["objective"] == "rmse":
            record["versions"]["lightgbm"] = "3.3.5"
            path.write_text(json.dumps(record))
    mixed = f"3.3.5 in 1 and {version('lightgbm')} in 1 of the trainings"
    assert versions("lightgbm,xgboost") == now | {"lightgbm": mixed, "xgboost": version("xgboost")}
    assert publish.block("study", tmp_path).split("\n")[-3].endswith(f"xgboost {version('xgboost')}.")
    records = [json.loads(path.read_text()) for path in (out / "cells").glob("*.json")]
    again = [{**r, "fold": [*r["fold"][:2], 1]} for r in records if (r["library"], r["label"]) != ("lightgbm", "rmse")]
    report.write([*records, *again], out, 0.05, Console(), plots=False)
    assert "Left out, because a fold has no result: lightgbm rmse." in (out / "summary.md").read_text()


def test_a_cell_is_kept_and_the_constant_model_knows_nothing(tmp_path):
    cell = cells.Cell("lightgbm", "yetirank", "yetirank", ("mrr", "ndcg@3"), Budget(6, leaves=4), fold=GENERATED)
    record = cells.run(cell, tmp_path)
    assert json.loads(cell.path(tmp_path).read_text()) == json.loads(json.dumps(record))
    assert [len(record["test"][metric]) for metric in cell.metrics] == [4, 4]
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


def test_draws_are_within_their_ranges():
    assert quality.drawn(2) == quality.drawn(50)[:2]
    for settings in quality.drawn(50):
        assert all(low <= settings[name] <= high for name, (low, high) in quality.SHARED.items())


def test_every_combination_is_planned_once():
    tried = ["lightgbm:bagging_freq=1", "lightgbm:bagging_fraction=.5,1", "xgboost:booster=gbtree"]
    found = planned(tried, libraries=("lightgbm", "xgboost"))
    assert [(c.library, c.budget.params) for c in found[1:]] == [
        ("lightgbm", (("bagging_fraction", 0.5), ("bagging_freq", 1))),
        ("lightgbm", (("bagging_fraction", 1), ("bagging_freq", 1))),
        ("xgboost", (("booster", "gbtree"),)),
    ]
    values = [cells.run(cell, None)["curves"]["map"] for cell in found[1:3]]
    assert values[0] != values[1]
    assert planned(objectives=("rmse", "rmse"), metrics=("map", "MAP")) == planned()
    budgets = [Budget(**settings) for settings in quality.drawn(3)]
    cells_of = quality.plan([GENERATED], ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], budgets)[1:]
    by_label = {label: [c.budget for c in cells_of if c.label == label] for label in ("rmse", "lambdarank")}
    assert by_label["rmse"] == budgets
    assert by_label["lambdarank"] == [*(replace(b, defaults=True) for b in budgets), *budgets]


def test_two_data_sets_of_one_name_are_refused(tmp_path):
    same = [folds.Fold("set", str(tmp_path / where / "set"), 0) for where in "ab"]
    with pytest.raises(LTRError, match="have the same names"):
        quality.plan(same, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], [Budget()])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "--data nowhere does not exist"),
        (["--data", "generated:5"], "must be three, such as generated:600,200,400"),
        (["--objectives", "lamdamart"], "lamdamart is not one of our objectives: unknown objective"),
        (["--natives", "lambdarnak"], "lambdarnak is known to no library"),
        (["--libraries", "sklearn"], "libraries='sklearn' is not known"),
        (["--smooth", "map"], "smooth='map' is not known; choose one of 'ndcg@5', 'mrr'"),
        (["--param", "subsample=1"], "must look like"),
        (["--param", "sklearn:depth=3"], "sklearn is not in --libraries"),
    ],
)
def test_mistakes_end_a_study_before_it_begins(tmp_path, arguments, message):
    found = study(tmp_path / "out", *arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())
    assert not (tmp_path / "out").exists()


def test_generated_data_differ_by_kind_and_seed():
    [binary], [graded], [calibrated] = (
        folds.folds_of(f"{kind}:30,5,5", [3]) for kind in ("generated-binary", "generated", "generated-calibrated")
    )
    labels = binary.load().train.y
    assert set(labels) == {0, 1}
    assert 0 < labels.mean() < 0.03
    assert graded.load().train.y.max() == 4
    assert not np.array_equal(calibrated.load().train.y, graded.load().train.y)
    one, two = folds.folds_of("generated:4,3,3", [1, 2])
    assert len(one.load().train.y) != len(two.load().train.y)
    assert folds.folds_of("generated:4,3,3:7", [1, 2]) == [folds.Fold("generated 4,3,3", "4,3,3", 7)]


def test_folds_may_lack_vali_have_ids_in_any_order_and_be_called_like_generated_data(tmp_path):
    fold = write_fold(tmp_path / "generated" / "Fold1", "train.txt", "test.txt")
    path = tmp_path / "generated" / "Fold1" / "train.txt"
    path.write_text(re.sub(r"qid:(\d+)", lambda m: f"qid:{100 - int(m[1])}", path.read_text()))
    [found] = folds.folds_of(str(tmp_path / "generated"), [0])
    assert [len(part.group) for part in found.load()] == [8, 2, 5]
    assert np.array_equal(found.load().test.y, fold.test.y)
    assert cells.run(cells.Cell("lightgbm", "rmse", "rmse", ("map",), Budget(2), fold=found), None)["vali"]["map"] > 0
    with pytest.raises(LTRError, match="is a file"):
        folds.folds_of(str(path), [0])


def test_a_prefix_names_one_of_several_data_sets_in_a_folder(tmp_path):
    fold = write_fold(tmp_path, *(f"set{i}.{part}.txt" for i in (1, 2) for part in ("train", "valid", "test")))
    [found] = folds.folds_of(str(tmp_path / "set1"), [0])
    assert (found.data, Path(found.source).name) == (f"{tmp_path.name} set1", "set1")
    assert [len(part.group) for part in found.load()] == [10, 4, 5]
    assert found.load().test.y.tolist() == fold.test.y.tolist()


def named_values(metrics=("map", "auc")):
    rng = np.random.default_rng(0)
    found = {}
    shifts = {"lambdarank": 0.0, "rank_xendcg": 0.1, lead.ON_VALI: 0.05, "yetiloss:gap": 0.15, "yetiloss:{metric}": 0.2,
              "queryrmse": -0.1}  # fmt: skip
    for data, n in (("MQ2008", 50), ("OHSUMED", 30), ("generated-calibrated 5,5,100", 100)):
        base = rng.random(n)
        for label, shift in shifts.items():
            for metric in metrics:
                found[data, "lightgbm", label, metric] = base + shift + 0.05 * rng.standard_normal(n)
        found[data, "xgboost", "rank:ndcg", "map"] = base
    return found


def pooled(values, *labels, sets=("MQ2008", "OHSUMED", "generated-calibrated 5,5,100")):
    return [np.concatenate([values[data, "lightgbm", label, "map"] for data in sets]) for label in labels]


def test_objectives_by_our_names_are_compared_with_the_native_ones_on_each_kind_of_data(tmp_path):
    values = named_values()
    table = lead.lead(values).set_index(["data", "metric"])
    row = table.loc["real data", "map"]
    ours, chosen, native, best = pooled(
        values, "yetiloss:gap", lead.ON_VALI, "rank_xendcg", "yetiloss:{metric}", sets=("MQ2008", "OHSUMED")
    )
    assert [row[k] for k in ("ours", "native", "best", "queries")] == [
        "yetiloss:gap", "rank_xendcg", "yetiloss:map", 80,
    ]  # fmt: skip
    assert row["difference"] == pytest.approx((ours - chosen).mean())
    assert row["se"] == pytest.approx(stats.sem(ours - chosen))
    assert row["on_test"] == pytest.approx((ours - native).mean())
    assert row["behind"] == pytest.approx((best - ours).mean())
    first, second = (ours - chosen)[:50], (ours - chosen)[50:]
    assert row["by_set"] == pytest.approx((first.mean() + second.mean()) / 2)
    assert row["by_set_se"] == pytest.approx(np.hypot(stats.sem(first), stats.sem(second)) / 2)
    assert table.loc[(summary.POOLED, "map"), "queries"] == 180
    assert table.loc[("generated data", "auc"), "ours"] == "yetiloss:auc"
    text = lead.markdown(table.reset_index())
    assert f"| map | lightgbm | yetiloss:gap | {1000 * row['difference']:+.1f}" in text
    arguments = ["report", "--out", str(tmp_path)]
    kinds = {"MQ2008": "search", "OHSUMED": "medicine"}
    for name, kind in kinds.items():
        (tmp_path / name).mkdir()
        part = {key: v for key, v in values.items() if key[0] == name}
        report.long_table(part).to_parquet(tmp_path / name / "queries.parquet")
        (tmp_path / name / "study.json").write_text(json.dumps({"versions": {name: "1"}}))
        arguments += ["--study", f"{kind}={tmp_path / name}"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "lead.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "study.json").read_text())["versions"].items() >= {(name, "1") for name in kinds}
    assert (tmp_path / "summary.md").read_text().startswith("**What our names give")
    real = {key: v for key, v in values.items() if not key[0].startswith("generated")}
    read = pd.read_csv(tmp_path / "lead.csv")
    assert read["data"].tolist() == ["search", "medicine", summary.POOLED] * 2
    pd.testing.assert_frame_equal(read, lead.lead(real, kinds), check_dtype=False)


def test_objectives_chosen_on_vali_are_compared_on_both_sides_and_each_of_ours_over_the_libraries():
    values = {key: v for key, v in named_values(("map",)).items() if key[1] == "lightgbm"}
    sets = ("MQ2008", "OHSUMED")
    [chosen], [ours] = (pooled(values, label, sets=sets) for label in (lead.ON_VALI, "queryrmse"))
    for data in sets:
        values[data, "lightgbm", lead.OURS_ON_VALI, "map"] = values[data, "lightgbm", "queryrmse", "map"]
    real = {key: v for key, v in values.items() if key[0] in sets}
    table = lead.lead(real)
    assert table.loc[0, "on_vali"] == pytest.approx((ours - chosen).mean())
    assert f"| {1000 * table.loc[0, 'on_vali']:+.1f} (" in lead.markdown(table)
    for (data, library, label, metric), v in list(real.items()):
        if not is_native(library, label):
            real[data, "xgboost", label, metric] = v + 0.3 * (label == "queryrmse")
    found = lead.by_objective(real, {"MQ2008": "search"}).set_index(["objective", "data"])
    row = found.loc["queryrmse", summary.POOLED]
    assert row["queries"] == 80
    assert row["difference"] == pytest.approx((ours - chosen).mean() + 0.15)
    assert row["se"] == pytest.approx(stats.sem(ours - chosen))
    assert found.loc[("queryrmse", "search"), "queries"] == 50
    assert set(found.index.get_level_values("objective")) == {"queryrmse", "yetiloss:gap", "yetiloss:{metric}"}
    text = lead.objectives_markdown(found.reset_index())
    assert text.index("yetiloss:{metric}") < text.index("queryrmse")


def test_metrics_that_differ_in_the_threshold_of_relevance_are_pooled():
    plain = {key: v for key, v in named_values(("map",)).items() if key[1] == "lightgbm"}
    other = named_values(("map(threshold=2)",))
    mixed = {key: v for key, v in plain.items() if key[0] == "MQ2008"}
    mixed |= {key: v for key, v in other.items() if key[0] == "OHSUMED" and key[1] == "lightgbm"}
    table = lead.lead(mixed).set_index(["data", "metric"])
    assert table.loc[("real data", "map"), "queries"] == 80


def test_the_native_objective_of_a_fold_is_that_with_the_best_vali_value():
    lines = [("one", "a", 0, "lightgbm", label, "map", vali) for label, vali in
             (("lambdarank", 0.3), ("rank_xendcg", 0.4), ("yetiloss", 0.5))]  # fmt: skip
    lines += [("one", "b", 0, "lightgbm", label, "map", vali) for label, vali in
              (("lambdarank", 0.3), ("rank_xendcg", 0.2))]  # fmt: skip
    frame = pd.DataFrame(lines, columns=["data", "fold", "seed", "library", "label", "metric", "vali"])
    found = lead.on_vali(frame)
    assert found["vali"].tolist() == [0.4, 0.5, 0.3]
    assert found["label"].tolist() == [lead.ON_VALI, lead.OURS_ON_VALI, lead.ON_VALI]


def test_the_verdict_corrects_for_the_number_of_ours():
    values = {key: v for key, v in named_values().items() if key[2] != lead.ON_VALI}
    whole = {(summary.POOLED, *key[1:]): np.concatenate([values[(data, *key[1:])] for data in
             ("MQ2008", "OHSUMED", "generated-calibrated 5,5,100")]) for key in values}  # fmt: skip
    table = report.verdict({**values, **whole})
    table = table[table["metric"] == "map"].set_index("objective")  # neither natives nor libraries without ours
    assert list(table.index) == ["yetiloss:gap", "yetiloss:{metric}", "queryrmse"]
    assert set(table["native"]) == {"rank_xendcg"}
    assert table["best"].tolist() == [False, True, False]
    [base] = pooled(values, "rank_xendcg")
    raw = {}
    for label, row in table.iterrows():
        [own] = pooled(values, label)
        assert row["difference"] == pytest.approx(own.mean() - base.mean())
        assert row["se"] == pytest.approx(stats.sem(own - base))
        raw[label] = stats.ttest_rel(own, base).pvalue
    smallest, middle, largest = sorted(raw, key=raw.get)
    assert table["p"][smallest] == pytest.approx(3 * raw[smallest])
    assert table["p"][middle] == pytest.approx(max(3 * raw[smallest], 2 * raw[middle]))
    assert table["p"][largest] == pytest.approx(max(2 * raw[middle], raw[largest]))
    text = report.verdict_markdown(table.reset_index(), 0.05)
    best, every = text.split("**All of ours")
    assert best.count("\n| lightgbm") == 1
    assert every.count("\n| lightgbm") == 3
    assert "▼" in every
    [_, line] = report.best_lines(table.reset_index(), 0.05)
    assert line[:5:2] == ["lightgbm", "rank_xendcg", "yetiloss:{metric}"]
    natives = {k: v for k, v in values.items() if k[2] in ("lambdarank", "rank_xendcg")}
    assert report.verdict_markdown(report.verdict(natives), 0.05) == ""
    assert report.verdict({}).empty


@pytest.mark.parametrize("library", FACTS)
def test_with_several_metrics_each_stops_where_it_would_have_alone(library):
    metrics = "mrr", "ndcg@5", "recall@3"
    cell = cells.Cell(library, "lambdamart", "lambdamart", metrics, Budget(15, 0.3, 4, 3), LARGER)
    together = cell.compute()
    for metric in metrics:
        alone = replace(cell, metrics=(metric,)).compute()
        for field in ("trees", "vali", "train", "test"):
            assert together[field][metric] == alone[field][metric]
    assert len(set(together["trees"].values())) > 1


@pytest.mark.parametrize("library", FACTS)
def test_a_smoothed_metric_is_the_mean_over_noisy_scores(library):
    cell = cells.Cell(library, "lambdamart", "lambdamart", ("mrr", "map"), Budget(2), GENERATED, ("mrr",))
    vali, found = GENERATED.load().vali, cell.compute()
    budget = replace(cell.budget, trees=2)
    ranker, _ = train(Trial(library, "lambdamart", budget), GENERATED.load().train, vali, [get_metric("map")] * 1)
    scores = np.asarray(ranker.predict(vali.X, **({"iteration_range": (0, 2)} if library == "xgboost" else {})), float)
    noise = np.random.default_rng(0).standard_normal((cells.DRAWS, len(scores))) * cells.NOISE * scores.std()
    noisy = [evaluate("mrr", scores + each, vali.y, vali.group) for each in noise]
    assert found["curves"]["mrr"][1] == pytest.approx(np.mean(noisy), abs=1e-3)  # near ties, in float32
    assert found["curves"]["map"][1] == pytest.approx(evaluate("map", scores, vali.y, vali.group), abs=1e-5)


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


def record(label, values, *, fold="Fold1", seed=0, rate=0.1, vali=0.5, data="set"):
    return {"fold": [data, fold, seed], "library": "lightgbm", "label": label, "seconds": 1.0, "trees": {"map": 3},
            "train": {"map": 0.9}, "vali": {"map": vali}, "budget": {"learning_rate": rate},
            "test": {"map": values}}  # fmt: skip


def test_the_budget_is_chosen_on_vali_in_each_fold():
    frame = summary.chosen([
        record("a", [0.1], rate=0.1, vali=0.5), record("a", [0.2], rate=0.3, vali=0.6),
        record("a", [0.3], rate=0.1, vali=0.7, fold="Fold2"), record("a", [0.4], rate=0.3, vali=0.6, fold="Fold2"),
    ])  # fmt: skip
    assert frame["learning_rate"].tolist() == [0.3, 0.1]
    assert summary.by_query(frame)["set", "lightgbm", "a", "map"].tolist() == [0.2, 0.3]


def test_seeds_on_the_same_rows_are_averaged_and_generated_ones_are_not():
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

"""The comparison trains and stops as it says, marks only what is significant, and writes all of it."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from benchmarks import cells, pooled, short_report
from benchmarks.__main__ import app
from benchmarks.libraries import LIBRARIES
from benchmarks.quality import plan
from ltr_objectives import LTRError, evaluate, get_metric, get_objective
from ltr_objectives.workbench import statistics
from ltr_objectives.workbench.trials import Budget
from ltr_objectives.workbench.summary import summary
from ltr_objectives.datasets import RankingFold, make_ranking, make_ranking_fold

TINY = ["--trees", "4", "--leaves", "6", "--threads", "1"]


def command(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def fold():
    return make_ranking_fold((12, 6, 8), seed=2, features=20, mean_length=15)


def write_letor(path, data):
    lines = (
        f"{y:g} qid:{q} " + " ".join(f"{j}:{x:.5g}" for j, x in enumerate(row, 1))
        for row, y, q in zip(data.X, data.y, data.qid, strict=True)
    )
    path.write_text("\n".join(lines))


def test_the_command_line_writes_table_json_csv_and_plot(tmp_path):
    chosen = ("--objectives", "yetiloss:map,queryrmse", "--metrics", "ndcg@10,mrr")
    result = command("compare", "--queries", "8,4,6", *chosen, *TINY, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    csv = pd.read_csv(tmp_path / "compare.csv")
    natives = {name: list(kind.usual) for name, kind in LIBRARIES.items()}
    expected = [(name, o) for name in LIBRARIES for o in [*natives[name], "yetiloss:map", "queryrmse"]]
    assert list(zip(csv["library"], csv["objective"], strict=True)) == expected
    assert csv["kind"].value_counts().to_dict() == {"ours": 6, "reference": 3, "native": 3}
    assert csv[["ndcg@10", "mrr"]].apply(lambda c: c.between(0.01, 1)).all(axis=None)
    assert csv["ndcg@10 p"].isna().tolist() == (csv["kind"] == "reference").tolist()
    document = json.loads((tmp_path / "compare.json").read_text())
    assert document["settings"]["trees"] == 4
    assert set(document["versions"]) >= {"xgboost", "lightgbm", "catboost"}
    for row, mean in zip(document["rows"], csv["ndcg@10"], strict=True):
        assert 1 <= len(row["curve"]) <= 4
        assert row["curve"][row["best_iteration"] - 1] == max(row["curve"])
        assert row["test"]["ndcg@10"] == pytest.approx(mean)
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert all(text in result.output for text in ("rank:ndcg (native)", "yetiloss:map", "6 test", "compare.png"))


def test_vali_is_split_off_where_there_is_none_and_said_so(tmp_path):
    (tmp_path / "Fold1").mkdir()
    for part, seed in (("train", 1), ("test", 2)):
        write_letor(tmp_path / "Fold1" / f"{part}.txt", make_ranking(10, seed, features=10, mean_length=8))
    result = command("compare", "--data", tmp_path / "Fold1", "--libraries", "lightgbm", "--objectives", "yetirank",
                     "--natives", "none", *TINY, "--out", tmp_path / "out", "--name", "x")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "no vali part: 2 of its train queries are split off (seed 0)" in result.output
    assert pd.read_csv(tmp_path / "out" / "x.csv")["objective"].tolist() == ["yetirank"]


def test_natives_alone_are_compared_and_drawn(tmp_path):
    result = command("compare", "--queries", "6,4,4", "--libraries", "lightgbm", "--objectives", "", *TINY,
                     "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert pd.read_csv(tmp_path / "compare.csv")["kind"].tolist() == ["reference", "native"]
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_may_be_called_like_generated_data(tmp_path, fold):
    (tmp_path / "generated").mkdir()
    for part in ("train", "vali", "test"):
        write_letor(tmp_path / "generated" / f"{part}.txt", getattr(fold, part))
    [found] = cells.folds_of(str(tmp_path / "generated"), [0])
    assert np.array_equal(found.load().test.y, fold.test.y)


def test_split_keeps_every_query_once(fold):
    train, vali = cells.split_vali(fold.train, seed=5)
    assert (len(train.group), len(vali.group)) == (10, 2)
    assert sorted([*np.unique(train.qid), *np.unique(vali.qid)]) == list(np.unique(fold.train.qid))
    again, _ = cells.split_vali(fold.train, seed=5)
    assert np.array_equal(again.qid, train.qid)
    with pytest.raises(LTRError, match="single train query"):
        cells.split_vali(fold.train.select([0]), seed=5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--libraries", "sklearn"], "libraries='sklearn' is not known"),
        (["--objectives", "lambdarank"], "unknown objective 'lambdarank'"),
        (["--metrics", "ndgc"], "unknown metric 'ndgc'"),
        (["--metrics", ","], "--metrics is empty"),
        (["--natives", "rank:xx"], "natives: 'rank:xx' is not known"),
        (["--natives", "YetiRank", "--libraries", "xgboost"], "natives: 'YetiRank' is not known in --libraries"),
        (["--data", "nowhere"], "nowhere does not exist"),
        (["--queries", "5,5"], "must be three numbers"),
        (["--out", "/proc/nowhere"], "/proc/nowhere"),
        (
            ["--libraries", "catboost", "--natives", "YetiRank:mode=XX", "--queries", "3,3,3"],
            "catboost could not train",
        ),
    ],
)
def test_mistakes_are_named_without_a_traceback(tmp_path, arguments, message):
    if "catboost" in arguments:
        pytest.importorskip("catboost", "1.2.1")  # before, CatBoost takes any mode
    result = command("compare", "--out", tmp_path, *arguments, *TINY)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def planned(libraries, objectives, natives, seed=0):
    fold = cells.Fold("generated 4,3,3", "4,3,3", seed)
    return [c for c in plan([fold], libraries, objectives, natives, ["map"], [Budget()]) if c.library]


def test_natives_are_given_to_the_library_that_knows_them():
    found = planned(["xgboost", "catboost"], ["yetirank"], ["rank:pairwise", "StochasticRank:metric=NDCG"])
    assert [(c.library, c.label, c.native) for c in found] == [
        ("xgboost", "rank:pairwise", True), ("xgboost", "yetirank", False),
        ("catboost", "StochasticRank:metric=NDCG", True), ("catboost", "yetirank", False),
    ]  # fmt: skip


def test_the_seed_reaches_our_objectives():
    [cell] = planned(["lightgbm"], ["yetirank"], ["none"], seed=7)
    assert cells.objective_of(cell) == get_objective("yetirank:seed=7")


def test_ours_are_ours_however_they_are_spelled(tmp_path):
    """The name of CatBoost's own YetiRank differs from ours only in capitals."""
    result = command("compare", "--queries", "6,4,4", "--libraries", "catboost", "--natives", "none", *TINY,
                     "--objectives", "YetiRank", "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0, result.output
    assert pd.read_csv(tmp_path / "compare.csv")["kind"].tolist() == ["ours"]


def test_a_comparison_is_a_cell_of_a_study_stopped_by_its_first_metric():
    fold = cells.Fold("generated 10,5,6", "10,5,6", 4)
    names = "mrr", "ndcg@3"
    cell = cells.Cell(fold, "lightgbm", "yetirank", "yetirank", names, Budget(trees=12, leaves=4, patience=4))
    each, first = cells.run(cell, None), cells.run(replace(cell, stop="mrr"), None)
    assert set(first["curves"]) == {"mrr"}
    assert first["trees"] == dict.fromkeys(names, each["trees"]["mrr"])
    assert first["test"]["mrr"] == each["test"]["mrr"]
    assert each["trees"]["ndcg@3"] != each["trees"]["mrr"]
    assert first["test"]["ndcg@3"] != each["test"]["ndcg@3"]
    assert len({cell.key, replace(cell, stop="mrr").key, replace(cell, stop="ndcg@3").key}) == 3


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("metric", ["ndcg@5", "mrr", "dcg"])
def test_every_training_stops_on_our_metric_and_predicts_with_its_best_tree(fold, library, metric):
    twice = RankingFold(fold.train, fold.vali, fold.vali)
    prepared = LIBRARIES[library](twice, [get_metric(metric)], Budget(trees=15, leaves=4, patience=3))
    for objective in (prepared.usual[0], get_objective("yetiloss:mrr")):
        seen = []
        training = prepared.run(objective, seen.append)
        curve = training.curves[metric]
        assert seen == curve
        scores = training.scores(fold.vali, metric)
        assert max(curve) == pytest.approx(evaluate(metric, scores, fold.vali.y, fold.vali.group))
        assert len(curve) == min(15, training.best(metric) + 3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_with_several_metrics_each_stops_where_it_would_have_alone(fold, library):
    budget = Budget(trees=25, leaves=4, patience=3)
    metrics = [get_metric(m) for m in ("mrr", "ndcg@5", "recall@3")]
    together = LIBRARIES[library](fold, metrics, budget).run(get_objective("lambdamart"), bool)
    lengths = set()
    for metric in metrics:
        alone = LIBRARIES[library](fold, [metric], budget).run(get_objective("lambdamart"), bool)
        assert together.best(str(metric)) == alone.best(str(metric))
        assert together.curves[str(metric)][: len(alone.curves[str(metric)])] == alone.curves[str(metric)]
        lengths.add(len(alone.curves[str(metric)]))
    assert len(lengths) > 1
    assert len(together.curves["mrr"]) >= max(lengths)


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_same_training_gives_the_same_numbers(fold, library):
    budget = Budget(trees=5, leaves=6, threads=2)
    a, b = (
        LIBRARIES[library](fold, [get_metric("map")], budget).run(get_objective("yetirank"), bool) for _ in range(2)
    )
    assert a.curves == b.curves
    assert np.array_equal(a.scores(fold.test, "map"), b.scores(fold.test, "map"))


def test_labels_are_binary_for_rank_map_only(fold):
    library = LIBRARIES["xgboost"](fold, [get_metric("map")], Budget(trees=3))
    library.run("rank:map", lambda value: None)
    assert np.array_equal(library.dtrain.get_label(), fold.train.y)
    assert fold.train.y.max() > 1


def test_paired_p_is_students():
    rng = np.random.default_rng(0)
    a, b = rng.random(30), rng.random(30)
    d = a - b
    t = d.mean() / (d.std(ddof=1) / np.sqrt(30))
    assert statistics.paired_p(a, b) == pytest.approx(2 * stats.t.sf(abs(t), 29))


def test_p_of_degenerate_differences():
    a = np.array([0.5, np.nan, 0.25, 1.0])
    assert statistics.paired_p(a, a) == 1.0
    assert statistics.paired_p(a + 0.25, a) == 0.0
    assert statistics.paired_p(a[:1] + 1, a[:1]) == 1.0
    assert statistics.paired_p(a, np.array([0.5, 1.0, np.nan, 1.0])) == 1.0


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])


def test_marks_tell_better_worse_and_chance():
    rng = np.random.default_rng(1)
    reference = rng.random(200)
    better, worse, same = (reference + shift + 0.1 * rng.standard_normal(200) for shift in (0.1, -0.1, 0.0))
    models = {"better": better, "worse": worse, "same": same}
    found = statistics.differences(models, reference)
    marks = [statistics.mark(of["difference"], of["p"], 0.05) for of in found.values()]
    assert marks == [statistics.BETTER, statistics.WORSE, statistics.SAME]
    assert found["same"]["p"] > 0.05
    assert statistics.mark(1.0, np.nan, 0.05) == statistics.SAME


def trained(label, values):
    return {"fold": ["set", "Fold1", 0], "library": "xgboost", "label": label, "stop": "map", "seconds": 1.0,
            "budget": {"learning_rate": 0.1}, "trees": {"map": 1}, "train": {"map": 0.9}, "vali": {"map": 0.1},
            "curves": {"map": [0.1]}, "test": {"map": values.tolist()}}  # fmt: skip


def test_only_others_than_the_reference_are_marked():
    """The reference is the first native objective, even if another is better; a study takes the best."""
    rng = np.random.default_rng(1)
    base = rng.random(100)
    values = {"rank:map": base} | {o: base + rng.normal(d, 0.01, 100) for o, d in (("rank:ndcg", 0.1), ("ours", 0.2))}
    results = [trained(label, v) for label, v in values.items()]
    rows = short_report.rows_of(results, 0.05)
    assert [row["reference"] for row in rows] == [True, False, False]
    assert (rows[0]["p"], rows[0]["mark"]) == ({}, {})
    assert rows[2]["mark"] == {"map": statistics.BETTER}
    assert rows[2]["p"]["map"] == pytest.approx(stats.ttest_rel(values["ours"], base).pvalue)
    assert short_report.table_of(rows)["map mark"].tolist() == ["", statistics.BETTER, statistics.BETTER]
    study = summary(pooled.by_query(pooled.chosen(results)))
    assert study["reference"].fillna("").tolist() == ["rank:ndcg", "", "rank:ndcg"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_parameters_of_ours_stand_under_those_of_the_study_and_change_the_file(library, fold, monkeypatch):
    """CatBoost's noise on splits, which it scales by gradients, is off for ours and on for native objectives."""
    kind = LIBRARIES[library]
    budget = Budget(trees=3, leaves=6)
    at = cells.Fold("set", "/one/set/Fold1", 0)
    ours, native = (cells.Cell(at, library, o, o, ("map",), budget) for o in ("yetirank", kind.usual[0]))
    keys = ours.key, native.key
    monkeypatch.setattr(kind, "with_ours", {})
    assert (ours.key == keys[0]) == (library != "catboost")
    assert native.key == keys[1]


def test_splits_in_catboost_have_noise_only_where_they_are_told_to(fold):
    curves = {}
    for strength in (None, 0, 1):
        params = () if strength is None else (("random_strength", strength),)
        for objective in ("YetiRank", get_objective("queryrmse")):
            library = LIBRARIES["catboost"](fold, [get_metric("map")], Budget(trees=4, leaves=6, params=params))
            curves[str(objective), strength] = library.run(objective).curves["map"]
    ours = str(get_objective("queryrmse"))
    assert curves[ours, None] == curves[ours, 0] != curves[ours, 1]
    assert curves["YetiRank", None] == curves["YetiRank", 1] != curves["YetiRank", 0]


def test_help_lists_the_subcommands():
    result = command("--help")
    assert "compare" in result.output
    assert "demo" in result.output

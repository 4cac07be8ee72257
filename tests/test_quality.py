"""A study trains each cell once, stops and chooses on vali for each metric, and compares over test queries."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from benchmarks import cells, pooled, quality, report
from benchmarks.__main__ import app
from ltr_objectives import LTRError, evaluate
from ltr_objectives.workbench import statistics
from ltr_objectives.workbench.trials import Budget
from ltr_objectives.workbench.summary import randomisation_p, summary
from ltr_objectives.datasets import make_ranking, make_ranking_fold

SMALL = ["--no-plots", "--trees", "4", "--leaves", "6", "--threads", "1", "--metrics", "ndcg@5,mrr"]


def study(out, *arguments):
    return CliRunner().invoke(app, ["quality", "--out", str(out), *map(str, arguments), *SMALL])


def write_fold(folder, seed, queries=(8, 4, 6)):
    fold = make_ranking_fold(queries, seed, features=10, mean_length=8)
    folder.mkdir(parents=True)
    for name, part in (("train", fold.train), ("vali", fold.vali), ("test", fold.test)):
        rows = zip(part.X, part.y, part.qid, strict=True)
        lines = (f"{y:g} qid:{q} " + " ".join(f"{j}:{x:.5g}" for j, x in enumerate(row, 1)) for row, y, q in rows)
        (folder / f"{name}.txt").write_text("\n".join(lines))
    return fold


def test_a_study_goes_on_where_it_was_and_tells_what_it_found(tmp_path):
    for i in (1, 2):
        write_fold(tmp_path / "set" / f"Fold{i}", i)
    chosen = ["--data", tmp_path / "set", "--data", "generated:6,4,5", "--libraries", "lightgbm,xgboost",
              "--objectives", "lambdamart,yetiloss:{metric}", "--natives", "lambdarank,rank:ndcg",
              "--learning-rates", ".1,.5"]  # fmt: skip
    first = study(tmp_path / "out", *chosen)
    assert first.exit_code == 0, first.output
    # 3 folds; constant, and in each library at 2 rates the native, lambdamart, and yetiloss for each metric
    assert f"{3 * (1 + 2 * 2 * 4)} trainings, 0 of them done before" in first.output
    files = sorted((tmp_path / "out" / "cells").iterdir())
    assert len(files) == 51
    files[7].unlink()
    again = study(tmp_path / "out", *chosen)
    assert "51 trainings, 50 of them done before" in again.output
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert list(dict.fromkeys(table["data"])) == ["set", "generated 6,4,5", "all data sets"]
    assert list(dict.fromkeys(table["objective"])) == [
        "constant",
        "lambdarank",
        "lambdamart",
        "yetiloss:{metric}",
        "rank:ndcg",
    ]
    assert table.groupby("data")["queries"].max().to_dict() == {"set": 12, "generated 6,4,5": 5, "all data sets": 17}
    queries = pd.read_parquet(tmp_path / "out" / "queries.parquet")
    means = queries.groupby(["data", "library", "objective", "metric"])["value"].mean()
    for _, row in table.fillna({"library": ""}).iterrows():
        assert means[row["data"], row["library"], row["objective"], row["metric"]] == pytest.approx(
            row["mean"], abs=1e-6
        )
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "| xgboost | yetiloss:{metric} |" in text
    assert "| lightgbm | lambdarank (native) |" in text


def test_a_cell_keeps_for_each_metric_its_own_stop(tmp_path):
    fold = cells.Fold("generated 10,5,6", "10,5,6", 3)
    cell = cells.Cell(
        fold, "lightgbm", "yetirank", "yetirank", ("mrr", "ndcg@3"), Budget(trees=12, leaves=4, patience=4)
    )
    result = cells.run(cell, tmp_path)
    assert json.loads(cell.path(tmp_path).read_text()) == json.loads(json.dumps(result))
    for metric in cell.metrics:
        curve = result["curves"][metric]
        assert result["vali"][metric] == pytest.approx(curve[result["trees"][metric] - 1], abs=1e-6)
        assert result["vali"][metric] == pytest.approx(max(curve[: result["trees"][metric] + 4]), abs=1e-6)
        assert len(result["test"][metric]) == 6


def test_the_constant_model_knows_nothing():
    data = make_ranking_fold((10, 5, 6), 3)
    fold = cells.Fold("generated 10,5,6", "10,5,6", 3)
    result = cells.run(cells.Cell(fold, "", cells.CONSTANT, cells.CONSTANT, ("map",), Budget()), None)
    expected = evaluate("map", np.zeros(len(data.test.y)), data.test.y, data.test.group)
    assert np.mean(result["test"]["map"]) == pytest.approx(expected, abs=1e-6)


def test_the_file_of_a_cell_depends_on_its_settings_but_not_on_threads_or_place():
    fold = cells.Fold("set", "/one/set/Fold1", 0)
    cell = cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("map",), Budget(threads=1))
    same = cells.Cell(
        fold._replace(source="/two/set/Fold1"), "xgboost", "yetirank", "yetirank", ("map",), Budget(threads=2)
    )
    assert cell.key == same.key
    others = [
        cells.Cell(fold._replace(seed=1), "xgboost", "yetirank", "yetirank", ("map",), Budget()),
        cells.Cell(fold._replace(source="/one/set/Fold2"), "xgboost", "yetirank", "yetirank", ("map",), Budget()),
        cells.Cell(fold, "lightgbm", "yetirank", "yetirank", ("map",), Budget()),
        cells.Cell(fold, "xgboost", "yetiloss", "yetirank", ("map",), Budget()),
        cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("mrr",), Budget()),
        cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("map",), Budget(learning_rate=0.2)),
        cells.Cell(fold, "xgboost", "yetirank", "yetirank", ("map",), Budget(params=(("subsample", 0.5),))),
    ]
    assert len({c.key for c in (cell, *others)}) == 8


def result(label, values, *, library="lightgbm", fold="Fold1", seed=0, rate=0.1, vali=0.5, data="set"):
    return {"fold": [data, fold, seed], "library": library, "label": label, "seconds": 1.0, "trees": {"map": 3},
            "train": {"map": 0.9}, "vali": {"map": vali}, "budget": {"learning_rate": rate},
            "test": {"map": values}}  # fmt: skip


def test_the_learning_rate_is_chosen_on_vali_in_each_fold():
    frame = pooled.chosen([
        result("a", [0.1], rate=0.1, vali=0.5), result("a", [0.2], rate=0.3, vali=0.6),
        result("a", [0.3], rate=0.1, vali=0.7, fold="Fold2"), result("a", [0.4], rate=0.3, vali=0.6, fold="Fold2"),
    ])  # fmt: skip
    assert frame["learning_rate"].tolist() == [0.3, 0.1]
    assert pooled.by_query(frame)["set", "lightgbm", "a", "map"].tolist() == [0.2, 0.3]


def test_what_is_asked_for_twice_is_trained_once_and_what_nobody_knows_is_refused(tmp_path):
    at = [cells.Fold("generated 4,3,3", "4,3,3", 0)]
    budget = Budget(2, 0.1, 7, 2, 1e-3, 0.0, 1, 0)
    once = quality.plan(at, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], [budget])
    twice = quality.plan(at * 2, ["lightgbm"], ["rmse", "rmse"], ["lambdarank"], ["map", "MAP"], [budget])
    assert twice == once
    with pytest.raises(LTRError, match="lambdarnak is known to no library"):
        quality.plan(at, ["lightgbm"], ["rmse"], ["lambdarnak"], ["map"], [budget])
    same = [cells.Fold("set", str(tmp_path / where / "set"), 0) for where in "ab"]
    with pytest.raises(LTRError, match="have the same names"):
        quality.plan(same, ["lightgbm"], ["rmse"], ["lambdarank"], ["map"], [budget])


def test_generated_binary_data_have_few_relevant_documents():
    [fold] = cells.folds_of("generated-binary:30,5,5", [3])
    labels = fold.load().train.y
    assert set(labels) == {0, 1}
    assert 0 < labels.mean() < 0.03
    [graded] = cells.folds_of("generated:30,5,5", [3])
    assert graded.data != fold.data
    assert graded.load().train.y.max() == 4
    [calibrated] = cells.folds_of("generated-calibrated:30,5,5", [3])
    assert not np.array_equal(calibrated.load().train.y, graded.load().train.y)
    with pytest.raises(LTRError, match="generated-binary"):
        cells.folds_of("generated-binry:30,5,5", [3])


def test_generated_data_may_name_their_own_seed():
    assert [fold.seed for fold in cells.folds_of("generated:4,3,3", [1, 2])] == [1, 2]
    assert cells.folds_of("generated:4,3,3:7", [1, 2]) == [cells.Fold("generated 4,3,3", "4,3,3", 7)]
    with pytest.raises(LTRError, match="seed at the end"):
        cells.folds_of("generated:4,3,3:x", [1])


def test_seeds_on_the_same_rows_are_averaged_and_generated_ones_are_not():
    frame = pooled.chosen([result("a", [0.1, 0.2]), result("a", [0.3, 0.6], seed=1)])
    np.testing.assert_allclose(pooled.by_query(frame)["set", "lightgbm", "a", "map"], [0.2, 0.4])
    frame = pooled.chosen([result("a", [0.1, 0.2], data="generated"), result("a", [0.3], seed=1, data="generated")])
    np.testing.assert_allclose(pooled.by_query(frame)["generated", "lightgbm", "a", "map"], [0.1, 0.2, 0.3])


def test_what_is_incomplete_is_left_out_and_pooling_takes_what_all_sets_have():
    frame = pooled.chosen([
        result("a", [0.1]), result("a", [0.2], fold="Fold2"), result("b", [0.3]),
        result("a", [0.5], data="other"), result("b", [0.6], data="other"),
    ])  # fmt: skip
    values = pooled.by_query(frame)
    assert ("set", "lightgbm", "b", "map") not in values
    assert values[pooled.POOLED, "lightgbm", "a", "map"].tolist() == [0.1, 0.2, 0.5]
    assert (pooled.POOLED, "lightgbm", "b", "map") not in values


def test_the_summary_compares_with_the_librarys_best_native_objective():
    rng = np.random.default_rng(0)
    base = rng.random(100)
    values = {
        ("set", "lightgbm", "lambdarank", "map"): base,
        ("set", "lightgbm", "rank_xendcg", "map"): base - 0.2 * rng.random(100),
        ("set", "lightgbm", "ours", "map"): base + 0.05 + 0.1 * rng.standard_normal(100),
    }
    table = summary(values).set_index("objective")
    ours = table.loc["ours"]
    d = values["set", "lightgbm", "ours", "map"] - base
    assert ours["reference"] == "lambdarank"
    assert ours["difference"] == pytest.approx(d.mean())
    assert ours["difference_se"] == pytest.approx(d.std(ddof=1) / 10)
    assert ours["p"] == pytest.approx(stats.ttest_rel(d, np.zeros(100)).pvalue)
    assert table["native"].to_dict() == {"lambdarank": True, "rank_xendcg": True, "ours": False}
    assert np.isnan(table.loc["lambdarank", "p"])


def test_randomisation_is_exact_for_few_queries():
    difference = np.array([0.1, 0.2, 0.3, 0.4])
    # of 16 choices of signs only all + and all - reach the mean
    assert randomisation_p(difference, np.zeros(4)) == pytest.approx(2 / 16)
    rng = np.random.default_rng(0)
    a, b = rng.random(200), rng.random(200)
    assert randomisation_p(a, b) == pytest.approx(statistics.paired_p(a, b), abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "--data nowhere does not exist"),
        (["--data", "generated:5"], "must be three, such as generated:600,200,400"),
        (["--objectives", "lamdamart"], "lamdamart is not an objective of xgboost, nor one of ours"),
        (["--objectives", "yetiloss:{metrik}"], "is not an objective of xgboost"),
        (["--libraries", "sklearn"], "libraries='sklearn' is not known"),
        (["--seeds", "x"], "--seeds: 'x' is not a valid number"),
        (["--draws", "1"], "--draws tries settings of its own for --leaves; leave out either --draws or --leaves"),
        (["--learning-rates", "0"], "--learning-rates: '0' is not a valid number"),
        (["--libraries", ","], "name libraries, metrics, seeds and learning rates"),
    ],
)
def test_mistakes_end_a_study_before_it_begins(tmp_path, arguments, message):
    found = study(tmp_path / "out", *arguments)
    assert found.exit_code == 2
    assert message in " ".join(found.output.split())
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_trained_is_named_and_the_rest_goes_on(tmp_path):
    natives = ["--natives", "StochasticRank:metric=XX", "--libraries", "catboost", "--objectives", "queryrmse"]
    found = study(tmp_path / "out", "--data", "generated:4,3,3", *natives)
    assert found.exit_code == 1
    assert "failed: catboost could not train StochasticRank:metric=XX" in " ".join(found.output.split())
    assert "1 trainings failed" in found.output
    assert "queryrmse" in (tmp_path / "out" / "summary.md").read_text()


def test_what_has_no_result_in_a_fold_is_named(tmp_path):
    chosen = ["--data", "generated:4,3,3", "--seeds", "0,1", "--libraries", "lightgbm", "--natives", "none"]
    assert study(tmp_path / "out", *chosen, "--objectives", "rmse,queryrmse").exit_code == 0
    results = [json.loads(path.read_text()) for path in (tmp_path / "out" / "cells").glob("*.json")]
    kept = [r for r in results if (r["label"], r["fold"][2]) != ("rmse", 1)]
    assert len(kept) == len(results) - 1
    report.write(kept, tmp_path / "out", 0.05, Console(), plots=False)
    assert "Left out, since a fold has no result: lightgbm rmse." in (tmp_path / "out" / "summary.md").read_text()


def test_a_fold_without_vali_gives_up_a_fifth_of_its_train_queries(tmp_path):
    write_fold(tmp_path / "set" / "Fold1", 1)
    (tmp_path / "set" / "Fold1" / "vali.txt").unlink()
    [fold] = cells.folds_of(str(tmp_path / "set"), [0])
    assert [len(part.group) for part in fold.load()] == [6, 2, 6]
    with pytest.raises(LTRError, match="is a file"):
        cells.folds_of(str(tmp_path / "set" / "Fold1" / "train.txt"), [0])


def test_queries_may_stand_in_any_order_of_their_ids(tmp_path):
    fold = write_fold(tmp_path / "set" / "Fold1", 1)
    path = tmp_path / "set" / "Fold1" / "train.txt"
    path.write_text(re.sub(r"qid:(\d+)", lambda m: f"qid:{100 - int(m[1])}", path.read_text()))
    found = study(tmp_path / "out", "--data", tmp_path / "set", "--objectives", "queryrmse", "--natives", "none")
    assert found.exit_code == 0, found.output
    assert fold.train.qid[0] < fold.train.qid[-1]


def test_a_new_seed_is_new_generated_data():
    one, two = cells.folds_of("generated:3,2,2", [0, 1])
    assert len(one.load().train.y) != len(two.load().train.y)
    assert np.array_equal(one.load().test.X, make_ranking_fold((3, 2, 2), 0).test.X)
    assert make_ranking(7, 0).X.shape[1] == 136

"""``ltr-objectives compare``: the cross-validation by hand gives its numbers, and the model is that of all queries."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import fails, library_predicts, run, run_json, write_letor
from rankers import SUFFIX, ranker_class
from scipy import stats
from trainings import release

from ltr_objectives import evaluate, get_metric
from ltr_objectives.datasets import make_ranking
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.workbench.trials import Budget, Trial, cross_validation, forward, trials
from ltr_objectives.workbench.trials import run as run_trial

DATA = make_ranking(queries=30, features=10, mean_length=12)
NAMES = [f"feature {i}" for i in range(10)]
SMALL = ["--folds", 3, "--trees", 8, "--patience", 3, "--threads", 1]
BUDGET = Budget(8, 0.1, 6, 3)
LEAF_WISE = {"tree_method": "hist", "grow_policy": "lossguide"}
SHAPE = {  # by the names of the library
    "xgboost": {**LEAF_WISE, "max_leaves": 6, "max_depth": 0, "min_child_weight": 1},
    "lightgbm": {"num_leaves": 6, "min_child_weight": 1, "deterministic": True, "force_col_wise": True},
    "catboost": {"depth": 3, "boosting_type": "Plain", "leaf_estimation_backtracking": "No"},
}
PAIR = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "QueryRMSE"}
LIGHTGBM = ["--library", "lightgbm", "--objectives", "lambdarank,yetiloss:map", "--metric", "map"]
in_each = pytest.mark.parametrize("library", ["lightgbm", *release(["xgboost", "catboost"])])


@pytest.fixture(autouse=True)
def folder(workplace):
    frame = pd.DataFrame(DATA.X, columns=NAMES).assign(label=DATA.y, qid=DATA.qid)
    frame["weight"] = np.where(frame["qid"] % 2, 1.0, 3.0)
    frame.to_csv("data.csv", index=False)
    write_letor(workplace / "data.txt", DATA)
    return workplace


def options(*arguments, data="data.csv", leaves=6):
    ignore = ["--ignore", "weight"] if data.endswith("csv") and not {"--weight", "--ignore"} & {*arguments} else []
    return ["compare", "--data", data, *ignore, *SMALL, "--leaves", leaves, *arguments]


def compare(*arguments, **given):
    return run_json(*options(*arguments, **given))


def row(found, objective, metric="map"):
    [one] = [r for r in found["table"] if (r["objective"], r["metric"]) == (objective, metric)]
    return one


def unfitted(library, objective, rounds=8, seed=0):
    shape = {"n_estimators": rounds, "learning_rate": 0.1, **SHAPE[library]}
    seeded = f"{objective};seed={seed}" if ":" in objective else objective
    return ranker_class(library)(objective=seeded, eval_metric="map", **shape)


def fitted(library, objective, parts, seed=0, **more):
    """Return the estimator by hand, and the values of the test part."""
    train, vali, test = (DATA.select(part) for part in parts)
    made = (
        unfitted(library, objective, seed=seed)
        .set_params(**more)
        .fit(train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid], early_stopping_rounds=3)
    )
    return made, evaluate(["map", "mrr"], made.predict(test.X), test.y, test.group, per_query=True)


@in_each
def test_the_table_is_a_cross_validation_by_hand(library):
    asked = ["yetiloss:map", "queryrmse"]
    found = compare("--library", library, "--objectives", ",".join([*asked, PAIR[library]]), "--metric", "map,mrr",
                    "--seed", 4, "--save-best", f"best{SUFFIX[library]}", "--per-query", "queries.csv")  # fmt: skip
    by_query = pd.read_csv("queries.csv").sort_values("query").set_index("objective")
    parts = [np.sort(p) for p in np.array_split(np.random.default_rng(4).permutation(30), 3)]
    for objective in asked:
        values, trees = {metric: np.empty(30) for metric in ("map", "mrr")}, []
        for i in range(3):
            made, of_fold = fitted(library, objective, [parts[(i + j) % 3] for j in (2, 1, 0)], seed=4)
            trees.append(made.best_iteration_)
            for metric, of in values.items():
                of[parts[i]] = of_fold[metric]
        for metric, of in values.items():
            assert row(found, objective, metric)["mean"] == pytest.approx(of.mean(), abs=1e-9)
            assert row(found, objective, metric)["se"] == pytest.approx(stats.sem(of), abs=1e-9)
            np.testing.assert_allclose(by_query.loc[objective, metric], of, atol=1e-9)
        assert row(found, objective)["trees"] == round(np.median(trees))
        assert row(found, objective)["reference"] == PAIR[library]
    best = found["best"]
    assert best["objective"] == max(found["table"][:3], key=lambda r: r["mean"])["objective"]
    if best["objective"] in asked:
        whole = unfitted(library, best["objective"], best["trees"], 4).fit(DATA.X, DATA.y, qid=DATA.qid)
        frame = pd.DataFrame(DATA.X, columns=NAMES)
        np.testing.assert_allclose(library_predicts(library, found["model"], frame), whole.predict(DATA.X), rtol=1e-6)


@in_each
@pytest.mark.filterwarnings("ignore::ltr_objectives.LTRWarning")  # in a fold that misses the bound
def test_bounds_are_kept_in_each_fold_by_our_objectives_alone(library):
    bounds, knows = {"mrr": 0.8}, LIBRARIES[library].knows
    given = ["--library", library, "--metric", "map,mrr", "--param", f"bounds={bounds}"]
    found = compare(*given)
    assert found["left_out"]
    assert all(knows(name.split()[1]) and "bounds=" in why for name, why in found["left_out"].items())
    values = np.empty(30)
    for split in cross_validation(DATA, 3, 0):
        _, of_fold = fitted(library, "yetiloss:map", split, bounds=bounds)
        values[split.test] = of_fold["map"]
    assert row(found, "yetiloss:map")["mean"] == pytest.approx(values.mean(), abs=1e-9)
    assert "bounds=" in fails(*options(*given, "--objectives", PAIR[library]))
    assert "--save-best" in fails(*options(*given, "--save-best", f"best{SUFFIX[library]}"))


def test_own_classes_have_names_after_the_import(own_names):
    """They extend NDCG and RMSE, and have their values."""
    shared = ["--folds", 3, "--trees", 3, "--threads", 1, "--import", own_names]
    known, own = (
        run_json("compare", "--data", "data.csv", "--library", "lightgbm", "--metric", f"{metric}@5", "--objectives",
                 f"{objective},yetiloss:{metric}", *shared, "--ignore", "weight")["table"]
        for metric, objective in (("ndcg", "rmse"), ("mine", "error"))
    )  # fmt: skip
    assert [each["mean"] for each in known] == [each["mean"] for each in own]
    assert {each["objective"] for each in own} == {"error", "yetiloss:mine"}
    model = ["--train", "data.csv", "--library", "lightgbm", "--out", "model.txt", "--trees", 3, "--ignore", "weight"]
    assert run_json("train", *model, "--metric", "mine", "--import", own_names)["objective"] == "yetiloss:mine"
    scored = ["evaluate", "--data", "data.csv", "--scores", "data.csv:feature 0", "--metric"]
    found = run_json(*scored, "mine,ndcg", "--import", own_names)["metrics"]
    assert found["mine"] == found["ndcg"]
    assert "no_such_module" in fails(*scored, "mine", "--import", "no_such_module")


@pytest.mark.filterwarnings("default:none.svg")
def test_the_model_is_saved_if_there_is_nothing_to_draw():
    asked = ["--library", "lightgbm", "--objectives", "lambdamart", "--metric", "map"]
    assert "none.svg" in run(*options(*asked, "--picture", "none.svg", "--save-best", "model.txt"))
    assert Path("model.txt").exists()
    assert not Path("none.svg").exists()


@in_each
def test_a_native_objective_has_its_library_s_defaults_or_the_settings_of_ours_as_vali_chooses(library):
    """In each fold, by the first metric, and so for the values of all metrics."""
    native = PAIR[library]
    asked = ["--library", library, "--objectives", f"{native},yetirank", "--metric", "map,mrr"]
    found = compare(*asked, "--out", "table.csv", "--picture", "differences.svg")
    assert Path("differences.svg").stat().st_size > 10_000
    values, defaults = {"map": [], "mrr": []}, 0
    for split in cross_validation(DATA, 3, 0):
        planned = trials(library, native, [BUDGET])
        results = [run_trial(trial, split.of(DATA), [get_metric(name) for name in values]) for trial in planned]
        best = int(np.argmax([result.vali for result in results]))  # the first is at the library's defaults
        defaults += best == 0
        for metric, of in values.items():
            of += results[best].values[metric].tolist()
    for metric, of in values.items():
        line, ours = row(found, native, metric), row(found, "yetirank", metric)
        assert line["mean"] == pytest.approx(np.mean(of), abs=1e-9)
        assert (line["defaults"], line["folds"], line["native"], line["p"]) == (defaults, 3, True, None)
        assert (ours["native"], ours["reference"], ours["defaults"]) == (False, native, 0)
        assert ours["difference"] == pytest.approx(ours["mean"] - line["mean"])
    assert pd.read_csv("table.csv")["defaults"].max() == defaults


@pytest.mark.parametrize("trees", [1, 8])
def test_trainings_that_ended_at_the_last_tree_are_counted(trees):
    asked = [*LIGHTGBM, "--learning-rate", 0.5, "--trees", trees]
    found = compare(*asked)
    for line in found["table"]:
        planned, rounds = trials("lightgbm", line["objective"], [replace(BUDGET, learning_rate=0.5, trees=trees)]), []
        for split in cross_validation(DATA, 3, 0):
            results = [run_trial(trial, split.of(DATA), [get_metric("map")]) for trial in planned]
            rounds.append(max(results, key=lambda result: result.vali).rounds)
        assert line["rising"] == (rounds.count(trees) > 1)  # of three
    assert any(line["rising"] for line in found["table"]) == (trees == 1), "else this says nothing"


def without_seconds(found):
    return [{k: v for k, v in r.items() if k not in ("seconds", "data")} for r in found["table"]]


def test_letor_text_and_tables_give_the_same_and_weights_count():
    found = compare(*LIGHTGBM)
    assert without_seconds(compare(*LIGHTGBM, data="data.txt")) == without_seconds(found)
    weighted, trial = replace(DATA, weight=np.where(DATA.qid % 2, 1.0, 3.0)), Trial("lightgbm", "yetiloss:map", BUDGET)
    results = [run_trial(trial, split.of(weighted), [get_metric("map")]) for split in cross_validation(DATA, 3, 0)]
    values, weights = (
        np.concatenate(found) for found in zip(*((r.values["map"], r.weights["map"]) for r in results), strict=True)
    )
    found = row(compare(*LIGHTGBM, "--weight", "weight"), "yetiloss:map")
    assert found["mean"] == pytest.approx(np.average(values, weights=weights), abs=1e-9)


def test_queries_of_weight_0_are_in_no_fold():
    frame = pd.read_csv("data.csv").assign(weight=lambda f: 1.0 * (f["qid"] % 2 == 0))
    for name, rows in (("some.csv", frame), ("kept.csv", frame[frame["weight"] > 0])):
        rows.to_csv(name, index=False)
    some, kept = (compare(*LIGHTGBM, "--weight", "weight", data=name)["table"] for name in ("some.csv", "kept.csv"))
    assert [each["mean"] for each in some] == [each["mean"] for each in kept]


def test_the_folder_of_a_fold_is_compared_on_its_test_part(folder):
    (folder / "Fold1").mkdir()
    parts = dict(zip(("train", "vali", "test"), (range(15), range(15, 20), range(20, 30)), strict=True))
    for name, queries in parts.items():
        write_letor(folder / "Fold1" / f"{name}.txt", DATA.select(list(queries)))
    found = compare(*LIGHTGBM, "--per-query", "queries.csv", data="Fold1")
    _, values = fitted("lightgbm", "yetiloss:map", map(list, parts.values()))
    assert row(found, "yetiloss:map")["mean"] == pytest.approx(values["map"].mean(), abs=1e-9)
    assert (found["queries"], found["folds"]) == (30, 1)
    assert pd.read_csv("queries.csv")["query"].unique().tolist() == list(range(21, 31))
    (folder / "Fold1" / "vali.txt").unlink()
    assert "25 queries, 10 of them test" in run(*options(*LIGHTGBM, data="Fold1"))


@pytest.mark.parametrize("kind", ["date", "text"])
def test_folds_by_a_column_test_on_later_values(kind):
    day = 10 + DATA.qid * 7 % 12  # 12 values, queries of all in any order
    text = pd.Series(day).map("2026-01-{}".format)
    pd.read_csv("data.csv").assign(day=text if kind == "text" else pd.to_datetime(text)).to_parquet("days.parquet")
    found = compare(*LIGHTGBM, "--ignore", "weight", "--folds-by", "day", data="days.parquet")
    assert (found["folds"], "day" in found["features"]) == (3, False)
    of = np.array([day[DATA.qid == q][0] for q in np.unique(DATA.qid)])
    values, blocks = [], forward(of, 3, "day")
    for train, vali, test in blocks:
        assert max(of[train]) < min(of[vali]) <= max(of[vali]) < min(of[test])
        values += fitted("lightgbm", "yetiloss:map", (train, vali, test))[1]["map"].tolist()
    assert all(np.array_equal(a.vali, b.test) for a, b in zip(blocks[1:], blocks, strict=False))
    assert row(found, "yetiloss:map")["mean"] == pytest.approx(np.mean(values), abs=1e-9)


@in_each
def test_categories_and_parameters_reach_every_training(library):
    table = pd.read_csv("data.csv").assign(grade=lambda t: t["label"].map({0: "none", 1: "some"}).fillna("much"))
    table.to_csv("categories.csv", index=False)
    given = ["--library", library, "--objectives", PAIR[library], "--metric", "ndcg"]
    slow = {"xgboost": "reg_lambda", "lightgbm": "lambda_l2", "catboost": "l2_leaf_reg"}[library]
    plain = row(compare(*given), PAIR[library], "ndcg")["mean"]
    found = compare(*given, "--categorical", "grade", data="categories.csv")
    assert row(found, PAIR[library], "ndcg")["mean"] > plain + 0.05
    assert row(compare(*given, "--param", f"{slow}=1000"), PAIR[library], "ndcg")["mean"] != plain


@pytest.mark.filterwarnings("always::ltr_objectives.errors.LTRWarning")  # the command prints them
def test_columns_that_nearly_equal_the_labels_are_named_with_what_to_ignore():
    rng = np.random.default_rng(0)
    copies = {
        "revenue": np.where(DATA.y > 2, rng.uniform(1, 9, len(DATA.y)), 0),  # of a few rows
        "worst first": -(2.0**DATA.y),
        "missing": np.where(DATA.y > 0, DATA.y, np.nan),
        "noisy": DATA.y + rng.normal(0, 0.2, len(DATA.y)),
    }
    pd.read_csv("data.csv").assign(rare=np.arange(len(DATA.y)) == 0, **copies).to_csv("leak.csv", index=False)
    ignore = "weight,revenue,worst first,missing,noisy"
    small = ["--library", "lightgbm", "--threads", 1, "--trees", 2]
    for command in (
        ["compare", "--data", "leak.csv", "--objectives", "lambdarank", "--folds", 3],
        ["train", "--train", "leak.csv", "--vali", "leak.csv", "--out", "model.txt"],
    ):
        printed = run(*command, *small, "--ignore", "weight")
        assert printed.count("warning: ") == 1  # however many trainings give it
        assert f"--ignore '{ignore}'\n" in printed
        assert "warning" not in run(*command, *small, "--ignore", ignore)

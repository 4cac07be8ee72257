"""``ltr-objectives compare``: the cross-validation by hand gives its numbers, and the model is that of all queries."""

import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("typer")
pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from commands import fails, invoke, library_predicts, run, run_json, write_letor  # noqa: E402 - they need what importorskip asks for
from rankers import SUFFIX, ranker_class  # noqa: E402 - they need what importorskip asks for
from rich.console import Console  # noqa: E402 - they need what importorskip asks for

from ltr_objectives import evaluate, get_metric  # noqa: E402 - they need what importorskip asks for
from ltr_objectives.datasets import make_ranking  # noqa: E402 - they need what importorskip asks for
from ltr_objectives.workbench.texts import show  # noqa: E402 - they need what importorskip asks for
from ltr_objectives.workbench.trials import Budget, cross_validation, forward, trials  # noqa: E402 - as above
from ltr_objectives.workbench.trials import run as run_trial  # noqa: E402 - as above

DATA = make_ranking(queries=30, features=10, mean_length=12)
PAGE = Path(__file__).parents[1] / "docs" / "compare.md"
NAMES = [f"feature {i}" for i in range(10)]
FEW = ["--folds", 3, "--trees", 8, "--patience", 3, "--threads", 1]
SMALL = [*FEW, "--leaves", 6]
LEAF_WISE = {"tree_method": "hist", "grow_policy": "lossguide"}
SHAPE = {  # by the names of the library
    "xgboost": {**LEAF_WISE, "max_leaves": 6, "max_depth": 0, "min_child_weight": 1},
    "lightgbm": {"num_leaves": 6, "min_child_weight": 1, "deterministic": True, "force_col_wise": True},
    "catboost": {"depth": 3, "boosting_type": "Plain", "leaf_estimation_backtracking": "No"},
}
PAIR = {"xgboost": "rank:ndcg", "lightgbm": "lambdarank", "catboost": "QueryRMSE"}


@pytest.fixture(autouse=True)
def folder(workplace):
    frame = pandas.DataFrame(DATA.X, columns=NAMES).assign(label=DATA.y, qid=DATA.qid)
    frame["weight"] = np.where(frame["qid"] % 2, 1.0, 3.0)
    frame.to_csv("data.csv", index=False)
    frame.sort_values(NAMES[0]).to_csv("shuffled.csv", index=False)
    frame.assign(title="text").to_csv("text.csv", index=False)
    write_letor(workplace / "data.txt", DATA)
    return workplace


def compare(*arguments, data="data.csv", small=SMALL):
    ignore = ["--ignore", "weight"] if str(data).endswith("csv") and not {"--weight", "--ignore"} & {*arguments} else []
    return run_json("compare", "--data", data, *ignore, *small, *arguments)


def row(found, objective, metric="map"):
    [one] = [r for r in found["table"] if (r["objective"], r["metric"]) == (objective, metric)]
    return one


def unfitted(library, objective, rounds=8, seed=4):
    shape = {"n_estimators": rounds, "learning_rate": 0.1, **SHAPE[library]}
    seeded = f"{objective};seed={seed}" if ":" in objective else objective
    return ranker_class(library)(objective=seeded, eval_metric="map", **shape)


@pytest.mark.parametrize("library", SHAPE)
def test_the_table_is_a_cross_validation_by_hand(library):
    pytest.importorskip(library)
    asked = ["yetiloss:map", "queryrmse"]
    found = compare("--library", library, "--objectives", ",".join([*asked, PAIR[library]]), "--metric", "map,mrr",
                    "--seed", 4, "--save-best", f"best{SUFFIX[library]}")  # fmt: skip
    parts = [np.sort(p) for p in np.array_split(np.random.default_rng(4).permutation(30), 3)]
    values, trees = {o: np.empty((2, 30)) for o in asked}, {o: [] for o in asked}
    for objective in asked:
        for i in range(3):
            train, vali, test = (DATA.select(parts[(i + j) % 3]) for j in (2, 1, 0))
            made = unfitted(library, objective).fit(
                train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid],
                early_stopping_rounds=3,
            )  # fmt: skip
            scores = made.predict(test.X)
            trees[objective].append(made.best_iteration_)
            for k, metric in enumerate(("map", "mrr")):
                values[objective][k, parts[i]] = evaluate(metric, scores, test.y, test.group, per_query=True)
        for k, metric in enumerate(("map", "mrr")):
            assert row(found, objective, metric)["mean"] == pytest.approx(values[objective][k].mean(), abs=1e-9)
            assert row(found, objective, metric)["se"] == pytest.approx(stats.sem(values[objective][k]), abs=1e-9)
        assert row(found, objective)["trees"] == round(np.median(trees[objective]))
        assert row(found, objective)["reference"] == PAIR[library]
    best = found["best"]
    assert best["objective"] == max(found["table"][:3], key=lambda r: r["mean"])["objective"]
    if best["objective"] in asked:
        whole = unfitted(library, best["objective"], best["trees"]).fit(DATA.X, DATA.y, qid=DATA.qid)
        frame = pandas.DataFrame(DATA.X, columns=NAMES)
        np.testing.assert_allclose(library_predicts(library, found["model"], frame), whole.predict(DATA.X), rtol=1e-6)


@pytest.mark.parametrize("library", SHAPE)
def test_a_native_objective_has_its_library_s_defaults_or_the_settings_of_ours_as_vali_chooses(library):
    """In each fold, by the first metric, and so for the values of all metrics."""
    pytest.importorskip(library)
    native = PAIR[library]
    found = compare("--library", library, "--objectives", f"{native},yetirank", "--metric", "map,mrr",
                    "--out", "table.csv")  # fmt: skip
    base = Budget(8, 0.1, 6, 3)
    values, defaults, vali = {"map": [], "mrr": []}, 0, []
    for split in cross_validation(DATA, 3, 0):
        fold = split.of(DATA)
        metrics = [get_metric(name) for name in values]
        results = [run_trial(trial, fold, metrics) for trial in trials(library, native, [base])]
        best = int(np.argmax([result.vali for result in results]))  # the first is at the library's defaults
        defaults += best == 0
        vali.append([result.vali for result in results])
        for metric, of in values.items():
            of += results[best].values[metric].tolist()
    for metric, of in values.items():
        line = row(found, native, metric)
        assert line["mean"] == pytest.approx(np.mean(of), abs=1e-9)
        assert (line["defaults"], line["folds"]) == (defaults, 3)
        assert (line["native"], line["p"]) == (True, None)
        ours = row(found, "yetirank", metric)
        assert (ours["native"], ours["reference"], ours["defaults"]) == (False, native, 0)
        assert ours["difference"] == pytest.approx(ours["mean"] - line["mean"])
        assert 0 <= ours["p"] <= 1
    assert pandas.read_csv("table.csv")["defaults"].max() == defaults
    printed = run("compare", "--data", "data.csv", "--ignore", "weight", "--library", library, "--objectives", native,
                  "--metric", "map,mrr", *SMALL)  # fmt: skip
    assert f"(native, defaults {defaults}/3)" in printed
    alone = compare("--library", library, "--objectives", native, "--metric", "map")["best"]
    assert alone["defaults"] == (np.argmax(np.mean(vali, axis=0)) == 0)


def without_seconds(found):
    return [{k: v for k, v in r.items() if k not in ("seconds", "data")} for r in found["table"]]


def test_every_format_and_order_of_queries_gives_the_same(folder):
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--objectives", "lambdarank,yetiloss:map", "--metric", "map"]
    found = compare(*given)
    assert without_seconds(compare(*given)) == without_seconds(found)
    assert without_seconds(compare(*given, data="data.txt")) == without_seconds(found)
    frame = pandas.read_csv("data.csv").rename(columns={"label": "grade", "qid": "query"})
    frame.to_csv("renamed.csv", index=False)
    named = compare(*given, "--label", "grade", "--qid", "query", data="renamed.csv")
    assert without_seconds(named) == without_seconds(found)
    assert len(compare(*given, data="shuffled.csv")["table"]) == 2


def test_weights_count_in_training_and_in_means():
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--objectives", "lambdarank,yetiloss:map", "--metric", "map"]
    plain, weighted = compare(*given), compare(*given, "--weight", "weight")
    assert row(plain, "yetiloss:map")["mean"] != row(weighted, "yetiloss:map")["mean"]
    table = pandas.read_csv("data.csv").assign(weight=2.0)
    table.to_csv("twice.csv", index=False)
    again = compare(*given, "--weight", "weight", data="twice.csv")
    assert row(again, "yetiloss:map")["se"] == pytest.approx(row(plain, "yetiloss:map")["se"], abs=0.02)


def test_the_folder_of_a_fold_is_compared_on_its_test_part(folder):
    pytest.importorskip("lightgbm")
    (folder / "Fold1").mkdir()
    parts = dict(zip(("train", "vali", "test"), (range(15), range(15, 20), range(20, 30)), strict=True))
    for name, queries in parts.items():
        write_letor(folder / "Fold1" / f"{name}.txt", DATA.select(list(queries)))
    given = ["--library", "lightgbm", "--objectives", "lambdarank,yetiloss:map", "--metric", "map"]
    found = compare(*given, "--save-best", "best.txt", data="Fold1")
    train, vali, test = (DATA.select(list(queries)) for queries in parts.values())
    made = unfitted("lightgbm", "yetiloss:map", seed=0).fit(
        train.X, train.y, qid=train.qid, eval_set=[(vali.X, vali.y)], eval_qid=[vali.qid], early_stopping_rounds=3
    )
    value = evaluate("map", made.predict(test.X), test.y, test.group)
    assert row(found, "yetiloss:map")["mean"] == pytest.approx(value, abs=1e-9)
    assert (found["queries"], found["folds"]) == (30, 1)
    (folder / "Fold1" / "vali.txt").unlink()
    assert "25 queries, 10 of them test" in run("compare", "--data", "Fold1", *given, *SMALL)


def test_people_get_a_table_and_the_reasons(folder):
    pytest.importorskip("xgboost")
    small = ["--folds", 3, "--trees", 2, "--threads", 1]
    frame = pandas.read_csv("data.csv")
    frame.assign(label=20 * frame["label"]).drop(columns="weight").to_csv("large.csv", index=False)
    printed = run("compare", "--data", "large.csv", "--library", "xgboost", "--metric", "ndcg@5", *small)
    assert "30 queries, 3 folds" in printed
    assert "rank:pairwise (native, defaults " in printed
    assert "note: xgboost rank:ndcg is left out: xgboost: " in printed
    assert "best by ndcg@5: xgboost, " in printed
    assert "nan" not in printed.partition("note:")[0]


@pytest.mark.filterwarnings("default")
def test_it_says_that_only_native_objectives_are_left(folder):
    """LightGBM drops every column, which its own objectives survive as one score for all rows."""
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--metric", "map", "--param", "min_data_in_leaf=10000", "--ignore", "weight"]
    printed = run("compare", "--data", "data.csv", *given, *FEW)
    assert "warning: no objective of ours" in printed


def test_rank_map_learns_from_labels_above_0_and_says_so(folder):
    """In the table and in JSON, of ``compare`` and of ``train``."""
    pytest.importorskip("xgboost")
    note = "rank:map learns only which labels are above 0"
    asked = ["--objectives", "rank:map,rank:ndcg", "--library", "xgboost", "--metric", "map"]
    found = compare(*asked)
    assert (found["notes"], found["left_out"], found["features"]) == ([note], {}, NAMES)
    assert compare(*asked[:1], "rank:ndcg", *asked[2:])["notes"] == []
    printed = run("compare", "--data", "data.csv", "--ignore", "weight", *asked, *SMALL)
    assert f"{note}." in " ".join(printed.split())
    assert f"10 features: {', '.join(NAMES)}\n" in printed
    pandas.read_csv("data.csv").assign(label=DATA.y > 0).to_csv("clicks.csv", index=False)
    assert compare(*asked, data="clicks.csv")["notes"] == []
    train = ["--library", "xgboost", "--ignore", "weight", "--objective", "rank:map", "--trees", 3, "--threads", 1]
    trained = run_json("train", "--train", "data.csv", "--out", "graded.json", *train)
    assert (trained["notes"], trained["features"]) == ([note], NAMES)
    assert run_json("train", "--train", "clicks.csv", "--out", "clicks.json", *train)["notes"] == []
    assert Path("graded.json").read_text() == Path("clicks.json").read_text()
    printed = run("train", "--train", "data.csv", "--out", "graded.json", *train)
    assert printed.rstrip().endswith(note)
    assert f"10 features: {', '.join(NAMES)}\n" in printed


@pytest.mark.filterwarnings("always::ltr_objectives.errors.LTRWarning")  # the command prints them
def test_columns_that_nearly_equal_the_labels_are_named_with_what_to_ignore(folder):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    copies = {
        "revenue": np.where(DATA.y > 2, rng.uniform(1, 9, len(DATA.y)), 0),  # of a few rows
        "worst first": -(2.0**DATA.y),
        "missing": np.where(DATA.y > 0, DATA.y, np.nan),
        "noisy": DATA.y + rng.normal(0, 0.2, len(DATA.y)),
    }
    pandas.read_csv("data.csv").assign(rare=np.arange(len(DATA.y)) == 0, **copies).to_csv("leak.csv", index=False)
    asked = ["--library", "lightgbm", "--threads", 1, "--trees", 2]
    told = "warning: 'revenue', 'worst first', 'missing', 'noisy' nearly always order the documents of a query as the "
    ignore = "weight,revenue,worst first,missing,noisy"
    for command in (
        ["compare", "--data", "leak.csv", "--objectives", "lambdarank", "--folds", 3],
        ["train", "--train", "leak.csv", "--vali", "leak.csv", "--out", "model.txt"],
    ):
        printed = run(*command, *asked, "--ignore", "weight")
        assert printed.count("warning: ") == 1
        assert told in printed
        assert f"--ignore '{ignore}'\n" in printed
        assert "warning" not in run(*command, *asked, "--ignore", ignore)


@pytest.mark.parametrize("library", SHAPE)
def test_categories_and_parameters_reach_every_training(folder, library):
    pytest.importorskip(library)
    table = pandas.read_csv("data.csv").assign(grade=lambda t: t["label"].map({0: "none", 1: "some"}).fillna("much"))
    table.to_csv("categories.csv", index=False)
    given = ["--library", library, "--objectives", PAIR[library], "--metric", "ndcg", "--ignore", "weight"]
    found = compare(*given, "--categorical", "grade", "--save-best", f"m{SUFFIX[library]}", data="categories.csv")
    plain = compare(*given[:-2])
    assert row(found, PAIR[library], "ndcg")["mean"] > row(plain, PAIR[library], "ndcg")["mean"] + 0.05
    slow = {"xgboost": "reg_lambda", "lightgbm": "lambda_l2", "catboost": "l2_leaf_reg"}[library]
    other = compare(*given[:-2], "--param", f"{slow}=1000")
    assert row(other, PAIR[library], "ndcg")["mean"] != row(plain, PAIR[library], "ndcg")["mean"]


def test_the_others_are_tested_against_the_reference(folder):
    pytest.importorskip("lightgbm")
    given = ["--library", "lightgbm", "--objectives", "rank_xendcg,yetiloss:map,queryrmse", "--metric", "map"]
    for reference in ("lambdarank", "queryrmse"):
        found = compare(*given, "--reference", reference)
        means = [r["mean"] for r in found["table"]]
        assert means == sorted(means, reverse=True)
        assert {r["objective"]: r["reference"] for r in found["table"]} == {
            name: None if name == reference else reference for name in {*given[3].split(","), reference}
        }
        own = row(found, reference)
        for r in found["table"]:
            assert r["objective"] == reference or r["difference"] == pytest.approx(r["mean"] - own["mean"])
        printed = run("compare", "--data", "data.csv", "--ignore", "weight", *given, *SMALL, "--reference", reference)
        [line] = [line for line in printed.splitlines() if " reference " in line]
        assert reference in line
        assert f"worse than {reference}:" in " ".join(printed.split())
    assert "lambdarank" in {
        r["objective"] for r in compare(*given[:2], *given[4:], "--reference", "lambdarank")["table"]
    }


@pytest.mark.parametrize("kind", ["date", "text", "number"])
def test_folds_by_a_column_test_on_later_values(folder, kind):
    pytest.importorskip("lightgbm")
    day = 10 + DATA.qid * 7 % 12  # 12 values, queries of all in any order
    table = pandas.read_csv("data.csv").assign(
        day=pandas.Series(day).map("2026-01-{}".format) if kind == "text" else day
    )
    if kind == "date":
        table["day"] = pandas.to_datetime("2026-01-01") + pandas.to_timedelta(table["day"], "D")
    table.to_parquet("days.parquet")
    given = ["--library", "lightgbm", "--objectives", "yetiloss:map", "--metric", "map", "--ignore", "weight"]
    found = compare(*given, "--folds-by", "day", data="days.parquet")
    assert (found["folds"], "day" in found["features"]) == (3, False)
    of = np.array([day[DATA.qid == q][0] for q in np.unique(DATA.qid)])
    values = []
    blocks = forward(of, 3, "day")
    for train, vali, test in blocks:
        assert max(of[train]) < min(of[vali]) <= max(of[vali]) < min(of[test])
        parts = [DATA.select(part) for part in (train, vali, test)]
        made = unfitted("lightgbm", "yetiloss:map", seed=0).fit(
            parts[0].X, parts[0].y, qid=parts[0].qid, eval_set=[(parts[1].X, parts[1].y)], eval_qid=[parts[1].qid],
            early_stopping_rounds=3,
        )  # fmt: skip
        values += evaluate("map", made.predict(parts[2].X), parts[2].y, parts[2].group, per_query=True).tolist()
    assert all(np.array_equal(a.vali, b.test) for a, b in zip(blocks[1:], blocks, strict=False))
    assert row(found, "yetiloss:map")["mean"] == pytest.approx(np.mean(values), abs=1e-9)


@pytest.mark.parametrize("width", [40, 80, 150])
def test_nothing_of_the_table_is_cropped(width):
    lines = [["library", "objective", "ndcg@10", "map", "difference in ndcg@10", "seconds"],
             ["xgboost", "YetiRank:mode=MAP (native)", "**0.4321 (0.0249)** ▲", ".1 (.2)", "-0.0059 (0.0089)", "12.5"],
             ]  # fmt: skip
    screen = Console(width=width, force_terminal=True, color_system=None, file=io.StringIO())
    show(screen, lines, "title")
    head, printed = "".join(screen.file.getvalue()).split("─" * 40, 1)
    assert all(name in "".join(head.split()) for name in ("library", "objective", "ndcg@10", "seconds"))
    for word in ("xgboost", "YetiRank:mode=", "(native)", "0.4321", "▲", "-0.0059 (0.0089)", "12.5"):
        assert word in printed
    assert ("(0.0249)" in printed) == (width == 150)


def test_the_best_is_named_with_its_certainty(folder):
    """That of one library where the ending of the model names it."""
    for library in ("xgboost", "lightgbm"):
        pytest.importorskip(library)
    given = ["--library", "xgboost,lightgbm", "--objectives", "rank:ndcg,lambdarank,queryrmse", "--metric", "map"]
    command = ["compare", "--data", "data.csv", "--ignore", "weight", *given, *SMALL]
    found = compare(*given, "--save-best", "best.txt")
    said = run(*command, "--save-best", "best.txt")
    assert f"best of lightgbm by map: lightgbm, {found['best']['objective']}" in said
    assert "trees on all queries, written to best.txt" in said
    [best] = re.findall(r"^best by map: (\w+), ([\w:]+)(.*)$", run(*command), re.MULTILINE)
    top = max(found["table"], key=lambda r: r["mean"])
    assert best[:2] == (top["library"], top["objective"])
    chance = "beyond" if (top["p"] or 1) < 0.05 else "within"
    assert best[2] == ("" if top["p"] is None else f"; its lead over {top['reference']} is {chance} chance")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "."], "holds neither train.txt nor test.txt"),
        (["--data", "text.csv"], "'title' (str) must hold numbers, as features do; name categories in --categor"),
        (["--library", "sklearn"], "--library='sklearn' is not known; choose one of 'xgboost'"),
        (["--library", ","], "--library names none"),
        (["--objectives", ","], "--objectives is empty"),
        (["--objectives", "foo"], "--objectives: unknown objective 'foo'"),
        (["--objectives", "rank:ndcg"], "lightgbm has lambdarank, rank_xendcg"),
        (["--objectives", "yetiloss[x]"], "--objectives reads the labels of 'x', but commands read one column"),
        (["--folds", 31], "--folds 31 needs at least as many queries, and the data have 30"),
        (["--reference", "foo"], "--reference: unknown objective 'foo'"),
        (["--param", "leaves"], "--param 'leaves' is not of the form NAME=VALUE"),
        (["--categorical", "foo"], "--data data.csv: there is no column 'foo', only"),
        (["--folds-by", "label"], "--data data.csv: the column 'label' has several values in query"),
        (["--folds-by", "weight"], "--folds-by weight: 3 folds need at least 5 different values, and there are 2"),
        (
            ["--folds-by", "day", "--data", "data.txt"],
            "--folds-by names columns of Parquet and CSV files; data.txt has",
        ),
        (["--folds", 2], "Invalid value for '--folds'"),
        (["--save-best", "model.cbm"], "--save-best model.cbm must end with .txt, as models of --library do"),
        (["--save-best", "data.txt", "--data", "data.txt"], "--save-best data.txt is also an input"),
        (["--out", "table.txt"], "--out table.txt must end with .csv for tables"),
    ],
)
def test_errors_are_one_line(arguments, message):
    pytest.importorskip("lightgbm")
    given = {"--data": "data.csv", "--library": "lightgbm", "--folds": 3, "--trees": 2, "--threads": 1}
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    said = fails("compare", *(text for pair in given.items() for text in pair))
    assert message in said.replace("(object)", "(str)")


@pytest.mark.filterwarnings("always::ltr_objectives.errors.LTRWarning")  # it counts them
def test_a_warning_is_one_line_however_many_trainings_give_it(folder):
    pytest.importorskip("lightgbm")
    frame = pandas.read_csv("data.csv")
    few = frame["label"].where(frame["qid"] <= frame["qid"].quantile(0.3), 1)
    frame.assign(label=few).drop(columns="weight").to_csv("equal.csv", index=False)
    asked = ["--library", "lightgbm", "--objectives", "yetiloss:ndcg,lambdamart:ndcg", "--metric", "ndcg@5"]
    printed = run("compare", "--data", "equal.csv", *asked, *SMALL)
    told = [line for line in printed.splitlines() if "warning" in line.lower()]
    assert told
    assert len(told) == len(set(told))


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("map", 0),
        ("ndcg@10", 2),
        ("precision@1", 1),
        ("hit@100", "label"),
    ],
)
def test_data_in_which_every_order_is_as_good_are_refused(folder, metric, label):
    pytest.importorskip("lightgbm")
    frame = pandas.read_csv("data.csv")
    frame.assign(label=frame[label] if isinstance(label, str) else label).to_csv("flat.csv", index=False)
    said = fails("compare", "--data", "flat.csv", "--library", "lightgbm", "--metric", f"{metric},mrr", *SMALL)
    assert f"--data flat.csv: every order of the documents has the same {metric}, so that nothing can be" in said


def test_the_progress_is_no_part_of_the_result(monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    given = [
        "compare", "--data", "data.csv", "--ignore", "weight", "--library", "lightgbm", "--objectives", "lambdarank",
    ]  # fmt: skip
    done = invoke([*given, *FEW, "--json"], 0)
    assert json.loads(done.stdout)["best"]["objective"] == "lambdarank"
    assert re.search(r"lightgbm lambdarank.*6/6", done.stderr, re.DOTALL)


@pytest.mark.skipif(not PAGE.exists(), reason="the tests run beside an unpacked wheel")
def test_the_commands_of_the_documentation_run(folder, monkeypatch):
    pytest.importorskip("lightgbm")
    table = pandas.DataFrame(DATA.X, columns=NAMES).assign(grade=DATA.y, query=DATA.qid)
    table.to_csv("ranking.csv", index=False)
    commands = re.findall(r"^ltr-objectives (.+)$", PAGE.read_text(), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["compare", "train", "predict", "evaluate"]
    for command in commands:
        few = ["--folds", 3, "--trees", 3] if command.startswith("compare") else []
        run(*shlex.split(command), *few)

"""Parquet and CSV in the commands: columns by name, rows in any order, and the same models as from arrays."""

import contextlib
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pandas = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("pyarrow")

from commands import fails, library_predicts, run_json, write_letor  # noqa: E402 - skipped without
from rankers import SUFFIX, ranker_class  # noqa: E402 - skipped without

from ltr_objectives import LTRError, evaluate  # noqa: E402 - skipped without
from ltr_objectives.datasets import make_ranking_fold  # noqa: E402 - skipped without
from ltr_objectives.workbench import tables  # noqa: E402 - skipped without
from ltr_objectives.workbench.cli.files import read_column  # noqa: E402 - skipped without

FOLD = dict(zip(("train", "vali", "test"), make_ranking_fold((40, 15, 15), features=10, mean_length=15), strict=True))
NAMES = [f"feature {i}" for i in range(10)]
OPTIONS = ["--trees", 10, "--learning-rate", 0.3, "--patience", 3, "--threads", 1, "--metric", "map"]
everywhere = pytest.mark.parametrize("library", list(SUFFIX))


def frame_of(part):
    return pandas.DataFrame(part.X, columns=NAMES).assign(label=part.y, qid=[f"q{q}" for q in part.qid])


def write(frame, path):
    frame.to_parquet(path, index=False) if path.endswith(".parquet") else frame.to_csv(path, index=False)
    return path


def files(ending, change=lambda frame: frame):
    """The options that name the parts, written with this ending."""
    made = {part: write(change(frame_of(data)), f"{part}.{ending}") for part, data in FOLD.items()}
    return [text for part, path in made.items() for text in (f"--{part}", path)]


@pytest.fixture(autouse=True)
def folder(workplace):
    return workplace


@pytest.mark.parametrize(("library", "ending"), [("xgboost", "parquet"), ("lightgbm", "csv"), ("catboost", "csv.gz")])
def test_from_training_to_metrics(library, ending):
    pytest.importorskip(library)
    model = f"model{SUFFIX[library]}"
    trained = run_json("train", "--library", library, "--out", model, *files(ending), *OPTIONS)
    test = FOLD["test"]
    expected = library_predicts(library, model, pandas.DataFrame(test.X, columns=NAMES))
    assert trained["test"]["map"] == pytest.approx(evaluate("map", expected, test.y, test.group), abs=1e-9)
    other = frame_of(test).drop(columns=["label", "qid"])[NAMES[::-1]].assign(more=1.0)  # found by name
    found = run_json("predict", "--model", model, "--data", write(other, f"other.{ending}"), "--out", "scores.npy")
    assert (found["rows"], found["queries"], found["notes"]) == (len(test.y), None, [])
    np.testing.assert_allclose(np.load("scores.npy"), expected, rtol=1e-6)
    given = ["--data", f"test.{ending}", "--scores", "scores.npy", "--metric", "map,ndcg@5"]
    metrics = run_json("evaluate", *given, "--per-query")
    assert metrics["metrics"]["map"] == pytest.approx(trained["test"]["map"], abs=1e-9)
    assert metrics["per_query"]["qid"][0] == f"q{test.qid[0]}"
    if ending != "csv.gz":
        frame_of(test).assign(score=np.load("scores.npy")).pipe(write, f"scored.{ending}")
        again = run_json("evaluate", *given[:3], f"scored.{ending}:score", *given[4:])
        assert again["metrics"] == metrics["metrics"]


@everywhere
def test_the_model_is_that_of_the_arrays_and_of_letor_text(library, folder):
    pytest.importorskip(library)
    for part, data in FOLD.items():
        write_letor(folder / f"{part}.txt", data)
    text = [option for part in FOLD for option in (f"--{part}", f"{part}.txt")]
    made = ["--library", library, *OPTIONS, "--out", f"model{SUFFIX[library]}"]
    of_tables, of_text = run_json("train", *made, *files("parquet")), run_json("train", *made, *text)
    assert (of_tables.pop("features"), of_text.pop("features")) == (NAMES, [str(i) for i in range(1, 11)])
    assert {**of_tables, "seconds": 0} == {**of_text, "seconds": 0}


@everywhere
def test_scores_are_in_the_order_of_the_rows(library):
    pytest.importorskip(library)
    model = f"model{SUFFIX[library]}"
    run_json("train", "--library", library, "--out", model, *files("csv"), *OPTIONS)
    whole = frame_of(FOLD["test"])
    order = np.random.default_rng(0).permutation(len(whole))
    whole.iloc[order].to_csv("mixed.csv", index=False)
    for data in ("test", "mixed"):
        run_json("predict", "--model", model, "--data", f"{data}.csv", "--out", f"{data}.npy")
    assert np.array_equal(np.load("mixed.npy"), np.load("test.npy")[order])
    straight, mixed = (
        run_json("evaluate", "--data", f"{data}.csv", "--scores", f"{data}.npy", "--metric", "map", "--per-query")
        for data in ("test", "mixed")
    )
    assert mixed["metrics"] == pytest.approx(straight["metrics"])
    by_query = dict(zip(straight["per_query"]["qid"], straight["per_query"]["map"], strict=True))
    assert by_query == pytest.approx(dict(zip(mixed["per_query"]["qid"], mixed["per_query"]["map"], strict=True)))


@everywhere
def test_columns_have_the_names_that_are_given(library):
    pytest.importorskip(library)
    train, test = FOLD["train"], FOLD["test"]
    weight = {name: np.where(part.qid % 2, 0.5, 3.0) for name, part in FOLD.items()}

    def change(frame):
        part = next(name for name in FOLD if len(FOLD[name].y) == len(frame))
        return frame.rename(columns={"label": "grade", "qid": "query"}).assign(w=weight[part], title="text")

    model = f"model{SUFFIX[library]}"
    columns = ["--label", "grade", "--qid", "query", "--weight", "w", "--ignore", "title"]
    parts = files("csv", change)
    found = run_json("train", "--library", library, "--out", model, *parts, *columns, *OPTIONS[:-2], "--metric", "map")
    vali = FOLD["vali"]
    expected = ranker_class(library)(
        objective=found["objective"], eval_metric="map", n_estimators=10, learning_rate=0.3,
        **{"catboost": {"thread_count": 1}}.get(library, {"n_jobs": 1}),
    ).fit(
        train.X, train.y, qid=train.qid, sample_weight=weight["train"], eval_set=[(vali.X, vali.y)],
        eval_qid=[vali.qid], eval_sample_weight=[weight["vali"]], early_stopping_rounds=3,
    )  # fmt: skip
    scores = expected.predict(test.X)
    assert found["test"]["map"] == pytest.approx(evaluate("map", scores, test.y, test.group, weight["test"]), abs=1e-9)
    assert found["test"]["map"] != pytest.approx(evaluate("map", scores, test.y, test.group))
    run_json("predict", "--model", model, "--data", "test.csv", "--out", "scores.npy")
    np.testing.assert_allclose(np.load("scores.npy"), scores, rtol=1e-6)
    given = ["--data", "test.csv", "--scores", "scores.npy", "--metric", "map", *columns[:6]]
    assert run_json("evaluate", *given)["metrics"]["map"] == pytest.approx(found["test"]["map"], abs=1e-9)


@everywhere
def test_a_model_without_names_takes_the_columns_in_their_order(library):
    pytest.importorskip(library)
    train, test = FOLD["train"], FOLD["test"]
    made = ranker_class(library)(objective="yetiloss:map", n_estimators=3).fit(train.X, train.y, qid=train.qid)
    model = f"model{SUFFIX[library]}"
    made.save_model(model)
    frame_of(test).to_csv("test.csv", index=False)
    frame_of(test).assign(more=1.0).to_csv("wide.csv", index=False)
    given = ["predict", "--model", model, "--out", "scores.npy", "--data"]
    for data, more in (("test.csv", []), ("wide.csv", ["--ignore", "more"])):
        run_json(*given, data, *more)
        np.testing.assert_allclose(np.load("scores.npy"), made.predict(test.X), rtol=1e-6)
    assert fails(*given, "wide.csv").endswith("the file 11 columns beside those for labels, query ids, weights and "
                                              "--ignore; name the others in --ignore\n")  # fmt: skip
    assert fails(*given, "test.csv", "--ignore", NAMES[3]).endswith("; name fewer in --ignore\n")


def test_missing_values_and_pandas_own_types_are_features(folder):
    pytest.importorskip("lightgbm")
    whole = frame_of(FOLD["train"])
    whole[NAMES[0]] = pandas.array(np.arange(len(whole)), "Int64")
    whole.loc[3, NAMES[0]] = pandas.NA
    whole[NAMES[1]] = whole[NAMES[1]] > 0
    whole.loc[::5, NAMES[2]] = np.nan
    whole["qid"] = FOLD["train"].qid
    whole.to_parquet("own.parquet")
    found = run_json("train", "--library", "lightgbm", "--out", "m.txt", "--train", "own.parquet", *OPTIONS)
    assert found["trees"] == 10
    run_json("predict", "--model", "m.txt", "--data", "own.parquet", "--out", "scores.npy")
    X = whole[NAMES].astype(float).to_numpy()
    np.testing.assert_allclose(np.load("scores.npy"), library_predicts("lightgbm", "m.txt", X))


def with_categories(part, kind, missing):
    """A frame with a categorical feature, which alone decides the labels, and ``missing`` for a tenth of its values."""
    data, rng = FOLD[part], np.random.default_rng(len(part))
    shop = pandas.Series(rng.choice(["7", "a b", "c"] if part == "train" else ["c", "7"], len(data.y)))
    y = shop.map({"7": 2, "a b": 1, "c": 0})
    return frame_of(data).assign(label=y, shop=shop.where(rng.random(len(shop)) < 0.9, missing).astype(kind))


@everywhere
@pytest.mark.parametrize(("ending", "kind"), [("csv", object), ("parquet", object), ("parquet", "category")])
def test_categories_are_those_of_the_estimator(library, ending, kind):
    pytest.importorskip(library)
    missing = "unknown" if library == "catboost" else None  # CatBoost refuses missing categories
    frames = {part: with_categories(part, kind, missing) for part in FOLD}
    parts = [t for part, frame in frames.items() for t in (f"--{part}", write(frame, f"{part}.{ending}"))]
    named = [] if kind == "category" else ["--categorical", "shop"]
    if named:
        assert "'shop' (str) must hold numbers, as features do; name categories in --categorical shop, or" in fails(
            "train", "--library", library, "--out", f"m{SUFFIX[library]}", *parts, *OPTIONS
        ).replace("(object)", "(str)")
    model = f"model{SUFFIX[library]}"
    found = run_json("train", "--library", library, "--out", model, *parts, *named, *OPTIONS)
    assert found["test"]["map"] > 0.85
    X = {part: frame.drop(columns=["label", "qid"]).astype({"shop": "category"}) for part, frame in frames.items()}
    threads = {"thread_count": 1} if library == "catboost" else {"n_jobs": 1}
    made = ranker_class(library)(
        objective=found["objective"], eval_metric="map", n_estimators=10, learning_rate=0.3, **threads
    ).fit(
        X["train"], frames["train"]["label"], qid=FOLD["train"].qid, eval_set=[(X["vali"], frames["vali"]["label"])],
        eval_qid=[FOLD["vali"].qid], early_stopping_rounds=3,
    )  # fmt: skip
    run_json("predict", "--model", model, "--data", f"test.{ending}", *named, "--out", "scores.npy")
    np.testing.assert_allclose(np.load("scores.npy"), made.predict(X["test"]), rtol=1e-6)


def test_auto_lets_vali_choose():
    pytest.importorskip("lightgbm")
    given = ["train", "--library", "lightgbm", "--out", "m.txt", "--objective", "auto", *files("parquet"), *OPTIONS]
    found = run_json(*given)
    tried = {each["objective"]: each["value"] for each in found["tried"]}
    assert found["objective"] == max(tried, key=tried.get)
    assert found["vali"]["map"] == pytest.approx(tried[found["objective"]])
    assert "--objective auto chooses on vali; pass --vali" in fails(*given[:9], *OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--train", "train.csv", "--label", "lable"], "--train train.csv: there is no column 'lable', only"),
        (["train", "--train", "train.csv", "--label", "labels"], "did you mean 'label'?"),
        (
            ["train", "--train", "train.csv", "--weight", "label"],
            "label, query id and weight must be different",
        ),
        (["train", "--train", "text.csv"], "--train text.csv: 'title' (str) must hold numbers, as features do"),
        (["train", "--train", "empty.csv"], "--train empty.csv: it is empty"),
        (["train", "--train", "bare.csv"], "--train bare.csv: it has no columns of features"),
        (["train", "--train", "missing.csv"], "--train missing.csv: the column 'label' has no finite number in row 2"),
        (
            ["train", "--train", "words.csv"],
            "column 'label' must hold numbers, but its type is str: Unable to parse string",
        ),
        (
            ["train", "--train", "twice.csv"],
            "column 'label' must hold numbers, but its type is str: Unable to parse string",
        ),
        (["predict", "--data", "twice.csv"], " at position 7"),
        (["train", "--train", "noid.csv"], "--train noid.csv: qid has no id in row 1"),
        (["train", "--train", "broken.parquet"], "--train broken.parquet: "),
        (["train", "--train", "train.csv", "--vali", "narrow.csv"], "--vali narrow.csv: it does not have the features"),
        (["train", "--train", "train.csv", "--vali", "vali.txt"], "and LETOR text such as vali.txt does not"),
        (["predict", "--data", "narrow.csv"], "--data narrow.csv: it does not have the features feature_1"),
        (
            ["train", "--train", "vali.txt", "--weight", "w"],
            "--weight names columns of Parquet and CSV files",
        ),
        (["evaluate", "--data", "train.csv", "--scores", "short.txt"], "scores has 1 entries, but labels has"),
        (["evaluate", "--data", "train.csv", "--scores", "train.csv"], "name one of its columns, as in train.csv:qid"),
    ],
)
def test_errors_are_one_line(folder, arguments, message):
    pytest.importorskip("lightgbm")
    whole = frame_of(FOLD["train"])
    changed = {
        "train": whole, "text": whole.assign(title="text"), "empty": whole[:0], "bare": whole[["label", "qid"]],
        "missing": whole.assign(label=whole["label"].where(whole.index != 2)), "words": whole.assign(label="high"),
        "noid": whole.assign(qid=whole["qid"].where(whole.index != 1)), "narrow": whole.drop(columns=NAMES[1:]),
    }  # fmt: skip
    for name, frame in changed.items():
        frame.to_csv(f"{name}.csv", index=False)
    lines = Path("train.csv").read_text().splitlines()
    Path("twice.csv").write_text("\n".join([*lines[:8], lines[0], *lines[8:]]))  # files that were joined
    (folder / "broken.parquet").write_text("no table")
    (folder / "vali.txt").write_text("1 qid:1 1:1\n")
    (folder / "short.txt").write_text("1\n")
    run_json("train", "--library", "lightgbm", "--train", "train.csv", "--out", "model.txt", *OPTIONS)
    more = {
        "train": ["--library", "lightgbm", "--out", "m.txt", *OPTIONS],
        "predict": ["--model", "model.txt", "--out", "scores.npy"],
        "evaluate": [],
    }[arguments[0]]
    assert message in fails(*arguments, *more).replace("(object)", "(str)").replace("is object", "is str")
    assert not (folder / "m.txt").exists()


@pytest.mark.parametrize("at", [slice(0, 1), slice(5, 6), slice(None)], ids=["first", "later", "all"])
@pytest.mark.parametrize("more", [",", ",7", ",,", ",a", ",7,7"])
def test_a_row_with_too_many_fields_never_shifts_columns(at, more):
    """It is refused, or read as without an empty one."""
    columns, path = tables.Columns(), Path("more.csv")
    frame_of(FOLD["test"]).to_csv(path, index=False)
    head, *lines = path.read_text().splitlines()
    reads = (
        lambda: [*tables.read_table("data", path, columns).data],
        lambda: [tables.read_table("data", path, columns, features=False).data.y],
        lambda: [read_column("data", f"{path}:label")],
    )
    plain = [read() for read in reads]
    lines[at] = [line + more for line in lines[at]]
    path.write_text("\n".join([head, *lines]))
    for read, expected in zip(reads, plain, strict=True):
        with contextlib.suppress(LTRError):
            found = read()
            assert more == ","
            assert all(map(np.array_equal, found, expected))


WORDS = ["NA", "null", "None", "nan", "NaN", "N/A", "n/a", "<NA>", "#N/A", "NULL", "-nan", "01", "1"]


@everywhere
def test_no_word_of_an_id_or_a_category_is_read_as_missing(library):
    """In the country code of Namibia, and in ids of queries; a missing feature may be any of them."""
    pytest.importorskip(library)
    data = FOLD["train"]
    rng = np.random.default_rng(0)
    shop = np.array(WORDS)[rng.integers(0, len(WORDS), len(data.y))]
    ids = np.array(WORDS + [f"q{i}" for i in range(40)])[np.unique(data.qid, return_inverse=True)[1]]
    frame = frame_of(data).assign(label=(shop < "N") ^ (rng.random(len(shop)) < 0.2), shop=shop, qid=ids)
    plain = frame.assign(shop="_" + frame["shop"])
    missing = np.where(np.arange(len(data.y)) % 7 == 0, "NA", frame[NAMES[1]].astype(str))
    frame[NAMES[1]], plain[NAMES[1]] = missing, np.where(missing == "NA", "", missing)
    for name, table in (("words", frame), ("plain", plain)):
        table.to_csv(f"{name}.csv", index=False)
        made = ["--library", library, "--categorical", "shop", "--out", f"{name}{SUFFIX[library]}", *OPTIONS]
        run_json("train", "--train", f"{name}.csv", *made)
        given = ["--model", f"{name}{SUFFIX[library]}", "--data", f"{name}.csv", "--categorical", "shop"]
        run_json("predict", *given, "--out", f"{name}.npy")
    scores = np.load("words.npy")
    np.testing.assert_allclose(scores, np.load("plain.npy"))
    found = run_json("evaluate", "--data", "words.csv", "--scores", "words.npy", "--metric", "map", "--per-query")
    assert found["per_query"]["qid"] == list(dict.fromkeys(ids))


@everywhere
def test_a_feature_of_the_model_cannot_be_ignored(library):
    pytest.importorskip(library)
    model = f"model{SUFFIX[library]}"
    run_json("train", "--library", library, "--out", model, *files("csv"), *OPTIONS)
    given = ["predict", "--model", model, "--out", "scores.npy", "--data", "test.csv", "--ignore"]
    assert "--ignore names 'feature 3', which the model needs; leave it out of --ignore" in fails(*given, NAMES[3])
    frame_of(FOLD["test"]).assign(**{NAMES[3]: "text"}).to_csv("test.csv", index=False)
    assert "in --ignore" not in fails(*given, "label")
    assert not Path("scores.npy").exists()


@everywhere
def test_a_model_with_names_refuses_features_without(library):
    pytest.importorskip(library)
    model = f"model{SUFFIX[library]}"
    run_json("train", "--library", library, "--out", model, *files("csv"), *OPTIONS)
    write_letor(Path("test.txt"), FOLD["test"])
    given = ["predict", "--model", model, "--out", "scores.npy", "--data", "test.txt"]
    assert "by name" in fails(*given)
    assert not Path("scores.npy").exists()


@pytest.mark.parametrize("name", ["label", "feature 3", "qid"])
def test_two_columns_of_one_name_are_refused(name):
    """Because pandas would rename the second, and a second label would be a feature."""
    pytest.importorskip("lightgbm")
    files("csv")
    lines = Path("train.csv").read_text().splitlines()
    doubled = [f"{name if i == 0 else 1},{line}" for i, line in enumerate(lines)]
    Path("twice.csv").write_text("\n".join(doubled))
    told = f"--{{}} twice.csv: there are several columns '{name}'; rename them, or leave all but one out"
    made = ["--library", "lightgbm", "--out", "model.txt"]
    assert told.format("train") in fails("train", "--train", "twice.csv", *made)
    assert told.format("data") in fails("compare", "--data", "twice.csv", "--library", "lightgbm")
    assert told.format("data") in fails("evaluate", "--data", "twice.csv", "--scores", "train.csv:feature 1")
    assert "several columns" in fails("evaluate", "--data", "train.csv", "--scores", f"twice.csv:{name}")
    run_json("train", "--train", "train.csv", *made, "--trees", 1)
    assert told.format("data") in fails("predict", "--model", "model.txt", "--data", "twice.csv", "--out", "s.npy")

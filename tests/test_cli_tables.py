"""Parquet and CSV in the commands: columns by name, rows in any order, and the same models as from arrays."""

import contextlib
import csv
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import fails, library_predicts, run_json, write_letor
from rankers import SUFFIX, ranker_class

from ltr_objectives import LTRError, evaluate
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.workbench import tables
from ltr_objectives.workbench.cli.files import read_column

FOLD = dict(zip(("train", "vali", "test"), make_ranking_fold((40, 15, 15), features=10, mean_length=15), strict=True))
TRAIN, VALI, TEST = FOLD.values()
NAMES = [f"feature {i}" for i in range(10)]
OPTIONS = ["--trees", 10, "--learning-rate", 0.3, "--patience", 3, "--threads", 1, "--metric", "map"]
everywhere = pytest.mark.parametrize("library", list(SUFFIX))


@pytest.fixture(autouse=True)
def folder(workplace):
    return workplace


def frame_of(part):
    return pd.DataFrame(part.X, columns=NAMES).assign(label=part.y, qid=[f"q{q}" for q in part.qid])


def write(frame, path):
    frame.to_parquet(path, index=False) if path.lower().endswith(".parquet") else frame.to_csv(path, index=False)
    return path


def files(ending, change=lambda frame, part: frame):
    """Return the options that name the parts, written with this ending."""
    made = {part: write(change(frame_of(data), part), f"{part}.{ending}") for part, data in FOLD.items()}
    return [text for part, path in made.items() for text in (f"--{part}", path)]


def trained(library, *options):
    model = f"model{SUFFIX[library]}"
    return model, run_json("train", "--library", library, "--out", model, *options, *OPTIONS)


def predicted(model, data, *options):
    run_json("predict", "--model", model, "--data", data, "--out", "scores.npy", *options)
    return np.load("scores.npy")


def estimator(library, found, frames=None, weight=None):
    """Return the estimator by hand, with the objective that the command reports."""
    threads = {"thread_count": 1} if library == "catboost" else {"n_jobs": 1}
    made = ranker_class(library)(
        objective=found["objective"], eval_metric="map", n_estimators=10, learning_rate=0.3, **threads
    )
    (X, y), (vali_X, vali_y) = frames or [(TRAIN.X, TRAIN.y), (VALI.X, VALI.y)]
    given = {} if weight is None else {"sample_weight": weight["train"], "eval_sample_weight": [weight["vali"]]}
    return made.fit(
        X, y, qid=TRAIN.qid, eval_set=[(vali_X, vali_y)], eval_qid=[VALI.qid], early_stopping_rounds=3, **given
    )


@pytest.mark.parametrize(("library", "ending"), [("xgboost", "parquet"), ("lightgbm", "csv"), ("catboost", "csv.gz")])
def test_from_training_to_metrics_with_rows_and_columns_in_any_order(library, ending):
    def change(frame, part):
        return frame if part == "train" else frame[frame.columns[::-1]].assign(more=1.0)

    model, found = trained(library, *files(ending, change))
    expected = library_predicts(library, model, pd.DataFrame(TEST.X, columns=NAMES))
    assert found["test"]["map"] == pytest.approx(evaluate("map", expected, TEST.y, TEST.group), abs=1e-9)
    order = np.random.default_rng(0).permutation(len(TEST.y))
    mixed = frame_of(TEST).iloc[order][["label", *NAMES[::-1], "qid"]].assign(more=1.0)
    scores = predicted(model, write(mixed, f"mixed.{ending}"))
    np.testing.assert_allclose(scores, expected[order], rtol=1e-6)
    given = ["--data", f"mixed.{ending}", "--scores", "scores.npy", "--metric", "map,ndcg@5"]
    of_mixed = run_json("evaluate", *given, "--per-query")
    assert of_mixed["metrics"]["map"] == pytest.approx(found["test"]["map"], abs=1e-9)
    assert set(of_mixed["per_query"]["qid"]) == {f"q{q}" for q in TEST.qid}
    write(mixed.assign(score=scores), f"scored.{ending}")
    assert run_json("evaluate", *given[:3], f"scored.{ending}:score", *given[4:], "--per-query") == of_mixed


def test_the_model_is_that_of_letor_text(folder):
    for part, data in FOLD.items():
        write_letor(folder / f"{part}.txt", data)
    text = [option for part in FOLD for option in (f"--{part}", f"{part}.txt")]
    (_, of_tables), (_, of_text) = trained("lightgbm", *files("parquet")), trained("lightgbm", *text)
    assert (of_tables.pop("features"), of_text.pop("features")) == (NAMES, [str(i) for i in range(1, 11)])
    assert {**of_tables, "seconds": 0} == {**of_text, "seconds": 0}


@everywhere
def test_columns_have_the_names_that_are_given_and_weights_count(library):
    weight = {name: np.where(part.qid % 2, 0.5, 3.0) for name, part in FOLD.items()}

    def change(frame, part):
        named = frame.rename(columns={"label": "grade", "qid": "query"}).assign(w=weight[part], title="text")
        return named.iloc[order] if part == "test" else named

    order = np.random.default_rng(0).permutation(len(TEST.y))
    columns = ["--label", "grade", "--qid", "query", "--weight", "w", "--ignore", "title"]
    model, found = trained(library, *files("csv", change), *columns)
    scores = estimator(library, found, weight=weight).predict(TEST.X)
    assert found["test"]["map"] == pytest.approx(evaluate("map", scores, TEST.y, TEST.group, weight["test"]), abs=1e-9)
    assert found["test"]["map"] != pytest.approx(evaluate("map", scores, TEST.y, TEST.group))
    np.testing.assert_allclose(predicted(model, "test.csv"), scores[order], rtol=1e-6)
    given = ["--data", "test.csv", "--scores", "scores.npy", "--metric", "map", *columns[:6]]
    assert run_json("evaluate", *given)["metrics"]["map"] == pytest.approx(found["test"]["map"], abs=1e-9)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("mark", ["", ",", "\r", "\n", '"'])
def test_scores_are_written_beside_the_ids_of_queries_and_items(ending, mark):
    model, _ = trained("lightgbm", *files("csv"))
    table = frame_of(TEST).assign(item=[f"{mark}{i:03d}" for i in range(len(TEST.y))]).sample(frac=1, random_state=0)
    table.to_parquet("test.parquet", index=False)
    table.to_csv("test.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    scores = predicted(model, f"test.{ending}", "--item", "item")
    run_json("predict", "--model", model, "--data", f"test.{ending}", "--item", "item", "--out", f"out.{ending}")
    found = pd.read_parquet("out.parquet") if ending == "parquet" else pd.read_csv("out.csv", dtype={"item": str})
    pd.testing.assert_frame_equal(found, table[["qid", "item"]].reset_index(drop=True).assign(score=scores))
    given = ["predict", "--model", model, "--data", f"test.{ending}", "--out"]
    for option, out, lacks in (("qid", f"out.{ending}", False), ("id", f"o.{ending}", True), ("id", "o.npy", False)):
        notes = run_json(*given, out, "--qid", option, "--item", "item")["notes"]
        assert [f"no column '{option}'" in note for note in notes] == [True] * lacks
    assert "--item" in fails(*given, "o.npy", "--item", NAMES[0])
    given = ["evaluate", "--data", f"test.{ending}", "--metric", "map", "--scores"]
    assert run_json(*given, f"out.{ending}:score")["metrics"] == run_json(*given, "scores.npy")["metrics"]


@everywhere
def test_a_model_finds_its_columns_by_name_and_one_without_names_by_their_order(library):
    model, _ = trained(library, *files("csv"))
    given = ["predict", "--model", model, "--out", "none.npy", "--data"]
    missing = "feature_3" if library == "lightgbm" else "feature 3"
    assert missing in fails(*given, "test.csv", "--ignore", "feature 3")
    write_letor(Path("test.txt"), TEST)
    assert "by name" in fails(*given, "test.txt")
    made = ranker_class(library)(objective="yetiloss:map", n_estimators=3).fit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    made.save_model(model)
    frame_of(TEST).assign(more=1.0).to_csv("wide.csv", index=False)
    for data, more in (("test.csv", []), ("wide.csv", ["--ignore", "more"])):
        np.testing.assert_allclose(predicted(model, data, *more), made.predict(TEST.X), rtol=1e-6)
    assert "10" in fails(*given, "wide.csv")


def test_missing_values_and_pandas_own_types_are_features():
    whole = frame_of(TRAIN).assign(qid=TRAIN.qid)
    whole[NAMES[0]] = pd.array(np.arange(len(whole)), "Int64")
    whole.loc[3, NAMES[0]] = pd.NA
    whole[NAMES[1]] = whole[NAMES[1]] > 0
    whole.loc[::5, NAMES[2]] = np.nan
    flags = [None if i % 5 == 0 else bool(x > 0) for i, x in enumerate(whole[NAMES[3]])]
    whole[NAMES[3]] = pd.Series(flags, dtype=object)
    whole["label"] = [Decimal(int(label)) for label in whole["label"]]
    whole.set_index("qid").to_parquet("own.parquet")
    model, found = trained("lightgbm", "--train", "own.parquet")
    assert found["trees"] == 10
    X = whole[NAMES].astype(float).to_numpy()
    whole.drop(columns="label").to_csv("own.csv", index=False)
    for file in ("own.parquet", "own.csv"):
        np.testing.assert_allclose(predicted(model, file), library_predicts("lightgbm", "model.txt", X))


@everywhere
@pytest.mark.parametrize(("ending", "kind"), [("csv", object), ("parquet", "category")])
def test_categories_are_those_of_the_estimator(library, ending, kind):
    """A categorical feature decides the labels, and a tenth of its values are missing, which CatBoost refuses."""
    frames = {}
    for part, data in FOLD.items():
        rng = np.random.default_rng(len(part))
        shop = pd.Series(rng.choice(["7", "a b", "c"] if part == "train" else ["c", "7"], len(data.y)))
        missing = "unknown" if library == "catboost" else None
        frames[part] = frame_of(data).assign(
            label=shop.map({"7": 2, "a b": 1, "c": 0}),
            shop=shop.where(rng.random(len(shop)) < 0.9, missing).astype(kind),
        )
    parts = files(ending, lambda _, part: frames[part])
    named = [] if kind == "category" else ["--categorical", "shop"]
    model, found = trained(library, *parts, *named)
    assert found["test"]["map"] > 0.85
    read = [(frame[[*NAMES, "shop"]].astype({"shop": "category"}), frame["label"]) for frame in frames.values()]
    expected = estimator(library, found, read[:2]).predict(read[2][0])
    np.testing.assert_allclose(predicted(model, f"test.{ending}", *named), expected, rtol=1e-6)


def test_auto_lets_vali_choose():
    _, found = trained("lightgbm", "--objective", "auto", *files("parquet"))
    tried = {each["objective"]: each["value"] for each in found["tried"]}
    assert found["objective"] == max(tried, key=tried.get)
    assert found["vali"]["map"] == pytest.approx(tried[found["objective"]])


@pytest.mark.parametrize("at", [slice(0, 1), slice(5, 6), slice(None)], ids=["first", "later", "all"])
@pytest.mark.parametrize("more", [",", ",7", ",,", ",a", ",7,7"])
def test_a_row_with_too_many_fields_never_shifts_columns(at, more):
    """It is refused, or read as without an empty one."""
    columns, path = tables.Columns(), Path("more.csv")
    frame_of(TEST).to_csv(path, index=False)
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


def test_no_word_of_an_id_or_a_category_is_read_as_missing():
    """In the country code of Namibia, and in ids of queries; a missing feature may be any of them."""
    rng = np.random.default_rng(0)
    shop = np.array(WORDS)[rng.integers(0, len(WORDS), len(TRAIN.y))]
    ids = np.array(WORDS + [f"q{i}" for i in range(40)])[np.unique(TRAIN.qid, return_inverse=True)[1]]
    frame = frame_of(TRAIN).assign(label=(shop < "N") ^ (rng.random(len(shop)) < 0.2), NA=shop, qid=ids)
    missing = np.where(np.arange(len(shop)) % 7 == 0, "NA", frame[NAMES[1]].astype(str))
    plain = frame.assign(NA="_" + frame["NA"], **{NAMES[1]: np.where(missing == "NA", "", missing)})
    scores = []
    for table in (frame.assign(**{NAMES[1]: missing}), plain):
        table.to_csv("words.csv", index=False)
        model, _ = trained("lightgbm", "--train", "words.csv", "--categorical", "NA")
        scores.append(predicted(model, "words.csv", "--categorical", "NA"))
    np.testing.assert_allclose(*scores)
    found = run_json("evaluate", "--data", "words.csv", "--scores", "scores.npy", "--metric", "map", "--per-query")
    assert found["per_query"]["qid"] == list(dict.fromkeys(ids))

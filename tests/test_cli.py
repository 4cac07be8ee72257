"""``evaluate``, ``train`` and ``predict``: every kind of file, the libraries' own scores, and errors of one line."""

import bz2
import gzip
import io
import json
import lzma
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from commands import fails, library_predicts, run, run_json, write_letor
from loading import read_toml
from rankers import NATIVE, SUFFIX
from typer.testing import CliRunner

import ltr_objectives.workbench.cli
from ltr_objectives import Queries, evaluate, objective_for
from ltr_objectives.datasets import RankingData, make_ranking_fold
from ltr_objectives.workbench.cli import options

LABELS, SCORES, QID = [1, 0, 0, 1, 2], [0.1, 0.9, 0.2, 0.5, 0.3], ["a", "a", "bb", "bb", "bb"]
FOLD = make_ranking_fold((40, 15, 15), features=10, mean_length=15)
PARTS = dict(zip(("train", "vali", "test"), FOLD, strict=True))
OPTIONS = ["--trees", 40, "--learning-rate", 0.3, "--patience", 5, "--threads", 1]
ERRORS = read_toml(Path(__file__).parent / "refusals.toml")["the_command_line"]


@pytest.fixture(autouse=True)
def folder(workplace):
    return workplace


@pytest.fixture
def fold(folder):
    for name, part in PARTS.items():
        write_letor(folder / f"{name}.txt", part)
    return folder


def columns(kind, **changed):
    """Return the options that name the same labels, scores and query ids in one kind of file."""
    found, of = [], {"labels": LABELS, "scores": SCORES, "qid": QID} | changed
    csv = ".csv" in f".{kind.lower()}"
    pd.DataFrame(of).to_csv(f"all.{kind}" if csv else "unused", index=False)
    for name, values in of.items():
        path = Path(f"all.{kind}:{name}" if csv else f"{name}.{kind}")
        text = "\n".join(map(str, values)).encode()
        if kind.lower() == "npy":
            path.write_bytes(array_file(values))
        elif not csv:
            path.write_bytes(gzip.compress(text) if kind.lower() == "gz" else text)
        found += [f"--{name}", path]
    return found


def array_file(values):
    np.save(content := io.BytesIO(), np.array(values))
    return content.getvalue()


@pytest.mark.parametrize("kind", ["text", "gz", "npy", "csv", "csv.gz", "GZ", "NPY", "CSV", "Csv.Gz"])
def test_every_kind_of_file_is_read(kind):
    found = run_json("evaluate", "--metric", "mrr,ndcg@1", "--per-query", *columns(kind))
    assert found["queries"] == 2
    assert found["metrics"] == {"mrr": 0.75, "ndcg@1": pytest.approx((0 + 1 / 3) / 2)}
    assert found["per_query"] == {"qid": ["a", "bb"], "mrr": [0.5, 1.0], "ndcg@1": [0.0, pytest.approx(1 / 3)]}


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2", ".xz"])
def test_a_byte_order_mark_is_skipped_and_utf_16_is_refused(ending, folder):
    """Of labels, scores, ids, LETOR text, CSV and TREC files; the first id has one more row."""
    compress = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[ending]
    texts = {
        "l": "1\n0\n2\n", "s": "1\n2\n3\n", "q": "01\n01\n1\n", "t.csv": "qid,label,f\n01,1,1\n01,0,2\n1,2,3\n",
        "run": "01 Q0 a 1 1 t\n01 Q0 b 1 2 t\n1 Q0 a 1 3 t\n", "qrels": "01 0 a 1\n1 0 a 2\n",
        "letor.txt": "1 qid:1 1:1\n0 qid:1 1:2\n2 qid:2 1:3\n",
    }  # fmt: skip
    asked = [
        ["--labels", f"l{ending}", "--scores", f"s{ending}", "--qid", f"q{ending}"],
        ["--data", f"t.csv{ending}", "--scores", f"s{ending}"],
        ["--run", f"run{ending}", "--qrels", f"qrels{ending}"],
        ["--data", f"letor.txt{ending}", "--scores", f"s{ending}"],
    ]

    def write(encoding):
        for name, text in texts.items():
            Path(f"{name}{ending}").write_bytes(compress(text.encode(encoding)))

    write("utf-8-sig")
    for name in ("l", "s", "q", "run", "qrels", "letor.txt"):  # as joined files have them
        texts[name] = "".join(f"\ufeff{line}" for line in texts[name].splitlines(True))
    write("utf-8")
    for files in asked:
        found = run_json("evaluate", "--metric", "mrr", "--per-query", *files)["per_query"]
        assert found == {"qid": [1, 2] if "letor" in files[1] else ["01", "1"], "mrr": [0.5, 1.0]}
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        write(encoding)
        for files in asked:
            if (encoding, files[1]) != ("utf-16-le", f"t.csv{ending}"):  # whose columns have other names
                assert "UTF-8" in fails("evaluate", *files)


def test_names_in_one_option_or_in_several_are_the_same():
    assert run("evaluate", "--metric", "mrr", "--metric", "map,mrr", *columns("text")) == run(
        "evaluate", "--metric", "mrr,map", *columns("text")
    )
    files = ["--train", "table.csv", "--out", "m.txt", "--library", "lightgbm", "--trees", 1]
    pd.DataFrame(FOLD.train.X).add_prefix("f").assign(label=FOLD.train.y, qid=FOLD.train.qid).to_csv("table.csv")
    given = ["--ignore", "f3", "--ignore", "f1,f2,Unnamed: 0"]
    assert run_json("train", *files, *given)["features"] == [f"f{i}" for i in (0, *range(4, 10))]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["text", "npy", "csv"])
def test_positions_are_scores_from_the_top_and_are_refused_upside_down(kind, first, rng):
    """Of ten queries, which users saw in about the right order; other scores are taken."""
    y = rng.integers(0, 3, 100)
    position = np.argsort(np.argsort(-(y + rng.random(100)).reshape(10, 10))).ravel() + first
    of = {"labels": y, "qid": np.repeat(np.arange(10), 10)}
    *labels, _, _, qid_option, qid, option, shown = columns(kind, **of, scores=y, position=position.astype(np.uint8))
    asked = ["evaluate", *labels, qid_option, qid]
    found = run_json(*asked, option, shown)["metrics"]["ndcg@10"]
    assert found == pytest.approx(evaluate("ndcg@10", -position, y, qid=of["qid"]))
    assert "--position" in fails(*asked, "--scores", shown)
    for other in (position + 0.5, position // 2, position - 2, 10 - position):
        run_json("evaluate", *columns(kind, **of, scores=other))


def test_a_query_that_is_skipped_has_no_value():
    files = columns("text", labels=[0, 0, 0, 1, 0])
    arguments = ("evaluate", "--metric", "auc", "--convention", "sklearn", "--per-query", *files)
    assert run_json(*arguments)["per_query"]["auc"] == [None, 1.0]
    assert [line.split() for line in run(*arguments).splitlines()][3:5] == [["a", "-"], ["bb", "1.0000"]]


THEIRS = {
    "ndcg": "ndcg", "ndcg@5": "ndcg_cut_5", "map": "map", "map@5": "map_cut_5", "mrr": "recip_rank",
    "precision@5": "P_5", "recall@5": "recall_5", "recall@100": "recall_100",
}  # fmt: skip
ASKED = {"ndcg", "map", "recip_rank", "ndcg_cut.5", "map_cut.5", "P.5", "recall.5,100"}


def random_trec():
    """Draw a run and judgements with ties, of float32 too, and documents and queries that only one of them has."""
    rng = np.random.default_rng(0)
    found, qrels = {}, {}
    for q in range(30):
        names = [f"d{i}" for i in rng.permutation(40)]
        retrieved = names[: rng.integers(1, 25)]
        judged = rng.permutation(names)[: rng.integers(1, 30)]
        scores = np.round(rng.normal(size=len(retrieved)), 1) + rng.choice([0.0, 1e-12], len(retrieved))
        labels = rng.choice([-2, 0, 1, 2, 3], len(judged), p=[0.1, 0.4, 0.2, 0.2, 0.1])
        if q % 7 != 3:
            found[str(q)] = {d: float(s) for d, s in zip(retrieved, scores, strict=True)}
        if q % 7 != 5:
            qrels[str(q)] = {str(d): int(y) for d, y in zip(judged, labels, strict=True)}
    qrels["0"] = dict.fromkeys(qrels["0"], 0)
    return found, qrels


def trec(found, qrels):
    """Return the options that name files of a run and of judgements, with comments and words after the tag."""
    rows = [f"{q} Q0 {d} 1 {s!r} tag and more\n" for q, of in found.items() for d, s in of.items()]
    Path("run").write_text("# a comment of so many words\n" + "".join(rows))
    Path("qrels").write_text("".join(f"{q}\t0  {d} {y}\n" for q, of in qrels.items() for d, y in of.items()) + "#\n")
    return ["--run", "run", "--qrels", "qrels"]


def test_the_values_are_those_of_trec_eval():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    found, qrels = random_trec()
    asked = ["evaluate", "--metric", ",".join(THEIRS), "--per-query", "--convention", "trec_eval", *trec(found, qrels)]
    for more, judged_only in (([], False), (["--drop-unjudged"], True)):
        expected = pytrec_eval.RelevanceEvaluator(qrels, ASKED, judged_docs_only_flag=judged_only).evaluate(found)
        ours = run_json(*asked, *more)
        for name, theirs in THEIRS.items():
            by_query = dict(zip(ours["per_query"]["qid"], ours["per_query"][name], strict=True))
            assert by_query == pytest.approx({q: values[theirs] for q, values in expected.items()}, abs=1e-12)
            assert ours["metrics"][name] == pytest.approx(np.mean([*by_query.values()]))
    complete, every = run_json(*asked, "--complete"), pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(found)
    assert (complete["queries"], len(ours["notes"]), len(complete["notes"])) == (len(qrels), 2, 1)
    for name, theirs in THEIRS.items():
        assert complete["metrics"][name] == pytest.approx(sum(v[theirs] for v in every.values()) / len(qrels))


def test_equal_scores_are_averaged_and_ids_of_trec_files_are_read_as_they_are_written():
    """Also a mark of comments, and words that pandas reads as missing."""
    found = {"NA": {'"q': 2.0, "null": 1.0}, "01": {"1": 1.0}, "1": {"1": 1.0}, "b": {"a#1": 2.0, "b": 2.0}}
    files = trec(found, {"NA": {"null": 1}, "01": {"1": 1}, "b": {"b": 1, "#c": 1}})
    found = run_json("evaluate", "--metric", "mrr", "--per-query", *files)
    assert found["per_query"] == {"qid": ["NA", "01", "b"], "mrr": [0.5, 1.0, 0.75]}


@pytest.mark.parametrize(("library", "objective"), [*((name, "yetiloss:map") for name in SUFFIX), *NATIVE.items()])
def test_the_model_predicts_what_the_table_says(library, objective, fold):
    model, depth = f"model{SUFFIX[library]}", "num_leaves=7" if library == "lightgbm" else "max_depth=3"
    measured = ["--metric", "map,ndcg@5", "--convention", "lightgbm"]
    found = run_json(
        "train", "--library", library, "--data", ".", "--out", model, "--objective", objective,
        "--param", depth, *measured, *OPTIONS,
    )  # fmt: skip
    assert (found["library"], found["objective"], found["model"]) == (library, objective, model)
    assert 0 < found["trees"] < 40  # stopped early
    assert found["notes"] == []
    for name in ("vali", "test"):
        part = PARTS[name]
        scores = library_predicts(library, model, part.X)
        expected = {m: evaluate(m, scores, part.y, part.group, convention="lightgbm") for m in ("map", "ndcg@5")}
        assert found[name] == pytest.approx(expected, abs=1e-9)
    predicted = run_json("predict", "--model", model, "--data", "test.txt", "--out", "scores.npy")
    assert (predicted["trees"], predicted["queries"], predicted["notes"]) == (found["trees"], 15, [])
    np.testing.assert_allclose(np.load("scores.npy"), scores, rtol=1e-12)
    run("predict", "--model", model, "--data", "test.txt", "--out", "scores.txt")
    assert np.array_equal(np.loadtxt("scores.txt"), np.load("scores.npy"))
    evaluated = run_json("evaluate", "--data", "test.txt", "--scores", "scores.txt", "--per-query", *measured)
    assert evaluated["metrics"] == pytest.approx(found["test"])
    assert evaluated["per_query"]["qid"] == list(np.unique(FOLD.test.qid))


@pytest.mark.parametrize(
    ("objective", "names"),
    [
        ("yetiloss:map", ["map", "ndcg@10", "mrr"]),
        ("ranknet", ["ndcg", "ndcg@10", "map", "mrr"]),
        ("lambdarank", ["ndcg@10", "map", "mrr"]),
    ],
)
def test_without_metric_the_training_stops_where_the_estimator_does(fold, objective, names):
    given = ["--library", "lightgbm", "--data", fold, "--out", "model.txt", "--objective", objective, *OPTIONS]
    found = run_json("train", *given)
    assert list(found["vali"]) == names
    assert found == {**run_json("train", "--metric", ",".join(names), *given), "seconds": found["seconds"]}


def test_without_objective_the_labels_decide_too(folder):
    for name, part in PARTS.items():
        write_letor(folder / f"{name}.txt", replace(part, y=100 * part.y))
    found = run_json("train", "--library", "lightgbm", "--data", ".", "--out", "m.txt", "--metric", "map", *OPTIONS)
    assert found["objective"] == str(objective_for("map", Queries(100 * FOLD.train.y, FOLD.train.group)))
    assert found["objective"] != str(objective_for("map"))


@pytest.mark.parametrize(("width", "note"), [(7, "those missing are 0"), (12, "those beyond are left out")])
def test_features_that_a_letor_file_or_the_model_does_not_have(fold, width, note):
    made = ["--library", "lightgbm", "--train", "train.txt", "--out", "model.txt", *OPTIONS]
    X, y, group, qid = FOLD.test
    other = np.hstack([X, np.ones((len(y), 2), np.float32)])[:, :width]
    write_letor(fold / "other.txt", RankingData(other, y, group, qid))
    trained = run_json("train", *made, *(["--test", "other.txt"] if width < 10 else []))
    assert ("vali" in trained, trained["trees"]) == (False, 40)  # without vali it cannot stop early
    printed = run("predict", "--model", "model.txt", "--data", "other.txt", "--out", "scores.npy")
    assert f"note: the model has 10 features, the data {width}: {note}\n" in printed
    expected = library_predicts("lightgbm", "model.txt", X * (np.arange(10) < width))
    np.testing.assert_allclose(np.load("scores.npy"), expected, rtol=1e-12)
    if width < 10:
        assert trained["test"]["map"] == pytest.approx(evaluate("map", expected, y, group))


def test_parameters_reach_the_library_and_its_output_is_no_part_of_the_result(fold):
    given = ["--param", "num_leaves=2", "--param", "boosting=dart", "--param", "verbose=1", *OPTIONS]
    assert run_json("train", "--library", "lightgbm", "--train", "train.txt", "--out", "model.txt", *given)["trees"] > 0
    text = Path("model.txt").read_text()
    assert all(f"[{setting}]" in text for setting in ("num_leaves: 2", "boosting: dart", "num_threads: 1"))


@pytest.mark.parametrize("value", ["1" + "+1" * 20_000, "[" * 5_000, "{[]: 1}", "1 +"])
def test_a_value_that_is_no_literal_of_python_is_text(value):
    assert options.python_value(value) == value


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return a folder with the right and wrong files of refusals.toml, and a small model."""
    folder = tmp_path_factory.mktemp("prepared")
    for name, part in PARTS.items():
        write_letor(folder / f"{name}.txt", part)
    for name, more in {"model": {}, "classes": {"objective": "multiclass", "num_class": 3}}.items():
        data = lgb.Dataset(FOLD.train.X, FOLD.train.y % 3)
        lgb.train({"verbose": -1, "num_threads": 1, **more}, data, 1).save_model(folder / f"{name}.txt")
    names = [f"f{i}" for i in range(10)]
    table = pd.DataFrame(FOLD.train.X, columns=names).assign(label=FOLD.train.y, qid=FOLD.train.qid, score=1.0)
    wrong = {
        "table": table, "text": table.assign(title="text"), "empty": table[:0], "bare": table[["label", "qid"]],
        "missing": table.assign(label=table["label"].where(table.index != 2), qid=table.index % 2),
        "words": table.assign(label="high"),
        "noid": table.assign(qid=table["qid"].where(table.index != 1)), "narrow": table.drop(columns=names[1:]),
        "weighted": table.assign(w=table["qid"] % 2), "flat": table.assign(label=0), "zeros": table.assign(w=0),
    }  # fmt: skip
    for name, frame in wrong.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    table.assign(day=pd.Timestamp("2020-01-01"), digits="1").to_parquet(folder / "typed.parquet")
    lines = (folder / "table.csv").read_text().splitlines()
    (folder / "joined.csv").write_text("\n".join([*lines[:8], lines[0], *lines[8:]]))
    for name in ("label", "f3"):  # pandas would rename the second, and a second label would be a feature
        twice = [f"{1 if i else name},{line}" for i, line in enumerate(lines)]
        (folder / f"twice_{name}.csv").write_text("\n".join(twice))
    for name, text in {
        "l": "1\n0\n1\n", "s": "1\n2\n3\n", "q": "1\n1\n1\n", "short": "1\n", "nan": "1\nnan\n1\n",
        "broken.npy": "no array", "broken.gz": "no archive", "broken.parquet": "no table", "cut.txt": "tree\n",
        "cut.json": "tree\n", "cut.cbm": "tree\n",
        "run": "1 Q0 a 1 2 t\n", "qrels": "1 0 a 1\n", "other": "2 0 a 1\n", "run_short": "1 Q0 a 1 2\n", "void": "",
        "apart": "1\n2\n1\n", "row": "1 2 3\n",
        "run_nan": "1 Q0 a 1 nan t\n", "run_twice": "1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", "run_words": "1 Q0 a 1 x t\n",
        "qrels_long": "1 0 a 1 1\n", "qrels_joined": "1 0 a 1_0\n", "joined.txt": "1 qid:1_1 1:1\n",
        "noqid.txt": "1 1:1\n", "wide.txt": "1 qid:1 1:1 700000:1\n", "cut.ubj": "{",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    (folder / "folder.txt").mkdir()
    (folder / "linked.txt").hardlink_to(folder / "test.txt")
    return folder


@pytest.mark.parametrize(("command", "words"), ERRORS.items(), ids=list(ERRORS))
def test_an_error_is_one_line_and_writes_nothing(prepared, monkeypatch, command, words):
    monkeypatch.chdir(prepared)
    before = {path: path.is_file() and path.read_bytes() for path in prepared.rglob("*")}
    assert words in fails(*shlex.split(command))  # exit code 2, and no traceback
    assert before == {path: path.is_file() and path.read_bytes() for path in prepared.rglob("*")}


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no pipes")
def test_it_runs_as_a_module_and_reads_a_pipe(fold):
    np.savetxt("scores", FOLD.test.X[:, 0])
    asked = ["evaluate", "--metric", "mrr", "--scores", "scores", "--json"]
    script = f"{sys.executable} -m ltr_objectives {' '.join(asked)} --data <(cat test.txt)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(["bash", "-c", script], text=True, capture_output=True, env=environment, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == run_json(*asked[:-1], "--data", "test.txt")


def test_an_interrupt_ends_with_130_and_writes_nothing(fold, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ltr_objectives.objectives.pairwise.pairs_by_gain", interrupted)
    given = ["train", "--train", "train.txt", "--library", "lightgbm", "--out", "m.txt", "--objective", "lambdamart"]
    done = CliRunner().invoke(ltr_objectives.workbench.cli.app.app, given)
    assert (done.exit_code, "interrupted" in done.output, "Traceback" in done.output) == (130, True, False)
    assert not Path("m.txt").exists()

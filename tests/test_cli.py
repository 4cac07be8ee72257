"""``ltr-objectives``: every kind of file, output for people and for programs, errors of one line."""

import gzip
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from generated import ranking

pytest.importorskip("typer")
pytest.importorskip("pandas")
metrics = pytest.importorskip("sklearn.metrics")

from commands import fails, run, run_json, write_letor  # noqa: E402 - skipped without

import ltr_objectives.workbench.cli  # noqa: E402 - skipped without
from ltr_objectives.datasets import RankingData  # noqa: E402 - skipped without

LABELS, SCORES, QID = [1, 0, 0, 1, 2], [0.1, 0.9, 0.2, 0.5, 0.3], ["a", "a", "bb", "bb", "bb"]


@pytest.fixture(autouse=True)
def folder(workplace):
    return workplace


@pytest.fixture(params=["text", "gz", "npy", "csv", "csv.gz"])
def files(request, folder):
    """The options that name the same labels, scores and query ids in one kind of file."""
    columns = {"labels": LABELS, "scores": SCORES, "qid": QID}
    if request.param.startswith("csv"):
        rows = [columns, *zip(*columns.values(), strict=True)]
        path = write(folder / f"all.{request.param}", "\n".join(",".join(map(str, row)) for row in rows))
        return [text for name in columns for text in (f"--{name}", f"{path}:{name}")]
    found = []
    for name, values in columns.items():
        path = folder / f"{name}.{request.param}"
        if request.param == "npy":
            np.save(path, np.array(values))
        else:
            write(path, "\n".join(map(str, values)))
        found += [f"--{name}", path]
    return found


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_every_kind_of_file_is_read(files):
    found = run_json("evaluate", "--metric", "mrr,ndcg@1", "--per-query", *files)
    assert found["queries"] == 2
    assert found["metrics"] == {"mrr": 0.75, "ndcg@1": pytest.approx((0 + 1 / 3) / 2)}
    assert found["per_query"] == {"qid": ["a", "bb"], "mrr": [0.5, 1.0], "ndcg@1": [0.0, pytest.approx(1 / 3)]}


def columns(folder, **changed):
    """Options with plain text files of the columns."""
    found = []
    for name, values in {"labels": LABELS, "scores": SCORES, "qid": [1, 1, 2, 2, 2], **changed}.items():
        path = folder / name
        path.write_text(values if isinstance(values, str) else "\n".join(map(str, values)))
        found += [f"--{name}", path]
    return found


def test_a_letor_file_has_labels_and_query_ids(folder):
    X, y, qid = ranking(1, 20)
    scores = X[:, 0] + 0.5
    data = RankingData(X, y, np.bincount(qid), qid + 1)
    np.savetxt(folder / "scores", scores)
    files = ["--data", write_letor(folder / "test.txt", data), "--scores", folder / "scores"]
    found = run_json("evaluate", "--metric", "ndcg@3", "--convention", "sklearn", "--per-query", *files)
    assert found["convention"] == "sklearn"
    assert found["per_query"]["qid"] == list(range(1, 21))
    for i, value in enumerate(found["per_query"]["ndcg@3"]):
        rows = qid == i
        # scikit-learn refuses lists of one document; a second one, ranked last, changes nothing
        expected = metrics.ndcg_score([[*y[rows], 0]], [[*scores[rows], -1e9]], k=3)
        assert value == pytest.approx(expected)
    assert found["metrics"]["ndcg@3"] == pytest.approx(np.mean(found["per_query"]["ndcg@3"]))


def test_a_query_that_is_skipped_has_no_value(folder):
    files = columns(folder, labels=[0, 0, 0, 1, 0])
    arguments = ("evaluate", "--metric", "auc", "--convention", "sklearn", "--per-query", *files)
    assert run_json(*arguments)["per_query"]["auc"] == [None, 1.0]
    assert [line.split() for line in run(*arguments).splitlines()][3:5] == [["1", "-"], ["2", "1.0000"]]


@pytest.mark.parametrize(
    ("changed", "arguments", "message"),
    [
        ({}, ["--metric", "ndgc"], "unknown metric 'ndgc'; there are auc, "),
        ({}, ["--metric", ","], "--metric is empty"),
        ({}, ["--convention", "lightgmb"], "ndcg has no convention 'lightgmb'; conventions of ndcg: catboost"),
        ({}, ["--data", "x"], "pass either --data, or --labels and --qid"),
        ({}, ["--complete"], "--complete needs --run"),
        ({}, ["--scores", "nowhere"], "--scores nowhere does not exist"),
        ({}, ["--scores", "two.csv"], "two.csv: name one of its columns"),
        ({}, ["--scores", "two.csv:two"], "scores must be finite, but row 1 is nan"),
        ({}, ["--scores", "broken.npy"], "--scores broken.npy: "),
        ({}, ["--scores", "square.npy"], "it has shape (2, 2)"),
        ({}, ["--scores", "broken.gz"], "broken.gz: "),
        ({"scores": ""}, [], "it is empty"),
        ({"scores": "1 2 3 4 5"}, [], "it has 5 columns; write one value a line"),
        ({"scores": [1, 2]}, [], "scores has 2 entries"),
        ({"qid": [1, 1, 2, 2, 1]}, [], "qid is not sorted"),
        ({"labels": [-1, 0, 0, 0, 0]}, [], "needs labels of at least 0"),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(folder, changed, arguments, message):
    (folder / "two.csv").write_text("one,two\n" + "1,1\n2,\n" + "1,1\n" * 3)
    (folder / "broken.npy").write_text("no array")
    (folder / "broken.gz").write_text("not compressed")
    np.save(folder / "square.npy", np.ones((2, 2)))
    files = [str(path).replace(f"{folder}/", "") for path in columns(folder, **changed)]
    for name in {"--scores"} & set(arguments):
        del files[files.index(name) : files.index(name) + 2]
    assert message in fails("evaluate", *files, *arguments)


def test_nothing_to_evaluate_is_an_error():
    assert "or --run and --qrels" in fails("evaluate")


def test_errors_are_red(folder, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert run("evaluate", code=2).startswith("\x1b[1;31merror: ")


@pytest.mark.parametrize("name", ["typer", "rich", "pandas"])
def test_without_the_extra_it_says_what_to_install(name, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, name, None)
    for module in [
        m for m in sys.modules if m.startswith(("ltr_objectives.workbench.cli.", "ltr_objectives.workbench.tables"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(SystemExit) as stopped:
        ltr_objectives.workbench.cli.main()
    assert stopped.value.code == 2
    assert (
        capsys.readouterr().err == f"error: the command line needs {name}: pip install typer rich pandas scikit-learn\n"
    )


def test_it_runs_as_a_module(folder):
    arguments = [*map(str, columns(folder)), "--metric", "mrr", "--json"]
    command = [sys.executable, "-m", "ltr_objectives", "evaluate", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["metrics"] == {"mrr": 0.75}
    done = subprocess.run([*command[:-2], "x", "--json"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: unknown metric 'x'")


def test_versions_are_printed():
    lines = run("--version").splitlines()
    assert lines[0] == f"ltr-objectives {ltr_objectives.__version__}"
    assert f"numpy {np.__version__}" in lines
    assert len({line.split()[0] for line in lines}) == len(lines) > 6


def test_the_version_of_xgboost_without_gpu_code_is_printed(monkeypatch):
    only = SimpleNamespace(metadata={"Name": "xgboost-cpu"}, version="3.2.0")
    monkeypatch.setattr("importlib.metadata.distributions", lambda: [only])
    assert "xgboost 3.2.0" in run("--version").splitlines()

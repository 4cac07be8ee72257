"""Damaged model files: an error, never the end of the process."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for needed in ("typer", "sklearn"):
    pytest.importorskip(needed)

from commands import fails, write_letor  # noqa: E402 - skipped without
from rankers import SUFFIX, ranker, ranker_class  # noqa: E402 - skipped without

from ltr_objectives import LTRError  # noqa: E402 - skipped without
from ltr_objectives.adapters import _model_files  # noqa: E402 - skipped without
from ltr_objectives.datasets import make_ranking  # noqa: E402 - skipped without

DATA = make_ranking(10, features=10, mean_length=10)
HERE = Path(__file__).parent


def saved(library, path):
    pytest.importorskip(library)
    ranker(library).fit(DATA.X, DATA.y, qid=DATA.qid).save_model(path)
    return path.read_bytes()


def beyond(whole):
    """An XGBoost model whose first tree has a node that is far outside."""
    model = json.loads(whole)
    model["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][0] = 10**8
    return json.dumps(model).encode()


def no_number(whole):
    """A LightGBM model of the same size, one threshold of which is text."""
    return re.sub(rb"(threshold=)\S", rb"\1x", whole, count=1)


FLIPS = """
import sys
sys.path[:0] = sys.argv[1:3]
import random
from pathlib import Path
from rankers import ranker_class
from test_model_files import DATA

for library, path in zip(sys.argv[3::2], map(Path, sys.argv[4::2])):
    whole, chance = path.read_bytes(), random.Random(7)
    for case in range(4):
        content = bytearray(whole)
        if case == 0:
            content = content[: chance.randrange(len(whole))]
        for _ in range(case):
            content[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        try:
            ranker_class(library)().load_model(path).predict(DATA.X)
        except Exception as error:
            print(f"{path.name}: {type(error).__name__}: {error}")
"""


def test_cut_and_flipped_models_do_not_end_the_process(tmp_path):
    files = {".ubj": "xgboost", ".json": "xgboost", ".txt": "lightgbm", ".cbm": "catboost"}
    given = []
    for ending, library in files.items():
        saved(library, tmp_path / f"model{ending}")
        given += [library, tmp_path / f"model{ending}"]
    command = [sys.executable, "-c", FLIPS, HERE, HERE.parent, *given]
    done = subprocess.run(command, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(f"model{ending}: LTRError: " in done.stdout for ending in files)


@pytest.mark.parametrize(("library", "damage"), [("xgboost", beyond), ("lightgbm", no_number)])
def test_a_model_that_ends_the_process_is_refused_by_name(library, damage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"model{SUFFIX[library]}"
    path.write_bytes(damage(saved(library, path)))
    message = f"model{SUFFIX[library]} is not a whole model of {library}: it is damaged, and would end the process"
    with pytest.raises(LTRError, match=re.escape(message)):
        ranker_class(library)().load_model(path)
    with pytest.raises(LTRError, match=re.escape(message)):
        ranker(library).fit(DATA.X, DATA.y, qid=DATA.qid, init_model=path)
    write_letor(tmp_path / "data.letor", DATA)
    given = ["predict", "--model", path.name, "--data", "data.letor", "--out", "scores.npy"]
    assert message in fails(*given)


@pytest.mark.parametrize("library", list(SUFFIX))
def test_the_process_that_reads_first_neither_hangs_nor_needs_an_importable_package(library, tmp_path, monkeypatch):
    path = tmp_path / f"model{SUFFIX[library]}"
    saved(library, path)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "none.py"))
    _model_files.require_sound(library, str(path))
    monkeypatch.setattr(_model_files, "SECONDS", 0.01)
    _model_files.require_sound(library, str(path))  # Python has not started by then, which tells nothing of the file
    if os.name == "posix":
        hangs = tmp_path / "python"
        hangs.write_text("#!/bin/sh\nprintf '\\001' >&2\nexec sleep 60\n")
        hangs.chmod(0o700)
        monkeypatch.setattr(_model_files, "SECONDS", 1)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", str(hangs))
            with pytest.raises(LTRError, match="reading it did not end within 1 second"):
                _model_files.require_sound(library, str(path))
    monkeypatch.setattr(sys, "frozen", True, raising=False)  # sys.executable is then no Python
    _model_files.require_sound(library, str(path))


@pytest.mark.parametrize("library", list(SUFFIX))
def test_a_path_that_is_no_file_is_no_model(library, tmp_path):
    pytest.importorskip(library)
    paths = [tmp_path, tmp_path / "none", Path(os.devnull)]
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        paths.append(tmp_path / "pipe")
    for path in paths:
        with pytest.raises(LTRError, match=f"is not a file; give the file of a model of {library}"):
            ranker_class(library)().load_model(path)


@pytest.mark.parametrize("library", list(SUFFIX))
def test_models_with_categories_are_read(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / f"model{SUFFIX[library]}"
    X = pandas.DataFrame(DATA.X, columns=[f"f{i}" for i in range(10)])
    X["f0"] = pandas.Categorical(np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    fitted = ranker(library).fit(X, DATA.y, qid=DATA.qid)
    fitted.save_model(path)
    assert ranker_class(library)().load_model(path).n_features_in_ == 10


def test_catboost_s_models_as_json_are_read_too(tmp_path):
    fitted = ranker("catboost").fit(DATA.X, DATA.y, qid=DATA.qid)
    fitted.save_model(tmp_path / "model.json", format="json")
    read = ranker_class("catboost")().load_model(tmp_path / "model.json")
    np.testing.assert_allclose(read.predict(DATA.X), fitted.predict(DATA.X), atol=1e-12)

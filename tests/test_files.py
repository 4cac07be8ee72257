"""Files are written whole or not at all; a full disk leaves the old file, and damaged files are refused."""

import os
import re
import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
from commands import fails, run, write_letor
from rankers import SUFFIX, ranker, ranker_class

from ltr_objectives import LTRError, _files
from ltr_objectives._files import private_folder, replacing
from ltr_objectives.adapters import LGBMRanker
from ltr_objectives.datasets import make_ranking

DATA = make_ranking(10, features=10, mean_length=10)
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes, owners, devices and limits of POSIX")


@posix
def test_the_new_file_takes_the_place_of_the_old_one_and_keeps_its_mode(tmp_path):
    path, link = tmp_path / "file.txt", tmp_path / "link.txt"
    for content in ("old", "new"):
        with replacing(path) as new:
            assert new.name == path.name
            new.write_text(content)
        assert path.read_text() == content
        path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as new:
        new.write_text("through the link")
    assert link.is_symlink()
    assert path.read_text() == "through the link"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["file.txt", "link.txt"]
    with replacing("/dev/null") as new:
        new.write_text("gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_after_an_error_nothing_has_changed(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write(target):
        with replacing(target) as new:
            new.write_text("half")
            raise error

    for target in (path, tmp_path / "none.txt"):
        with pytest.raises(error):
            write(target)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


@posix
def test_a_folder_that_others_can_write_is_not_private(tmp_path):
    folder = private_folder(tmp_path / "folder")
    assert not folder.stat().st_mode & 0o022
    for mode in (0o720, 0o702):
        folder.chmod(mode)
        with pytest.raises(PermissionError, match="other users"):
            private_folder(folder)
    folder.chmod(0o755)
    assert private_folder(folder) == folder
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
        with pytest.raises(PermissionError, match="other users"):
            private_folder(folder)


@posix
@pytest.mark.parametrize(("given", "expected"), [("relative", ".cache"), ("", ".cache"), ("{home}/x", "x")])
def test_a_relative_cache_folder_of_the_user_is_ignored(tmp_path, monkeypatch, given, expected):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", given.format(home=tmp_path))
    assert _files.user_cache() == tmp_path / expected / "ltr_objectives"


@pytest.fixture
def disk():
    """Set the size that no file can exceed, as on a full disk."""
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (usual[0] if size is None else size, usual[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.parametrize("library", list(SUFFIX))
def test_a_full_disk_leaves_the_old_file_and_one_line(library, workplace, disk):
    """XGBoost and CatBoost would lose the end of a model without an error."""
    write_letor("data.letor", DATA)
    model = f"model{SUFFIX[library]}"
    predict = ["predict", "--model", model, "--data", "data.letor", "--out"]
    train = ["train", "--library", library, "--train", "data.letor", "--trees", 10, "--threads", 1, "--out"]
    for command, out in ((train, model), (predict, "scores.npy"), (predict, "scores.txt")):
        run(*command, out)
        whole = Path(out).read_bytes()
        Path(out).write_bytes(old := b"old" + whole)
        there = sorted(os.listdir())
        for size in (0, len(whole) - 1):
            disk(size)
            message = fails(*command, out)
            disk(None)
            assert "Errno" in message or "writ" in message
            assert Path(out).read_bytes() == old
            assert sorted(os.listdir()) == there
        Path(out).write_bytes(whole)


@pytest.mark.parametrize("form", ["json", "cbm"])
def test_catboost_s_models_are_read_in_both_forms(form, tmp_path):
    """By the estimator, and as a start of it."""
    path = tmp_path / "model"
    fitted = ranker("catboost").fit(DATA.X, DATA.y, qid=DATA.qid)
    fitted.save_model(path, format=form)
    read = ranker_class("catboost")().load_model(path)
    np.testing.assert_allclose(read.predict(DATA.X), fitted.predict(DATA.X), atol=1e-12)
    longer = [ranker("catboost").fit(DATA.X, DATA.y, qid=DATA.qid, init_model=start) for start in (read, fitted)]
    np.testing.assert_allclose(longer[0].predict(DATA.X), longer[1].predict(DATA.X), atol=1e-12)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"linear_tree": True},
        {"boosting": "dart", "monotone_constraints": [1] + [0] * 9},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"min_data_in_leaf": 10_000},
        {"categorical_feature": [1], "max_bin": 15},
    ],
)
def test_whole_models_of_lightgbm_are_read_and_no_cut_one_is(changed, workplace):
    of_the_data = {name: changed[name] for name in ("categorical_feature",) if name in changed}
    X = np.abs(DATA.X.round()) if of_the_data else DATA.X
    params = {"objective": "regression", "verbose": -1, "num_threads": 1, **changed}
    params.pop("categorical_feature", None)
    lgb.train(params, lgb.Dataset(X, DATA.y, **of_the_data), 3).save_model("a.txt")
    lgb.Booster(model_file="a.txt").save_model("b.txt")  # read and written again
    for path in ("a.txt", "b.txt"):
        found = LGBMRanker().load_model(path).predict(X)
        assert np.array_equal(found, lgb.Booster(model_file=path).predict(X))
    whole = Path("a.txt").read_bytes()
    kept = whole.index(b"end of parameters") + len("end of parameters")  # pandas' categories follow, here none
    beyond = whole.index(b"pandas_categorical:")
    sizes = {1, *range(5, len(whole) - 1, 499), *range(kept - 3, len(whole) - 1)} - set(range(kept, beyond + 1))
    crlf = whole.replace(b"\n", b"\r\n")  # as git's autocrlf leaves it
    lost = whole[: whole.index(b"Tree=0")] + whole[whole.index(b"end of trees") :]  # trees inside
    for cut in (*(whole[:size] for size in sizes), crlf[:6], crlf[:999], crlf, lost):
        Path("cut.txt").write_bytes(cut)
        with pytest.raises(LTRError, match=r"cut\.txt"):
            LGBMRanker().load_model("cut.txt")


@pytest.mark.parametrize(("library", "form"), [("xgboost", "ubj"), ("xgboost", "json"), ("catboost", "json")])
def test_no_cut_model_of_the_others_is_read(library, form, tmp_path, monkeypatch):
    """Where a brace ends it too. Catboost would read random numbers, and XGBoost could end the process."""
    path = tmp_path / f"model.{form}"
    options = {"format": form} if library == "catboost" else {}
    fitted = ranker(library).fit(DATA.X, DATA.y, qid=DATA.qid)
    fitted.save_model(path, **options)
    whole = path.read_bytes()
    path.write_bytes(whole if form == "ubj" else whole + b"\n")
    np.testing.assert_allclose(ranker_class(library)().load_model(path).predict(DATA.X), fitted.predict(DATA.X))
    monkeypatch.setattr(type(fitted.booster_), "load_model", lambda *_: pytest.fail("the library reads it"))
    braces = [match.end() for match in re.finditer(b"}", whole[:-1])]
    sizes = {*range(0, len(whole), 97), *range(len(whole) - 99, len(whole)), *braces[:: len(braces) // 99 + 1]}
    if (library, form) == ("xgboost", "json"):  # which XGBoost refuses then
        sizes -= {*braces}
    for size in sizes:
        path.write_bytes(whole[:size])
        with pytest.raises(LTRError, match=path.name):
            ranker_class(library)().load_model(path)

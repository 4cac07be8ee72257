"""Files are written whole or not at all: a full disk leaves the old file, and one line names the error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rankers import SUFFIX

from ltr_objectives import _files
from ltr_objectives._files import private_folder, replacing

resource = pytest.importorskip("resource")  # none on Windows
HERE = Path(__file__).parent


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


def test_a_device_is_written_itself():
    with replacing("/dev/null") as new:
        new.write_text("gone")
    assert not Path("/dev/null").is_file()


def test_a_folder_that_others_can_write_is_not_private(tmp_path):
    folder = private_folder(tmp_path / "folder")
    assert folder.stat().st_mode & 0o777 == 0o700
    for mode in (0o720, 0o702):
        folder.chmod(mode)
        with pytest.raises(PermissionError, match="other users can write"):
            private_folder(folder)
    folder.chmod(0o755)
    private_folder(folder)
    if os.geteuid() == 0:
        os.chown(folder, 12345, -1)
        with pytest.raises(PermissionError, match="other users can write"):
            private_folder(folder)


def test_a_relative_cache_folder_of_the_user_is_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    for given, expected in (
        ("relative", tmp_path / ".cache"),
        ("", tmp_path / ".cache"),
        (str(tmp_path / "x"), tmp_path / "x"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert _files.user_cache() == expected / "ltr_objectives"


FULL_DISK = """
import os, resource, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from commands import fails, run, write_letor
from ltr_objectives.datasets import make_ranking_fold

from rankers import SUFFIX

os.environ["LTR_OBJECTIVES_CACHE"] = "cache"
TRAIN, _, TEST = make_ranking_fold((20, 2, 8), features=10, mean_length=10)
for name, part in (("train", TRAIN), ("test", TEST)):
    write_letor(Path(f"{name}.letor"), part)

def full_at(size):  # as a full disk, a file cannot grow beyond it; no process may write more than that to its files
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def survives(out, *command):
    run(*command)
    whole = Path(out).read_bytes()
    Path(out).write_bytes(old := b"old" + whole)
    there = sorted(os.listdir())
    for size in (0, len(whole) - 1):
        full_at(size)
        message = fails(*command)
        full_at(resource.RLIM_INFINITY)
        assert "Errno" in message or "writ" in message, message
        assert Path(out).read_bytes() == old
        assert sorted(os.listdir()) == there
    run(*command)

train = ["train", "--train", "train.letor", "--trees", 10, "--threads", 1]
for library, suffix in SUFFIX.items():
    survives(f"model{suffix}", *train, "--library", library, "--out", f"model{suffix}")
for out in ("scores.npy", "scores.txt"):
    survives(out, "predict", "--library", "lightgbm", "--model", "model.txt", "--data", "test.letor", "--out", out)
"""


def test_a_full_disk_leaves_the_old_file_and_one_line(tmp_path):
    for package in (*SUFFIX, "typer", "pandas", "sklearn"):
        pytest.importorskip(package)
    script = tmp_path / "full_disk.py"
    script.write_text(FULL_DISK)
    command = [sys.executable, script, HERE, HERE.parent]
    done = subprocess.run(command, cwd=tmp_path, timeout=300, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr

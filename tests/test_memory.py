"""Files that unpack to more than memory, that do not end, or that are no files end in one line."""

import gzip
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

for needed in ("typer", "pandas", "sklearn", "pyarrow"):
    pytest.importorskip(needed)

import pyarrow  # noqa: E402 - skipped without
import pyarrow.parquet  # noqa: E402 - skipped without
from commands import fails  # noqa: E402 - skipped without

from ltr_objectives import LTRError, _memory  # noqa: E402 - skipped without
from ltr_objectives.datasets import load_letor  # noqa: E402 - skipped without
from ltr_objectives.workbench import letor as _letor  # noqa: E402 - skipped without

ROOT = Path(__file__).parents[1]
ROWS = 1_500_000
SMALL = 40 << 20
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded on Linux")


@pytest.fixture
def little_memory(monkeypatch):
    for module in (_memory, _letor):
        monkeypatch.setattr(module, "available_memory", lambda: SMALL)


def parquet(path):
    columns = {name: np.zeros(ROWS) for name in ("f", "g", "h", "label", "qid")}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def csv(path):
    with gzip.open(path, "wb", 1) as file:
        file.write(b"label,qid,f\n")
        for _ in range(20):
            file.write(b"0,1,1\n" * (ROWS // 20))


def letor(path):
    with gzip.open(path, "wb", 1) as file:
        line = b"0 qid:1 " + b" ".join(b"%d:1" % i for i in range(1, 1001)) + b"\n"
        for _ in range(20):
            file.write(line * (500))


# in a process of its own, because what others have freed in this one can be used again
LITTLE = f"""
import sys
from ltr_objectives import _memory
from ltr_objectives.workbench import letor as _letor
_letor.available_memory = _memory.available_memory = lambda: {SMALL}
from ltr_objectives.workbench.cli.app import app
app(sys.argv[1:])
"""


@linux
@pytest.mark.parametrize(
    ("write", "name", "command"),
    [
        (parquet, "a.parquet", ["compare", "--data"]),
        (csv, "a.csv.gz", ["train", "--library", "lightgbm", "--out", "m.txt", "--train"]),
        (letor, "a.txt.gz", ["compare", "--data"]),
    ],
)
def test_a_small_file_that_unpacks_to_more_than_memory(tmp_path, write, name, command):
    write(tmp_path / name)
    assert os.path.getsize(tmp_path / name) < 5_000_000
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LTR_OBJECTIVES_CACHE": str(tmp_path / "cache")}
    env["ARROW_DEFAULT_MEMORY_POOL"] = "system"  # jemalloc of PyArrow 14 crashes where it gets no thread
    given = [sys.executable, "-c", LITTLE, *command, name]
    done = subprocess.run(given, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = "".join(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert said, (done.returncode, done.stderr)
    assert name in said
    assert "memory" in said
    assert "Traceback" not in done.stderr


@linux
def test_the_available_memory_is_that_of_the_container(tmp_path, monkeypatch):
    assert 0 < _memory.available_memory() < 2**50
    (tmp_path / "max").write_text(f"{2**20}\n")
    (tmp_path / "stat").write_text("anon 1000\nfile 5000000\n")
    monkeypatch.setattr(_memory, "_OF_A_CONTAINER", ((str(tmp_path / "max"), str(tmp_path / "stat"), "anon "),))
    assert _memory.available_memory() == 2**20 - 1000
    (tmp_path / "max").write_text("max\n")
    assert _memory.available_memory() > 2**20


@pytest.mark.skipif(not Path("/dev/urandom").exists(), reason="no devices")
@pytest.mark.parametrize("device", ["/dev/urandom", "/dev/zero", "/dev/null"])
def test_devices_are_refused(device):
    said = f"{device} is a device or socket; give a file, or a pipe"
    assert said in fails("train", "--library", "lightgbm", "--train", device, "--out", "m.txt")
    assert said in fails("report", "--labels", device, "--qid", device)
    assert said in fails("compare", "--data", device)
    assert said in fails(
        "predict", "--library", "lightgbm", "--model", device, "--data", __file__, "--out", "scores.npy"
    )
    with pytest.raises(LTRError, match=said):
        load_letor(device, cache=None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_without_end_and_a_pipe_in_place_of_a_table(tmp_path, monkeypatch, little_memory):
    monkeypatch.setattr(_letor, "available_memory", lambda: 1 << 20)
    monkeypatch.chdir(tmp_path)
    for name in ("pipe", "pipe.csv", "pipe.parquet"):
        os.mkfifo(name)
    for name in ("pipe.csv", "pipe.parquet"):
        said = f"--data {name} is a pipe; tables are read from files"
        assert said in fails("compare", "--data", name)

    def write():
        with suppress(BrokenPipeError), open("pipe", "wb", buffering=0) as pipe:
            while True:
                pipe.write(b"0 qid:1 1:1\n" * 10_000)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(LTRError, match="pipe does not end within the available memory"):
        load_letor("pipe")
    writer.join(60)
    assert not writer.is_alive()


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_a_damaged_archive_is_an_error_that_names_it(tmp_path, monkeypatch, ending):
    module = pytest.importorskip({"gz": "gzip", "xz": "lzma"}.get(ending, ending))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = "".join(f"{rng.integers(2)},{i // 9},{rng.normal()}\n" for i in range(500))
    whole = module.compress(b"label,qid,f\n" + lines.encode())
    name = f"a.csv.{ending}"
    for place in range(0, len(whole), len(whole) // 25):
        Path(name).write_bytes(whole[:place] + b"\xff\xff\xff" + whole[place + 3 :])
        assert f"--data {name}: " in fails("report", "--data", name)
        Path(name).write_bytes(whole[:place])
        assert f"--data {name}: " in fails("report", "--data", name)

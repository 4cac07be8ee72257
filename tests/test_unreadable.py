"""Devices, pipes in place of tables, and damaged archives end in one line."""

import os
from pathlib import Path

import numpy as np
import pytest

for needed in ("typer", "pandas", "sklearn"):
    pytest.importorskip(needed)

from commands import fails  # noqa: E402 - skipped without

from ltr_objectives import LTRError  # noqa: E402 - skipped without
from ltr_objectives.datasets import load_letor  # noqa: E402 - skipped without


@pytest.mark.skipif(not Path("/dev/urandom").exists(), reason="no devices")
@pytest.mark.parametrize("device", ["/dev/urandom", "/dev/zero", "/dev/null"])
def test_devices_are_refused(device):
    said = f"{device} is a device or socket; give a file, or a pipe"
    assert said in fails("train", "--library", "lightgbm", "--train", device, "--out", "m.txt")
    assert said in fails("compare", "--data", device)
    assert said in fails(
        "predict", "--library", "lightgbm", "--model", device, "--data", __file__, "--out", "scores.npy"
    )
    with pytest.raises(LTRError, match=said):
        load_letor(device)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_in_place_of_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("pipe.csv", "pipe.parquet"):
        os.mkfifo(name)
        assert f"--data {name} is a pipe; tables are read from files" in fails("compare", "--data", name)


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
        assert f"--data {name}: " in fails("compare", "--data", name)
        Path(name).write_bytes(whole[:place])
        assert f"--data {name}: " in fails("compare", "--data", name)

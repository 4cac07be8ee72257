"""The processes of a study end with their parent, however it ends."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import psutil
import pytest

from benchmarks.workers import workers

ROOT = Path(__file__).parent.parent
SIGNALS = [signal.SIGTERM, signal.SIGINT, *([signal.SIGKILL] if hasattr(signal, "SIGKILL") else [])]
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="other signals")
COMMAND = (
    "-m", "benchmarks", "quality", "--data", "generated:40,20,20", "--libraries", "lightgbm", "--natives", "none",
    "--objectives", "lambdamart", "--metrics", "ndcg", "--trees", "10000000", "--patience", "10000000",
    "--seeds", "0,1", "--jobs", "2", "--threads", "1",
)  # fmt: skip


def alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(condition):
    """Wait until it is true, with a generous limit."""
    end = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def forever(path):
    path.write_text("")
    while True:
        pass


SCRIPT = """
import signal, sys
from pathlib import Path
from benchmarks.workers import workers
from test_workers import forever

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # one in the background may have inherited none
    with workers(2) as pool:
        for name in "ab":
            pool.submit(forever, Path(name))
        pool.submit(abs, 1).result()
"""


def ends_with_all(parent, number):
    """Send the signal; every process that came from this one must end."""
    left = psutil.Process(parent.pid).children(recursive=True)
    parent.send_signal(number)
    parent.wait(200)
    until(lambda: not any(map(alive, left)))


@ON_POSIX
@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("early", [True, False], ids=["early", "late"])
def test_all_end_together(number, early, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    parent = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    if early:  # the first worker, and what tracks their resources
        until(lambda: len(psutil.Process(parent.pid).children()) >= 2)
    else:
        until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    ends_with_all(parent, number)


@ON_POSIX
def test_a_study_leaves_no_process(tmp_path):
    pytest.importorskip("lightgbm")
    study = subprocess.Popen([sys.executable, *COMMAND, "--out", str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE,
                             text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    with study:
        next(line for line in study.stdout if "at a time" in line)
        until(lambda: len(psutil.Process(study.pid).children()) >= 3)  # two workers, and what tracks their resources
        ends_with_all(study, signal.SIGTERM)


def test_a_block_that_ends_by_an_error_ends_its_processes(tmp_path):
    started, others = tmp_path / "started", active_children()

    def interrupted():
        with workers(1) as pool:
            pool.submit(forever, started)
            until(started.exists)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert set(active_children()) <= set(others)


def test_a_block_waits_for_what_was_asked_for():
    with workers(1) as pool:
        done = pool.submit(abs, -2)
    assert done.result() == 2

"""Ctrl-C in the command line: exit code 130 and nothing written, whatever the library does with it."""

import subprocess
import sys
from pathlib import Path

import pytest
from rankers import SUFFIX

HERE = Path(__file__).parent
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have inherited none
from commands import write_letor
from ltr_objectives.workbench.cli.app import app
from ltr_objectives.datasets import make_ranking_fold
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives import pairwise

from rankers import NATIVE, SUFFIX

os.environ["LTR_OBJECTIVES_CACHE"] = "cache"
for name, part in zip(("train", "vali", "test"), make_ranking_fold((20, 5, 5), features=10, mean_length=10)):
    write_letor(Path(f"{name}.letor"), part)

def interrupting(real):
    def call(*arguments, **named):
        global calls
        calls += 1
        if calls == WHEN:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return real(*arguments, **named)
    return call

command = ["train", "--train", "train.letor", "--vali", "vali.letor", "--threads", "1", "--trees", "500",
           "--patience", "500"]
cases = [
    (library, *case)
    for library in sys.argv[3:]
    for case in (
        (pairwise, "pairs_by_gain", "lambdamart", (1, 2, 20)),  # where it is tried before the training, and within that
        (Metric, "mean", NATIVE[library], (1, 20)),
    )
]
for library, owner, name, objective, whens in cases:
    out, real = f"model{SUFFIX[library]}", getattr(owner, name)
    setattr(owner, name, interrupting(real))
    for WHEN in whens:
        calls = 0
        try:
            app([*command, "--library", library, "--out", out, "--objective", objective])
        except SystemExit as end:
            assert end.code == 130, (library, end.code)
        assert calls < 400, (library, calls)
        assert not os.path.exists(out)
    setattr(owner, name, real)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
def test_it_ends_with_130_and_without_a_traceback(tmp_path):
    for package in (*SUFFIX, "typer", "pandas", "sklearn"):
        pytest.importorskip(package)
    script = tmp_path / "interrupted.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, HERE, HERE.parent, *SUFFIX], cwd=tmp_path, timeout=300, text=True, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines().count("interrupted") == 5 * len(SUFFIX)
    assert "error" not in done.stderr
